"""The clients of a world: they send the commands of the plan, and check that replies come in order, one for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from kvref_testbed.simulation.loop import SimulatedLoop
from kvref_testbed.simulation.network import Line
from kvref_testbed.simulation.plan import Command, Conversation
from kvref_testbed.simulation.protocols import FAILED, PROTOCOLS, Item, WrongReplyError

WRONG_NUMBER: Final = (1 << 62) + 1  # a cas number that no row has


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
        return self.reply is not None and self.reply.startswith(FAILED)


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
        self._protocol = PROTOCOLS[conversation.protocol]
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
        operation.end = self._line.send(self._protocol.request(command, number), command.cuts)
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
            self._line.send(self._protocol.QUIT, ())
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
        try:
            reply = self._protocol.reply(operation.command, self._data)
        except WrongReplyError as wrong:
            self._world.wrong(f"client {self._number}: {operation.command} is answered {wrong}")
            self._data = b""
            return 0
        if reply is None:
            return 0
        operation.reply, operation.items = reply.line, reply.items
        for key, item in (reply.items or {}).items():
            if item.number is not None:
                self._numbers[key] = item.number
        return reply.size
