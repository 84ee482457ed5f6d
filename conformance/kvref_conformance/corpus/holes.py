"""Typed holes: the parts of a recorded reply that no rule determines, and how an observed reply matches around them.

A recorded reply is JSON. A text with holes is a list of strings and holes instead of a string; a number that is
a hole is the hole alone. A hole is an object with one key, which is its kind:

    {"cas": n}       a cas number; the same n is the same number all through a conversation, another n another number
    {"time": s}      UNIX time: when the step ran plus about s seconds
    {"number": why}  digits that mean nothing here; the word says why (garbage, counter, pid)
    {"bytes": why}   any bytes, also none; alone in the place of an answer: any answer
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, TypeAlias, Union

from kvref_conformance.wire.frames import CAS, REPLY, frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_conformance.wire.frames import Frame

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
Hole: TypeAlias = dict[str, Json]

KINDS: Final = frozenset({"cas", "time", "number", "bytes"})
# Seconds by which a time may miss: MySQL and the plugin round to whole seconds, and their clocks tick once a second.
TOLERANCE: Final = 2.0

_TEXT: Final = {"cas": r"(\d+)", "time": r"(\d+)", "number": r"(-?\d+(?:\.\d+)?)", "bytes": r"(.*?)"}
# In hexadecimal answers a cas number is the eight bytes of the header's field, other numbers are ASCII digits.
_HEX: Final = {
    "cas": "([0-9a-f]{16})",
    "time": "((?:3[0-9])+)",
    "number": "((?:2d)?(?:3[0-9])+(?:2e(?:3[0-9])+)?)",
    "bytes": "((?:[0-9a-f]{2})*?)",
}
# A range answers keys as they are stored: a CHAR one with its blanks, an integer one as bytes.
_VALUE: Final = r"VALUE .*? \d+ (?P<length>\d+)(?: (?P<cas>\d+))?\r\n"
# Meta commands answer it as a flag, me as one of its words; what a reply repeats of the request (O, k) is not a number.
_META: Final = (
    r"(?:\A|(?<=\n))(?:HD|VA (?P<size>\d+)|ME [^ ]+)(?: [^ \r\n]+)*?(?: c(?:as=)?(?P<flag>\d+)(?: [^ \r\n]+)*)?\r\n"
)
_NUMBERED: Final = re.compile(f"{_VALUE}|{_META}", re.ASCII | re.DOTALL)


class CasNumbers:
    """The cas numbers of one conversation: recorded n and observed number paired one to one."""

    def __init__(self) -> None:
        self._observed: dict[int, int] = {}
        self._recorded: dict[int, int] = {}

    def agree(self, n: int, number: int) -> bool:
        """Pair a recorded n with an observed number; False where either is paired with another already."""
        if self._observed.get(n, number) != number or self._recorded.get(number, n) != n:
            return False
        self._observed[n], self._recorded[number] = number, n
        return True


class Clock:
    """When a step ran; both ends in UNIX seconds."""

    def __init__(self, began: float, ended: float) -> None:
        self.began = began
        self.ended = ended

    def shows(self, number: float, offset: float) -> bool:
        """Return whether a number is the time of the step plus `offset` seconds, up to TOLERANCE."""
        return self.began - TOLERANCE <= number - offset <= self.ended + TOLERANCE


def is_hole(value: Json) -> bool:
    """Return whether a JSON value is a hole."""
    return isinstance(value, dict) and len(value) == 1 and not KINDS.isdisjoint(value)


def matches(recorded: Json, observed: Json, cas: CasNumbers, clock: Clock, *, hexadecimal: bool = False) -> bool:
    """Return whether an observed answer is the recorded one, up to its holes.

    Args:
        recorded: answer with holes.
        observed: answer without holes.
        cas: numbers paired so far in this conversation; grows.
        clock: when the step ran.
        hexadecimal: the texts are hexadecimal digits of the binary protocol.
    """
    if isinstance(recorded, dict) and is_hole(recorded):
        return _fills(recorded, observed, cas, clock)
    if isinstance(recorded, list) and isinstance(observed, str):
        return _text_matches(recorded, observed, cas, clock, _HEX if hexadecimal else _TEXT)
    if isinstance(recorded, list) and isinstance(observed, list):
        return len(recorded) == len(observed) and all(
            matches(mine, theirs, cas, clock, hexadecimal=hexadecimal)
            for mine, theirs in zip(recorded, observed, strict=True)
        )
    if isinstance(recorded, dict) and isinstance(observed, dict):
        return recorded.keys() == observed.keys() and all(
            matches(value, observed[key], cas, clock, hexadecimal=hexadecimal) for key, value in recorded.items()
        )
    return type(recorded) is type(observed) and recorded == observed


def _text_matches(
    parts: Sequence[Json], observed: str, cas: CasNumbers, clock: Clock, patterns: dict[str, str]
) -> bool:
    holes = [part for part in parts if isinstance(part, dict)]
    pattern = "".join(re.escape(part) if isinstance(part, str) else patterns[_kind(part)] for part in parts)
    found = re.fullmatch(pattern, observed, re.DOTALL | re.ASCII)
    if found is None:
        return False
    return all(
        _fills(hole, _read(_kind(hole), digits, hexadecimal=patterns is _HEX), cas, clock)
        for hole, digits in zip(holes, found.groups(), strict=True)
    )


def _kind(hole: Json) -> str:
    if not isinstance(hole, dict) or not is_hole(hole):
        raise ValueError(f"{hole!r} is not a hole: one key of {', '.join(sorted(KINDS))}")
    return next(iter(hole))


def _read(kind: str, digits: str, *, hexadecimal: bool) -> Json:
    if kind == "bytes":
        return digits
    if kind == "cas":
        return cas_number(digits, hexadecimal=hexadecimal)
    text = bytes.fromhex(digits).decode("ascii") if hexadecimal else digits
    return float(text) if "." in text else int(text)


def _fills(hole: Hole, observed: Json, cas: CasNumbers, clock: Clock) -> bool:
    (kind, value), *_ = hole.items()
    if kind == "bytes":
        return True
    if isinstance(observed, bool) or not isinstance(observed, int | float):
        return False
    if kind == "cas":
        return isinstance(value, int) and isinstance(observed, int) and cas.agree(value, observed)
    if kind == "time":
        return isinstance(value, int | float) and clock.shows(observed, value)
    return True


def cas_spans(answer: str, *, hexadecimal: bool = False) -> Iterator[tuple[int, int]]:
    """Find the cas numbers in an answer: fifth words of VALUE lines, flags c, binary headers' fields that are not zero.

    Args:
        answer: an observed reply; values are not searched.
        hexadecimal: the answer is hexadecimal digits of the binary protocol.

    Yields:
        Begin and end of each number in the answer.
    """
    yield from _binary_spans(answer) if hexadecimal else _text_spans(answer)


def _text_spans(answer: str) -> Iterator[tuple[int, int]]:
    start = 0
    while found := _NUMBERED.search(answer, start):
        for group in ("cas", "flag"):
            if found[group] is not None:
                yield found.span(group)
        end = found.end() + int(found["length"] or found["size"] or 0)
        # A length that does not fit is one of 5.6's garbled answers: look on behind the line.
        start = end + 2 if answer[end : end + 2] == "\r\n" else found.end()


def _binary_spans(answer: str) -> Iterator[tuple[int, int]]:
    place = 0
    for frame in replies(answer):
        if frame.cas:
            yield place + 2 * CAS.start, place + 2 * CAS.stop
        place += 2 * frame.size


def replies(answer: str) -> Iterator[Frame]:
    """Cut a hexadecimal answer into frames; what is not a frame of a reply any more is left out."""
    digits = answer.partition("<")[0]
    return takewhile(lambda frame: frame.magic == REPLY, frames(bytes.fromhex(digits)))


def cas_number(digits: str, *, hexadecimal: bool = False) -> int:
    """Read a cas number found by `cas_spans`."""
    return int(digits, 16 if hexadecimal else 10)
