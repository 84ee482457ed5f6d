"""What characters weigh: one table for each family of collations, read at the first comparison that needs it.

`data/<family>.z` is a zlib-compressed text: a line of code points, then a line for each level (letters, accents,
case) with the characters separated by commas and the weights of one by blanks, all as differences to the number
before. `data/tailorings.txt` has sections `> name family` of lines `code points: weights/weights/weights`,
hexadecimal. Both were queried from MySQL 8.0.33 with WEIGHT_STRING by `tests/collations/weights_of_mysql.py`; what its
rules give to the other characters is `RULES`.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Final

from kvref.collations.charsets import CHARSETS
from kvref.collations.names import Collation

Levels = tuple[tuple[int, ...], ...]

_REPLACEMENT: Final = 0xFFFD
HANGUL: Final = range(0xAC00, 0xD7A4)
# Ideographs by version of the Unicode Collation Algorithm, and the base their weights count from.
_IDEOGRAPHS_4: Final = ((range(0x3400, 0x4DB6), 0xFB80), (range(0x4E00, 0x9FA6), 0xFB40))
_IDEOGRAPHS_9: Final = (
    (range(0x3400, 0x4DB6), 0xFB80), (range(0x20000, 0x2A6D7), 0xFB80), (range(0x2A700, 0x2B735), 0xFB80),
    (range(0x2B740, 0x2B81E), 0xFB80), (range(0x2B820, 0x2CEA2), 0xFB80), (range(0x4E00, 0x9FD6), 0xFB40),
    (range(0xFA0E, 0xFA2A), 0xFB40),
)  # fmt: skip
_UNASSIGNED: Final = 0xFBC0


@dataclass(frozen=True, slots=True)
class Rule:
    """A family of collations.

    Args:
        collation: the one that shows all its levels and nothing else.
        implicit: the weights of a character that its table lacks.
        composes: a Hangul syllable weighs what its letters weigh together.
    """

    collation: str
    implicit: Callable[[int], Levels]
    composes: bool = False


def _implicit(point: int, blocks: tuple[tuple[range, int], ...]) -> tuple[int, int]:
    base = next((base for block, base in blocks if point in block), _UNASSIGNED)
    return base + (point >> 15), point & 0x7FFF | 0x8000


def _up_to_ffff(point: int, weights: tuple[int, ...]) -> Levels:
    return (weights if point <= 0xFFFF else (_REPLACEMENT,),)


RULES: Final = {
    "general": Rule("utf8mb4_general_ci", lambda point: _up_to_ffff(point, (point,))),
    "uca-4.0.0": Rule("utf8mb4_unicode_ci", lambda point: _up_to_ffff(point, _implicit(point, _IDEOGRAPHS_4))),
    "uca-5.2.0": Rule("utf8mb4_unicode_520_ci", lambda point: (_implicit(point, _IDEOGRAPHS_4),)),
    "uca-9.0.0": Rule(
        "utf8mb4_0900_as_cs", lambda point: (_implicit(point, _IDEOGRAPHS_9), (0x20,), (0x02,)), composes=True
    ),
}


class Weights(dict[int, str]):
    """One level of a table as `str.translate` takes it: each weight is a character."""

    def __init__(self, known: Mapping[int, str], implicit: Callable[[int], str]) -> None:
        super().__init__(known)
        self._implicit = implicit

    def __missing__(self, point: int) -> str:
        return self._implicit(point)


@dataclass(frozen=True, slots=True)
class Table:
    """The levels that a collation compares by; `pairs` finds letters that count as one, and their replacements."""

    levels: tuple[Weights, ...]
    pairs: tuple[re.Pattern[str], Mapping[str, str]] | None = None

    def key(self, text: str) -> str:
        """Return what orders texts as the collation does when compared code point by code point."""
        if self.pairs is not None:
            pattern, replacements = self.pairs
            text = pattern.sub(lambda match: replacements[match[0]], text)
        # Nothing weighs 0, so a shorter level comes first.
        return "\0".join([text.translate(level) for level in self.levels])

    def ranks(self) -> tuple[bytes, bytes] | None:
        """Return what `bytes.translate` takes to give texts of latin-1 their order, and deletes what takes more.

        None where most of them do: letters that count as one, or several levels.
        """
        if self.pairs is not None or len(self.levels) > 1:
            return None
        found = [self.levels[0][point] for point in range(256)]
        ranks = {weight: rank for rank, weight in enumerate(sorted(set(found)))}
        unranked = bytes(point for point, weight in enumerate(found) if len(weight) != 1)
        return bytes(ranks[weight] for weight in found), unranked


def table_of(collation: Collation) -> Table:
    if collation.family == "bytes":
        return _bytes_table(collation)
    if not collation.tailoring:
        return Table(_family(collation.family)[: collation.levels])
    own = _tailorings()[collation.tailoring]
    pairs = [text for text in own if len(text) > 1]
    # Characters at the end of plane 16, which are otherwise unused, represent pairs.
    stand_ins = {text: chr(0x10FF00 + position) for position, text in enumerate(pairs)}
    levels = []
    for number, base in enumerate(_family(collation.family)[: collation.levels]):
        level = Weights(base, base.__getitem__)
        level.update((ord(stand_ins.get(text, text)), _text(weights[number])) for text, weights in own.items())
        levels.append(level)
    if not pairs:
        return Table(tuple(levels))
    pattern = re.compile("|".join(map(re.escape, sorted(pairs, key=len, reverse=True))))
    return Table(tuple(levels), (pattern, stand_ins))


def _bytes_table(collation: Collation) -> Table:
    own = _tailorings()[collation.tailoring]
    characters = CHARSETS[collation.charset].decode(bytes(range(256)))
    weights = {
        ord(character): _text(own[chr(byte)][0]) if chr(byte) in own else chr(byte)
        for byte, character in enumerate(characters)
    }
    return Table((Weights(weights, lambda _: weights[ord("?")]),))


@cache
def _family(name: str) -> tuple[Weights, ...]:
    points, *levels = zlib.decompress(_data(f"{name}.z")).decode("ascii").split("\n")
    codes = list(accumulate(map(int, points.split(" "))))
    rule = RULES[name]
    found: list[Weights] = []
    for number, line in enumerate(levels):
        known = dict(zip(codes, _weights(line), strict=True))
        found.append(Weights(known, _implicit_level(rule, number, known)))
    return tuple(found)


def _implicit_level(rule: Rule, number: int, known: Mapping[int, str]) -> Callable[[int], str]:
    def weights(point: int) -> str:
        if rule.composes and point in HANGUL:
            return "".join(known[ord(jamo)] for jamo in unicodedata.normalize("NFD", chr(point)))
        return _text(rule.implicit(point)[number])

    return weights


def _weights(line: str) -> Iterator[str]:
    last = 0
    for cell in line.split(","):
        weights = []
        for step in cell.split():
            last += int(step)
            weights.append(chr(last))
        yield "".join(weights)


@cache
def _tailorings() -> dict[str, dict[str, Levels]]:
    sections: dict[str, dict[str, Levels]] = {}
    section: dict[str, Levels] = {}
    for line in _data("tailorings.txt").decode("ascii").splitlines():
        if line.startswith("> "):
            section = sections.setdefault(line.split()[1], {})
            continue
        points, _, levels = line.partition(": ")
        text = "".join(chr(int(point, 16)) for point in points.split())
        section[text] = tuple(tuple(int(w, 16) for w in level.split()) for level in levels.split("/"))
    return sections


def _text(weights: tuple[int, ...]) -> str:
    return "".join(map(chr, weights))


def _data(name: str) -> bytes:
    return files(__package__).joinpath("data", name).read_bytes()
