"""Histories drawn at random: the model goes along, so that what is drawn can be done and locks are met often."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from kvref_conformance.differential.draw import chance, weighted
from kvref_conformance.stateful.concurrency import steps as s
from kvref_conformance.stateful.concurrency.exclusions import refuses
from kvref_conformance.stateful.concurrency.expected import Answer, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvref_conformance.stateful.concurrency.exclusions import Means
    from kvref_conformance.stateful.concurrency.model import Model

    Begin = Callable[[tuple[tuple[str, str, str], ...]], Model]

LENGTHS: Final = (10, 24)
# How often a step is drawn again that may not be done.
TRIES: Final = 40
NO_MAPPING: Final = "none"
VALUES: Final = ("1", "22", "7", "305")
KINDS: Final = {
    "set": 18,
    "get": 22,
    "gets": 8,
    "several": 6,
    "store": 10,
    "cas": 7,
    "incr": 7,
    "delete": 8,
    "bind": 5,
    "nowhere": 1,
    "flush": 2,
    "close": 5,
    "look": 8,
    "dirty": 2,
    "change": 8,
    "within": 6,
    "end": 5,
}


@dataclass(frozen=True, slots=True)
class History:
    """A history.

    Args:
        rows: at the beginning: table, key, value.
        steps: in order; what may not be done when its turn comes is left out.
    """

    rows: tuple[tuple[str, str, str], ...]
    steps: tuple[s.Step, ...]


def history(rnd: Random, begin: Begin, means: Means) -> History:
    """Draw a history.

    Args:
        rnd: the same state gives the same history.
        begin: makes a model with these rows; its connections' answers are taken for granted.
        means: what the observer can do.
    """
    places = [(table, key) for table in ("t1", "t2") for key in s.KEYS]
    rows = tuple((*place, rnd.choice(VALUES)) for place in places if chance(rnd, 0.6))
    model = begin(rows)
    done: list[s.Step] = []
    for on in s.CONNECTIONS:
        _do(model, s.Open(on, weighted(rnd, {"m1": 6, "m1b": 1, "m2": 2})), done)
    length = len(done) + rnd.randint(*LENGTHS)
    for _ in range(TRIES * length):
        if len(done) >= length:
            break
        for step in _drawn(rnd, model):
            if not refuses(model, step, means):
                _do(model, step, done)
    return History(rows, tuple(done))


def _do(model: Model, step: s.Step, done: list[s.Step]) -> None:
    done.append(step)
    for expected in model.take(step):
        if isinstance(expected, Answer | Seen):
            model.numbers.imagine(expected)


def _drawn(rnd: Random, model: Model) -> Iterator[s.Step]:
    on = rnd.choice(s.CONNECTIONS)
    kind = weighted(rnd, KINDS)
    if on not in model.open:
        yield s.Open(on, rnd.choice(tuple(s.TABLES)))
    elif kind == "flush":
        yield from _flush(rnd, model, on)
    elif kind == "end":
        yield s.End(chance(rnd, 0.6))
    elif kind in {"look", "dirty"}:
        yield s.Look(kind == "dirty")
    elif kind in {"change", "within"}:
        verb, table = rnd.choice(("insert", "update", "update", "delete")), rnd.choice(("t1", "t1", "t2"))
        yield s.Change(verb, table, _key(rnd), "" if verb == "delete" else rnd.choice(VALUES), kind == "within")
    else:
        yield _on_connection(rnd, kind, on)


def _on_connection(rnd: Random, kind: str, on: str) -> s.Step:
    mapping = rnd.choice(tuple(s.TABLES)) if chance(rnd, 0.06) else ""
    match kind:
        case "set":
            return s.Store(on, "set", _key(rnd), rnd.choice(VALUES), rnd.randint(0, 3), chance(rnd, 0.15), mapping)
        case "store":
            verb = rnd.choice(("add", "replace", "append", "prepend"))
            return s.Store(on, verb, _key(rnd), rnd.choice(VALUES), rnd.randint(0, 3), chance(rnd, 0.15))
        case "cas":
            return s.Store(on, "cas", _key(rnd), rnd.choice(VALUES), stale=chance(rnd, 0.15))
        case "incr":
            return s.Incr(on, _key(rnd), rnd.randint(0, 20))
        case "delete":
            return s.Delete(on, _key(rnd), chance(rnd, 0.15))
        case "several":
            return s.Get(on, tuple(rnd.sample(s.KEYS, rnd.randint(2, 3))), chance(rnd, 0.3))
        case "bind":
            return s.Bind(on, rnd.choice(tuple(s.TABLES)), chance(rnd, 0.5))
        case "nowhere":
            return s.Bind(on, NO_MAPPING, chance(rnd, 0.5))
        case "close":
            return s.Close(on, chance(rnd, 0.5))
    return s.Get(on, (_key(rnd),), kind == "gets", mapping)


def _flush(rnd: Random, model: Model, on: str) -> Iterator[s.Step]:
    """Let the others go first, which flush_all would wait for."""
    table = s.TABLES[model.open[on].mapping]
    yield s.End(chance(rnd, 0.5))
    for other in list(model.open):
        if other != on and table in model.open[other].touched:
            yield s.Close(other, chance(rnd, 0.5))
    yield s.Flush(on)


def _key(rnd: Random) -> str:
    return weighted(rnd, {"k1": 5, "k3": 3, "k5": 2})
