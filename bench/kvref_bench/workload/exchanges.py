"""From draws to exchanges: the pool that a worker repeats, and the keys that a session has for itself."""

from __future__ import annotations

from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from kvref_bench.load.records import Exchange
from kvref_bench.workload.commands import GETTING, Item, expected
from kvref_bench.workload.keys import draws, key, traced_verbs
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.records import Parts
    from kvref_bench.load.work import Task, Work
    from kvref_bench.workload.commands import Codec, Kinds

_T = TypeVar("_T")
_LAZY: Final = 16  # exchanges that are made at once while the clock runs: a stop of about 0.1 ms
_VERBS: Final = 1  # keeps the draws of verbs apart from those of keys


class Exchanges:
    """What the sessions of one worker send."""

    def __init__(self, task: Task, codec: Codec, kinds: Kinds) -> None:
        self._task = task
        self._work = work = task.work
        self._codec = codec
        self._kinds = kinds
        self._prefix = prefix(work)
        self._items: dict[int, Item] = {}
        self._singles: dict[tuple[str, bytes], Exchange] = {}
        self._alike: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._sessions = len(range(task.worker, work.sessions, task.workers))
        self._limit = None if work.operations is None else work.operations // work.depth
        pool = work.pool // (work.depth * work.multiget)
        self._own = work.keys.distribution == "own"
        self._apart = self._own or work.keys.apart
        if self._apart:
            pool //= max(self._sessions, 1)
            self._ahead = max(pool if self._limit is None else min(pool, self._limit), 1)
            self._pools = [self._make(self._number(each), self._ahead) for each in range(self._sessions)]
        else:
            self._pools = [self._make(0, max(pool, 1))]
        # By column: a session takes tuples that `zip` was just given back; those of the pool would come from memory, at
        # a twentieth of what an operation costs.
        self._columns = [] if self._own else [tuple(zip(*each, strict=True)) for each in self._pools]
        self._items.clear()
        self._singles.clear()

    def of(self, session: int) -> Iterator[Parts]:
        """Return the exchanges of a session of this worker, by its number from 0 on."""
        whole: Iterator[Parts]
        if self._own:
            whole = chain(self._pools[session], self._later(session))
        else:
            columns = self._columns[session if self._apart else 0]
            whole = zip(*(self._again(each, session) for each in columns), strict=True)
        return whole if self._limit is None else islice(whole, self._limit)

    def _again(self, pool: Sequence[_T], session: int) -> Iterator[_T]:
        # Sessions with one pool begin at different positions, so that they do not request the same keys at the same
        # time.
        start = 0 if self._apart else session * len(pool) // max(self._sessions, 1)
        return chain(islice(pool, start, None), chain.from_iterable(repeat(pool)))

    def _number(self, session: int) -> int:
        return self._task.worker + session * self._task.workers

    def _later(self, session: int) -> Iterator[Exchange]:
        first = self._ahead
        while True:
            yield from self._make(self._number(session), _LAZY, first)
            self._items.clear()
            self._singles.clear()
            first += _LAZY

    def _make(self, session: int, amount: int, first: int = 0) -> list[Exchange]:
        work, depth, width = self._work, self._work.depth, self._work.multiget
        each = depth * width
        numbers = draws(work.keys, work, self._task.worker, session, amount * each, first * each).tolist()
        verbs = self._verbs(session, amount * depth, first)
        made: list[Exchange] = []
        for place in range(amount):
            requested = [
                (verb, self._named(numbers, place * each + at * width, width if verb in GETTING else 1))
                for at, verb in enumerate(verbs[place * depth : (place + 1) * depth])
            ]
            made.append(self._single(*requested[0]) if each == 1 else self._joined(requested))
        return made

    def _verbs(self, session: int, amount: int, first: int) -> list[str]:
        keys = self._work.keys
        if keys.distribution == "trace":
            return traced_verbs(keys, self._work, self._task.worker, amount, first)
        names = list(self._work.verbs)
        if len(names) == 1:
            return names * amount
        weights = np.array(list(self._work.verbs.values()), dtype=np.float64)
        generator = np.random.default_rng([self._work.seed, self._task.worker, session, first, _VERBS])
        return [names[each] for each in generator.choice(len(names), amount, p=weights / weights.sum()).tolist()]

    def _single(self, verb: str, items: Sequence[Item]) -> Exchange:
        # The same bytes once: what the processor's caches do not hold costs as much as the sending.
        place = (verb, items[0].name)
        if place not in self._singles:
            self._singles[place] = self._joined([(verb, items)])
        return self._singles[place]

    def _joined(self, requested: Sequence[tuple[str, Sequence[Item]]]) -> Exchange:
        requests, replies = [], []
        kinds: list[int] = []
        for verb, items in requested:
            request, reply = self._codec.encode(verb, items, len(kinds))
            requests.append(request)
            replies.append(reply)
            kinds += [self._kinds.number(verb, expected(verb, there=each.there)) for each in items]
        alike = self._alike.setdefault(tuple(kinds), tuple(kinds))
        return Exchange(b"".join(requests), b"".join(replies), alike)

    def _named(self, numbers: Sequence[int], start: int, amount: int) -> list[Item]:
        return [self._item(number) for number in numbers[start : start + amount]]

    def _item(self, number: int) -> Item:
        item = self._items.get(number)
        if item is None:
            name = key(self._work.keys, number)
            there = number < self._work.keys.count
            item = self._items[number] = Item(self._prefix + name, value(self._work.values, name), there)
        return item


def prefix(work: Work) -> bytes:
    """Return the prefix of each key: the mapping, if the route requires it."""
    return f"@@{work.mapping}{work.delimiter}".encode() if work.route == "each" else b""
