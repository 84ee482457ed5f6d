"""The template language of the cases: bytes typed as text, with names in braces and holes in angle brackets.

`{k}` `{k2}` fresh keys of the case, `{k:32}` the key filled up to 32 bytes, `{m1}` a mapping, `{t1}` its table,
`{#w1}` the length of a name's text, `{v~1024}` a run of 1024 letters v. In a reply `<number>` and `<cas>` match
decimal digits, `<text>` the rest of a line, `<stats>` STAT lines, or none, with names that the reply does not have
elsewhere, `<cas a>` stores the digits as `{a}`, `<new cas b>` does so and requires a number not stored before; a name
that occurs twice in a reply is twice the same number. In frames `<value>` and `<key>` match a field to its end,
`<pairs>` frames of stat with a name, or none, as `<stats>`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# The beginnings of rows of stats, and of frames of stat, with a group for the name.
STAT: Final = re.compile(r"STAT ([a-z_]+) ")
PAIR: Final = re.compile(r"stat ok key=([a-z_]+) ")
NAME: Final = re.compile(r"\{(#?)([a-z][a-z0-9_]*)(?::(\d+))?\}")
RUN: Final = re.compile(r"\{([a-z])~(\d+)\}")
HOLE: Final = re.compile(r"<(?:(new )?(cas|number)(?: ([a-z]\d*))?|text|stats|value|key|pairs)>")
CAUGHT: Final = {
    "<text>": r"([^\r\n]*)",
    "<stats>": r"((?:STAT [^\r\n]+\r\n)*)",
    "<value>": r"([^;]*)",
    "<key>": r"([^ ;]*)",
    "<pairs>": r"((?:stat ok key=[^ ;]+ value=[^;]*; )*)",
}
# A text of a letter or two, such as the mapping of one letter, may stand anywhere.
SHORT: Final = 2
# In the answers of models, which fill in everything else themselves.
CAS: Final = "<cas>"
FRESH: Final = re.compile(r"k\d*")


class Names:
    """What the names in braces stand for within one case.

    Args:
        given: names known beforehand (mappings, tables).
        fresh: makes a key that no other case uses, for a name such as `k2`.
    """

    def __init__(self, given: dict[str, str], fresh: Callable[[str], str]) -> None:
        self.texts = dict(given)
        self._fresh = fresh

    def __getitem__(self, name: str) -> str:
        if name not in self.texts and FRESH.fullmatch(name):
            self.texts[name] = self._fresh(name)
        return self.texts[name]

    def render(self, template: str) -> str:
        """Replace the names in a template; raises KeyError for an unknown one."""
        return NAME.sub(self._replace, RUN.sub(lambda run: run[1] * int(run[2]), template))

    def _replace(self, found: re.Match[str]) -> str:
        text = self[found[2]]
        if found[3]:
            return text.ljust(int(found[3]), "x")
        return str(len(text)) if found[1] else text

    def put_back(self, text: str) -> str:
        """Return an answer with the names in place of this run's keys, mappings and tables; numbers stay."""
        known = {value: name for name, value in self.texts.items() if len(value) > SHORT and not value.isdigit()}
        for value in sorted(known, key=len, reverse=True):
            text = text.replace(value, f"{{{known[value]}}}")
        return text

    def match(self, template: str, text: str) -> bool:
        """Return whether a text is what an answer template allows, and remember what its holes caught."""
        known = dict(CAUGHT)
        if names := "|".join(STAT.findall(template)):
            known["<stats>"] = rf"((?:STAT (?!(?:{names}) )[^\r\n]+\r\n)*)"
        if names := "|".join(PAIR.findall(template)):
            known["<pairs>"] = rf"((?:stat ok key=(?!(?:{names}) )[^ ;]+ value=[^;]*; )*)"
        caught: list[tuple[str | None, bool]] = []
        parts: list[str] = []
        end = 0
        for hole in HOLE.finditer(template):
            parts.append(re.escape(self.render(template[end : hole.start()])))
            parts.append(known.get(hole[0], r"(\d+)"))
            caught.append((hole[3], bool(hole[1])))
            end = hole.end()
        parts.append(re.escape(self.render(template[end:])))
        found = re.fullmatch("".join(parts), text)
        return found is not None and self._remember(caught, found.groups())

    def _remember(self, caught: list[tuple[str | None, bool]], values: tuple[str, ...]) -> bool:
        here: dict[str, str] = {}
        for (name, new), value in zip(caught, values, strict=True):
            if name in here:
                if here[name] != value:
                    return False
            elif new and value in {*self.texts.values(), *here.values()}:
                return False
            elif name is not None:
                here[name] = value
        self.texts |= here
        return True


def with_numbers(text: str) -> str:
    """Return the pattern of a reply: CAS is a group of digits, `<number>` digits, `<text>` the rest of a line."""
    numbered = re.escape(text).replace(re.escape(CAS), r"(\d+)").replace("<number>", r"\d+")
    return numbered.replace("<text>", r"[^\r\n]*")


def caught(template: str, text: str) -> tuple[str, ...]:
    """Return what the holes of an answer template match in a text of any run, except cas numbers; () if it differs."""
    pattern, kinds, end = "", [], 0
    for hole in HOLE.finditer(template):
        pattern += _of_any_run(template[end : hole.start()]) + CAUGHT.get(hole[0], r"(\d+)")
        kinds.append(hole[2])
        end = hole.end()
    found = re.fullmatch(pattern + _of_any_run(template[end:]), text, re.DOTALL) if kinds else None
    return tuple(value for kind, value in zip(kinds, found.groups(), strict=True) if kind != "cas") if found else ()


def _of_any_run(piece: str) -> str:
    """Return the pattern of a part of a template without holes, whatever its names mean."""
    escaped = re.escape(RUN.sub(lambda run: run[1] * int(run[2]), NAME.sub("\0", piece)))
    return escaped.replace("\0", ".+?")


def names_in(template: str) -> set[str]:
    """Return the names that a template uses."""
    return {found[2] for found in NAME.finditer(template)}
