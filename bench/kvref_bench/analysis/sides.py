"""The two sides of a ratio, picked from the points of a scenario so that nothing else differs between them.

Ways to compare: `over`: memcached over SQL on one server; `kind`: servers of one kind over each other server;
`sessions`: a number of sessions over another on one server; `factor`: a setting of the server over another value of it;
`series`: a series over another on one server; `version`: the newest server of a kind over the oldest.
`best` instead of a number of sessions takes for each side the number at which it was fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kvref_bench.analysis.intervals import FEWEST, Interval, Pair, ratio

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from kvref_bench.analysis.gather import Data

Bound = Literal["exact", "at least", "at most"]


@dataclass(frozen=True, slots=True)
class Compared:
    """The ratio of two sides for one server.

    ratio: None where there is none, `why` says why. bound: `at least`: the client was at its limit on the upper side,
    so the server's ratio is this or more; `at most`: on the lower side.
    """

    server: str
    ratio: Interval | None
    bound: Bound = "exact"
    why: str = ""


class Side(NamedTuple):
    """One side by repetition, or why it cannot be used."""

    values: dict[int, float]
    limited: bool = False
    why: str = ""


class Asked(NamedTuple):
    """What is compared; see `seeds.Claim`."""

    upper: str
    lower: str
    at: str
    series: str
    measure: str


def compared(data: Data, way: str, upper: str, lower: str, at: str, series: str, measure: str) -> list[Compared]:
    """Give the ratio for each server that can be asked; one row without a server where none can."""
    if way not in _WAYS:
        return [Compared("", None, why=way)]  # the claim itself says why it cannot be measured so
    asked = Asked(upper, lower, at, series, measure)
    found = _WAYS[way](_defaults(data, asked), asked, data)
    return found or [Compared("", None, why=f"no server with both sides ({upper} and {lower}) was measured")]


def _defaults(data: Data, asked: Asked) -> pd.DataFrame:
    points = data.closed
    if asked.series:
        points = points[points["series"].isin(asked.series.split("|"))]
    return at_defaults(points, but=asked.upper.partition("=")[0])


def at_defaults(points: pd.DataFrame, but: str = "") -> pd.DataFrame:
    """Keep points with each of the server's settings at its lowest value, which for the plugin's is its default.

    but: a setting of which all values are kept.
    """
    for factor in [name for name in points.columns if name.startswith("factor_") and name != f"factor_{but}"]:
        points = points[points[factor].isna() | (points[factor] == points[factor].min())]
    return points


def side(points: pd.DataFrame, at: str, measure: str = "qps") -> Side:
    """Pick the repetitions of one side: valid ones, else those that are a lower bound of what the server can do."""
    if at == "best":
        usable = points[points["use"] != "invalid"]
        if usable.empty:
            return _unusable(points, "at any number of sessions")
        medians = usable.groupby("sessions")[measure].median()
        at = str(medians.idxmax())
    chosen = points[points["sessions"] == int(at)] if at else points
    if chosen.empty:
        return Side({}, why=f"{at} sessions were not measured")
    for uses in (("valid",), ("valid", "limited")):
        kept = chosen[chosen["use"].isin(uses)].dropna(subset=[measure])
        medians = kept.groupby("rep")[measure].median()
        values = dict(zip(medians.index.astype(int).tolist(), medians.tolist(), strict=True))
        if len(values) >= FEWEST or (uses[-1] == "limited" and values):
            return Side(
                {int(rep): float(value) for rep, value in values.items()}, bool((kept["use"] == "limited").any())
            )
    return _unusable(chosen, f"with {at} sessions")


def _unusable(points: pd.DataFrame, where: str) -> Side:
    if points.empty:
        return Side({}, why="one side was not measured")
    reasons = points["invalid_reason"].mode()
    return Side({}, why=f"no valid repetition {where}: {reasons.iloc[0]}")


def _pair(server: str, upper: Side, lower: Side, name: str) -> Compared:
    if not upper.values or not lower.values:
        return Compared(server, None, why=upper.why or lower.why)
    if upper.limited and lower.limited:
        return Compared(server, None, why="the client was at its limit on both sides")
    found = ratio(Pair(upper.values, lower.values), name=f"{server} {name}")
    if upper.limited:
        return Compared(server, found, "at least", "the client was at its limit on the upper side: at least this")
    if lower.limited:
        return Compared(server, found, "at most", "the client was at its limit on the lower side: at most this")
    return Compared(server, found)


def _over(points: pd.DataFrame, asked: Asked, _: Data) -> list[Compared]:
    found = []
    for server, part in points.groupby("label", sort=True):
        upper, lower = part[part["over"] == asked.upper], part[part["over"] == asked.lower]
        if len(upper) and len(lower):
            sides = side(upper, asked.at, asked.measure), side(lower, asked.at, asked.measure)
            found.append(_pair(str(server), *sides, str(asked)))
    return found


def _kind(points: pd.DataFrame, asked: Asked, _: Data) -> list[Compared]:
    """One of the two is a kind of server, the other `*`: each server that has a table."""
    fixed = asked.upper if asked.upper != "*" else asked.lower
    points = points[points["over"] == "memcached"]
    of_kind = points[points["kind"] == fixed]
    if of_kind.empty:
        return []
    mine, found = side(of_kind, asked.at, asked.measure), []
    for server, part in points[points["kind"] != fixed].groupby("label", sort=True):
        other = side(part, asked.at, asked.measure)
        sides = (mine, other) if asked.upper != "*" else (other, mine)
        found.append(_pair(str(server), *sides, str(asked)))
    return found


def _sessions(points: pd.DataFrame, asked: Asked, _: Data) -> list[Compared]:
    found = []
    for line, part in points[points["over"] == asked.at].groupby("line", sort=True):
        sides = side(part, asked.upper, asked.measure), side(part, asked.lower, asked.measure)
        found.append(_pair(str(line), *sides, str(asked)))
    return found


def _factor(points: pd.DataFrame, asked: Asked, _: Data) -> list[Compared]:
    name, _equal, high = asked.upper.partition("=")
    low = asked.lower.partition("=")[2]
    column = f"factor_{name}"
    if column not in points:
        return []
    found = []
    for server, part in points.dropna(subset=[column]).groupby("label", sort=True):
        sides = [
            side(
                part[part[column] == (part[column].max() if value == "max" else float(value))], asked.at, asked.measure
            )
            for value in (high, low)
        ]
        found.append(_pair(str(server), sides[0], sides[1], str(asked)))
    return found


def _series(points: pd.DataFrame, asked: Asked, _: Data) -> list[Compared]:
    found = []
    for server, part in points.groupby("label", sort=True):
        names = part.groupby("series")[asked.measure].median().sort_values()
        if len(names) < 2:
            continue
        named = {"fastest": str(names.index[-1]), "slowest": str(names.index[0])}
        sides = [
            side(part[part["series"] == named.get(each, each)], asked.at, asked.measure)
            for each in (asked.upper, asked.lower)
        ]
        found.append(_pair(str(server), sides[0], sides[1], str(asked)))
    return found


def _version(points: pd.DataFrame, asked: Asked, _: Data) -> list[Compared]:
    part = points[points["over"] == asked.upper]
    found = []
    for _kind_of, group in part[part["kind"].isin(["plugin", "mysql", "mariadb"])].groupby("kind", sort=True):
        labels = sorted(
            group["label"].unique(), key=lambda label: [int(n) for n in label.split()[-1].split(".") if n.isdigit()]
        )
        if len(labels) < 2:
            continue
        sides = [side(group[group["label"] == label], asked.at, asked.measure) for label in (labels[-1], labels[0])]
        found.append(_pair(f"{labels[-1]} over {labels[0]}", sides[0], sides[1], str(asked)))
    return found


_WAYS: Final[dict[str, Callable[[pd.DataFrame, Asked, Data], list[Compared]]]] = {
    "over": _over,
    "kind": _kind,
    "sessions": _sessions,
    "factor": _factor,
    "series": _series,
    "version": _version,
}
