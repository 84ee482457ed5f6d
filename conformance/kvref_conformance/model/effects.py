"""What one command makes of one item, and its reply. The state of an item is a value: nothing here is stored.

Sources: memcached `protocol.txt`; the facts of a profile in `rules.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from kvref_conformance.model.steps import BINARY, Count, Delete, Store, Touch

if TYPE_CHECKING:
    from kvref_conformance.model.rules import Rules

TWO_64: Final = 1 << 64
THIRTY_DAYS: Final = 2592000
# Any date of this century but the past of these decades.
FAR_FUTURE: Final = (1 << 31) - 1


class Outcome(Enum):
    """What a command reports; `encodings.py` writes it in each protocol."""

    STORED = auto()
    NOT_STORED = auto()
    EXISTS = auto()
    NOT_FOUND = auto()
    DELETED = auto()
    TOUCHED = auto()
    COUNTED = auto()
    BOUND = auto()
    FLUSHED = auto()
    UNKNOWN = auto()
    NOT_A_NUMBER = auto()
    NO_AMOUNT = auto()
    TIMED_OUT = auto()
    TOO_LARGE = auto()
    REFUSED = auto()
    MALFORMED = auto()


@dataclass(frozen=True, slots=True)
class Item:
    """A value and its flags, None where these are NULL."""

    value: str
    flags: int | None


@dataclass(frozen=True, slots=True)
class Effect:
    """What a write does.

    Args:
        outcome: for the client.
        writes: the item is written; else it stays as it was.
        item: afterwards, where it is written; None: it is gone.
        total: the number that is counted to.
    """

    outcome: Outcome
    writes: bool = False
    item: Item | None = None
    total: int | None = None


def of(rules: Rules, old: Item | None, step: Store | Count | Delete | Touch, *, same: bool) -> Effect:
    """Return the effect of a write.

    Args:
        rules: facts of the profile.
        old: the item before; None where there is none.
        step: the command.
        same: the cas number that it sends is that of the item.
    """
    match step:
        case Store():
            return _store(rules, old, step, same=same)
        case Count():
            return _count(rules, old, step)
    if old is None:
        return Effect(Outcome.NOT_FOUND)
    if isinstance(step, Delete):
        return Effect(Outcome.DELETED, writes=True)
    return Effect(Outcome.TOUCHED, writes=True, item=None if is_over(step.expiry) else old)


def is_over(expiry: int) -> bool:
    """Return whether an item with this expiry time, as sent, is gone at once."""
    return expiry < 0 or THIRTY_DAYS < expiry < FAR_FUTURE


def _store(rules: Rules, old: Item | None, step: Store, *, same: bool) -> Effect:
    if step.verb == "cas" and (old is None or not same):
        return Effect(Outcome.NOT_FOUND if old is None else Outcome.EXISTS)
    if step.verb not in {"set", "cas"} and (step.verb == "add") == (old is not None):
        return Effect(Outcome.NOT_STORED)
    if old is None or step.verb not in {"append", "prepend"}:
        return Effect(Outcome.STORED, writes=True, item=None if is_over(step.expiry) else Item(step.value, step.flags))
    value = old.value + step.value if step.verb == "append" else step.value + old.value
    flags = step.flags if step.protocol != BINARY else 0
    return Effect(Outcome.STORED, writes=True, item=Item(value, old.flags if rules.row_keeps_flags else flags))


def _count(rules: Rules, old: Item | None, step: Count) -> Effect:
    amount = _amount(step.amount)
    if amount is None:
        return Effect(Outcome.NO_AMOUNT)
    if old is None and step.initial is not None:
        return Effect(Outcome.COUNTED, writes=True, item=Item(str(step.initial), 0), total=step.initial)
    if old is None:
        return Effect(Outcome.NOT_FOUND)
    number = _number(rules, old.value)
    if number is None:
        return Effect(Outcome.NOT_A_NUMBER)
    total = (number + amount) % TWO_64 if step.verb == "incr" else max(0, number - amount)
    item = Item(str(total).ljust(len(old.value)) if rules.decr_pads else str(total), old.flags)
    return Effect(Outcome.COUNTED, writes=True, item=item, total=total)


def _amount(text: str) -> int | None:
    """Return an amount as a number, None if it is not one: below -2^63 it is read modulo 2^64 (KV-ARITH-012)."""
    if not re.fullmatch(r"-?[0-9]+", text):
        return None
    number = int(text)
    return number % TWO_64 if 0 <= number < TWO_64 or -TWO_64 < number < -(TWO_64 // 2) else None


def _number(rules: Rules, text: str) -> int | None:
    if re.fullmatch(r"\d+ *", text) and int(text) < TWO_64:
        return int(text)
    if rules.strict_numbers:
        return None
    leading = re.match(r"\d+", text)
    return int(leading[0]) if leading else 0
