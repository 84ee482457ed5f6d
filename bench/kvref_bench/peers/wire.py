"""A blocking client for the commands of memcached's text protocol before and after a measurement."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from kvref.addresses import connect, parse_address
from kvref.errors import cause_of
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

STEP_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 20.0  # a plugin that was loaded takes about one
BATCH: Final = 500
POLL: Final = 0.02
# Bytes read of one line.
_MAX_LINE: Final = 8192
# A length of seven digits is below 10 MB.
_SIZE_DIGITS: Final = 7


class LineConnection(NamedTuple):
    """An open connection: `exchange` sends a line, `lines` has what comes."""

    socket: socket.socket
    lines: BinaryIO
    address: str

    def exchange(self, line: bytes) -> bytes:
        """Send a command and read one line, without its end."""
        self.socket.sendall(line + b"\r\n")
        return self.line()

    def line(self) -> bytes:
        """Read one line, without its end."""
        reply = self.lines.readline(_MAX_LINE)
        if not reply.endswith(b"\r\n"):
            raise BenchError(f"{self.address} closed the connection after {reply!r}")
        return reply[:-2]


@contextmanager
def line_connection(address: str) -> Iterator[LineConnection]:
    """Open a connection for the block.

    Raises:
        BenchError: it is not reached, or does not answer in STEP_SECONDS; also in the block.
    """
    place = parse_address(address)
    try:
        with connect(place.socket_address, STEP_SECONDS) as connection, connection.makefile("rb") as lines:
            yield LineConnection(connection, lines, address)
    except OSError as error:
        raise BenchError(
            f"{address}: {cause_of(error)}; start the server, or give the address where it listens"
        ) from error


def version(address: str) -> str:
    """Return the server's version. Raises BenchError if the server does not use the protocol."""
    with line_connection(address) as to:
        reply = to.exchange(b"version")
    if not reply.startswith(b"VERSION "):
        raise BenchError(f"{address} answers `version` with {reply!r}: this is not a memcached protocol")
    return reply.decode("latin-1").removeprefix("VERSION ").strip()


def has_mappings(address: str) -> bool:
    """Return whether the server has the verb `bind`, which native memcached lacks."""
    with line_connection(address) as to:
        return to.exchange(b"bind kvref-bench-no-such-mapping") != b"ERROR"


def stats(address: str, about: str = "") -> dict[str, str]:
    """Return the rows of `stats`, or of `stats settings`, by name."""
    with line_connection(address) as to:
        reply = to.exchange(f"stats {about}".strip().encode())
        found = {}
        while reply.startswith(b"STAT "):
            _, name, *rest = reply.decode("latin-1").split(" ", 2)
            found[name] = rest[0] if rest else ""
            reply = to.line()
    return found


def get(address: str, word: bytes) -> bytes | None:
    """Get one value; None where there is none."""
    with line_connection(address) as to:
        head = to.exchange(b"get " + word)
        if head == b"END":
            return None
        if not head.startswith(b"VALUE "):
            raise BenchError(f"{address} answers `get {word.decode('latin-1')}` with {head!r}")
        size = head.split()[-1]
        if not size.isdigit() or len(size) > _SIZE_DIGITS:
            raise BenchError(f"{address} answers `get {word.decode('latin-1')}` with {head!r}: no value of a few MiB")
        data = to.lines.read(int(size) + 2)
        to.line()
    return data[:-2]


def items(address: str) -> int | None:
    """Return how many items `stats` counts; None if it does not."""
    count = stats(address).get("curr_items", "")
    return int(count) if count.isdigit() else None


def flush(address: str) -> None:
    """Throw all items away, and free them: `stats` counts none, unless that takes more than ANSWER_SECONDS."""
    with line_connection(address) as to:
        reply = to.exchange(b"flush_all")
        if reply != b"OK":
            raise BenchError(f"{address} answers `flush_all` with {reply!r}: the table cannot be reloaded")
        # memcached frees items of this second alone; others are counted until a command or the crawler finds them.
        until = time.monotonic() + ANSWER_SECONDS
        while items(address) and time.monotonic() < until:
            if not to.exchange(b"lru_crawler crawl all").startswith((b"OK", b"BUSY")):
                break
            time.sleep(POLL)


def load(address: str, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[int]:
    """Set rows, many in one write, and check every reply; gives the number of rows after each write."""
    with line_connection(address) as to:
        left, done = iter(rows), 0
        while batch := list(islice(left, BATCH)):
            if refused := _exchange_all(to, b"set", batch):
                raise BenchError(f"{refused[0][1]}: it cannot be loaded")
            done += len(batch)
            yield done


def _exchange_all(
    to: LineConnection, verb: bytes, batch: Sequence[tuple[bytes, bytes]], allowed: tuple[bytes, ...] = (b"STORED",)
) -> list[tuple[bytes, str]]:
    """Send a command for each key and value in one write; return keys whose reply is not allowed, with words for it."""
    if verb == b"delete":
        commands = [b"delete %b\r\n" % key for key, _ in batch]
    else:
        commands = [b"%b %b 0 0 %d\r\n%b\r\n" % (verb, key, len(value), value) for key, value in batch]
    to.socket.sendall(b"".join(commands))
    refused = []
    for key, _ in batch:
        reply = to.line()
        if reply not in allowed:
            refused.append((key, f"{to.address} answers `{verb.decode()} {key.decode('latin-1')}` with {reply!r}"))
    return refused


def add(address: str, rows: Sequence[tuple[bytes, bytes]], added: list[bytes]) -> None:
    """Add rows that must not be there yet, many in one write.

    Args:
        address: of the server.
        rows: keys with values.
        added: receives the key of each row that is stored, or may be if an exception is raised.

    Raises:
        BenchError: a row is there already, or the server refuses it.
    """
    with line_connection(address) as to:
        for at in range(0, len(rows), BATCH):
            batch = rows[at : at + BATCH]
            # Of a connection that ends it is unknown which rows are stored.
            added.extend(key for key, _ in batch)
            refused = _exchange_all(to, b"add", batch)
            for key, _ in refused:
                added.remove(key)
            if refused:
                raise BenchError(refused[0][1])


def delete(address: str, keys: Sequence[bytes]) -> None:
    """Delete keys, many in one write; one that is gone is not an error.

    Raises:
        BenchError: the server refuses to delete one; the others are deleted.
    """
    refused = []
    with line_connection(address) as to:
        for at in range(0, len(keys), BATCH):
            batch = [(key, b"") for key in keys[at : at + BATCH]]
            refused += _exchange_all(to, b"delete", batch, (b"DELETED", b"NOT_FOUND"))
    if refused:
        raise BenchError(refused[0][1])


def wait(address: str) -> None:
    """Wait until it answers. Raises BenchError after ANSWER_SECONDS."""
    try:
        until(lambda: version(address), ANSWER_SECONDS)
    except BenchError as error:
        raise BenchError(f"{address} does not answer within {ANSWER_SECONDS:g} s: {error}") from error


def until(check: Callable[[], object], seconds: float) -> None:
    """Repeat a check that raises BenchError until it does not; raises the last one after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            check()
        except BenchError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL)
        else:
            return
