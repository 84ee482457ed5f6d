"""Commands that three connections send at the same time; the replies are linearizable, key by key.

A connection that is closed behind a request leaves its outcome unknown. When all have been answered each key is read.
"""

from __future__ import annotations

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hypothesis import strategies as st

from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import ShrinkLimit
from kvref_conformance.model import effects, encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.rules import Rules
from kvref_conformance.stateful.command_rules import PROTOCOLS
from kvref_conformance.stateful.concurrency.linearizability import Operation, longest_order
from kvref_conformance.strategies.commands import Arguments, draw_command
from kvref_conformance.strategies.draw import chance, pick
from kvref_conformance.template import with_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from hypothesis.strategies import DrawFn

    from kvref_conformance.connection import Connection
    from kvref_conformance.coverage import Exercised
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.judge import Judge
    from kvref_conformance.model.effects import Item

CONNECTIONS: Final = ("a", "b", "c")
KEYS: Final = ("k0", "k1")
# Of a plan, once one has failed.
ATTEMPTS: Final = 5
# Seconds in which a reply has to come.
PATIENCE: Final = 8.0
# Of a key that has no item, or whose number was not seen.
WRONG_NUMBER: Final = (1 << 62) + 1


class Planned(NamedTuple):
    """A command, and whether the connection is closed instead of reading the reply."""

    command: s.Locking
    lost: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The protocols of the connections, and the commands of all of them; each sends its own in order."""

    protocols: tuple[str, ...]
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
    return Plan(tuple(protocols.values()), tuple(commands))


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
        # The number that a missing key may count from is none of the key's.
        if self._rules.makes_up_numbers and item is None and (done.reply or "").strip().isdigit():
            return state if isinstance(command, s.Count) else None
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


class _Client:
    """A connection that sends one command after another, with its replies; arguments as of `Clients`."""

    def __init__(
        self, connect: Callable[[str], Connection], protocol: str, names: Mapping[str, str], history: History
    ) -> None:
        self._connect, self._protocol, self._names, self._history = connect, protocol, names, history
        self._numbers: dict[str, int] = {}
        self.line = connect(protocol)

    def run(self, commands: Iterable[Planned]) -> None:
        """Send commands, and add each with its reply to the history.

        Raises:
            CaseFailed: no reply comes, or the connection is closed.
        """
        for command, lost in commands:
            key = _key(command)
            number = self._numbers.get(key, WRONG_NUMBER)
            request = encodings.request(_named(command, self._names[key]), number)
            called = time.monotonic()
            self.line.send(encodings.sent(self._protocol, request), ask=not lost)
            if lost:
                self._history[key].append(Operation(Done(command, number, None), called, None))
                self.line.close()
                self.line = self._connect(self._protocol)
                continue
            reply = self.line.answer(PATIENCE)
            if reply is None:
                raise CaseFailed(f"{_described(self._history)}\nno reply came within {PATIENCE:g} s")
            text = encodings.received(self._protocol, reply.data).replace(self._names[key], key)
            self._history[key].append(Operation(Done(command, number, text), called, time.monotonic()))
            if reply.closed:
                raise CaseFailed(f"{_described(self._history)}\nthe endpoint closed the connection")
            self._numbers[key] = encodings.number_in(text) or number


def counted(endpoint: Endpoint, exercised: Exercised | None) -> Callable[..., Connection]:
    """Return what opens connections to an endpoint and counts the requests on each before they are sent."""
    names = (f"connection {number}" for number in itertools.count())

    def connect(*, binary: bool) -> Connection:
        on = next(names)

        def watch(sent: bytes) -> None:
            if exercised is not None:
                exercised.record(on, sent, binary=binary) if sent else exercised.end(on)

        return endpoint.connect(binary=binary, watch=watch)

    return connect


class Clients:
    """Runs plans; once one has failed each is tried several times, since the next race may end otherwise.

    Args:
        judge: of the run.

    last: the last history that is not linearizable, for a reader.
    """

    def __init__(self, judge: Judge) -> None:
        self.last = ""
        self._judge = judge
        self._step = KeySpecification(Rules(judge.endpoint.profile)).step
        self._limit = ShrinkLimit(judge.budget)
        self._open = counted(judge.endpoint, judge.exercised)
        judge.exercised.begin(judge.world.names if judge.world is not None else {})
        self._mapping = judge.world.names["m1"] if judge.world is not None else ""

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
        for key, operations in self._history(plan).items():
            order = longest_order(operations, Key(), self._step)
            if len(order) < len(operations):
                text = _described({key: operations}, order)
                raise CaseFailed(f"{text}\nnot allowed: no order of them has these replies and keeps real time")

    def _history(self, plan: Plan) -> History:
        """Run a plan with fresh keys; returns the operations on each key."""
        names = {key: self._judge.fresh_key(key) for key in KEYS}
        history: History = {key: [] for key in KEYS}
        clients = [_Client(self._connect, protocol, names, history) for protocol in plan.protocols]
        try:
            queues = [[each for each in plan.commands if each.command.on == on] for on in CONNECTIONS]
            with ThreadPoolExecutor(len(CONNECTIONS)) as threads:
                list(threads.map(_Client.run, clients, queues))
            reads = (s.Get(CONNECTIONS[0], (key,), protocol=plan.protocols[0]) for key in KEYS)
            clients[0].run(Planned(get, lost=False) for get in reads)
        finally:
            for client in clients:
                client.line.close()
        return history

    def _connect(self, protocol: str) -> Connection:
        line = self._open(binary=protocol == s.BINARY)
        if self._mapping:
            bind = s.Bind("", self._mapping, protocol=protocol)
            line.send(encodings.sent(protocol, encodings.request(bind)), ask=True)
            line.answer(PATIENCE)
        return line


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
