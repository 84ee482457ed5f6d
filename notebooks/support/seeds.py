"""Each table and claim of the articles compared with our runs: by ratios only, never by rates of different machines.

rows = seeds.compare(articles.claims("get-vs-select"), gather.places("get-vs-select"))

A direction agrees if our interval lies on the same side of 1 as the published ratio, and disagrees if it lies on the
other side. If the article says "the same", or "no loss", less than 10 % counts as no difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from support.sides import Compared, compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from support.articles import Claim
    from support.gather import Data
    from support.intervals import Interval

Verdict = Literal["yes", "no", "cannot tell"]
MARGIN: Final = 1.1


@dataclass(frozen=True, slots=True)
class Row:
    """A claim compared with one of our servers.

    server: its label; empty if no run is comparable. ours: the ratio; None if it cannot be measured.
    bound: as in `sides.Compared`. direction: whether it agrees. why: reason of the verdict.
    """

    claim: Claim
    server: str
    ours: Interval | None
    bound: str
    direction: Verdict
    why: str

    @property
    def counted(self) -> bool:
        """Whether the server is of the article's kind: not kvref, nor native memcached in the plugin's place."""
        if self.server.startswith("kvref"):
            return False
        native = self.server.startswith("memcached")
        return not native or self.claim.servers == "memcached" or self.claim.compare == "series"


def compare(claims: Iterable[Claim], datas: Mapping[str, Data]) -> list[Row]:
    """Compare claims with measurements: a row for each comparable server, at least one for each claim.

    datas: runs of the claims' scenario, by place of the clients.
    """
    return [_row(claim, found) for claim in claims for found in compared(claim, datas)]


def _row(claim: Claim, found: Compared) -> Row:
    if found.ratio is None:
        return Row(claim, found.server, None, found.bound, "cannot tell", found.why)
    if not found.ratio.known:
        few = f"{found.ratio.count} usable repetitions on both sides; an interval needs 5"
        return Row(claim, found.server, found.ratio, found.bound, "cannot tell", few)
    low = found.ratio.low if found.bound != "at most" else 0.0
    high = found.ratio.high if found.bound != "at least" else math.inf
    verdict = direction(claim.relation, low, high)
    return Row(claim, found.server, found.ratio, found.bound, verdict, found.why or _side(claim.relation, low, high))


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


def _side(relation: str, low: float, high: float) -> str:
    if relation in {"same", "not less"}:
        return "judged with a margin of 10 %"
    return "interval above 1" if low > 1 else "interval below 1" if high < 1 else "the interval contains 1"
