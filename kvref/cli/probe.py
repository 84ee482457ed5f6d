"""`kvref probe`: type lines, see exact bytes."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from kvref.addresses import parse_address
from kvref.client.converse import MAX_BYTES, MAX_SECONDS, Conversation, escaped, unescaped
from kvref.errors import TargetError

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
    where = parse_address(address)
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
