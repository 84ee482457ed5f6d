"""The clients of a world: they send the commands of the plan, and check that replies come in order, one for each."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from kvref_testbed.simulation.loop import SimulatedLoop
from kvref_testbed.simulation.network import Line
from kvref_testbed.simulation.plan import Command, Conversation

STORAGE: Final = frozenset({"set", "add", "replace", "append", "prepend", "cas"})
WRONG_NUMBER: Final = (1 << 62) + 1  # a cas number that no row has
# What a command may be answered with; any may be answered with an error of the server.
_REPLIES: Final = {
    "set": rb"STORED",
    "add": rb"STORED|NOT_STORED",
    "replace": rb"STORED|NOT_STORED",
    "append": rb"STORED|NOT_STORED",
    "prepend": rb"STORED|NOT_STORED",
    "cas": rb"STORED|EXISTS|NOT_FOUND",
    "incr": rb"\d+|NOT_FOUND|CLIENT_ERROR cannot increment or decrement non-numeric value",
    "decr": rb"\d+|NOT_FOUND|CLIENT_ERROR cannot increment or decrement non-numeric value",
    "delete": rb"DELETED|NOT_FOUND",
    "touch": rb"TOUCHED|NOT_FOUND",
    "flush_all": rb"OK",
}
_LINE: Final = {verb: re.compile(rb"(?:" + reply + rb")\Z") for verb, reply in _REPLIES.items()}
_FAILED: Final = b"SERVER_ERROR "
_ITEM: Final = re.compile(rb"VALUE (\S+) (\d+) (\d+)(?: (\d+))?\r\n")


@dataclass(slots=True)
class Item:
    """An item that a get has shown."""

    value: bytes
    flags: int
    number: int | None  # of cas


@dataclass(slots=True, eq=False)
class Operation:
    """A command as it went.

    Args:
        client: number of the client.
        command: the command.
        number: cas number that it sent.
        called: when it was sent.
        end: bytes that the client has sent with it, and before.
        returned: when its reply was there; None: never.
        reply: the line; of a get, empty.
        items: what a get has shown, by key.
    """

    client: int
    command: Command
    number: int
    called: float
    end: int = 0
    returned: float | None = None
    reply: bytes | None = None
    items: dict[str, Item] | None = None

    @property
    def refused(self) -> bool:
        """Return whether the reply is an error of the server: the outcome is not known."""
        return self.reply is not None and self.reply.startswith(_FAILED)


class World(Protocol):
    """What a client uses of its world."""

    loop: SimulatedLoop
    operations: list[Operation]

    def connect(self, number: int, client: Client) -> Line:
        """Connect a client to the server."""

    def wrong(self, text: str) -> None:
        """Note what a server must not do."""

    def unanswered(self, operations: Iterable[Operation]) -> None:
        """Note commands of a connection that the server has closed."""

    def finished(self) -> None:
        """Note that a client does nothing more."""


def request(command: Command, number: int) -> bytes:
    """Return the bytes of a command.

    Args:
        command: the command.
        number: its cas number.
    """
    noreply = " noreply" if command.noreply else ""
    match command.verb:
        case "get" | "gets":
            line = f"{command.verb} {command.key}"
        case "incr" | "decr":
            line = f"{command.verb} {command.key} {command.number}{noreply}"
        case "touch":
            line = f"touch {command.key} {command.exptime}{noreply}"
        case "delete":
            line = f"delete {command.key}{noreply}"
        case "flush_all":
            line = f"flush_all{noreply}"
        case verb:
            cas = f" {number}" if verb == "cas" else ""
            head = f"{verb} {command.key} {command.number} {command.exptime} {len(command.value)}{cas}{noreply}"
            line = f"{head}\r\n{command.value}"
    return f"{line}\r\n".encode()


class Client:
    """One client.

    Args:
        world: its world.
        number: its number.
        conversation: what it does.
        done: called when it does nothing more.
    """

    def __init__(self, world: World, number: int, conversation: Conversation, done: Callable[[], None]) -> None:
        self._world = world
        self._number = number
        self._conversation = conversation
        self._done = done
        self._queue = deque(conversation.commands)
        self._waiting: deque[Operation] = deque()
        self._data = b""
        self._numbers: dict[str, int] = {}
        self._scheduled = False
        self._over = False
        self._ending = False  # the connection is to end after what was sent
        self._line: Line

    def start(self) -> None:
        """Connect at the time of the plan."""
        self._world.loop.call_later(self._conversation.start, self._connect)

    def _connect(self) -> None:
        self._line = self._world.connect(self._number, self)
        if self._conversation.reset_after is not None:
            self._world.loop.call_later(self._conversation.reset_after, self._reset)
        self._next()

    def _reset(self) -> None:
        if not self._over:
            self._line.reset()
            self._end()

    def _next(self) -> None:
        """Send what may be sent now, or end."""
        if self._over or self._scheduled:
            return
        if not self._queue:
            if not self._waiting:
                self._leave()
            return
        if self._queue[0].pipelined or not self._waiting:
            self._scheduled = True
            self._world.loop.call_later(self._queue[0].gap, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._over:
            return
        command = self._queue.popleft()
        number = self._numbers.get(command.key, WRONG_NUMBER) if command.verb == "cas" else 0
        operation = Operation(self._number, command, number, self._world.loop.time())
        self._world.operations.append(operation)
        if not command.noreply:
            self._waiting.append(operation)
        operation.end = self._line.send(request(command, number), command.cuts)
        if not self._queue and self._conversation.end == "half":
            self._ending = True
            self._line.send_eof()
        self._next()

    def _leave(self) -> None:
        """End as the plan says, after the last reply."""
        if self._ending:
            return  # the server closes the connection
        end = self._conversation.end
        if end == "stay":
            self._end()
            return
        self._ending = True
        if end == "quit":
            self._line.send(b"quit\r\n", ())
        else:
            self._line.send_eof()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._done()

    def closed(self, *, reset: bool) -> None:
        """Note that no more bytes come, and close the other side too, unless the server has reset both."""
        if not reset:
            self._line.send_eof()
        if not self._over:
            self._world.unanswered(self._waiting)
            self._end()

    def receive(self, data: bytes) -> None:
        """Take bytes of replies."""
        self._data += data
        while self._data:
            if not self._waiting:
                self._world.wrong(f"client {self._number} gets {self._data!r} for no command")
                self._data = b""
                return
            operation = self._waiting[0]
            taken = self._reply(operation)
            if not taken:
                return
            self._waiting.popleft()
            self._data = self._data[taken:]
            operation.returned = self._world.loop.time()
        self._next()

    def _reply(self, operation: Operation) -> int:
        """Take the reply of a command; return its length, 0 if it is not complete."""
        end = self._data.find(b"\r\n")
        if end < 0:
            return 0
        line = self._data[:end]
        verb = operation.command.verb
        if line.startswith(_FAILED):
            operation.reply = line
            return end + 2
        if verb in {"get", "gets"}:
            return self._shown(operation)
        if _LINE[verb].match(line) is None:
            self._world.wrong(f"client {self._number}: {operation.command} is answered {line!r}")
        operation.reply = line
        return end + 2

    def _shown(self, operation: Operation) -> int:
        at, items = 0, {}
        while not self._data.startswith(b"END\r\n", at):
            found = _ITEM.match(self._data, at)
            if found is None:
                if b"\r\n" in self._data[at:]:
                    self._world.wrong(f"client {self._number}: {operation.command} is answered {self._data!r}")
                    self._data = b""
                return 0
            end = found.end() + int(found[3])
            if len(self._data) < end + 2:
                return 0
            key = found[1].decode()
            items[key] = Item(self._data[found.end() : end], int(found[2]), int(found[4]) if found[4] else None)
            if key not in operation.command.key.split() or self._data[end : end + 2] != b"\r\n":
                self._world.wrong(f"client {self._number}: {operation.command} is answered {self._data!r}")
            at = end + 2
        operation.reply, operation.items = b"", items
        for key, item in items.items():
            if item.number is not None:
                self._numbers[key] = item.number
        return at + len(b"END\r\n")
