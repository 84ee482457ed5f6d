"""Timeouts of clients: idle ones, those with an incomplete command, and those that do not read their replies.

All connections are checked once a second: a command needs no timer, and a timeout is accurate to a second or two.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import struct
import termios
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Final

from kvref.protocol.codec import encode
from kvref.protocol.replies import ClientError
from kvref.server.timers import Timer

if TYPE_CHECKING:
    from kvref.engine.counters import Counters
    from kvref.server.connection import Connection

_log = logging.getLogger("kvref.server")

AT_ONCE: Final = 256  # connections: half a millisecond


class WaitReason(Enum):
    """What a connection waits for; each has a setting of seconds that this may take, 0 for any time."""

    COMMAND = "idle_timeout"
    REST = "command_timeout"
    READER = "send_timeout"


@dataclass(slots=True)
class _Waiting:
    """Since when a connection waits for the same: progress changes the mark."""

    reason: WaitReason
    mark: float
    since: float


class Timeouts:
    """Check all connections for as long as the server runs, and count the disconnected clients."""

    def __init__(
        self,
        clients: Callable[[], Iterable[Connection]],
        settings: Callable[[], Mapping[str, int]],
        counters: Counters,
    ) -> None:
        self._clients = clients
        self._settings = settings
        self._counters = counters
        self._previous: dict[Connection, _Waiting] = {}  # in the last check
        self._current: dict[Connection, _Waiting] = {}  # of this one, so far
        self._remaining: Iterator[Connection] = iter(())
        self._loop = asyncio.get_running_loop()
        self._timer = Timer(self._tick)

    def stop(self) -> None:
        self._timer.stop()
        self._remaining = iter(())

    def _tick(self) -> None:
        settings = self._settings()
        limits = {reason: settings[reason.value] for reason in WaitReason}
        self._current = {}
        self._remaining = iter(list(self._clients())) if any(limits.values()) else iter(())
        self._check_some(limits)

    def _check_some(self, limits: Mapping[WaitReason, int]) -> None:
        """Check some connections, and then the others, so that no command has to wait for a check of thousands."""
        some = list(islice(self._remaining, AT_ONCE))
        for client in some:
            self._check(client, limits)
        if len(some) == AT_ONCE:
            self._loop.call_soon(self._check_some, limits)
        else:
            self._previous = self._current

    def _check(self, client: Connection, limits: Mapping[WaitReason, int]) -> None:
        found = self._wait_reason(client)
        if found is None:
            return
        reason, mark, transport = found
        now, waiting = self._loop.time(), self._previous.get(client)
        if waiting is None or waiting.reason is not reason or waiting.mark != mark:
            waiting = _Waiting(reason, mark, now)
        self._current[client] = waiting
        limit = limits[reason]
        if limit and now - waiting.since >= limit:
            self._disconnect(client, transport, reason, limit)

    def _wait_reason(self, client: Connection) -> tuple[WaitReason, float, asyncio.Transport] | None:
        seen = client.waited_for()
        if seen is None:
            return None
        transport, reader, busy = seen
        unsent = transport.get_write_buffer_size()
        if unsent:
            return WaitReason.READER, unsent + _unacknowledged(transport), transport
        if busy:
            return None
        if reader.halfway:
            # There was no reply since: it is the same command, or the client is not authenticated yet.
            return WaitReason.REST, client.quiet_since, transport
        return WaitReason.COMMAND, client.received_at, transport

    def _disconnect(self, client: Connection, transport: asyncio.Transport, reason: WaitReason, limit: int) -> None:
        if reason is WaitReason.READER:
            _log.warning("connection closed: the client read no reply for %d s (send_timeout)", limit)
            transport.abort()
            return
        if reason is WaitReason.REST:
            seen = client.waited_for()
            assert seen is not None
            error = ClientError(f"no whole command within {limit} s (command_timeout)")
            transport.write(encode(seen[1].unfinished(), error, 0))
        else:
            self._counters.idle_kicks += 1
        client.end()


def _unacknowledged(transport: asyncio.Transport) -> int:
    """Return how many bytes the system buffers that the client has not acknowledged: it buffers megabytes."""
    try:
        answer = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0  # closed, or not a socket that reports it: then only unsent bytes count
    found: int = struct.unpack("i", answer)[0]
    return found
