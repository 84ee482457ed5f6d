"""Results of commands on standard output."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNWRAPPED: Final = 4096  # columns


def print_results(*parts: RenderableType) -> None:
    """Print tables and texts: wrapped to the width of a terminal, unwrapped into a file or a pipe.

    The environment variable COLUMNS sets a width for both.

    Args:
        parts: what rich renders.
    """
    from rich.console import Console  # noqa: PLC0415 - commands without results need not import it

    console = Console(highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        for part in parts:
            console.print(part)
        return
    for part in parts:
        text = io.StringIO()
        Console(file=text, highlight=False, width=_UNWRAPPED).print(part)
        click.echo("\n".join(line.rstrip() for line in text.getvalue().split("\n")), nl=False)
