"""Whose columns take a plain set: one value, and each cell in its column as the command has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.protocol.fast_path import MAX_FLAGS
from kvref.storage.config.codecs import LARGEST_INTEGER, UNSIGNED

MAX_VALUE: Final = 64 << 10  # bytes; longer ones cost so much that the path makes no difference


def take_sets(mapping: Mapping, keeps: Callable[[Column], bool]) -> bool:
    """Return whether the fast path can write a row of these columns for a set.

    Args:
        mapping: the mapping of the row.
        keeps: returns whether a text or bytes column stores ASCII unchanged.
    """
    key, value = mapping.key, mapping.values[0]
    options = [each for each in (mapping.flags, mapping.cas, mapping.expiry) if each is not None]
    names = [key.name, value.name, *(each.name for each in options)]
    return (
        len(mapping.values) == 1
        and len(set(names)) == len(names)
        and key.kind is not Kind.INTEGER
        and (keeps(key) or (key.charset.unit == 1 and key.codec is not None))
        and keeps(value)
        and not (value.exact or value.fixed or mapping.hidden)
        and all(_holds(each, 0) for each in options)
        and (mapping.flags is None or _holds(mapping.flags, MAX_FLAGS))
        and (mapping.cas is None or _holds(mapping.cas, LARGEST_INTEGER))
    )


def _holds(column: Column, number: int) -> bool:
    return column.kind is Kind.INTEGER and column.low <= number <= column.high and column.codec in (None, UNSIGNED)
