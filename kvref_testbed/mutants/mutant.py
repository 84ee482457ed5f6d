"""What a mutant is: a function that breaks one rule of the server before it starts, tied to what it breaks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kvref import profiles

OperationGen = Generator[Any, Any, Any]
Patch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """The server with one rule broken.

    Args:
        name: of the function that breaks it.
        requirement: id of the requirement that must fail it.
        about: how it is broken, a sentence.
        patch: breaks it in this process, for good.
    """

    name: str
    requirement: str
    about: str
    patch: Patch


def breaks(requirement: str) -> Callable[[Patch], Mutant]:
    """Make a mutant of a function; the first line of its docstring says how the server is broken.

    Args:
        requirement: id of the requirement that must fail it.
    """

    def made(patch: Patch) -> Mutant:
        about = inspect.getdoc(patch)
        assert about, f"{patch.__name__} does not say how the server is broken"
        return Mutant(patch.__name__, requirement, about.splitlines()[0], patch)

    return made


_undo: list[Callable[[], None]] = []  # of what is put in place, in a block of `planted`


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Break one rule of the server in this process, for the block.

    Args:
        mutant: breaks it.
    """
    _undo.clear()
    try:
        mutant.patch()
        yield
    finally:
        while _undo:
            _undo.pop()()


def put(owner: object, name: str, value: object) -> None:
    """Put something in the place of an attribute that must be there: a mutant of nothing would survive.

    Args:
        owner: module or class.
        name: of the attribute.
        value: its new value.
    """
    assert hasattr(owner, name), f"{owner} no longer has {name}: fix the mutant"
    if name in vars(owner):
        _undo.append(partial(setattr, owner, name, vars(owner)[name]))
    else:
        _undo.append(partial(delattr, owner, name))
    setattr(owner, name, value)


def put_fact(key: str, value: bool | int | str) -> None:
    """Take another value for a fact of the default profile, as an endpoint may be built.

    Args:
        key: of the vocabulary `kvref/profiles/facts.toml`.
        value: one that its type allows.
    """
    facts = profiles.load("kvref").facts
    _undo.append(partial(facts.__setitem__, key, facts[key]))
    facts[key] = replace(facts[key], value=value)
