"""Play steps on a target: literal cases, replay files and recordings have this one player.

It opens connections at their first use, sends, runs statements, waits and acts on the server, and returns what each
step showed. `Replies` decides where a reply ends: at the answer to a sentinel (`sentinels.py`), at a silence
(`corpus/silences.py`), or where the protocol says so (`traffic/replay.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Overdue
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, overload

from kvref_conformance.steps import (
    AwaitReply,
    AwaitSql,
    Disconnect,
    Eventually,
    Pause,
    Reload,
    Restart,
    Send,
    Sql,
    StartRequest,
    StartSql,
    Tick,
)
from kvref_conformance.wire.connection import Reply
from kvref_conformance.wire.frames import encode

if TYPE_CHECKING:
    from kvref_conformance.steps import Step
    from kvref_conformance.wire.connection import Connection
    from kvref_conformance.wire.template import Names

# `{"rows": …}`, `{"affected": n}` or `{"error": [number, text]}`.
Result: TypeAlias = dict[str, Any]
NO_REPLY: Final = Reply(b"")
Sending = TypeVar("Sending", bound=Send | StartRequest)


class Target(Protocol):
    """A server, and the database that it serves from."""

    def connect(self) -> Connection:
        """Open a memcached connection; raises OSError if no server listens."""

    def execute(self, name: str, statement: str) -> Result:
        """Run a statement on the SQL connection of that name, opened at its first use.

        Called from several threads, one at a time for each name.
        """

    def server(self, action: str) -> str:
        """Do `reload`, `restart` or `kill9`; return the state of the port."""


class Replies(Protocol):
    """How replies are read."""

    def send(self, connection: Connection, step: Send, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and return the reply."""

    def start(self, connection: Connection, step: Send | StartRequest, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and return what comes although the server should wait; `receive` returns the reply."""

    def receive(self, connection: Connection, step: AwaitReply) -> Reply:
        """Return the reply to what `start` sent, or what has come meanwhile."""

    def disconnect(self, connection: Connection, how: str) -> Reply | None:
        """Close a connection; None once it is closed, a reply if only this side is."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a step showed.

    Args:
        sent: request or statement without names in braces.
        reply: the reply, of a step on a memcached connection; else empty.
        result: the result of a statement, or of an action on the server; None if it still runs.
    """

    sent: str
    reply: Reply = NO_REPLY
    result: Any = None


class Player:
    """The steps of one conversation, on fresh connections.

    Args:
        target: server and database.
        names: values of the names in the templates.
        replies: reads replies.

    connections: the memcached connections that are open, by name.
    running: the statements whose end was not awaited, by name of their connection.
    """

    def __init__(self, target: Target, names: Names, replies: Replies) -> None:
        self.connections: dict[str, Connection] = {}
        self._target = target
        self._names = names
        self._replies = replies
        self.running: dict[str, tuple[str, Future[Result]]] = {}
        self._threads = ThreadPoolExecutor(thread_name_prefix="sql")

    @overload
    def take(self, step: Send | StartRequest | AwaitReply | Sql | AwaitSql) -> Shown: ...

    @overload
    def take(self, step: Step, is_allowed: Callable[[Shown], bool] = ...) -> Shown | None: ...

    def take(self, step: Step, is_allowed: Callable[[Shown], bool] = lambda _: True) -> Shown | None:
        """Take a step.

        Args:
            step: any but those of the binary log.
            is_allowed: whether a step that is repeated has shown what it waits for.

        Returns:
            None for a step that shows nothing.
        """
        match step:
            case Send() | StartRequest() | AwaitReply():
                return self._talk(step)
            case Sql():
                statement = self._names.render(step.statement)
                return Shown(statement, result=self._target.execute(step.on, statement))
            case StartSql():
                return self._start(step)
            case AwaitSql():
                return self._end(step)
            case Eventually():
                return self._repeat(step, is_allowed)
            case Disconnect():
                return self._hang_up(step)
            case Reload():
                self.hang_up_all()
                return Shown("", result=self._target.server("reload"))
            case Restart():
                return Shown("", result=self._target.server(step.how))
            case Pause():
                time.sleep(step.seconds)
            case Tick():
                time.sleep(1 - time.time() % 1)
            case _:
                raise TypeError(f"{step} is not a step of the player")
        return None

    def hang_up_all(self) -> None:
        """Close all memcached connections at once."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()

    def close(self, patience: float = 0.0) -> list[str]:
        """Close all connections; return the statements that still run after so many seconds."""
        self.hang_up_all()
        late = [statement for statement, running in self.running.values() if not _ended(running, patience)]
        self._threads.shutdown(wait=False, cancel_futures=True)
        return late

    def open(self, name: str) -> Connection:
        """Return a connection, opened at its first use; raises OSError."""
        if name not in self.connections:
            self.connections[name] = self._target.connect()
        return self.connections[name]

    def start(self, step: Send | StartRequest) -> Shown:
        """Send what a step says; `AwaitReply` returns the reply."""
        return self._send(step, self._replies.start)

    def _talk(self, step: Send | StartRequest | AwaitReply) -> Shown:
        if isinstance(step, AwaitReply):
            return Shown("", self._replies.receive(self.open(step.on), step))
        return self._send(step, self._replies.send) if isinstance(step, Send) else self.start(step)

    def _send(self, step: Sending, send: Callable[[Connection, Sending, tuple[bytes, ...]], Reply]) -> Shown:
        texts = [self._names.render(packet) for packet in step.packets]
        return Shown("".join(texts), send(self.open(step.on), step, packets_of(step, texts)))

    def _hang_up(self, step: Disconnect) -> Shown | None:
        if step.on not in self.connections and step.how != "half":
            return None
        reply = self._replies.disconnect(self.open(step.on), step.how)
        if reply is None:
            del self.connections[step.on]
        return None if reply is None else Shown("", reply)

    def _start(self, step: StartSql) -> Shown | None:
        """Start a statement; returns its end where it should wait."""
        statement = self._names.render(step.statement)
        running = self._threads.submit(self._target.execute, step.on, statement)
        self.running[step.on] = statement, running
        return self._end(AwaitSql(step.on)) if step.silent and _ended(running, step.silent) else None

    def _end(self, step: AwaitSql) -> Shown:
        statement, running = self.running[step.on]
        if not _ended(running, step.patience):
            return Shown(statement)
        del self.running[step.on]
        return Shown(statement, result=running.result())

    def _repeat(self, step: Eventually, is_allowed: Callable[[Shown], bool]) -> Shown:
        deadline = time.monotonic() + step.within
        while True:
            shown = self.take(step.step)
            if is_allowed(shown) or time.monotonic() > deadline:
                return shown
            time.sleep(step.every)


def packets_of(step: Send | StartRequest, texts: Sequence[str]) -> tuple[bytes, ...]:
    """Return the bytes that a step sends, one packet each.

    Args:
        step: the step.
        texts: its packets without names in braces.
    """
    if not step.binary:
        return tuple(text.encode("latin-1") for text in texts)
    cuts = step.cuts if isinstance(step, Send) else ()
    data = encode("".join(texts))
    return tuple(data[start:end] for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True))


def _ended(running: Future[Result], patience: float) -> bool:
    try:
        running.exception(patience)
    except Overdue:
        return False
    return True
