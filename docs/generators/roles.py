"""Roles of the site: `src` links a file of the repository, `limit` shows a default or a constant of the code."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from docutils import nodes

from kvref.server.settings import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path


def setup_roles(app: Any, source: str, root: Path) -> None:
    """Add the roles.

    Args:
        app: Sphinx's application.
        source: URL of the repository.
        root: folder of the repository.
    """
    app.add_role("src", partial(_src, source, root))
    app.add_role("limit", _limit)


def limit(text: str) -> str:
    """Return the default of a setting, or the value of a constant, with its unit.

    Args:
        text: name of a setting, or `module.NAME`, and after a space its unit if it has one: `bytes`, `KiB` or `s`.

    Raises:
        LookupError: neither a setting nor a constant has this name.
    """
    name, _, unit = text.partition(" ")
    if name in SETTINGS:
        return with_unit(SETTINGS[name].default, SETTINGS[name].unit)
    module, _, constant = name.rpartition(".")
    try:
        return with_unit(getattr(importlib.import_module(module), constant), unit)
    except (ImportError, AttributeError, ValueError):
        raise LookupError(f"{name!r} is neither a setting nor a constant") from None


def with_unit(value: float, unit: str) -> str:
    """Return a number as readers expect it: 65536 bytes are `64 KiB`, 0.002 s are `2 ms`, 10000 are `10,000`."""
    if unit == "s":
        return f"{value:g} s" if value >= 1 else f"{value * 1000:g} ms"
    size = int(value) << 10 if unit == "KiB" else int(value)
    if unit in {"bytes", "KiB"}:
        for factor, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if size and size % factor == 0:
                return f"{size // factor} {name}"
        return f"{size:,} bytes"
    return f"{value:,}"


def _limit(
    _name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_others: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    try:
        return [nodes.Text(limit(text))], []
    except LookupError as error:
        message = inliner.reporter.error(f"limit: {error}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]


def _src(
    source: str, root: Path, _name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_others: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return the link, or an error where there is no such file or folder."""
    path = root / text
    if not path.exists():
        message = inliner.reporter.error(f"src: no file {text!r} in the repository", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    kind = "tree" if path.is_dir() else "blob"
    link = nodes.reference(rawtext, "", nodes.literal("", text), refuri=f"{source}/{kind}/main/{text}")
    return [link], []
