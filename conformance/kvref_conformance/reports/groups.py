"""Failures of a run grouped by likely cause: the same request received the same kind of reply."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.judging.verdict import BROKEN, CRASH, SUITE_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.judging.verdict import Verdict

# Requests that only show what an earlier request has done.
READS: Final = frozenset("get gets mg me bget getk SELECT stat stats version noop mn".split())
ERROR: Final = re.compile("ERROR|CLIENT_ERROR|SERVER_ERROR")
UNEXPECTED: Final = "unexpected pass"
ROWS: Final = "rows"
MAX_GROUPS: Final = 10  # on the terminal
MAX_REQUIREMENTS: Final = 4  # in a line
MAX_ALLOWED: Final = 3


@dataclass(frozen=True, slots=True)
class Group:
    """Failures with one likely cause.

    Args:
        cause: a sentence without a full stop.
        verdicts: of the cases, in the order of the run.
    """

    cause: str
    verdicts: tuple[Verdict, ...]

    def requirements(self) -> list[tuple[str, int]]:
        """Return the requirements with their number of failed cases, the most frequent first."""
        return Counter(name for each in self.verdicts for name in each.requirements).most_common()

    def line(self) -> str:
        """Return cause, requirements and an example in one line."""
        named = self.requirements()
        shown = [f"{name} ({count})" if count > 1 else name for name, count in named[:MAX_REQUIREMENTS]]
        more = f" and {len(named) - MAX_REQUIREMENTS} more" if len(named) > MAX_REQUIREMENTS else ""
        about = f" [{', '.join(shown)}{more}]" if shown else ""
        return f"{len(self.verdicts)}: {self.cause}{about}, for example {self.verdicts[0].case}"


def grouped(verdicts: Iterable[Verdict]) -> list[Group]:
    """Return the failures among verdicts in groups, the largest first.

    Args:
        verdicts: of a run, of any kind.
    """
    found: defaultdict[str, list[Verdict]] = defaultdict(list)
    for each in verdicts:
        if each.verdict in BROKEN | {SUITE_ERROR}:
            found[_cause(each)].append(each)
    groups = [Group(cause, tuple(members)) for cause, members in found.items()]
    return sorted(groups, key=lambda group: -len(group.verdicts))


def lines(verdicts: Iterable[Verdict]) -> list[str]:
    """Return what the terminal shows of the groups at the end of a run; nothing without a failure."""
    groups = grouped(verdicts)
    if not groups:
        return []
    rest = len(groups) - MAX_GROUPS
    listing = ["failed cases by likely cause:", *(f"  {group.line()}" for group in groups[:MAX_GROUPS])]
    return listing + ([f"  {rest} more causes are in the report"] if rest > 0 else [])


def _cause(verdict: Verdict) -> str:
    if verdict.verdict == SUITE_ERROR:
        return f"the suite failed: {verdict.reason}"
    if not verdict.conversation:
        return f"{verdict.verdict}: {verdict.reason}"
    *before, last = verdict.conversation
    if last.passed and verdict.verdict != CRASH:
        # Every reply is allowed: the failure is that of a documented deviation, which does not occur.
        line = next((line for line in verdict.text.splitlines() if line.startswith(UNEXPECTED)), verdict.reason)
        return line.replace(f" of case {verdict.case}", "")
    verb = _verb(last)
    written = next((_verb(each) for each in reversed(before) if _verb(each) not in READS and each.on != "sql"), "")
    about = f"`{verb}` after `{written}`" if verb in READS and written else f"`{verb}`"
    if verdict.verdict == CRASH:
        return f"{about} ends the endpoint"
    if last.note.startswith("hang"):
        return f"{about} receives no complete reply"
    kinds = dict.fromkeys(_kind(text, last) for text in last.allowed)
    allowed = " or ".join([*kinds][:MAX_ALLOWED]) or "no reply"
    got = _kind(last.got, last)
    note = f" ({last.note})" if last.note else ""
    if got == allowed:
        return f"{about} receives {'other' if got == ROWS else 'another'} {got}{note}"
    return f"{about} receives {got}{note} instead of {allowed}"


def _verb(exchange: Exchange) -> str:
    """Return the first word of a request; `set noreply` for one that is not answered."""
    line = exchange.sent.split("\r\n", maxsplit=1)[0].split()
    if not line:
        return "an empty line"
    silent = len(line) > 1 and line[-1] == "noreply"
    return f"{line[0]} noreply" if silent else line[0]


def _kind(reply: str, exchange: Exchange) -> str:
    """Return what replies of one kind have in common."""
    if exchange.sent.startswith("SELECT"):
        return ROWS
    if not reply:
        return "no reply"
    line = reply.split("\r\n", maxsplit=1)[0]
    if ERROR.match(line):
        return re.sub(r"\d+", "N", line)
    words: Sequence[str] = line.split() or [""]
    if "\r\n" not in reply:  # a frame in words, or the result of a statement
        return " ".join(words[:2])
    return "a number" if words[0].isdigit() or words[0] == "<number>" else words[0]
