"""From draws to exchanges: the pool that a worker repeats, and the keys that a session has for itself."""

from __future__ import annotations

from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Final, TypeVar, cast

import numpy as np

from kvref_bench.load.plan import Exchange
from kvref_bench.workload.commands import GETTING, Item, expected
from kvref_bench.workload.keys import LIMIT, draws, key, traced_verbs
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.plan import Parts
    from kvref_bench.load.work import Task, Work
    from kvref_bench.workload.commands import Codec, Kinds

_T = TypeVar("_T")
_LAZY: Final = 16  # exchanges that are made at once while the clock runs: a stop of about 0.1 ms
_VERBS: Final = 1  # keeps the draws of verbs apart from those of keys


class Exchanges:
    """What the sessions of one worker send.

    cas: the numbers that the reader notes, by name.
    """

    def __init__(self, task: Task, codec: Codec, kinds: Kinds, cas: dict[bytes, int]) -> None:
        self._task = task
        self._work = work = task.work
        self._codec = codec
        self._kinds = kinds
        self._cas = cas
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
            pools = [self._make(self._number(each), self._ahead) for each in range(self._sessions)]
        else:
            pools = [self._make(0, max(pool, 1))]
        self._plain = not self._own and "cas" not in work.verbs
        # By column: a session takes tuples that `zip` was just given back; those of the pool would come from memory, at
        # a twentieth of what an operation costs.
        self._columns = [tuple(zip(*cast("list[Exchange]", each), strict=True)) for each in pools if self._plain]
        self._pools = [] if self._plain else pools
        self.distinct = self._own_keys() if self._own else len(self._items)
        self._items.clear()
        self._singles.clear()

    def of(self, session: int) -> Iterator[Parts]:
        """Return the exchanges of a session of this worker, by its number from 0 on."""
        place = session if self._apart else 0
        whole: Iterator[Parts]
        if self._plain:
            whole = zip(*(self._again(each, session) for each in self._columns[place]), strict=True)
        else:
            pool = self._pools[place]
            made = chain(pool, self._later(session)) if self._own else self._again(pool, session)
            # Without the verb cas no item is in a pool.
            whole = self._compared(made) if "cas" in self._work.verbs else cast("Iterator[Exchange]", made)
        return whole if self._limit is None else islice(whole, self._limit)

    def _again(self, pool: Sequence[_T], session: int) -> Iterator[_T]:
        # Sessions with one pool begin at different positions, so that they do not request the same keys at the same
        # time.
        start = 0 if self._apart else session * len(pool) // max(self._sessions, 1)
        return chain(islice(pool, start, None), chain.from_iterable(repeat(pool)))

    def _compared(self, made: Iterator[Exchange | Item]) -> Iterator[Parts]:
        for each in made:
            if isinstance(each, Exchange):
                yield each
                continue
            yield self._joined([("gets", [each])])
            # 0 means "whatever it is" in the binary protocol; of a key that is not there any other number will do.
            request, reply = self._codec.ask("cas", [each], cas=self._cas.get(each.name) or 1)
            yield Exchange(request, reply, (self._kinds.number("cas", expected("cas", there=each.there)),))

    def _number(self, session: int) -> int:
        return self._task.worker + session * self._task.workers

    def _own_keys(self) -> int:
        if self._limit is None:
            return LIMIT
        return self._sessions * self._limit * self._work.depth * self._work.multiget

    def _later(self, session: int) -> Iterator[Exchange | Item]:
        first = self._ahead
        while True:
            yield from self._make(self._number(session), _LAZY, first)
            self._items.clear()
            self._singles.clear()
            first += _LAZY

    def _make(self, session: int, amount: int, first: int = 0) -> list[Exchange | Item]:
        work, depth, width = self._work, self._work.depth, self._work.multiget
        each = depth * width
        numbers = draws(work.keys, work, self._task.worker, session, amount * each, first * each).tolist()
        verbs = self._verbs(session, amount * depth, first)
        made: list[Exchange | Item] = []
        for place in range(amount):
            asked = [
                (verb, self._named(numbers, place * each + at * width, width if verb in GETTING else 1))
                for at, verb in enumerate(verbs[place * depth : (place + 1) * depth])
            ]
            # A cas needs a number that is read just before.
            if asked[0][0] == "cas":
                made.append(asked[0][1][0])
            else:
                made.append(self._single(*asked[0]) if each == 1 else self._joined(asked))
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

    def _joined(self, asked: Sequence[tuple[str, Sequence[Item]]]) -> Exchange:
        requests, replies = [], []
        kinds: list[int] = []
        for verb, items in asked:
            request, reply = self._codec.ask(verb, items, len(kinds))
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
