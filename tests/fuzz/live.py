"""Many connections that send anything to one server, two that watch it, and what must hold of its process.

One thread serves all of them, so that a run is repeated by its seed as far as the server answers in the same order.
"""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from helpers.serving import Served
from helpers.waiting import until

from fuzz.messages import Source, binary, text
from fuzz.other_clients import BinaryClient, TextClient
from fuzz.replies import BinaryReplies, TextReplies

CONNECTIONS: Final = 24
BLOCK: Final = 64  # messages
BLOCKS: Final = (1, 16)  # of one connection: what is announced wrongly swallows what follows
PATIENCE: Final = 30.0  # seconds that a server may take over anything
WARM: Final = 0.2  # share of a run after which its memory is looked at
BAD_WORDS: Final = ("Traceback", "internal error", "a command failed", "Exception", "never retrieved", "Error:")


class FaultError(AssertionError):
    """The server broke a rule that holds whatever is sent."""


@dataclass
class Figures:
    """What a run did."""

    messages: int = 0
    connections: int = 0
    replies: int = 0
    other_replies: int = 0
    seconds: float = 0.0
    rss_mib: float = 0.0
    rss_growth_mib: float = 0.0
    descriptors_left: int = 0

    def as_row(self) -> dict[str, int | float]:
        """Return them by name, times and sizes to two digits."""
        return {name: round(value, 2) for name, value in asdict(self).items()}


@dataclass(eq=False)
class _Client:
    socket: socket.socket
    source: Source
    blocks: int
    bytewise: bool
    half_closes: bool
    waiting: bytes = b""
    reader: TextReplies | BinaryReplies | None = None
    sent_all: bool = False
    since: float = field(default_factory=time.monotonic)


