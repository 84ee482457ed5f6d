"""One connection: lines, data blocks, replies in the order of the commands."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commands import Pending, is_quiet
from database import Busy
from meta import MetaCommands
from refusal import Refusal

if TYPE_CHECKING:
    from server import Server

LINE_WAIT = 1024
LINE_MAX = 16 << 20
LOCK_WAIT = 50.0
CRLF = b"\r\n"
FOREIGN = (b"SSH-", b"PROXY ", b"\r\n\r\n\x00")


@dataclass
class Closing(Exception):
    """The connection ends, after a last reply."""

    reply: bytes = b""


class Session:
    """A client and what it has sent and not yet read."""

    def __init__(self, server: "Server", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin with the default mapping."""
        self.server = server
        self.reader = reader
        self.writer = writer
        self.commands = MetaCommands(server)
        self.buffer = b""
        self.position = 0
        self.skip = 0
        self.is_first = True
        self.pending: Pending | None = None
        self.output: list[bytes] = []
        self.is_busy = False
        self.last = time.monotonic()
        self.fd: int = writer.get_extra_info("socket").fileno()

    @property
    def state(self) -> str:
        """The state as `stats conns` shows it."""
        if self.is_busy:
            return "conn_parse_cmd"
        return "conn_nread" if self.pending or self.skip else "conn_read"

    async def run(self) -> None:
        """Serve the connection until it ends."""
        try:
            while data := await self.reader.read(1 << 18):
                self.server.counters.add("bytes_read", len(data))
                self.buffer = self.buffer[self.position:] + data
                self.position = 0
                await self.consume()
                await self.flush()
        except Closing as closing:
            self.output.append(closing.reply)
            await self.flush()
        except (ConnectionError, TimeoutError):
            pass

    async def flush(self) -> None:
        """Send the replies that are ready."""
        data = b"".join(self.output)
        self.output.clear()
        if data:
            self.server.counters.add("bytes_written", len(data))
            self.writer.write(data)
            await self.writer.drain()

    async def consume(self) -> None:
        """Process every whole command of the buffer."""
        done = 0
        while True:
            if self.skip:
                step = min(self.skip, len(self.buffer) - self.position)
                self.position += step
                self.skip -= step
                if self.skip:
                    return
            if self.pending is not None:
                if len(self.buffer) - self.position < self.pending.length + 2:
                    return
                await self.block(self.pending)
            elif not await self.line():
                return
            done += 1
            if done % 100 == 0:
                await self.flush()
                await asyncio.sleep(0)

    async def block(self, pending: Pending) -> None:
        """Process a storage command whose data block is complete."""
        end = self.position + pending.length
        data, tail = self.buffer[self.position:end], self.buffer[end:end + 2]
        self.position = end + 2
        self.pending = None
        if tail != CRLF:
            reply = b"CLIENT_ERROR bad data chunk"
        else:
            reply = await self.perform(lambda: self.commands.store(pending, data))
        self.reply(reply, pending.is_quiet)

    def reply(self, reply: bytes, is_silent: bool = False) -> None:
        """Add a reply, unless the client wants none."""
        if reply and not is_silent:
            self.output.append(reply if reply.endswith(b"\n") else reply + CRLF)

    async def line(self) -> bool:
        """Process the next line; tell whether there was one."""
        if self.is_first and self.position < len(self.buffer):
            self.check_protocol()
        end = self.buffer.find(b"\n", self.position)
        if end < 0:
            rest = len(self.buffer) - self.position
            if rest > LINE_WAIT:
                start = self.buffer[self.position:self.position + 100].lstrip(b" ")
                if not start.startswith((b"get ", b"gets ")):
                    raise Closing
                if rest > LINE_MAX:
                    raise Closing(b"CLIENT_ERROR line of more than %d bytes\r\n" % LINE_MAX)
            return False
        line = self.buffer[self.position:end]
        self.position = end + 1
        self.is_first = False
        if line.endswith(b"\r"):
            line = line[:-1]
        await self.command(line)
        return True

    def check_protocol(self) -> None:
        """Close a connection whose first bytes are of another protocol."""
        start = self.buffer[:16]
        is_tls = start.startswith(b"\x16\x03")
        is_resp = start[:1] == b"*" and start[1:2].isdigit()
        if is_tls or is_resp or start.startswith(FOREIGN) or start[:1] == b"\x80":
            self.server.counters.add("foreign_protocol_conns")
            raise Closing(b"ERROR\r\n" if is_tls else b"")

    async def command(self, line: bytes) -> None:
        """Process one line."""
        self.last = time.monotonic()
        if b"\0" in line:
            self.reply(b"CLIENT_ERROR a line has no NUL byte")
            return
        words = [word for word in line.split(b" ") if word]
        name = words[0] if words else b""
        if name == b"quit":
            raise Closing
        if not self.commands.knows(name):
            if words and words[-1].startswith(b"HTTP/"):
                self.server.counters.add("foreign_protocol_conns")
                raise Closing
            self.reply(b"ERROR")
            return
        self.is_busy = True
        try:
            result = await self.perform(lambda: self.commands.run(words))
        finally:
            self.is_busy = False
        pending = self.commands.taken()
        if pending is not None and pending.is_refused:
            self.skip = pending.length + 2
        elif pending is not None:
            self.pending = pending
        self.reply(result, is_quiet(words))

    async def perform(self, work: Callable[[], bytes]) -> bytes:
        """Run a command; while another connection holds the lock, wait and try again."""
        deadline = time.monotonic() + LOCK_WAIT
        binding = self.commands.binding
        while True:
            try:
                return work()
            except Busy:
                if time.monotonic() > deadline:
                    return b"SERVER_ERROR lock wait timeout"
                self.commands.binding = binding
                await self.flush()
                await asyncio.sleep(0.004)
            except Refusal as refusal:
                if refusal.too_large:
                    self.server.counters.add("store_too_large")
                return refusal.reply
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                return Refusal(f"SERVER_ERROR {error}").reply
