"""The grammar of the specification, applied: which lines a profile accepts."""

from __future__ import annotations

import binascii
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.specification import normative
from kvref_conformance.spec.abnf import Abnf

if TYPE_CHECKING:
    from collections.abc import Set

# Index of the first flag of a meta command, by its verb.
FLAGS_AT: Final = {"mg": 2, "ms": 3, "md": 2, "ma": 2}
_DIGITS: Final = re.compile(r"[\t\v\f\r]*([+-]?[0-9]+)")
_DELETE: Final = 0x7F
_LOW_32: Final = 1 << 32


@cache
def grammar() -> Abnf:
    """Return the grammar of the specification."""
    return Abnf(normative.grammar())


# Rules that no line contains: how a key is read, and the values of the configuration tables.
_OF_MAPPINGS: Final = ("key-word", "value-columns", "key-columns")
_PREFIX: Final = re.compile(r"\b(?:plugin|memcached)-")
_SECTION: Final = re.compile(r"\n(?=; ----)")
_RULE: Final = re.compile(r"\n(?=[a-z][A-Za-z0-9-]* +=)", re.IGNORECASE)


def of_profile(profile: str) -> dict[str, Any]:
    """Return the grammar of one profile: its rules in ABNF, ranges, conditions and texts. The rule of a line is `line`.

    Args:
        profile: name of the profile.
    """
    chapter = normative.of_profile("grammar", profile)
    mapped = _OF_MAPPINGS if profiles.load(profile).flag("mapping.supported") else ()
    reachable = grammar().closure([chapter.pop("start"), "eol", *mapped]) | {"request"}
    sections = [_section(each, reachable) for each in _SECTION.split(normative.grammar())]
    ranges = {_PREFIX.sub("", rule): rows for rule, rows in chapter.pop("ranges").items() if rule in reachable}
    return {"abnf": _PREFIX.sub("", "\n".join(filter(None, sections))), "ranges": ranges, **chapter}


def _section(text: str, reachable: Set[str]) -> str:
    """Return a section of the grammar with the rules to keep; empty if it has none of them."""
    head, *rules = _RULE.split(text)
    found = [each for each in rules if each.split(None, 1)[0] in reachable]
    return "\n".join([head, *found]).rstrip("\n") + "\n" if found else ""


def accepts(line: str, profile: str) -> bool:
    """Return whether a line of the text protocol is well formed.

    Args:
        line: without its line end; characters stand for octets.
        profile: one of `start` in `grammar.toml`.
    """
    chapter = normative.table("grammar")
    found = grammar().match(chapter["start"][profile], line, chapter["ranges"])
    return found is not None and all(_fits(rule, text, profile) for rule, text in found) and _flags_fit(line)


def _fits(rule: str, text: str, profile: str) -> bool:
    """Return whether a number is in one of its ranges."""
    ranges = normative.table("grammar")["ranges"][rule]
    digits = _DIGITS.match(text)
    number = int(digits[1]) if digits else 0  # white space alone, or a word
    return any(_within(number, *each) for each in ranges.get(profile, ranges.get("*")))


def _within(number: int, low: int, high: int, low_bits_from: int | None = None, low_bits_to: int = 0) -> bool:
    bits = (number + _LOW_32 // 2) % _LOW_32 - _LOW_32 // 2
    return low <= number <= high and (low_bits_from is None or low_bits_from <= bits <= low_bits_to)


def _flags_fit(line: str) -> bool:
    """Return whether a meta command meets the conditions: unique flags, and a key in base64 where a flag says so."""
    words = [word for word in line.split(" ") if word]
    if words[0] == "me":
        return words[2:3] != ["b"] or _is_base64(words[1])
    if words[0] not in FLAGS_AT:
        return True
    letters = [flag[0] for flag in words[FLAGS_AT[words[0]] :]]
    if len(letters) != len(set(letters)) or any(ord(letter) >= _DELETE for letter in letters):
        return False
    return "b" not in letters or _is_base64(words[1])


def _is_base64(text: str) -> bool:
    try:
        return bool(binascii.a2b_base64(text.encode("latin-1"), strict_mode=True))
    except binascii.Error:
        return False
