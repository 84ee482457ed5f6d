"""The man page of `kvref`, from click: `bash .ci/docs man` writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import kvref
from kvref.cli import main
from kvref.cli.registry import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_CODES: Final = {
    "0": "The command succeeded; of a judge: the endpoint conforms.",
    "1": "A judge found a difference.",
    "2": "The command could not run: invalid usage, an unreachable endpoint or a missing package.",
    "3": "`kvref serve`: the database cannot be opened or reached.",
}


def page() -> str:
    """Return the page in roff, with every command and option."""
    context = click.Context(main, info_name="kvref")
    lines = [f'.TH KVREF 1 "" "kvref {kvref.__version__}"', ".SH NAME", "kvref \\- memcached over SQL tables"]
    lines += [".SH SYNOPSIS", ".B kvref", r"[\-\-version] [\-\-help] COMMAND [ARGUMENT...]"]
    lines += [".SH DESCRIPTION", *_text(main.help or ""), ".SH COMMANDS"]
    for name, entry in commands().items():
        lines += _described(context, name, entry.load())
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", *_text(meaning)]
    lines += [".SH SEE ALSO", "memcached(1), https://kvref.github.io/kvref/"]
    return "\n".join(lines) + "\n"


def _described(parent: click.Context, name: str, command: click.Command) -> Iterator[str]:
    """Yield usage, help and options of a command, then its subcommands."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_escaped(context.command_path)} {_escaped(usage)}"
    yield from _text(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[0] != "-h, --help":
            yield ".TP"
            yield f".B {_escaped(record[0])}"
            yield from _text(record[1])
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from _described(context, each, below)


def _text(text: str) -> Iterator[str]:
    """Yield paragraphs; one behind a backspace character keeps its lines, as in click."""
    for number, block in enumerate(text.strip("\n").split("\n\n")):
        if number:
            yield ".PP"
        if block.startswith("\b"):
            yield from (".nf", *map(_escaped, block.removeprefix("\b").strip("\n").split("\n")), ".fi")
        else:
            yield _escaped(" ".join(block.split()))


def _escaped(text: str) -> str:
    """Return text that roff prints as it is."""
    shown = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return f"\\&{shown}" if shown.startswith(".") else shown


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(), encoding="utf-8")
