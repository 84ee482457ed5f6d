"""The command line reference: one page for each command, from click."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from generators.markup import code, page, prose, table
from kvref.cli import main
from kvref.cli.registry import commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "reference/commands"


def pages() -> Mapping[str, str]:
    """Return the pages of all commands and their index."""
    context = click.Context(main, info_name="kvref")
    found = {name: _command(context, name) for name in commands()}
    rows = [(f"[`kvref {name}`]({name}.md)", prose(_summary(command))) for name, command in found.items()]
    toctree = "```{toctree}\n:hidden:\n\n" + "\n".join(found) + "\n```"
    index = page(
        "Command line",
        "These pages are generated from the commands; `kvref COMMAND --help` prints the same.",
        table(("command", "purpose"), rows),
        toctree,
    )
    made = {f"{FOLDER}/{name}.md": _page(context, name, command) for name, command in found.items()}
    return {f"{FOLDER}/index.md": index, **made}


def _command(context: click.Context, name: str) -> click.Command:
    command = main.get_command(context, name)
    if command is None or (not command.params and not isinstance(command, click.Group)):
        raise RuntimeError(f"kvref {name} is not installed whole: pip install 'kvref[docs]'")
    return command


def _summary(command: click.Command) -> str:
    return command.get_short_help_str(limit=200)


def _page(parent: click.Context, name: str, command: click.Command) -> str:
    parts = list(_described(parent, name, command, "##"))
    return page(f"kvref {name}", parts[0], *parts[1:], anchor=f"command-{name}")


def _described(parent: click.Context, name: str, command: click.Command, heading: str) -> Iterator[str]:
    """Yield the help of a command, its usage, its parameters and its subcommands."""
    context = click.Context(command, info_name=name, parent=parent)
    paragraphs = list(_paragraphs(command.help or ""))
    yield paragraphs[0] if paragraphs else ""
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```"
    yield from paragraphs[1:]
    yield from _parameters(context, command)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield f"(command-{name}-{each})=\n{heading} kvref {name} {each}"
            yield from _described(context, each, below, heading + "#")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; one behind a backspace character keeps its lines, as in click."""
    for block in text.strip("\n").split("\n\n"):
        if block.startswith("\b"):
            lines = block.removeprefix("\b").strip("\n")
            yield f"```text\n{lines}\n```"
        elif block.strip():
            yield prose(" ".join(block.split()))


def _parameters(context: click.Context, command: click.Command) -> Iterator[str]:
    rows = [record for each in command.params if (record := each.get_help_record(context)) is not None]
    if rows:
        yield table(("option", "meaning"), [(code(names), prose(" ".join(text.split()))) for names, text in rows])
