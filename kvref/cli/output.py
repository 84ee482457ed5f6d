"""Where a command writes its results: a file, or standard output."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvref.errors import KvrefError

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNWRAPPED: Final = 4096  # columns


def write(file: str, text: str, *, parents: bool = False) -> None:
    """Write a text to a file, or to standard output (`-`). Raises KvrefError if that fails.

    Args:
        parents: create missing folders.
    """
    if file == "-":
        click.echo(text, nl=False)
        return
    try:
        if parents:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise KvrefError(f"cannot write {file}: {error.strerror or error}") from error


def print_results(*parts: RenderableType, width: int = _UNWRAPPED) -> None:
    """Print tables and texts: wrapped to the width of a terminal, unwrapped into a file or a pipe.

    The environment variable COLUMNS sets a width for both.

    Args:
        width: columns of a line in a file or a pipe.
    """
    from rich.console import Console  # noqa: PLC0415 - commands without results need not import it

    console = Console(highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        for part in parts:
            console.print(part)
        return
    for part in parts:
        text = io.StringIO()
        Console(file=text, highlight=False, width=width).print(part)
        click.echo("\n".join(line.rstrip() for line in text.getvalue().split("\n")), nl=False)
