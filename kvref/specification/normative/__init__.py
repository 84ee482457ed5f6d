"""Normative chapters that are not lists of requirements, as data: grammar, binary protocol, replies, states, defaults.

Each file of this folder is one chapter; `kvref_conformance.spec.normative` shows them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def grammar() -> str:
    """Return the grammar of lines in ABNF."""
    return files(__package__).joinpath("grammar.abnf").read_text(encoding="utf-8")


@cache
def table(name: str) -> dict[str, Any]:
    """Return a chapter that is a TOML file.

    Args:
        name: of the file, without its suffix.
    """
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def script(name: str) -> str:
    """Return a script of a store that creates tables, with names in place of its parameters.

    Args:
        name: path below the package kvref, such as `storage/sqlite/containers.sql`.
    """
    text = files("kvref").joinpath(name).read_text(encoding="utf-8")
    return text.replace("{collation}", "NOCASE").replace("{name}", "cache")
