"""The options of the suite as options of click, and what options of several commands have in common."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvref.addresses import UNIX
from kvref.cli import completion
from kvref_conformance.running.options import OPTIONS, Option

if TYPE_CHECKING:
    from collections.abc import Callable

COMPLETION: Final = {
    "profile": completion.profile,
    "chapter": completion.chapter,
    "only": completion.requirement,
}
# Names that differ from those of the suite's pytest plugin, and defaults that only the command has.
NAMES: Final = {"last-broken": "last-failed"}
DEFAULTS: Final = {"level": "must", "report": "kvref-report"}

json_option: Final = click.option(
    "--json",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as JSON.",
)
# `file_option("--out", help="...")`: the path of a file, or of a directory, that is written.
file_option: Final = partial(click.option, metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
folder_option: Final = partial(click.option, metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
only_conversations: Final = click.option(
    "--only", metavar="GLOB", multiple=True, help="Only conversations whose ID or group matches. Repeatable."
)
write_option: Final = click.option(
    "--write",
    "page",
    metavar="FILE.md",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Save a full run as the record, and update the table in this page.",
)


def is_address(text: str) -> bool:
    """Return whether a word of a command line is an address, not the name of a file."""
    host, colon, port = text.rpartition(":")
    return text.startswith(UNIX) or bool(colon and host and port.isascii() and port.isdigit())


def suite_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of the suite to a command; one that is not given is None, False or (), the suite's default."""
    for each in reversed(OPTIONS):
        function = _option(each)(function)
    return function


def _option(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag, name = f"--{NAMES.get(option.name, option.name)}", option.name.replace("-", "_")
    if not option.metavar:
        return click.option(flag, name, is_flag=True, help=option.text)
    shown: dict[str, Any] = {"help": option.text, "shell_complete": COMPLETION.get(option.name)}
    if option.name in DEFAULTS:
        shown |= {"help": option.help, "default": DEFAULTS[option.name], "show_default": True}
    kind: Any = option.kind
    if option.choices:
        kind = click.Choice(option.choices)
    else:
        shown["metavar"] = option.metavar
        if option.least is not None:
            kind = (click.FloatRange if kind is float else click.IntRange)(option.least)
    return click.option(flag, name, type=kind, multiple=option.several, **shown)
