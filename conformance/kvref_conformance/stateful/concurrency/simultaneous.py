"""Commands that three connections send at the same time; the replies are linearizable, key by key.

A connection that is closed behind a request leaves its outcome unknown. When all have been answered each key is read.
"""

from __future__ import annotations

import itertools
import re
import select
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from hypothesis import strategies as st

from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import ShrinkLimit
from kvref_conformance.model import effects
from kvref_conformance.model import steps as s
from kvref_conformance.model.rules import Rules
from kvref_conformance.stateful.concurrency.linearizability import Operation, longest_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from hypothesis.strategies import SearchStrategy

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
_SHOWN: Final = re.compile(r"VALUE \S+ (\d+) \d+(?: (\d+))?\r\n(.*)\r\nEND\r\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Planned:
    """A command, and whether the connection is closed behind it instead of reading the reply."""

    command: s.Get | s.Store | s.Count | s.Delete
    lost: bool


def plans(missing: Collection[str]) -> SearchStrategy[list[Planned]]:
    """Draw the commands of all connections, each of which sends its own in order.

    Args:
        missing: features that the endpoint has not.
    """
    on = st.sampled_from(CONNECTIONS)
    key = st.sampled_from((KEYS[0], *KEYS))
    value, flags = st.sampled_from(("1", "22", "305")), st.integers(0, 3)
    commands: list[SearchStrategy[s.Get | s.Store | s.Count | s.Delete]] = [
        st.builds(s.Count, on, st.sampled_from(("incr", "decr")), key, st.integers(1, 9).map(str)),
        st.builds(s.Store, on, st.just("set"), key, value, flags),
        st.builds(s.Store, on, st.sampled_from(s.STORES), key, value, flags),
        st.builds(s.Get, on, st.tuples(key)),
        st.builds(s.Delete, on, key),
    ]
    if "cas" not in missing:
        commands.append(st.builds(s.Get, on, st.tuples(key), cas=st.just(value=True)))
        commands.append(st.builds(s.Store, on, st.just("cas"), key, value, flags))
    lost = st.sampled_from((False,) * 11 + (True,))
    return st.lists(st.builds(Planned, st.one_of(commands), lost), min_size=1, max_size=40)


@dataclass(frozen=True, slots=True)
class Done:
    """A command on a key as it went.

    Args:
        command: the command.
        number: the cas number that it sent.
        reply: None: it is not known.
    """

    command: s.Get | s.Store | s.Count | s.Delete
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
                return self._get(state, command, done.reply)
            case s.Store():
                effect = effects.store(self._rules, item, command, same=state.number == done.number)
            case s.Count():
                effect = effects.count(self._rules, item, command)
            case s.Delete():
                effect = effects.delete(item)
        if done.reply not in {None, effect.reply}:
            # The number that a missing key may count from is none of the key's.
            made_up = self._rules.makes_up_numbers and item is None and isinstance(command, s.Count)
            return state if made_up and str(done.reply).strip().isdigit() else None
        return Key(effect.item) if effect.writes else state

    @staticmethod
    def _get(state: Key, command: s.Get, reply: str | None) -> Key | None:
        if reply is None:
            return state
        found = _SHOWN.fullmatch(reply)
        if found is None or state.item is None:
            return state if reply == "END\r\n" and state.item is None else None
        if (found[3], int(found[1])) != (state.item.value, state.item.flags) or (found[2] is None) == command.cas:
            return None
        number = int(found[2]) if found[2] else state.number
        return replace(state, number=number) if state.number in {None, number} else None


@dataclass(slots=True)
class _Client:
    """A connection, what it has yet to send, and the request that it waits for the reply of."""

    line: Connection
    queue: deque[Planned] = field(default_factory=deque)
    sent: Done | None = None
    called: float = 0.0
    numbers: dict[str, int] = field(default_factory=dict)


class Clients:
    """Runs plans on an endpoint.

    Args:
        judge: of the run.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._numbers = itertools.count()
        judge.exercised.begin(judge.world.names if judge.world is not None else {})
        self._bind = f"bind {judge.world.names['m1']}\r\n" if judge.world is not None else ""

    def run(self, plan: Iterable[Planned]) -> History:
        """Run a plan with fresh keys; returns the operations on each key.

        Raises:
            CaseFailed: no reply comes, or the endpoint closes a connection.
        """
        names = {key: self._judge.fresh_key(key) for key in KEYS}
        clients = {on: _Client(self._connect()) for on in CONNECTIONS}
        for planned in plan:
            clients[planned.command.on].queue.append(planned)
        history: History = {key: [] for key in KEYS}
        try:
            for client in clients.values():
                self._send_next(client, names, history)
            while any(client.sent for client in clients.values()):
                self._receive(clients, names, history)
            reader = clients[CONNECTIONS[0]]
            reader.queue.extend(Planned(s.Get(CONNECTIONS[0], (key,)), lost=False) for key in KEYS)
            self._send_next(reader, names, history)
            while reader.sent:
                self._receive(clients, names, history)
        finally:
            for client in clients.values():
                client.line.close()
        return history

    def _connect(self) -> Connection:
        on, exercised = f"connection {next(self._numbers)}", self._judge.exercised
        line = self._judge.endpoint.connect(
            watch=lambda sent: exercised.record(on, sent) if sent else exercised.end(on)
        )
        if self._bind:
            line.send(self._bind.encode(), ask=True)
            line.answer(PATIENCE)
        return line

    def _send_next(self, client: _Client, names: dict[str, str], history: History) -> None:
        client.sent = None
        while client.queue and client.sent is None:
            planned = client.queue.popleft()
            command, key = planned.command, _key(planned.command)
            number = client.numbers.get(key, WRONG_NUMBER)
            done = Done(command, number, None)
            client.called = time.monotonic()
            client.line.send(s.request(_named(command, names[key]), number).encode(), ask=not planned.lost)
            if planned.lost:
                history[key].append(Operation(done, client.called, None))
                client.line.close()
                client.line = self._connect()
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
            done = replace(client.sent, reply=reply.data.decode("latin-1").replace(names[key], key))
            history[key].append(Operation(done, client.called, time.monotonic()))
            if reply.closed:
                raise CaseFailed(f"{_described(history)}\nthe endpoint closed the connection")
            found = _SHOWN.fullmatch(done.reply or "")
            if found is not None and found[2]:
                client.numbers[key] = int(found[2])
            self._send_next(client, names, history)


class PlanRunner:
    """Runs drawn plans; once one has failed each is tried several times, since the next race may end otherwise.

    Args:
        judge: of the run.

    last: the last history that is not linearizable, for a reader.
    """

    def __init__(self, judge: Judge) -> None:
        self.last = ""
        self._clients = Clients(judge)
        self._step = KeySpecification(Rules.of(judge.endpoint.profile)).step
        self._limit = ShrinkLimit(judge.budget)

    def judge(self, plan: list[Planned]) -> None:
        """Run a plan.

        Raises:
            CaseFailed: the replies about a key are not linearizable.
            Enough: no shorter plan is to be looked for.
        """
        self._limit.check()
        try:
            for _ in range(ATTEMPTS if self.last else 1):
                self._play(plan)
        except CaseFailed as failure:
            self.last = str(failure)
            self._limit.found()
            raise

    def _play(self, plan: list[Planned]) -> None:
        for key, operations in self._clients.run(plan).items():
            order = longest_order(operations, Key(), self._step)
            if len(order) < len(operations):
                text = _described({key: operations}, order)
                raise CaseFailed(f"{text}\nnot allowed: no order of them has these replies and keeps real time")


def _key(command: s.Get | s.Store | s.Count | s.Delete) -> str:
    return command.words[0] if isinstance(command, s.Get) else command.word


def _named(command: s.Get | s.Store | s.Count | s.Delete, key: str) -> s.Get | s.Store | s.Count | s.Delete:
    return replace(command, words=(key,)) if isinstance(command, s.Get) else replace(command, word=key)


def _described(history: History, order: Iterable[Operation[Done]] | None = None) -> str:
    """Write operations for a reader: when each was called and returned, in milliseconds, and those left over."""
    every = sorted((each for operations in history.values() for each in operations), key=lambda each: each.called)
    ordered = {id(each) for each in order} if order is not None else {id(each) for each in every}
    lines = []
    for each in every:
        began = (each.called - every[0].called) * 1000
        took = "?" if each.returned is None else f"{(each.returned - every[0].called) * 1000:.2f}"
        request = s.request(each.what.command, each.what.number).strip().replace("\r\n", " · ")
        reply = "?" if each.what.reply is None else repr(each.what.reply)
        mark = "  " if id(each) in ordered else "! "
        lines.append(f"{mark}{began:8.2f} to {took:>8} ms  {each.what.command.on}: {request} -> {reply}")
    return "\n".join(lines)
