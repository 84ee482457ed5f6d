"""Commands that three connections send at the same time; the replies are linearizable, key by key.

A connection that is closed behind a request leaves its outcome unknown. When all have been answered each key is read.
"""

from __future__ import annotations

import re
import select
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from hypothesis import strategies as st

from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import ShrinkLimit
from kvref_conformance.model import effects, encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.rules import Rules
from kvref_conformance.stateful.command_rules import PROTOCOLS, SELDOM
from kvref_conformance.stateful.concurrency.linearizability import Operation, longest_order
from kvref_conformance.stateful.player import counted
from kvref_conformance.strategies.commands import Arguments, KeyCommand, draw_command
from kvref_conformance.strategies.draw import chance, pick
from kvref_conformance.template import with_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from hypothesis.strategies import DrawFn

    from kvref_conformance.connection import Connection
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


@dataclass(frozen=True, slots=True)
class Planned:
    """A command, and whether the connection is closed instead of reading the reply."""

    command: KeyCommand
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
        meta = protocols[on] == s.TEXT and "meta" not in missing and draw(SELDOM)
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

    command: KeyCommand
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
        match command:
            case s.Get():
                return _read(state, encodings.got(command, item), done.reply)
            case s.Store():
                effect = effects.store(self._rules, item, command, same=state.number == done.number)
            case s.Count():
                effect = effects.count(self._rules, item, command)
            case s.Delete():
                effect = effects.delete(item)
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


@dataclass(slots=True)
class _Client:
    """A connection, what it has yet to send, and the request that it waits for the reply of."""

    line: Connection
    protocol: str
    queue: deque[Planned] = field(default_factory=deque)
    sent: Done | None = None
    called: float = 0.0
    numbers: dict[str, int] = field(default_factory=dict)


class Clients:
    """Runs plans; once one has failed each is tried several times, since the next race may end otherwise.

    Args:
        judge: of the run.

    last: the last history that is not linearizable, for a reader.
    """

    def __init__(self, judge: Judge) -> None:
        self.last = ""
        self._judge = judge
        self._step = KeySpecification(Rules.of(judge.endpoint.profile)).step
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
        clients = {on: _Client(self._connect(kind), kind) for on, kind in zip(CONNECTIONS, plan.protocols, strict=True)}
        for planned in plan.commands:
            clients[planned.command.on].queue.append(planned)
        history: History = {key: [] for key in KEYS}
        try:
            for client in clients.values():
                self._send_next(client, names, history)
            while any(client.sent for client in clients.values()):
                self._receive(clients, names, history)
            reader = clients[CONNECTIONS[0]]
            gets = (s.Get(CONNECTIONS[0], (key,), protocol=reader.protocol) for key in KEYS)
            reader.queue.extend(Planned(get, lost=False) for get in gets)
            self._send_next(reader, names, history)
            while reader.sent:
                self._receive(clients, names, history)
        finally:
            for client in clients.values():
                client.line.close()
        return history

    def _connect(self, protocol: str) -> Connection:
        line = self._open(binary=protocol == s.BINARY)
        if self._mapping:
            bind = s.Bind("", self._mapping, protocol=protocol)
            line.send(encodings.sent(protocol, encodings.request(bind)), ask=True)
            line.answer(PATIENCE)
        return line

    def _send_next(self, client: _Client, names: dict[str, str], history: History) -> None:
        client.sent = None
        while client.queue and client.sent is None:
            planned = client.queue.popleft()
            command = planned.command
            key = _key(command)
            number = client.numbers.get(key, WRONG_NUMBER)
            done = Done(command, number, None)
            client.called = time.monotonic()
            request = encodings.request(_named(command, names[key]), number)
            client.line.send(encodings.sent(client.protocol, request), ask=not planned.lost)
            if planned.lost:
                history[key].append(Operation(done, client.called, None))
                client.line.close()
                client.line = self._connect(client.protocol)
            else:
                client.sent = done

    def _receive(self, clients: dict[str, _Client], names: dict[str, str], history: History) -> None:
        """Take what comes next, and send the next command where a reply is whole."""
        waiting = {client.line.fileno(): client for client in clients.values() if client.sent}
        poll = select.poll()
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(PATIENCE * 1000)
        if not ready:
            raise CaseFailed(f"{_described(history)}\nno reply came within {PATIENCE:g} s")
        for descriptor, _ in ready:
            client = waiting[descriptor]
            client.line.receive()
            reply = client.line.answer(0.0)
            if reply is None:
                continue
            assert client.sent is not None, "it waits for a reply"
            key = _key(client.sent.command)
            done = replace(client.sent, reply=encodings.received(client.protocol, reply.data).replace(names[key], key))
            history[key].append(Operation(done, client.called, time.monotonic()))
            if reply.closed:
                raise CaseFailed(f"{_described(history)}\nthe endpoint closed the connection")
            if number := encodings.number_in(done.reply or ""):
                client.numbers[key] = number
            self._send_next(client, names, history)


def _key(command: KeyCommand) -> str:
    return command.words[0] if isinstance(command, s.Get) else command.word


def _named(command: KeyCommand, key: str) -> KeyCommand:
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
