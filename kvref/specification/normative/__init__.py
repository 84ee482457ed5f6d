"""Normative chapters that are not lists of requirements, as data: grammar, binary protocol, replies, states, defaults.

Each file of this folder is one chapter; `kvref_conformance.spec.normative` shows them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kvref import profiles

# In place of a profile's name, what every profile has that is not named.
OTHERS: Final = "*"


@cache
def grammar() -> str:
    """Return the grammar of lines in ABNF."""
    return files(__package__).joinpath("grammar.abnf").read_text(encoding="utf-8")


@cache
def table(name: str) -> dict[str, Any]:
    """Return a chapter that is a TOML file."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def of_profile(name: str, profile: str) -> dict[str, Any]:
    """Return what a chapter that is a TOML file has for one profile.

    A table with `profiles` is left out if they do not include the profile. A table whose keys are names of profiles, or
    `*` for all others, is replaced by the value of the profile, and left out if there is none.
    """
    found: dict[str, Any] = _of_profile(table(name), profile)
    return found


def _of_profile(value: Any, profile: str) -> Any:
    """Return a value for one profile; None, which TOML lacks, if the profile does not have it."""
    if isinstance(value, list):
        return [each for each in (_of_profile(each, profile) for each in value) if each is not None]
    if not isinstance(value, dict):
        return value
    if value and value.keys() <= {OTHERS, *profiles.names()}:
        return value.get(profile, value.get(OTHERS))
    if profile not in value.get("profiles", (profile,)):
        return None
    read = {key: _of_profile(each, profile) for key, each in value.items() if key != "profiles"}
    return {key: each for key, each in read.items() if each is not None}


def script(name: str) -> str:
    """Return a script of a store that creates tables, with names in place of its parameters.

    Args:
        name: path below the package kvref, such as `storage/sqlite/containers.sql`.
    """
    text = files("kvref").joinpath(name).read_text(encoding="utf-8")
    return text.replace("{collation}", "NOCASE").replace("{name}", "cache")
