"""What one command makes of one item, and its reply. The state of an item is a value: nothing here is stored.

Sources: memcached `protocol.txt`; the facts of a profile in `rules.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref_conformance.model.rules import Rules
    from kvref_conformance.model.steps import Count, Store, Touch

TWO_64: Final = 1 << 64
THIRTY_DAYS: Final = 2592000
# Any date of this century but the past of these decades.
FAR_FUTURE: Final = (1 << 31) - 1
NOT_A_NUMBER: Final = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
NO_AMOUNT: Final = "CLIENT_ERROR invalid numeric delta argument\r\n"
STORED: Final = "STORED\r\n"
NOT_STORED: Final = "NOT_STORED\r\n"
NOT_FOUND: Final = "NOT_FOUND\r\n"
EXISTS: Final = "EXISTS\r\n"


@dataclass(frozen=True, slots=True)
class Item:
    """A value and its flags, None where these are NULL."""

    value: str
    flags: int | None


@dataclass(frozen=True, slots=True)
class Effect:
    """What a write does.

    Args:
        reply: the reply.
        writes: the item is written; else it stays as it was.
        item: afterwards, where it is written; None: it is gone.
    """

    reply: str
    writes: bool = False
    item: Item | None = None


def store(rules: Rules, old: Item | None, step: Store, *, same: bool) -> Effect:
    """Return the effect of a storage verb.

    Args:
        rules: facts of the profile.
        old: the item before; None where there is none.
        step: the command.
        same: the cas number that it sends is that of the item.
    """
    if step.verb == "cas" and (old is None or not same):
        return Effect(NOT_FOUND if old is None else EXISTS)
    if step.verb not in {"set", "cas"} and (step.verb == "add") == (old is not None):
        return Effect(NOT_STORED)
    if old is None or step.verb not in {"append", "prepend"}:
        return Effect(STORED, writes=True, item=None if is_over(step.expiry) else Item(step.value, step.flags))
    value = old.value + step.value if step.verb == "append" else step.value + old.value
    return Effect(STORED, writes=True, item=Item(value, old.flags if rules.row_keeps_flags else step.flags))


def count(rules: Rules, old: Item | None, step: Count) -> Effect:
    """Return the effect of `incr` or `decr`; see `store`."""
    if not step.amount.isdigit() or int(step.amount) >= TWO_64:
        return Effect(NO_AMOUNT)
    if old is None:
        return Effect(NOT_FOUND)
    number = _number(rules, old.value)
    if number is None:
        return Effect(NOT_A_NUMBER)
    amount = int(step.amount)
    new = str((number + amount) % TWO_64 if step.verb == "incr" else max(0, number - amount))
    item = Item(new.ljust(len(old.value)) if rules.decr_pads else new, old.flags)
    return Effect(f"{new}\r\n", writes=True, item=item)


def delete(old: Item | None) -> Effect:
    """Return the effect of `delete`."""
    return Effect("DELETED\r\n", writes=True) if old is not None else Effect(NOT_FOUND)


def touch(old: Item | None, step: Touch) -> Effect:
    """Return the effect of `touch`."""
    if old is None:
        return Effect(NOT_FOUND)
    return Effect("TOUCHED\r\n", writes=True, item=None if is_over(step.expiry) else old)


def is_over(expiry: int) -> bool:
    """Return whether an item with this expiry time, as sent, is gone at once."""
    return expiry < 0 or THIRTY_DAYS < expiry < FAR_FUTURE


def _number(rules: Rules, text: str) -> int | None:
    if re.fullmatch(r"\d+ *", text) and int(text) < TWO_64:
        return int(text)
    if rules.strict_numbers:
        return None
    leading = re.match(r"\d+", text)
    return int(leading[0]) if leading else 0
