"""Each table and each claim of the articles beside our runs: ratios only, never rates of one machine beside another's.

rows = seeds.compare(seeds.claims("get-vs-select"), gather("get-vs-select"))

A direction agrees when our interval lies on the same side of 1 as the published ratio, and does not when it lies on the
other side. Where the article says "the same", or "no loss", less than 10 % counts as none.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

from kvref_bench.analysis.sides import Compared, compared

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_bench.analysis.gather import Data
    from kvref_bench.analysis.intervals import Interval

Verdict = Literal["yes", "no", "cannot tell"]
MARGIN: Final = 1.1


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of an article's table, or one sentence of it, as a ratio of two rates.

    place: where in the article. what: the ratio in words. at: sessions, or `best` of each side.
    published: the ratio, computed from the printed figures; empty where only words are printed.
    relation: `more`, `less`, `same` or `not less` than 1. as_printed: the article's own words or figures.
    compare, upper, lower, series, measure: which of our points make the ratio (`analysis.sides`).
    """

    scenario: str
    place: str
    what: str
    at: str
    published: float
    relation: str
    as_printed: str
    compare: str
    upper: str
    lower: str
    series: str
    measure: str
    title: str
    source: str


@dataclass(frozen=True, slots=True)
class Row:
    """A claim beside one of our servers.

    server: its label; empty where no run could be asked. ours: the ratio; None where it cannot be had.
    direction: whether it agrees. why: what the verdict rests on.
    """

    claim: Claim
    server: str
    ours: Interval | None
    direction: Verdict
    why: str


def claims(scenario: str | None = None) -> list[Claim]:
    """Read the published ratios, of one scenario or of all, in the order of the articles."""
    text = (files(__package__) / "published" / "claims.csv").read_text(encoding="utf-8")
    found = []
    for row in csv.DictReader(text.splitlines()):
        published = float(row.pop("published") or "nan")
        found.append(Claim(published=published, **row))
    return [each for each in found if scenario in {None, each.scenario}]


def compare(asked: Iterable[Claim], data: Data | None) -> list[Row]:
    """Set claims beside what was measured: a row for each server that can be asked, at least one for each claim."""
    rows = []
    for claim in asked:
        if data is None:
            rows.append(Row(claim, "", None, "cannot tell", "no run of this scenario here"))
            continue
        found = compared(data, claim.compare, claim.upper, claim.lower, claim.at, claim.series, claim.measure)
        rows += [_row(claim, each) for each in found]
    return rows


def _row(claim: Claim, found: Compared) -> Row:
    if found.ratio is None:
        return Row(claim, found.server, None, "cannot tell", found.why)
    if not found.ratio.known:
        few = f"{found.ratio.count} usable repetitions on both sides; an interval needs 5"
        return Row(claim, found.server, found.ratio, "cannot tell", few)
    low = found.ratio.low if found.bound != "at most" else 0.0
    high = found.ratio.high if found.bound != "at least" else math.inf
    verdict = direction(claim.relation, low, high)
    return Row(claim, found.server, found.ratio, verdict, found.why or _side(claim.relation, low, high, verdict))


def direction(relation: str, low: float, high: float) -> Verdict:
    """Judge whether an interval of our ratio agrees with what was published.

    relation: of the published ratio to 1: `more`, `less`, `same`, `not less`.
    """
    agrees, differs = {
        "more": (low > 1, high < 1),
        "less": (high < 1, low > 1),
        "same": (low >= 1 / MARGIN and high <= MARGIN, low > MARGIN or high < 1 / MARGIN),
        "not less": (low >= 1 / MARGIN, high < 1 / MARGIN),
    }[relation]
    return "yes" if agrees else "no" if differs else "cannot tell"


def _side(relation: str, low: float, high: float, verdict: Verdict) -> str:
    if relation in {"same", "not less"}:
        return f"judged against 1 with a margin of {MARGIN - 1:.0%}"
    if verdict == "cannot tell":
        return "the interval contains 1"
    return "the interval lies above 1" if low > 1 else "the interval lies below 1" if high < 1 else ""
