"""`kvref probe`: type lines, see exact bytes; nothing that comes back is interpreted."""

from __future__ import annotations

import re
import sys
import time
from contextlib import suppress
from typing import Final, Self

import click

from kvref import addresses
from kvref.addresses import SocketAddress
from kvref.errors import TargetError, cause_of

CHUNK: Final = 1 << 16
# Limits of one answer. An item has 1 MiB.
MAX_BYTES: Final = 4 << 20
MAX_SECONDS: Final = 60.0
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([\\rnt0]))")
_LETTERS: Final = {"\\": b"\\", "r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0"}


class Conversation:
    """One connection to an endpoint.

    Attributes:
        closed: the connection has ended.
        stopped: why this side closed it, an answer having exceeded a limit; else empty.

    Args:
        address: host and port, or the path of a unix socket.
        idle_timeout: seconds without data after which an answer is complete.
        connect_timeout: limit for the connection, in seconds.
        max_bytes: of one answer.
        max_seconds: from a request to the last byte of its answer.

    Raises:
        TargetError: nothing listens there, or it cannot be reached.
    """

    def __init__(
        self,
        address: SocketAddress,
        idle_timeout: float = 0.2,
        connect_timeout: float = 5.0,
        *,
        max_bytes: int = MAX_BYTES,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        self.closed = False
        self.stopped = ""
        self._max_bytes, self._max_seconds = max_bytes, max_seconds
        try:
            self._socket = addresses.connect(address, connect_timeout)
        except (OSError, UnicodeError) as error:
            where = addresses.format_address(address)
            raise TargetError(f"cannot reach {where}: {cause_of(error)}: is a server running there?") from error
        self._socket.settimeout(idle_timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, data: bytes) -> bytes:
        """Return what comes in answer to bytes until the endpoint is silent, or a limit is reached.

        Sets `closed` at the end of the connection, and `stopped` with it where a limit ended it.
        """
        answer = bytearray()
        deadline = time.monotonic() + self._max_seconds
        try:
            self._socket.sendall(data)
            while chunk := self._socket.recv(CHUNK):
                answer += chunk
                if len(answer) > self._max_bytes:
                    self._stop(f"more than {self._max_bytes} bytes came")
                    return bytes(answer[: self._max_bytes])
                if time.monotonic() > deadline:
                    self._stop(f"the answer did not end within {self._max_seconds:g} s")
                    return bytes(answer)
            self.closed = True
        except TimeoutError:
            pass  # silence is how an answer of unknown length ends
        except (ConnectionResetError, BrokenPipeError):
            self.closed = True
        return bytes(answer)

    def _stop(self, reason: str) -> None:
        self._socket.close()
        self.stopped, self.closed = reason, True


def unescaped(line: str) -> bytes:
    r"""Return the bytes of a typed line: \r \n \t \0 \\ and \xHH are escapes, CR LF is added at the end."""

    def byte(match: re.Match[str]) -> str:
        raw = bytes.fromhex(match[1]) if match[1] else _LETTERS[match[2]]
        return raw.decode("latin-1")

    # latin-1 carries every byte through the substitution; other characters go out as the UTF-8 they were typed in.
    as_bytes = line.encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(byte, as_bytes).encode("latin-1") + b"\r\n"


def escaped(data: bytes) -> list[str]:
    r"""Return bytes as lines of text, each with its own end visible; what is not printable ASCII becomes \xHH."""
    lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
    return [line.decode("latin-1").encode("unicode_escape").decode("ascii") for line in lines]


_HELP = """Send lines to an endpoint and show the exact bytes of its replies.

CR LF is appended to each line. The escapes \\r \\n \\t \\0 \\\\ and \\xHH let you write a data block on the line of
its command.


\b
    set k 0 0 5\\r\\nhello

On a terminal, lines can be edited, and the arrow keys recall earlier ones. Press Ctrl-D to end. You can also redirect a
file or a pipe to standard input.
"""


@click.command(help=_HELP)
@click.argument("address", metavar="HOST:PORT | unix:PATH")
@click.option(
    "--silence", type=click.FloatRange(0.01, 3600), default=0.2, show_default=True, metavar="SECONDS",
    help="Time without data after which a reply is complete.",
)  # fmt: skip
@click.option(
    "--max-bytes", type=click.IntRange(1, 1 << 30), default=MAX_BYTES, show_default=True, metavar="N",
    help="Maximum size of a reply, in bytes. A longer one closes the connection.",
)  # fmt: skip
@click.option(
    "--time-limit", type=click.FloatRange(0.01, 86400), default=MAX_SECONDS, show_default=True, metavar="SECONDS",
    help="Maximum duration of a reply. A longer one closes the connection.",
)  # fmt: skip
def command(address: str, silence: float, max_bytes: int, time_limit: float) -> None:
    where = addresses.parse_address(address)
    prompt = sys.stdin.isatty()
    with Conversation(where.socket_address, silence, max_bytes=max_bytes, max_seconds=time_limit) as conversation:
        while (line := _next_line(prompt=prompt)) is not None:
            sent = unescaped(line)
            for part in escaped(sent) if not prompt else []:
                click.echo(f"> {part}")
            for part in escaped(conversation.exchange(sent)):
                click.echo(f"< {part}")
            if conversation.stopped:
                raise TargetError(f"{address}: {conversation.stopped}: kvref closed the connection")
            if conversation.closed:
                click.echo("(the server closed the connection)")
                return


def _next_line(*, prompt: bool) -> str | None:
    if prompt:
        with suppress(ModuleNotFoundError):  # some builds of Python lack it
            import readline  # noqa: F401, PLC0415 - gives `input` line editing and a history
        try:
            return input("> ")
        except EOFError:
            click.echo()
            return None
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None
