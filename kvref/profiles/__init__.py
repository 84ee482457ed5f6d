"""Facts: what is true of each endpoint, with evidence. Load profiles and reject what the vocabulary does not allow.

Data in TOML, strict to load: `facts.toml` is the vocabulary, `<profile>.toml` gives the values, `extends` names the
profile that values are inherited from.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kvref.errors import ConfigError, choices

Value = bool | int | str

# Strongest first: seen on the wire, written in a manual or article, read in source code, decided by us (kvref only).
STATUSES: Final = ("observed", "documented", "source-read", "decided")


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of one profile.

    Args:
        key: name in the vocabulary `facts.toml`.
        value: bool, int or one of the words the vocabulary allows.
        status: one of STATUSES.
        evidence: ids of recorded conversations that show it.
        reason: why the value differs from the profile it extends; empty where it is inherited from an observation.
        origin: name of the profile file that states it.
    """

    key: str
    value: Value
    status: str
    evidence: tuple[str, ...]
    reason: str
    origin: str


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The facts of one endpoint, looked up by key; an unknown key is a KeyError, never a default."""

    name: str
    title: str
    facts: dict[str, Fact] = field(repr=False)

    def __getitem__(self, key: str) -> Value:
        return self.facts[key].value

    def flag(self, key: str) -> bool:
        """Return a fact of type bool; raises ConfigError for another type."""
        _check_type(f"fact {key!r}", "bool", value := self[key])
        return bool(value)

    def number(self, key: str) -> int:
        """Return a fact of type int; raises ConfigError for another type."""
        _check_type(f"fact {key!r}", "int", value := self[key])
        return int(value)


def names() -> list[str]:
    """Return the names of all profiles, sorted."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".toml") and entry.name != "facts.toml"
    )


def with_mappings() -> list[str]:
    """Return the names of the profiles that have mappings: those that can be served."""
    return [name for name in names() if load(name).flag("mapping.supported")]


@cache
def load(name: str) -> Profile:
    """Load one profile.

    Raises:
        ConfigError: no such profile, a key outside the vocabulary or without a value, a value of the wrong type,
            an unknown status, an observation without evidence, or a decision without a reason.
    """
    if name not in names():
        raise ConfigError(f"no profile {name!r}{choices(name, names())}")
    table = _read(f"{name}.toml")
    base = table.get("extends")
    facts = dict(load(base).facts) if base else {}
    for key, row in table["facts"].items():
        facts[key] = _fact(name, key, row)
    missing = vocabulary().keys() - facts.keys()
    if missing:
        raise ConfigError(f"profile {name!r} has no value for {', '.join(sorted(missing))}")
    return Profile(name, table["title"], facts)


@cache
def vocabulary() -> dict[str, dict[str, str]]:
    """Return every fact's type and meaning by key."""
    return _read("facts.toml")


def resolved(of: Callable[[Profile], object]) -> Any:
    """Declare an attribute of a dataclass with the function that returns its value in a profile."""
    return field(metadata={"of": of})


def fact_is(fact: str, value: str) -> Any:
    """Declare an attribute of a dataclass that says whether a fact has this value."""
    return resolved(lambda profile: profile[fact] == value)


def resolve(kind: type, profile: Profile) -> dict[str, Any]:
    """Return the attributes of a dataclass that `resolved` and `fact_is` declare, with their values in a profile."""
    return {each.name: each.metadata["of"](profile) for each in fields(kind) if "of" in each.metadata}


def _read(file: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(file).read_text(encoding="utf-8"))


def _fact(profile: str, key: str, row: dict[str, Any]) -> Fact:
    where = f"profile {profile!r}, fact {key!r}"
    if key not in vocabulary():
        raise ConfigError(f"{where}: not in the vocabulary facts.toml")
    _check_type(where, vocabulary()[key]["type"], row["value"])
    fact = Fact(key, row["value"], row["status"], tuple(row.get("evidence", ())), row.get("reason", ""), profile)
    if fact.status not in STATUSES:
        raise ConfigError(f"{where}: status {fact.status!r} is none of {', '.join(STATUSES)}")
    if fact.status == "observed" and not fact.evidence:
        raise ConfigError(f"{where}: observed, but no evidence is named")
    if fact.status == "decided" and not fact.reason:
        raise ConfigError(f"{where}: decided, but no reason is given")
    return fact


def _check_type(where: str, kind: str, value: object) -> None:
    if kind in ("bool", "int", "str"):
        if type(value).__name__ != kind:
            raise ConfigError(f"{where}: {value!r} is not of type {kind}")
    elif value not in kind.split(" | "):
        raise ConfigError(f"{where}: {value!r} is none of {kind}")


__all__ = ["Fact", "Profile", "fact_is", "load", "names", "resolve", "resolved", "with_mappings"]
