"""How a notebook opens with its question and ends with an answer made of the data.

question = answer.Question("How many users can this hold?", scenarios=("random-user-capacity",))
answer.Answer("64 sessions ...", limits=("One machine only.",)) or answer.cannot_tell("no run ...", command=...)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CANNOT_TELL: Final = "cannot tell"


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a notebook, and the scenarios whose runs can answer it."""

    text: str
    scenarios: tuple[str, ...] = ()

    def _repr_markdown_(self) -> str:
        runs = ", ".join(f"`{name}`" for name in self.scenarios)
        return f"**The question.** {self.text}" + (f"\n\nAnswered from runs of {runs}." if runs else "")


@dataclass(frozen=True, slots=True)
class Answer:
    """A notebook's last word.

    sentence: what the data say. limits: what they cannot say, a sentence each. known: False for "cannot tell".
    """

    sentence: str
    limits: tuple[str, ...] = ()
    known: bool = True

    def _repr_markdown_(self) -> str:
        rows = "".join(f"\n- {limit}" for limit in self.limits)
        return f"**The answer.** {self.sentence}" + (f"\n\nWhat these runs cannot say:\n{rows}" if rows else "")


def cannot_tell(reason: str, *, command: str = "", limits: tuple[str, ...] = ()) -> Answer:
    """Answer that the data do not allow an answer.

    reason: why, the rest of a sentence. command: what makes the data.
    """
    remedy = f" `{command}` makes the data." if command else ""
    return Answer(f"Cannot tell: {reason.rstrip('.')}.{remedy}", limits, known=False)


def command(scenario: str, *, sql: bool = False, scale: str = "laptop") -> str:
    """Return the command that makes a run of a scenario for the notebooks.

    sql: with a SQL server by itself too; a target is measured over its own SQL in any case.
    """
    other = " --target mysql-8.0" if sql else ""
    return f"kvref bench run {scenario} --scale {scale} --target mysql-8.0-plugin{other} --out notebooks/data/{scale}"


def joined(*answers: Answer) -> Answer:
    """Give several answers as one; it is known when any of them is."""
    limits = tuple(dict.fromkeys(limit for each in answers for limit in each.limits))
    return Answer(" ".join(each.sentence for each in answers), limits, any(each.known for each in answers))


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def figures(value: float, places: int = 3) -> str:
    """Write a number with so many significant figures and commas: 124,000; 0.0363."""
    if not math.isfinite(value):
        return "no limit" if value > 0 else "unknown"
    if value == 0:
        return "0"
    decimals = places - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    return f"{rounded:,.{max(decimals, 0)}f}"


def percent(share: float, *, sign: bool = False) -> str:
    """Write a share as a percentage: `34 %`; `+4 %` with its sign."""
    return f"{100 * share:{'+' if sign else ''}.0f} %"


def source(info: Mapping[str, object] | Sequence[Mapping[str, object]]) -> str:
    """Write the source line of a chart from the records (`run.json`) that it shows.

    Returns: the version of kvref, the days and the machine, then each run with its scenario and scale.
    """
    records: Sequence[Mapping[str, object]] = [info] if hasattr(info, "keys") else info  # type: ignore[list-item]
    runs = ", ".join(
        f"run {record.get('run_id', '?')} of {_part(record, 'scenario').get('name', '?')} "
        f"at {_part(record, 'scenario').get('scale', '?')} scale"
        for record in records
    )
    return f"Source: {setting(records)}; {runs}."


def setting(records: Sequence[Mapping[str, object]]) -> str:
    """Return what the runs of records have in common: `kvref 0.3.0, 2026-12-01, AMD EPYC, 2 cores`."""
    versions = {f"kvref {_part(record, 'tool').get('version', '?')}" for record in records}
    days = sorted({str(record.get("began", "?"))[:10] for record in records})
    machines = {
        f"{machine.get('cpu_model', 'unknown CPU')}, {machine.get('cores', '?')} cores"
        for machine in (_part(record, "machine") for record in records)
    }
    return ", ".join([*sorted(versions), " to ".join(dict.fromkeys((days[0], days[-1]))), *sorted(machines)])


def _part(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = record.get(name)
    return found if isinstance(found, dict) else {}
