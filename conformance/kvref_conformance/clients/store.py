"""Items in memory and what commands do with them: an honest memcached without expiry and without limits of memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

STORED: Final = "STORED"
NOT_STORED: Final = "NOT_STORED"
EXISTS: Final = "EXISTS"
NOT_FOUND: Final = "NOT_FOUND"
NOT_A_NUMBER: Final = "NOT_A_NUMBER"
MAX_KEY: Final = 250  # bytes
NUMBERS: Final = 1 << 64
_DIGITS: Final = 20  # of the greatest number


@dataclass(frozen=True, slots=True)
class Item:
    """An item: its value, flags of 32 bits and cas number of 64 bits."""

    value: bytes
    flags: int = 0
    cas: int = 1


def number_of(digits: bytes) -> int | None:
    """Return the number below 2^64 that decimal digits are, None for other bytes."""
    number = int(digits) if digits.isdigit() and len(digits) <= _DIGITS else NUMBERS
    return number if number < NUMBERS else None


class Store:
    """The items of one scenario by key.

    Args:
        items: the initial ones.
    """

    def __init__(self, items: dict[bytes, Item]) -> None:
        self._items = dict(items)
        self._cas = 1000

    def get(self, key: bytes) -> Item | None:
        """Return the item of a key, None without one."""
        return self._items.get(key)

    def store(self, verb: str, key: bytes, value: bytes, flags: int = 0, cas: int = 0) -> str:
        """Store a value.

        Args:
            verb: set, add, replace, append, prepend or cas.
            key: of the item.
            value: bytes to store, append or prepend.
            flags: of the item; append and prepend keep the present ones.
            cas: number that the item must have; 0: any.

        Returns:
            STORED, NOT_STORED, EXISTS or NOT_FOUND.
        """
        old = self._items.get(key)
        if cas or verb == "cas":
            if old is None:
                return NOT_FOUND
            if old.cas != cas:
                return EXISTS
        if (verb == "add" and old is not None) or (verb in {"replace", "append", "prepend"} and old is None):
            return NOT_STORED
        if verb == "append" and old is not None:
            value, flags = old.value + value, old.flags
        elif verb == "prepend" and old is not None:
            value, flags = value + old.value, old.flags
        self._cas += 1
        self._items[key] = Item(value, flags, self._cas)
        return STORED

    def count(self, key: bytes, by: int, initial: int | None = None) -> int | str:
        """Add to a decimal number and return the sum; below 0 it is 0, from 2^64 on it wraps.

        Args:
            key: of the item.
            by: amount; negative for decr.
            initial: number to store without an item; None: NOT_FOUND then.

        Returns:
            The sum, NOT_FOUND or NOT_A_NUMBER.
        """
        old = self._items.get(key)
        if old is None:
            if initial is None:
                return NOT_FOUND
            self.store("set", key, b"%d" % initial)
            return initial
        present = number_of(old.value.strip())
        if present is None:
            return NOT_A_NUMBER
        number = max(0, present + by) % NUMBERS
        self._cas += 1
        self._items[key] = replace(old, value=b"%d" % number, cas=self._cas)
        return number

    def delete(self, key: bytes, cas: int = 0) -> str:
        """Delete the item of a key; return STORED, EXISTS (another cas number) or NOT_FOUND."""
        old = self._items.get(key)
        if old is None:
            return NOT_FOUND
        if cas and old.cas != cas:
            return EXISTS
        del self._items[key]
        return STORED

    def clear(self) -> None:
        """Delete all items."""
        self._items.clear()
