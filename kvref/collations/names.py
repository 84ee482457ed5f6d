"""Which collations there are, and what each follows: data, with MySQL's own names (SHOW COLLATION of 5.6.14, 8.0.33).

Not as MySQL has it, because whole tables would be needed: `utf8mb4_ja_0900_*` and `utf8mb4_zh_0900_as_cs` follow
`utf8mb4_0900_as_cs`; `utf8mb4_da_0900_as_cs` does not put capitals first; `bg`, `bs`, `hr`, `mn_cyrl`, `ru` and
`sr_latn` of 0900 keep Cyrillic behind Latin. Which texts are equal is right in the latter two groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final


@dataclass(frozen=True, slots=True)
class Collation:
    """One collation.

    Args:
        charset: the character set of its columns.
        family: a rule of `kvref.collations.weights`.
        tailoring: a section of tailorings.txt, "" for none.
        levels: how many levels of weights count: letters, accents, case.
        pads: a text counts as followed by spaces (PAD SPACE).
    """

    name: str
    charset: str
    family: str
    tailoring: str = ""
    levels: int = 1
    pads: bool = True


UNICODE_CHARSETS: Final = ("utf8mb4", "utf8", "utf8mb3", "ucs2")
_FAMILIES: Final = {
    "bin": "code-point",
    "general_ci": "general",
    "unicode_ci": "uca-4.0.0",
    "unicode_520_ci": "uca-5.2.0",
}
_LANGUAGES: Final = tuple(
    "croatian czech danish esperanto estonian german2 hungarian icelandic latvian lithuanian persian polish roman"
    " romanian sinhala slovak slovenian spanish spanish2 swedish turkish vietnamese".split()
)
# Languages of utf8mb4_*_0900_* without a section, and the language whose section they share: "" for none.
_UNTAILORED_0900: Final = {"ja": "", "zh": "", "ru": "", "bg": "", "mn_cyrl": "", "gl": "es", "da": "nb", "nn": "nb"}
_LANGUAGES_0900: Final = tuple("bs cs de_pb eo es es_trad et hr hu is la lt lv nb pl ro sk sl sr_latn sv tr vi".split())
_SUFFIXES_0900: Final = {"ai_ci": 1, "as_ci": 2, "as_cs": 3}
ONE_BYTE: Final = {
    "latin1": tuple(
        f"latin1_{rule}"
        for rule in "bin danish_ci general_ci general_cs german1_ci german2_ci spanish_ci swedish_ci".split()
    ),
    "ascii": ("ascii_bin", "ascii_general_ci"),
}
# Sections of tailorings.txt: name, family, and the collation to query a server for.
TAILORED: Final = (
    *((f"{language}_ci", "uca-4.0.0", f"utf8mb4_{language}_ci") for language in _LANGUAGES),
    *((f"{language}_0900", "uca-9.0.0", f"utf8mb4_{language}_0900_as_cs") for language in _LANGUAGES_0900),
    ("general_mysql500_ci", "general", "utf8mb3_general_mysql500_ci"),
    ("tolower_ci", "general", "utf8mb3_tolower_ci"),
)


def _all() -> Iterator[Collation]:
    for charset in UNICODE_CHARSETS:
        for suffix, family in _FAMILIES.items():
            yield Collation(f"{charset}_{suffix}", charset, family)
        for language in _LANGUAGES:
            yield Collation(f"{charset}_{language}_ci", charset, "uca-4.0.0", f"{language}_ci")
        if charset != "utf8mb4":
            yield Collation(f"{charset}_general_mysql500_ci", charset, "general", "general_mysql500_ci")
    for charset in ("utf8", "utf8mb3"):
        yield Collation(f"{charset}_tolower_ci", charset, "general", "tolower_ci")
    yield Collation("utf8mb4_0900_bin", "utf8mb4", "code-point", pads=False)
    for language in chain(("",), _LANGUAGES_0900, _UNTAILORED_0900):
        tailored = _UNTAILORED_0900.get(language, language)
        middle, section = language and f"{language}_", tailored and f"{tailored}_0900"
        for suffix, levels in _SUFFIXES_0900.items():
            if language and suffix == "as_ci":
                continue
            yield Collation(f"utf8mb4_{middle}0900_{suffix}", "utf8mb4", "uca-9.0.0", section, levels, pads=False)
    yield Collation("utf8mb4_ja_0900_as_cs_ks", "utf8mb4", "uca-9.0.0", levels=3, pads=False)
    for charset, collations in ONE_BYTE.items():
        for name in collations:
            yield Collation(name, charset, "bytes", name)


COLLATIONS: Final = {collation.name: collation for collation in _all()}
_UCA_1400: Final = re.compile(r"utf8mb4_uca1400_(nopad_)?(ai_ci|as_ci|as_cs)")


def known(collation: str) -> Collation | None:
    """Return what a server's collation follows, None where that is not known here."""
    match = _UCA_1400.fullmatch(collation)
    if match is None:
        return COLLATIONS.get(collation.replace("utf8mb3_", "utf8_"))
    return replace(COLLATIONS[f"utf8mb4_0900_{match[2]}"], pads=match[1] is None)


# SHOW CHARACTER SET of 8.0.33; where 5.6.14 has another one, _OLDER_DEFAULTS.
_DEFAULTS: Final = {
    "ascii": "ascii_general_ci",
    "latin1": "latin1_swedish_ci",
    "ucs2": "ucs2_general_ci",
    "utf8": "utf8_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_0900_ai_ci",
}
_OLDER_DEFAULTS: Final = {"utf8mb4": "utf8mb4_general_ci"}


def default_charset(version: str) -> str:
    """Return the character set of a table that names none, by the server's version."""
    return "latin1" if version.startswith("5.") else "utf8mb4"


def default_collation(charset: str, version: str) -> str:
    """Return the default collation of a character set in a server's version; raises KeyError if not listed here."""
    if version.startswith("5.") and charset in _OLDER_DEFAULTS:
        return _OLDER_DEFAULTS[charset]
    return _DEFAULTS[charset]
