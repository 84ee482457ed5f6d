"""What a generated case finds: thing after thing, each once, each a verdict with a conversation of its own."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.verdict import FAILS, HOLDS, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvref_conformance.case import Case
    from kvref_conformance.conversation import Exchange
    from kvref_conformance.judge import Judge

# Things found by one case, and seconds after which no more are looked for.
MOST: Final = 12
SECONDS: Final = 90.0
# Verbs that share their code: what is wrong with one of them is seldom right with another.
ALIKE: Final = {
    "incr": "count",
    "decr": "count",
    **dict.fromkeys(("set", "add", "replace", "append", "prepend", "cas"), "store"),
}

ERROR: Final = re.compile("ERROR|CLIENT_ERROR|SERVER_ERROR")

Signature = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A conversation in which something is not allowed.

    Args:
        text: it, for the reader.
        exchanges: it.
        script: it as a case.
    """

    text: str
    exchanges: tuple[Exchange, ...]
    script: Case


def collect(judge: Judge, case: Case, chapter: str, look: Callable[[], Finding | None]) -> list[Verdict]:
    """Look for things until nothing new is found, or MOST things are.

    Args:
        judge: of the run.
        case: names the requirement.
        chapter: for the verdicts.
        look: holds conversations until something new is not allowed; None when nothing is.
    """
    began = last = time.monotonic()
    found: list[Verdict] = []
    while len(found) < MOST and time.monotonic() - began < SECONDS and not judge.pulse.ended:
        finding = look()
        if finding is None:
            break
        name = f"{case.id}~{len(found) + 1}" if found else case.id
        now = time.monotonic()
        about = (judge.statement_of(case), round(now - last, 4), finding.exchanges, judge.explain(case, finding.text))
        found.append(Verdict(name, chapter, case.requirements, FAILS, *about, script=finding.script))
        last = now
    held = Verdict(case.id, chapter, case.requirements, HOLDS, "", round(time.monotonic() - began, 4))
    return found or [held]


def signature(request: str, allowed: Iterable[str], got: str, keys: Iterable[str]) -> Signature:
    """Return what two conversations have in common that end for the same reason, as far as can be told.

    Args:
        request: that was not answered as allowed.
        allowed: answers to it.
        got: what came instead, with the note of how it ended.
        keys: of the conversation.
    """
    verb, *rest = request.split("\r\n", maxsplit=1)[0].split(" ")
    silent = bool(rest) and rest[-1] == "noreply"
    kind = "noreply" if silent else ALIKE.get(verb, verb)
    # An error is one thing, whatever else should have come.
    instead = () if silent or ERROR.match(got) else allowed
    return tuple(_general(text, keys) for text in (kind, got, *instead))


def _general(text: str, keys: Iterable[str]) -> str:
    text = text.split("\r\n", maxsplit=1)[0]
    for key in keys:
        text = text.replace(key, "k")
    return re.sub(r"\d+", "0", text)
