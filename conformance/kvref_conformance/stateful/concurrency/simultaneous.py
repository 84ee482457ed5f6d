"""Commands that three connections send at the same time; the replies are linearizable, key by key.

A connection that is closed behind a request leaves its outcome unknown. When all have been answered each key is read.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hypothesis import strategies as st

from kvref_conformance.endpoints.endpoint_target import EndpointTarget
from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.findings import ShrinkLimit
from kvref_conformance.judging.player import Player
from kvref_conformance.judging.step_rules import rules_of
from kvref_conformance.model import effects, encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.rules import Rules
from kvref_conformance.stateful.command_rules import PROTOCOLS
from kvref_conformance.stateful.concurrency.linearizability import Operation, longest_order
from kvref_conformance.steps import Disconnect, Send
from kvref_conformance.strategies.commands import Arguments, draw_command
from kvref_conformance.strategies.draw import chance, pick
from kvref_conformance.wire.sentinels import Sentinels
from kvref_conformance.wire.template import Names, with_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from hypothesis.strategies import DrawFn

    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.model.effects import Item
    from kvref_conformance.wire.connection import Reply

CONNECTIONS: Final = ("a", "b", "c")
KEYS: Final = ("k0", "k1")
# Of a plan, once one has failed.
ATTEMPTS: Final = 5
# Seconds in which a reply has to come.
PATIENCE: Final = 8.0
# Of a key that has no item, or whose number was not seen.
WRONG_NUMBER: Final = (1 << 62) + 1
NOT_A_RACE: Final = "not a race: one after another, "


class Planned(NamedTuple):
    """A command, and whether the connection is closed instead of reading the reply."""

    command: s.Locking
    lost: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The protocols of the connections, and the commands of all of them; each sends its own in order."""

    protocols: Mapping[str, str]
    commands: tuple[Planned, ...]


@st.composite
def plans(draw: DrawFn, missing: Collection[str]) -> Plan:
    """Draw plans.

    Args:
        draw: of the composite strategy.
        missing: features that the endpoint has not.
    """
    drawn = draw(PROTOCOLS) if "binary" not in missing else (s.TEXT,) * 3
    protocols = dict(zip(CONNECTIONS, drawn, strict=True))
    verbs = dict.fromkeys(s.STORES, 1.0) | {"set": 6.0} | ({"cas": 3.0} if "cas" not in missing else {})
    arguments = Arguments(
        lambda _: pick(draw, (KEYS[0], *KEYS)),
        lambda: pick(draw, ("1", "22", "305")),
        {"count": 2.0, "store": 3, "get": 2, "delete": 1},
        verbs,
        flags=range(4),
        amounts=[str(amount) for amount in range(1, 10)],
        numbered=0.5 if "cas" not in missing else 0.0,
    )

    def planned(draw: DrawFn) -> Planned:
        on = pick(draw, CONNECTIONS)
        meta = protocols[on] == s.TEXT and "meta" not in missing and chance(draw, 0.25)
        command = draw_command(draw, on, s.META if meta else protocols[on], arguments)
        return Planned(command, lost=chance(draw, 1 / 12))

    commands = draw(st.lists(st.composite(planned)(), min_size=1, max_size=40))
    return Plan(protocols, tuple(commands))


@dataclass(frozen=True, slots=True)
class Done:
    """A command on a key as it went.

    Args:
        command: the command.
        number: the cas number that it sent.
        reply: None: it is not known.
    """

    command: s.Locking
    number: int
    reply: str | None


@dataclass(frozen=True, slots=True)
class Key:
    """The state of a key: its item, and the cas number of the item once it was shown."""

    item: Item | None = None
    number: int | None = None


History: TypeAlias = dict[str, list[Operation[Done]]]
"""The operations on each key."""


