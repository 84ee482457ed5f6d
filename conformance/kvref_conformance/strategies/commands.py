"""Draw commands of the model in any protocol: of generated tables, of connections at the same time, and of duels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from kvref_conformance.model import steps as s
from kvref_conformance.strategies.draw import chance, pick, weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import DrawFn

KeyCommand: TypeAlias = s.Get | s.Store | s.Count | s.Delete


@dataclass(frozen=True, slots=True)
class Arguments:
    """What commands and their arguments are drawn from; a mapping to numbers has weights.

    Args:
        word: draws the key of a command, perhaps with the name of a mapping, by the kind of the command.
        value: draws a value.
        kinds: get, store, count, delete.
        verbs: storage verbs.
        words: how many keys a get of the text protocol has.
        flags: of a store.
        expiries: of a store.
        amounts: of a count.
        initials: of a count by a frame or a meta command.
        numbered: probability that a get shows cas numbers.
        silent: probability that a command is not answered, or only if it fails.
        named: probability that a get by a frame or a meta command repeats its key.
    """

    word: Callable[[str], str]
    value: Callable[[], str]
    kinds: Mapping[str, float]
    verbs: Mapping[str, float]
    words: Mapping[int, float] = field(default_factory=lambda: {1: 1.0})
    flags: Sequence[int] = (0,)
    expiries: Mapping[int, float] = field(default_factory=lambda: {0: 1.0})
    amounts: Sequence[str] = ("1",)
    initials: Sequence[int | None] = (None,)
    numbered: float = 0.0
    silent: float = 0.0
    named: float = 0.0


def draw_command(draw: DrawFn, on: str, protocol: str, arguments: Arguments) -> KeyCommand:
    """Draw a command.

    Args:
        draw: of the composite strategy.
        on: name of the connection.
        protocol: of the command.
        arguments: what is drawn from.
    """
    kind = weighted(draw, arguments.kinds)
    silent = _may(draw, arguments.silent)
    if kind == "get":
        count = weighted(draw, arguments.words) if protocol == s.TEXT else 1
        words = tuple(arguments.word(kind) for _ in range(count))
        cas, named = _may(draw, arguments.numbered), _may(draw, arguments.named)
        return s.Get(on, words, cas, silent=silent and protocol != s.TEXT, named=named, protocol=protocol)
    if kind == "delete":
        return s.Delete(on, arguments.word(kind), silent, protocol=protocol)
    if kind == "count":
        verb, amount = pick(draw, ("incr", "decr")), pick(draw, arguments.amounts)
        initial = pick(draw, arguments.initials) if protocol != s.TEXT else None
        return s.Count(on, verb, arguments.word(kind), amount, silent, initial, protocol=protocol)
    verb, word = weighted(draw, arguments.verbs), arguments.word(kind)
    flags, expiry = pick(draw, arguments.flags), weighted(draw, arguments.expiries)
    return s.Store(on, verb, word, arguments.value(), flags, expiry, silent, protocol=protocol)


def _may(draw: DrawFn, probability: float) -> bool:
    return probability > 0 and chance(draw, probability)
