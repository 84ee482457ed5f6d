"""What a mutant is: a function that breaks one rule of the server before it starts, tied to what it breaks.

It changes a fact, a public function of a rule, the operations of commands, or bytes at the edge of the server, so that
what is private can be renamed and replaced.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from kvref import profiles
from kvref.engine import dispatch

OperationGen = Generator[Any, Any, Any]
Patch = Callable[[], None]
Decide = Callable[..., Any]


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


def planted_code(mutant: Mutant) -> frozenset[CodeType]:
    """Return the code of the functions that a mutant may put in the place of the server's.

    Args:
        mutant: whose patch may put functions in place, by itself or with helpers of its module.

    Returns:
        Nothing for a mutant that changes only values, such as a fact.
    """
    found: dict[str, FunctionType] = {}
    functions = [cast("FunctionType", mutant.patch)]
    while functions:
        function = functions.pop()
        for code in (function.__code__, *_nested(function.__code__)):
            helpers = {name: function.__globals__.get(name) for name in code.co_names}
            new = {name: each for name, each in helpers.items() if name not in found and _is_helper(each)}
            found |= cast("dict[str, FunctionType]", new)
            functions += cast("list[FunctionType]", list(new.values()))
    own = _nested(cast("FunctionType", mutant.patch).__code__)
    return frozenset([*own, *(code for each in found.values() for code in (each.__code__, *_nested(each.__code__)))])


def _nested(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _nested(each)


def _is_helper(value: object) -> bool:
    return (
        isinstance(value, FunctionType)
        and value.__module__.startswith(f"{__package__}.")
        and value.__module__ != __name__
    )


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
        owner: module or class; a function of a module is replaced in all modules of kvref that import it by its name.
        name: of the attribute.
        value: its new value.
    """
    assert hasattr(owner, name), f"{owner} no longer has {name}: fix the mutant"
    for each in [owner, *_importers(owner, name)]:
        _put(each, name, value)


def _importers(owner: object, name: str) -> list[object]:
    """Return the other modules of kvref that have a function of a module under the same name."""
    function = getattr(owner, name)
    if not (isinstance(owner, ModuleType) and isinstance(function, FunctionType)):
        return []
    if not function.__module__.startswith("kvref."):
        return []  # such as `replace`
    modules = [each for key, each in [*sys.modules.items()] if key.startswith("kvref.") and each is not owner]
    return [each for each in modules if vars(each).get(name) is function]


def put_decisions(changed: Callable[[Decide], Decide], *deciders: Decide) -> None:
    """Change what planned commands decide.

    Args:
        changed: returns what decides instead of a method `decide(self, row, word, command)` of `kvref.engine.plans`.
        deciders: these methods.
    """
    for each in deciders:
        owner = getattr(sys.modules[each.__module__], each.__qualname__.partition(".")[0])
        _put(owner, each.__name__, changed(each))


def _put(owner: object, name: str, value: object) -> None:
    if name in vars(owner):
        _undo.append(partial(setattr, owner, name, vars(owner)[name]))
    else:
        _undo.append(partial(delattr, owner, name))
    setattr(owner, name, value)


def put_operations(answered: Callable[[Any, Any], OperationGen]) -> None:
    """Let something else answer the operations of commands that look for items.

    Args:
        answered: given a session and an operation of its command, yields the operations that are carried out instead
            and returns the result.
    """
    for kind, handler in dispatch.HANDLERS.items():
        dispatch.HANDLERS[kind] = _through(handler, answered)


def _through(handler: Callable[..., OperationGen], answered: Callable[[Any, Any], OperationGen]) -> Any:
    def run(session: Any, command: Any, now: int) -> OperationGen:
        steps = handler(session, command, now)
        step = partial(steps.send, None)
        while True:
            try:
                operation = step()
            except StopIteration as end:
                return end.value
            try:
                step = partial(steps.send, (yield from answered(session, operation)))
            except Exception as error:  # noqa: BLE001 - the command gets it
                step = partial(steps.throw, error)

    return run


def put_fact(key: str, value: bool | int | str) -> None:
    """Take another value for a fact of the default profile, as an endpoint may be built.

    Args:
        key: of the vocabulary `kvref/profiles/facts.toml`.
        value: one that its type allows.
    """
    facts = profiles.load("kvref").facts
    _undo.append(partial(facts.__setitem__, key, facts[key]))
    facts[key] = replace(facts[key], value=value)
