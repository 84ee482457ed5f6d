"""What a mutant is: a function that breaks one rule of the server before it starts. `serve_mutant.py` starts it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from kvref import profiles

Steps = Generator[Any, Any, Any]
MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(patch: Callable[[], None]) -> Callable[[], None]:
    """Keep a mutant under its function's name."""
    MUTANTS[patch.__name__] = patch
    return patch


def put(owner: object, name: str, value: object) -> None:
    """Put something in the place of an attribute that must be there: a mutant of nothing would survive."""
    assert hasattr(owner, name), f"{owner} has no {name} any more: mend the mutant"
    setattr(owner, name, value)


def of_fact(name: str, key: str, value: bool | int | str) -> None:
    """Keep a mutant that takes another value for a fact of the default profile, as an endpoint may be built."""

    def patch() -> None:
        facts = profiles.load("kvref").facts
        facts[key] = replace(facts[key], value=value)

    patch.__name__ = name
    mutant(patch)


@mutant
def none() -> None:
    """Change nothing: the control."""
