"""The shapes of keys: a short closed list, and which of them a request has."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref_conformance.wire.requests import Request
    from kvref_conformance.wire.verbs import Verb

SINGLE: Final = "key"
WORD: Final = "@@name"
MAPPED: Final = "@@name.key"
NO_KEY: Final = "@@name."
UNKNOWN: Final = "@@unknown"
RANGE: Final = "range"
EMPTY: Final = "empty"
LONG: Final = "over 250"
CONTROL: Final = "control"
HIGH: Final = "non-ASCII"
ENCODED: Final = "base64"
SEVERAL: Final = "several"
NONE: Final = "no key"
ABOUT: Final = {
    SINGLE: "one key in ASCII",
    WORD: "the name of a mapping alone; of bind, the name itself",
    MAPPED: "a key behind the name of a mapping",
    NO_KEY: "a mapping and the delimiter, and no key behind it",
    UNKNOWN: "a mapping that is not there",
    RANGE: "@>, @>=, @< or @<= in the place of a key",
    EMPTY: "no key where one belongs",
    LONG: "longer than 250 bytes",
    CONTROL: "with control bytes or blanks",
    HIGH: "with bytes outside ASCII",
    ENCODED: "in base64, flag b of the meta commands",
    SEVERAL: "two keys or more",
    NONE: "a verb without a key",
}
LONGEST: Final = 250
_CONTROL: Final = re.compile(r"[\x00- \x7f]")
_RANGE: Final = re.compile(r"@[<>]")
_MARK: Final = "@@"
_OF_MAPPINGS: Final = frozenset({WORD, MAPPED, NO_KEY, UNKNOWN})


@dataclass
class Naming:
    """How an endpoint reads a key in the configuration in force.

    Args:
        supported: it has mappings.
        ranges: it has ranges.
        any_byte: each byte of the delimiter splits, not the whole.
        delimiter: in force.
        names: mappings that are there.
    """

    supported: bool
    ranges: bool
    any_byte: bool
    delimiter: str = "."
    names: set[str] = field(default_factory=set)

    def split(self, key: str) -> tuple[str, str | None] | None:
        """Return the name and the key of a word that names a mapping, the key None without a delimiter; else None."""
        if not self.supported or not key.startswith(_MARK):
            return None
        rest = key.removeprefix(_MARK)
        if self.any_byte:
            found = re.search(f"[{re.escape(self.delimiter)}]", rest)
            name = rest[: found.start()] if found else rest
            return name, rest[len(name) + len(self.delimiter) :] if found else None
        name, delimiter, key_text = rest.partition(self.delimiter)
        return name, key_text if delimiter else None

    def shapes(self, request: Request) -> frozenset[str]:
        """Return the shapes of a request: SEVERAL in addition to those of its keys."""
        if not request.verb.key:
            return frozenset({NONE})
        keys = request.key_texts
        if not keys:
            return frozenset({EMPTY})
        if request.encoded:
            return frozenset({ENCODED})
        found = {shape for key in keys for shape in self._of(request.verb, key)}
        return frozenset(found | {SEVERAL} if len(keys) > 1 else found)

    def _of(self, verb: Verb, key: str) -> set[str]:
        odd = {LONG} if len(key) > LONGEST else set()
        odd |= {CONTROL} if _CONTROL.search(key) else set()
        odd |= {HIGH} if not key.isascii() else set()
        if verb.name == "bind":
            return odd or {WORD if key in self.names else UNKNOWN}
        word = self.split(key)
        if word is not None:
            name, key_text = word
            known = WORD if key_text is None else MAPPED if key_text else NO_KEY
            odd |= {known if name in self.names else UNKNOWN}
            key = key_text or ""
        if self.ranges and _RANGE.match(key):
            odd |= {RANGE}
        return odd or {SINGLE}


def sensible(verb: Verb, naming: Naming) -> tuple[str, ...]:
    """Return the shapes in which it makes sense to send a verb to an endpoint."""
    if not verb.key:
        return (NONE,)
    if verb.name == "bind":
        return (WORD, UNKNOWN, EMPTY, LONG, CONTROL, HIGH)
    shapes = {SINGLE, EMPTY, LONG, CONTROL, HIGH}
    shapes |= _OF_MAPPINGS if naming.supported else set()
    shapes |= {RANGE} if naming.ranges and verb.ranged else set()
    shapes |= {ENCODED} if verb.encoded else set()
    shapes |= {SEVERAL} if verb.several else set()
    return tuple(shape for shape in ABOUT if shape in shapes)
