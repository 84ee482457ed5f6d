"""The deciders of the verbs of one mapping, of which the text, meta and binary commands consist."""

from __future__ import annotations

from collections.abc import Callable

from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import CachedRow, Decision
from kvref.engine.plans.retrieve import Touching
from kvref.engine.plans.store import VERBS, Deletion, Storage, Stored


class Deciders:
    """The deciders of one mapping.

    Attributes:
        stores: of the storage commands, by verb.
        deletion, sums, touching: of delete, of incr and decr, and of touch and gat.
    """

    def __init__(self, bound: Bound) -> None:
        storage = Storage(bound)
        self.stores: dict[str, Callable[[CachedRow, bytes, Stored], Decision]] = {
            verb: storage.decider(verb) for verb in VERBS
        }
        self.deletion = Deletion(bound)
        self.sums = Arithmetic(bound)
        self.touching = Touching(bound)
