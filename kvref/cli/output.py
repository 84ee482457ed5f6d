"""Where a command writes what it made: a file, or standard output."""

from __future__ import annotations

from pathlib import Path

import click

from kvref.errors import KvrefError

json_option = click.option(
    "--json",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as JSON.",
)


def write(file: str, text: str, *, parents: bool = False) -> None:
    """Write a text.

    Args:
        file: path, or `-` for standard output.
        text: whole.
        parents: make the folders that are missing above the file.

    Raises:
        KvrefError: the file cannot be written.
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