class Fuzz:
    """Send messages to a server and check its state.

    Args:
        served: the server.
        seed: seed of everything random.
        plugin: it answers as the plugin does.
        pool: maximum number of open connections to a database.
    """

    def __init__(self, served: Served, seed: int, *, plugin: bool = False, pool: int = 0) -> None:
        self._served = served
        self._rng = random.Random(seed)
        self._sources = {make: Source(self._rng, make) for make in (text, binary)}
        self._selector = selectors.DefaultSelector()
        self._clients: set[_Client] = set()
        self._plugin = plugin
        self._pool = pool
        self._pids = _processes(served.process.pid)
        self.figures = Figures()

    def run(self, messages: int, *, progress: Callable[[Figures], None] = lambda _: None) -> Figures:
        """Send so many messages; raises FaultError, MalformedError or WrongReplyError."""
        began = time.monotonic()
        with ExitStack() as stack:
            stack.callback(self._selector.close)
            stack.callback(self._close_all)
            watchers = [stack.enter_context(self._served.connect()) for _ in range(2)]
            self._send(messages, (TextClient(watchers[0]), BinaryClient(watchers[1])), progress)
        self._check_process()
        self.figures.seconds = time.monotonic() - began
        return self.figures

    def _send(
        self,
        messages: int,
        others: tuple[TextClient, BinaryClient],
        progress: Callable[[Figures], None],
    ) -> None:
        figures = self.figures
        for each in others:
            each.go_on()
        descriptors = self._descriptors()  # all files are open by now
        warm, turns = 0.0, 0
        while figures.messages < messages:
            while len(self._clients) < CONNECTIONS:
                self._open()
            self._turn(messages)
            turns += 1
            if turns % 3 == 0:
                for each in others:
                    each.go_on()
            if turns % 2000 == 0:
                self._check_process()
                progress(figures)
            if not warm and figures.messages >= messages * WARM:  # caches of a fixed size are full
                warm = self._memory()
        while self._clients:
            self._turn(messages)
        for each in others:
            each.go_on()
            figures.other_replies += each.replies
        figures.rss_mib = self._memory()
        figures.rss_growth_mib = figures.rss_mib - warm
        figures.descriptors_left = max(0, self._settled(descriptors + self._pool) - descriptors - self._pool)

    def _close_all(self) -> None:
        for client in list(self._clients):
            client.socket.close()

    def _open(self) -> None:
        rng = self._rng
        made = socket.create_connection(("127.0.0.1", self._served.port), timeout=PATIENCE)
        made.settimeout(0)
        source = self._sources[text if rng.random() < 0.6 else binary]
        # Some leave in the middle of a message, others say that they are done and wait for all answers.
        client = _Client(made, source, rng.randrange(*BLOCKS), rng.random() < 0.02, rng.random() < 0.7)
        self._clients.add(client)
        self._selector.register(made, selectors.EVENT_READ | selectors.EVENT_WRITE, client)
        self.figures.connections += 1

    def _turn(self, messages: int) -> None:
        ready = self._selector.select(PATIENCE)
        if not ready:
            raise FaultError(f"{len(self._clients)} clients wait for {PATIENCE:g} s: the server does nothing")
        now = time.monotonic()
        for key, events in ready:
            client: _Client = key.data
            try:
                if events & selectors.EVENT_READ:
                    self._read(client)
                if events & selectors.EVENT_WRITE and client in self._clients and not client.sent_all:
                    self._write(client, done=self.figures.messages >= messages)
            except ConnectionError:  # it closed what it could not read
                self._close(client, whole=False)
        for client in list(self._clients):
            if client.sent_all and now - client.since > PATIENCE:
                raise FaultError(f"a connection was not ended within {PATIENCE:g} s after its client's end")

    def _read(self, client: _Client) -> None:
        came = client.socket.recv(1 << 18)
        if client.reader is not None:
            client.reader.feed(came)
        if not came:
            self._close(client, whole=True)

    def _write(self, client: _Client, *, done: bool) -> None:
        if not client.waiting:
            if not client.blocks or done:
                self._leave(client)
                return
            count = BLOCK if client.blocks > 1 else self._rng.randrange(1, BLOCK)
            client.waiting = client.source.block(count)
            client.blocks -= 1
            self.figures.messages += count
            if client.reader is None and client.waiting:
                is_binary = client.waiting[0] == 0x80
                client.reader = BinaryReplies() if is_binary else TextReplies(plugin=self._plugin)
        most = self._rng.randrange(1, 40) if client.bytewise else self._rng.choice((1 << 20, 1 << 20, 1 << 20, 1000, 7))
        client.waiting = client.waiting[client.socket.send(client.waiting[:most]) :]

    def _leave(self, client: _Client) -> None:
        if not client.half_closes:
            self._close(client, whole=False)
            return
        client.sent_all, client.since = True, time.monotonic()
        try:
            client.socket.shutdown(socket.SHUT_WR)
        except OSError as error:  # the server has ended it, and reset what it could not read
            raise ConnectionResetError from error
        self._selector.modify(client.socket, selectors.EVENT_READ, client)

    def _close(self, client: _Client, *, whole: bool) -> None:
        self._selector.unregister(client.socket)
        client.socket.close()
        self._clients.discard(client)
        if client.reader is not None:
            self.figures.replies += client.reader.count
            if whole:
                client.reader.end()

    def _check_process(self) -> None:
        if self._served.process.poll() is not None or _processes(self._served.process.pid) != self._pids:
            raise FaultError("a process of the server is gone")
        for line in self._served.log:
            if any(word in line for word in BAD_WORDS):
                raise FaultError(f"the server logged: {''.join(self._served.log)[-4000:]}")

    def _memory(self) -> float:
        """Return the MiB that its processes have for themselves."""
        total = 0
        for pid in self._pids:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            found = dict(line.split()[:2] for line in rollup.splitlines()[1:])
            total += int(found["Private_Dirty:"]) + int(found["Private_Clean:"])
        return total / 1024

    def _descriptors(self) -> int:
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self._pids)

    def _settled(self, wanted: int) -> int:
        with suppress(AssertionError):
            until(lambda: self._descriptors() <= wanted, seconds=PATIENCE)
        return self._descriptors()


def _processes(pid: int) -> list[int]:
    """Return a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]
