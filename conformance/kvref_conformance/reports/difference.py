"""The place at which a reply first differs from those that are allowed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.wire.frames import BETWEEN
from kvref_conformance.wire.template import CAUGHT, HOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# What ends a part of a reply: a line, a frame in words, a row of a result; of a reply of one part, a word.
PARTS: Final = {"line": "\r\n", "frame": BETWEEN, "row": "), (", "word": " "}


def first_difference(got: str, allowed: Iterable[str]) -> int:
    """Return the index of the first byte of a reply that no allowed reply has there.

    Args:
        got: the reply, one character a byte.
        allowed: allowed replies, with the holes of `wire/template.py`.

    Returns:
        0 to the length of the reply, which means that the reply ends too early.
    """
    return max((_agreeing(got, each)[0] for each in allowed), default=0)


def differing_part(got: str, allowed: Sequence[str]) -> str:
    """Return which part of a reply of several parts no allowed reply has there, and what the closest one has.

    Args:
        got: the reply, one character a byte.
        allowed: allowed replies, with the holes of `wire/template.py`.

    Returns:
        Such as `line 2 of 3: STAT b 1\r\nexpected: STAT b 2` without the line ends; empty if there is one part.
    """
    closest = max(allowed, key=lambda each: _agreeing(got, each)[0], default="")
    for name, end in PARTS.items():
        if name == "word":
            got, closest = got.removesuffix("\r\n"), closest.removesuffix("\r\n")
        parts, wanted = _parts(got, end), _parts(closest, end)
        if max(len(parts), len(wanted)) > 1:
            place, there = _agreeing(got, closest)
            if name == "word" and " " not in got[:place]:
                return ""  # the replies have nothing in common
            # One of the two ends, or goes on, behind a word that they have in common.
            ended = name == "word" and got[place : place + 1] in ("", end) and closest[there : there + 1] in ("", end)
            number = min(got.count(end, 0, place) + ended, len(parts))
            shown = parts[number] if number < len(parts) else ""
            instead = min(closest.count(end, 0, there) + ended, len(wanted))
            expected = wanted[instead] if instead < len(wanted) else ""
            of = f"{name} {number + 1} of {len(parts)}" if shown else f"after {name} {len(parts)}, the last one"
            return f"{of}: {shown or '(end)'}, expected {expected or '(end)'}"
    return ""


def _parts(text: str, end: str) -> list[str]:
    return text.removesuffix(end).split(end) if text else []


def _agreeing(got: str, allowed: str) -> tuple[int, int]:
    """Return the lengths of the beginnings of a reply and of an allowed one that agree."""
    position = end = 0
    for hole in [*HOLE.finditer(allowed), None]:
        literal = allowed[end : hole.start() if hole else None]
        common = _common(got[position:], literal)
        position += common
        end += common
        if common < len(literal) or hole is None:
            break
        caught = re.compile(CAUGHT.get(hole[0], r"(\d+)")).match(got, position)
        if caught is None:
            break
        position, end = caught.end(), hole.end()
    return position, end


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
