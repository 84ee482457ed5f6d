"""The table of replies, applied: which lines and statuses the specification states, and which the cases demand."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from kvref.specification import normative, requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.steps import AwaitReply, By, Send, StartRequest, innermost
from kvref_conformance.wire.template import HOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kvref_conformance.case import Case

# A free part of a text: a name in braces, or %d of a number.
FREE: Final = re.compile(r"\{[^}]*\}|%d")
QUOTED: Final = re.compile(r"`([^`]+)`")
KINDS: Final = ("ERROR", "CLIENT_ERROR", "SERVER_ERROR")
# Any text of a kind: what a case allows that leaves the text to the server.
ANY_TEXT: Final = frozenset(f"{kind} <text>" for kind in KINDS)
STATUS: Final = re.compile(r'(?:^|; )\S+ (0x[0-9a-f]{2})(?: "([^"]*)")?')
_BLOCK: Final = re.compile(r"VALUE [^ ]* [^ ]+ ([^ ]+)(?: [^ ]+)?|VA ([^ ]+).*", re.DOTALL)


@cache
def patterns() -> Mapping[str, re.Pattern[str]]:
    """Return the regular expression of every stated line by its text in the tables."""
    texts = [text for text in normative.table("replies") if not text.startswith("0x")]
    success = [text for text in normative.table("success") if text != "text"]
    return {text: pattern(text) for text in (*success, *texts)}


def pattern(text: str) -> re.Pattern[str]:
    """Return the regular expression of a text of the table.

    Args:
        text: with free parts.
    """
    literals = map(re.escape, FREE.split(text))
    free = [r"[0-9]+ *" if part == "{number}" else ".*" for part in FREE.findall(text)]
    return re.compile("".join(each for pair in zip_longest(literals, free, fillvalue="") for each in pair), re.DOTALL)


def stated(line: str) -> list[str]:
    """Return the rows of the tables that state a line of a reply; empty if none does.

    Args:
        line: without its line end, with the holes of `wire/template.py`.
    """
    if line in ANY_TEXT or line.startswith("<"):
        return [line]
    shown = [line, HOLE.sub("", line), HOLE.sub("0", line)]
    return [text for text, expression in patterns().items() if any(map(expression.fullmatch, shown))]


def status_is_stated(number: str, text: str) -> bool:
    """Return whether the tables state a status of the binary protocol with a text.

    Args:
        number: such as 0x01.
        text: of the response; may be empty.
    """
    row = next((row for row in normative.table("binary")["status"] if f"0x{row['number']:02x}" == number), None)
    if row is None:
        return False
    texts = {"", row["text"], *([f"{row['text']}."] if row.get("full_stop") else ())}
    return text in texts or text == "<value>" or row["text"] == "*" or any(stated(f"{kind} {text}") for kind in KINDS)


def demanded(case: Case) -> Iterator[str]:
    """Yield what a case allows as a reply in the text protocol, as lines without line ends and without data blocks.

    Args:
        case: any.
    """
    for binary, text in _allowed(case):
        if not binary:
            yield from _lines(text)


def statuses(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the statuses with their texts that a case allows in the binary protocol.

    Args:
        case: any.
    """
    for binary, text in _allowed(case):
        if binary:
            yield from ((number, words or "") for number, words in STATUS.findall(text))


@cache
def demanding() -> Mapping[str, tuple[str, ...]]:
    """Return the requirements that demand a reply, by the text of the tables.

    The cases of a requirement say what it demands; of one that only tests of kvref show, as the suite cannot send
    `shutdown` to any endpoint, its statement does.
    """
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for case in all_cases():
        lines = {*demanded(case), *(f"{kind} {text}" for _, text in statuses(case) if text for kind in KINDS)}
        for text in {row for line in lines for row in stated(line)}:
            found[text].update(dict.fromkeys(case.requirements))
    for each in requirements.load().values():
        for text in patterns().keys() & QUOTED.findall(each.statement) if each.tests else ():
            found[text][each.id] = None
    return {text: tuple(names) for text, names in found.items()}


def stating(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements whose statement has a reply; if none has it word by word, all that were given.

    Args:
        text: of the tables.
        names: IDs of the requirements whose cases demand the reply.
    """
    expression = patterns()[text]
    catalogue = requirements.load()
    found = [
        name for name in names if any(expression.fullmatch(each) for each in QUOTED.findall(catalogue[name].statement))
    ]
    return tuple(found or names)


def _allowed(case: Case) -> Iterator[tuple[bool, str]]:
    """Yield what is allowed, with whether it is in the binary protocol."""
    binary: dict[str, bool] = {}
    for step in map(innermost, case.steps):
        if isinstance(step, Send | StartRequest):
            binary[step.on] = step.binary
        if isinstance(step, Send | AwaitReply):
            for text in _texts(step.allow):
                yield binary[step.on], text


def _texts(allow: tuple[str, ...] | By) -> Iterable[str]:
    return allow if isinstance(allow, tuple) else [text for texts in allow.answers.values() for text in texts]


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a reply; the data block behind a line of a value is left out.

    Without its length, as where that is a name or a hole, a block ends with its first CR LF.
    """
    while text:
        line, _, text = text.partition("\r\n")
        yield from line.split("\n") if line.startswith("key=") else [line]
        block = _BLOCK.fullmatch(HOLE.sub("<>", line))
        if block is None:
            continue
        length = block[1] or block[2]
        if length.isdigit() and text[int(length) :].startswith("\r\n"):
            text = text[int(length) + 2 :]
        else:
            text = text.partition("\r\n")[2]
