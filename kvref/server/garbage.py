"""How often Python looks for objects that only refer to each other, in a process that serves."""

from __future__ import annotations

import gc
from typing import Final

# Objects that may be made, less those that were freed, until the young ones are looked through. A group of 128
# commands makes more than Python's default of 700, which most of them outlive; row caches were looked through, too.
YOUNG: Final = 20_000


def prepare() -> None:
    """Exempt all objects of the start from collections, and collect more rarely; called before the loop runs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
