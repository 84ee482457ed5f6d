"""The requirements that a difference is about, decided by the command and the kind of the recorded reply.

1. Requirements whose statement names both the verb and the reply, such as "`delete` … `NOT_FOUND`".
2. Without one, requirements with a case that sends the verb and demands a reply of this kind, those with the fewest
   pairs of verb and reply first: they are about little else.
3. Without one, none: the specification does not state this reply to this command.

The kind of a reply is the row of the table of replies that states its first line, or its status in the binary protocol.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final

from kvref.specification import requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.spec.replies import stated
from kvref_conformance.steps import By, Send, innermost
from kvref_conformance.wire.frames import frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref_conformance.case import Case

MAX_REQUIREMENTS: Final = 4
NOTHING: Final = "no reply"
CLOSED: Final = "closed connection"
_STATUS: Final = re.compile(r"(?:^|; )\S+ (ok|0x[0-9a-f]{2})")
_CODE: Final = re.compile(r"`([^`]+)`")
_SUCCESS: Final = 0


def kind_of(reply: str, *, hexadecimal: bool) -> str:
    """Return the kind of a reply.

    Args:
        reply: as in a recording, without holes.
        hexadecimal: it is frames in hexadecimal digits.
    """
    if not reply:
        return NOTHING
    if reply.startswith("<"):
        return CLOSED if reply == "<EOF>" else reply[:80]
    if hexadecimal:
        return _status(bytes.fromhex(reply.partition("<")[0]))
    line = reply.partition("\r\n")[0]
    return min(stated(line), key=_freedom, default=line[:80])


def of(verb: str, kind: str) -> tuple[str, ...]:
    """Return at most MAX_REQUIREMENTS requirements for a verb and the kind of the recorded reply; () if none is found.

    Args:
        verb: as in `Command.verb`.
        kind: as `kind_of` returns it.
    """
    demanding = _index().get((verb, kind), {})
    name, reply = verb.removeprefix("binary "), kind.split(" {", maxsplit=1)[0]
    naming = [each for each in demanding if {name, reply} <= _words(each)]
    ranked = naming or sorted(demanding, key=lambda each: _width()[each])
    return tuple(ranked[:MAX_REQUIREMENTS])


def _status(data: bytes) -> str:
    frame = next(frames(data), None)
    if frame is None:
        return "half a frame"
    return "ok" if frame.status == _SUCCESS else f"0x{frame.status:02x}"


def _freedom(row: str) -> tuple[int, int]:
    """Rank the rows that state a line: the one that leaves least open first."""
    return row.count("{") + row.count("<"), -len(row)


@cache
def _index() -> Mapping[tuple[str, str], Mapping[str, None]]:
    """Return the requirements by verb and kind of reply, in the order of the suite."""
    found: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for case in all_cases():
        for pair in _pairs(case):
            found[pair].update(dict.fromkeys(case.requirements))
    return found


@cache
def _width() -> Mapping[str, int]:
    """Return the number of pairs that the cases of each requirement demand."""
    counts: defaultdict[str, int] = defaultdict(int)
    for names in _index().values():
        for name in names:
            counts[name] += 1
    return counts


@cache
def _words(requirement: str) -> frozenset[str]:
    """Return what the statement of a requirement has in backticks; of a request its verb too."""
    known = requirements.load().get(requirement)
    quoted = _CODE.findall(known.statement) if known is not None else []
    return frozenset((*quoted, *(each.split(" ")[0] for each in quoted)))


def _pairs(case: Case) -> Iterator[tuple[str, str]]:
    """Yield verb and kind of each reply that a case allows, of several commands in one packet those of the first."""
    for step in map(innermost, case.steps):
        words = "".join(step.packets).split() if isinstance(step, Send) else []
        if not isinstance(step, Send) or not words:
            continue
        for text in _texts(step.allow):
            if step.binary:
                status = _STATUS.search(text)
                yield f"binary {words[0]}", NOTHING if status is None else status[1]
            else:
                for row in stated(text.partition("\r\n")[0]) if text else (NOTHING,):
                    yield words[0], row


def _texts(allow: tuple[str, ...] | By) -> tuple[str, ...]:
    return allow if isinstance(allow, tuple) else tuple(text for each in allow.answers.values() for text in each)
