"""Draw commands of the model in any protocol: of generated tables, of connections at the same time, and of duels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvref_conformance.model import steps as s
from kvref_conformance.model.effects import TWO_64
from kvref_conformance.strategies.draw import chance, pick, weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import DrawFn


@dataclass(frozen=True, slots=True)
class Arguments:
    """What commands and their arguments are drawn from; a mapping to numbers has weights.

    Args:
        word: draws the key of a command, perhaps with the name of a mapping, by the kind of the command.
        value: draws a value.
        kinds: get, gat, store, count, delete, touch.
        verbs: storage verbs.
        words: how many keys a get of the text protocol has.
        flags: of a store.
        expiries: of a store, a touch and a gat.
        amounts: of a count.
        initials: of a count by a frame or a meta command.
        numbered: probability that a get shows cas numbers.
        silent: probability that a command is not answered, or only if it fails.
        named: probability that a get by a frame or a meta command repeats its key.
        stale: probability that a cas sends a number that no item has.
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
    stale: float = 0.0


def draw_command(draw: DrawFn, on: str, protocol: str, arguments: Arguments) -> s.Locking:
    """Draw a command.

    Args:
        draw: of the composite strategy.
        on: name of the connection.
        protocol: of the command.
        arguments: what is drawn from.
    """
    kind = weighted(draw, arguments.kinds)
    silent = _may(draw, arguments.silent)
    if kind in {"get", "gat"}:
        count = weighted(draw, arguments.words) if protocol == s.TEXT else 1
        words = tuple(arguments.word(kind) for _ in range(count))
        cas, named = _may(draw, arguments.numbered) and kind == "get", _may(draw, arguments.named)
        expiry = _expiry(draw, protocol, arguments) if kind == "gat" else None
        return s.Get(on, words, cas, expiry, silent and protocol != s.TEXT, named, protocol=protocol)
    word = arguments.word(kind)
    if kind == "delete":
        return s.Delete(on, word, silent, protocol=protocol)
    if kind == "touch":
        expiry = _expiry(draw, protocol, arguments)
        return s.Touch(on, word, expiry, silent and protocol == s.TEXT, protocol=protocol)
    if kind == "count":
        verb, amount = pick(draw, ("incr", "decr")), pick(draw, arguments.amounts)
        if protocol == s.BINARY and not (amount.isdigit() and int(amount) < TWO_64):
            amount = "1"
        # memcached 1.6.18 answers a silent `ma` that creates the item.
        creates = protocol == s.BINARY or (protocol == s.META and not silent)
        initial = pick(draw, arguments.initials) if creates else None
        return s.Count(on, verb, word, amount, silent, initial, protocol=protocol)
    verb, flags = weighted(draw, arguments.verbs), pick(draw, arguments.flags)
    expiry, stale = _expiry(draw, protocol, arguments), verb == "cas" and _may(draw, arguments.stale)
    return s.Store(on, verb, word, arguments.value(), flags, expiry, silent, stale, protocol=protocol)


def _expiry(draw: DrawFn, protocol: str, arguments: Arguments) -> int:
    """Return an expiry time; frames have no negative ones."""
    expiry = weighted(draw, arguments.expiries)
    return max(0, expiry) if protocol == s.BINARY else expiry


def _may(draw: DrawFn, probability: float) -> bool:
    return probability > 0 and chance(draw, probability)