class KeySpecification:
    """A key whose commands are executed one after the other; one whose reply is not known may have had any.

    Args:
        rules: facts of the profile in force.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def step(self, state: Key, done: Done) -> Key | None:
        """Return the state after a command; None if its reply is wrong in that state."""
        command, item = done.command, state.item
        if isinstance(command, s.Get):
            return _read(state, encodings.got(command, item), done.reply)
        effect = effects.of(self._rules, item, command, same=state.number == done.number)
        if self._rules.makes_up_numbers and item is None and isinstance(command, s.Count) and command.initial is None:
            # The number that a missing key may count from is none of the key's.
            made_up = _read(state, encodings.made_up(command), done.reply)
            if made_up is not None:
                return made_up
        allowed = encodings.replies(self._rules, command, effect.outcome, effect.total)
        return _read(Key(effect.item) if effect.writes else state, allowed[0], done.reply)


def _read(state: Key, allowed: str, reply: str | None) -> Key | None:
    """Return a state with the cas number that the reply shows; None if the reply is not allowed."""
    if reply is None:
        return state
    found = re.fullmatch(with_numbers(allowed), reply)
    if found is None or not found.groups():
        return state if found is not None else None
    number = int(found[1])
    return replace(state, number=number) if state.number in {None, number} else None


class Clients:
    """Runs plans; once one has failed each is tried several times, since the next race may end otherwise.

    Args:
        judge: of the run.

    last: the last history that is not linearizable, for a reader.
    """

    def __init__(self, judge: Judge) -> None:
        self.last = ""
        self._judge = judge
        self._rules = Rules(judge.endpoint.profile)
        self._step = KeySpecification(self._rules).step
        self._limit = ShrinkLimit(judge.budget)
        judge.exercised.begin(judge.world.names if judge.world is not None else {})

    def run(self, plan: Plan) -> None:
        """Run a plan, with fresh keys each time.

        Raises:
            CaseFailed: the replies about a key are not linearizable, or no reply comes, or a connection is closed.
            ShrinkLimitReached: no shorter plan is to be looked for.
        """
        self._limit.check()
        try:
            for _ in range(ATTEMPTS if self.last else 1):
                self._judge_once(plan)
        except CaseFailed as failure:
            self.last = str(failure)
            self._limit.found()
            raise

    def _judge_once(self, plan: Plan) -> None:
        for key, operations in _Run(self._judge, plan).history().items():
            order = longest_order(operations, Key(), self._step)
            if len(order) < len(operations):
                text = _described({key: operations}, order)
                cause = (
                    self._wrong_by_itself(plan) or "not allowed: no order of them has these replies and keeps real time"
                )
                raise CaseFailed(f"{text}\n{cause}")

    def _wrong_by_itself(self, plan: Plan) -> str:
        """Return which reply is wrong if the commands of a plan run one after the other; empty if none is."""
        for operations in _Run(self._judge, plan).history(concurrent=False).values():
            order = longest_order(operations, Key(), self._step)
            wrong = next((each for each in sorted(operations, key=lambda each: each.called) if each not in order), None)
            if wrong is not None:
                request = encodings.request(wrong.what.command, wrong.what.number)
                names = rules_of(request, self._expected(order, wrong), self._judge.endpoint.profile)
                stated = f"; requirements of this step: {', '.join(names)}" if names else ""
                shown = request.strip().replace("\r\n", " · ")
                return f"{NOT_A_RACE}{shown} -> {wrong.what.reply!r} is wrong by itself{stated}"
        return ""

    def _expected(self, order: Iterable[Operation[Done]], wrong: Operation[Done]) -> tuple[str, ...]:
        """Return the reply to a command after those that precede it."""
        state = Key()
        for each in order:
            if each.called < wrong.called:
                state = self._step(state, each.what) or state
        command = wrong.what.command
        if isinstance(command, s.Get):
            return (encodings.got(command, state.item),)
        effect = effects.of(self._rules, state.item, command, same=state.number == wrong.what.number)
        return tuple(encodings.replies(self._rules, command, effect.outcome, effect.total))


class _Run:
    """A plan that is run once, with fresh keys; arguments as of `Clients`."""

    def __init__(self, judge: Judge, plan: Plan) -> None:
        self._commands, self._protocols, self._exercised = plan.commands, plan.protocols, judge.exercised
        self._names = {key: judge.fresh_key(key) for key in KEYS}
        self._history: History = {key: [] for key in KEYS}
        self._mapping = judge.world.names["m1"] if judge.world is not None else ""
        self._player = Player(EndpointTarget(judge.endpoint, None), Names({}, str), Sentinels())

    def history(self, *, concurrent: bool = True) -> History:
        """Run the plan; returns the operations on each key.

        Args:
            concurrent: the connections send at the same time; otherwise each command follows the reply to the last.

        Raises:
            CaseFailed: no reply comes, or a connection is closed.
        """
        try:
            for on in CONNECTIONS:
                self._open(on)
            queues = [[each for each in self._commands if each.command.on == on] for on in CONNECTIONS]
            if concurrent:
                with ThreadPoolExecutor(len(CONNECTIONS)) as threads:
                    list(threads.map(self._send_all, queues))
            else:
                self._send_all(self._commands)
            reads = (s.Get(CONNECTIONS[0], (key,), protocol=self._protocols[CONNECTIONS[0]]) for key in KEYS)
            self._send_all(Planned(get, lost=False) for get in reads)
        finally:
            self._player.close()
            self._exercised.end("")
        return self._history

    def _open(self, on: str) -> None:
        self._player.open(on)
        if self._mapping:
            self._send(on, encodings.request(s.Bind(on, self._mapping, protocol=self._protocols[on])))

    def _send_all(self, commands: Iterable[Planned]) -> None:
        """Send the commands of a connection, and add each with its reply to the history."""
        numbers: dict[str, int] = {}
        for command, lost in commands:
            key, on = _key(command), command.on
            number = numbers.get(key, WRONG_NUMBER)
            request = encodings.request(_named(command, self._names[key]), number)
            called = time.monotonic()
            if lost:
                self._player.open(on).send(self._counted(on, request))
                self._history[key].append(Operation(Done(command, number, None), called, None))
                self._player.take(Disconnect(on, "close"))
                self._exercised.end(on)
                self._open(on)
                continue
            reply = self._send(on, request)
            if reply.hang:
                raise CaseFailed(f"{_described(self._history)}\nno reply came within {PATIENCE:g} s")
            text = encodings.received(self._protocols[on], reply.data).replace(self._names[key], key)
            self._history[key].append(Operation(Done(command, number, text), called, time.monotonic()))
            if reply.closed:
                raise CaseFailed(f"{_described(self._history)}\nthe endpoint closed the connection")
            numbers[key] = encodings.number_in(text) or number

    def _send(self, on: str, request: str) -> Reply:
        self._counted(on, request)
        binary = self._protocols[on] == s.BINARY
        return self._player.take(Send((request,), (), on, patience=PATIENCE, binary=binary)).reply

    def _counted(self, on: str, request: str) -> bytes:
        """Return the bytes of a request, which counts before it is sent."""
        data = encodings.sent(self._protocols[on], request)
        self._exercised.record(on, data, binary=self._protocols[on] == s.BINARY)
        return data


def _key(command: s.Locking) -> str:
    return command.words[0] if isinstance(command, s.Get) else command.word


def _named(command: s.Locking, key: str) -> s.Locking:
    return replace(command, words=(key,)) if isinstance(command, s.Get) else replace(command, word=key)


def _described(history: History, order: Iterable[Operation[Done]] | None = None) -> str:
    """Write operations for a reader: when each was called and returned, in milliseconds, and those left over."""
    every = sorted((each for operations in history.values() for each in operations), key=lambda each: each.called)
    ordered = {id(each) for each in order} if order is not None else {id(each) for each in every}
    lines = []
    for each in every:
        began = (each.called - every[0].called) * 1000
        took = "?" if each.returned is None else f"{(each.returned - every[0].called) * 1000:.2f}"
        request = encodings.request(each.what.command, each.what.number).strip().replace("\r\n", " · ")
        reply = "?" if each.what.reply is None else repr(each.what.reply)
        mark = "  " if id(each) in ordered else "! "
        lines.append(f"{mark}{began:8.2f} to {took:>8} ms  {each.what.command.on}: {request} -> {reply}")
    return "\n".join(lines)
