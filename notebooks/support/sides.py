"""The two sides of a ratio, picked from the points of a scenario so that nothing else differs between them.

Ways to compare, on each server by itself unless said: `over`: memcached over SQL; `kind`: a kind of server over each
other one, or `*`, each other one, over it; `sessions`: a number of sessions over another, `~10` the nearest that was
measured; `factor`: settings of the server over others, `name=value&name=max`; `series`: a series over another;
`version`: the newest server of a kind over its oldest; `where`: clients behind a link over clients on the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from support.intervals import FEWEST, Interval, Pair, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd

    from support.articles import Claim
    from support.gather import Data

Bound = Literal["exact", "at least", "at most"]
NEAR: Final = 1.3  # of `~10`: 8 and 12 are near


@dataclass(frozen=True, slots=True)
class Compared:
    """The ratio of two sides for one server.

    ratio: None where there is none, `why` says why. bound: `at least`: the client was at its limit on the upper side,
    so the servers' ratio is this or more; `at most`: on the lower side.
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


def compared(claim: Claim, datas: Mapping[str, Data]) -> list[Compared]:
    """Return the claim's ratio for each comparable server; one row without a server if there is none.

    datas: what was measured, by place of the clients.
    """
    if claim.compare not in _WAYS:
        return [Compared("", None, why=claim.compare)]
    needed = {"local", claim.where} if claim.compare == "where" else {claim.where}
    for place in ("local", "remote"):
        if place in needed and place not in datas:
            return [Compared("", None, why=f"no {place} run of this scenario here")]
    points = {place: _points_of(datas[place], claim) for place in needed}
    found = list(_WAYS[claim.compare](claim, points))
    return found or [Compared("", None, why="no server with both sides was measured")]


def _points_of(data: Data, claim: Claim) -> pd.DataFrame:
    """Keep the closed loop's points of the claim's series and servers."""
    points = data.closed
    if claim.series:
        points = points[points["series"].isin(claim.series.split("|"))]
    if claim.over:
        points = points[points["over"] == claim.over]
    matches = points["label"].map(lambda label: re.match(claim.servers, label) is not None)
    return points[matches.astype(bool)]


def at_defaults(points: pd.DataFrame) -> pd.DataFrame:
    """Keep series without settings where there are such, else points with each setting at its lowest, as by default."""
    has_default = points["default"].groupby([points["over"], points["mix"]]).transform("any")
    points = points[points["default"] | ~has_default]
    for factor in [name for name in points.columns if name.startswith("factor_")]:
        lowest = points.groupby(["over", "mix"])[factor].transform("min")
        points = points[points[factor].isna() | (points[factor] == lowest)]
    return points


def side(points: pd.DataFrame, at: str, measure: str = "qps") -> Side:
    """Pick the repetitions of one side: valid ones, else those that are a lower bound of what the server can do.

    at: sessions; `best`: those with which it is fastest; `~10`: the nearest to so many; empty: all.
    """
    if points.empty:
        return Side({}, why="one side was not measured")
    sessions = _sessions_of(points, at)
    if sessions is None:
        return Side({}, why=f"{at.strip('~')} sessions were not measured" if at != "best" else _worst(points))
    chosen = points[points["sessions"] == sessions] if at else points
    for uses in (("valid",), ("valid", "limited")):
        selected = chosen[chosen["use"].isin(uses)].dropna(subset=[measure])
        if selected["rep"].nunique() >= FEWEST or (len(uses) > 1 and len(selected)):
            medians = selected.groupby("rep")[measure].median()
            values = dict(zip(medians.index.astype(int).tolist(), medians.tolist(), strict=True))
            return Side(values, measure == "qps" and bool((selected["use"] == "limited").any()))
    return Side({}, why=_worst(chosen))


def _sessions_of(points: pd.DataFrame, at: str) -> int | None:
    if at == "best":
        usable = points[points["use"] != "invalid"]
        medians = usable.groupby("sessions")["qps"].median()
        return int(medians.index[int(medians.argmax())]) if len(usable) else None
    measured = sorted(points["sessions"].unique().tolist())
    if not at:
        return int(measured[0])
    if at.startswith("~"):
        wanted = int(at[1:])
        nearest = min(measured, key=lambda each: max(each / wanted, wanted / each))
        return int(nearest) if max(nearest / wanted, wanted / nearest) <= NEAR else None
    return int(at) if int(at) in measured else None


def _worst(points: pd.DataFrame) -> str:
    reasons = points.loc[points["use"] == "invalid", "invalid_reason"].mode()
    return f"no valid repetition: {reasons.iloc[0]}" if len(reasons) else "no repetition has this measure"


def _pair(server: str, claim: Claim, upper: Side, lower: Side) -> Compared:
    if not upper.values or not lower.values:
        return Compared(server, None, why=upper.why or lower.why)
    if upper.limited and lower.limited:
        return Compared(server, None, why="the client was at its limit on both sides")
    found = ratio(Pair(upper.values, lower.values), name=f"{server} {claim.what} {claim.title}")
    if upper.limited:
        return Compared(server, found, "at least", "at least this: the client was at its limit on the upper side")
    if lower.limited:
        return Compared(server, found, "at most", "at most this: the client was at its limit on the lower side")
    return Compared(server, found)


Points = dict[str, "pd.DataFrame"]


def _groups(points: pd.DataFrame, column: str = "label") -> Iterator[tuple[str, pd.DataFrame]]:
    for name, part in points.groupby(column, sort=True):
        yield str(name), part


def _over(claim: Claim, points: Points) -> Iterator[Compared]:
    for server, part in _groups(at_defaults(points[claim.where])):
        upper, lower = part[part["over"] == claim.upper], part[part["over"] == claim.lower]
        if len(upper) and len(lower):
            yield _pair(server, claim, side(upper, claim.at, claim.measure), side(lower, claim.at, claim.measure))


def _kind(claim: Claim, points: Points) -> Iterator[Compared]:
    fixed = claim.upper if claim.upper != "*" else claim.lower
    here = at_defaults(points[claim.where])
    mine = side(here[here["kind"] == fixed], claim.at, claim.measure)
    for server, part in _groups(here[here["kind"] != fixed]):
        other = side(part, claim.at, claim.measure)
        yield _pair(server, claim, *((mine, other) if claim.upper != "*" else (other, mine)))


def _sessions(claim: Claim, points: Points) -> Iterator[Compared]:
    for line, part in _groups(at_defaults(points[claim.where]), "line"):
        yield _pair(line, claim, side(part, claim.upper, claim.measure), side(part, claim.lower, claim.measure))


def _factor(claim: Claim, points: Points) -> Iterator[Compared]:
    wanted = [dict(each.split("=") for each in text.split("&")) for text in (claim.upper, claim.lower)]
    for server, part in _groups(points[claim.where]):
        if not all(f"factor_{name}" in part and part[f"factor_{name}"].notna().any() for name in wanted[0]):
            continue
        sides = [side(_with(part, settings), claim.at, claim.measure) for settings in wanted]
        yield _pair(server, claim, sides[0], sides[1])


def _with(points: pd.DataFrame, settings: dict[str, str]) -> pd.DataFrame:
    """Keep points with these settings, and the others at their lowest."""
    for column in [name for name in points.columns if name.startswith("factor_") and points[name].notna().any()]:
        wanted_value = settings.get(column.removeprefix("factor_"), "min")
        value = points[column].agg(wanted_value) if wanted_value in {"min", "max"} else float(wanted_value)
        points = points[points[column] == value]
    return points


def _series(claim: Claim, points: Points) -> Iterator[Compared]:
    for server, part in _groups(points[claim.where]):
        sides = [side(part[part["series"] == name], claim.at, claim.measure) for name in (claim.upper, claim.lower)]
        yield _pair(server, claim, sides[0], sides[1])


def _version(claim: Claim, points: Points) -> Iterator[Compared]:
    here = at_defaults(points[claim.where])
    for _, part in _groups(here[here["kind"].isin(["plugin", "mysql", "mariadb"])], "kind"):
        labels = sorted(part["label"].unique(), key=_numbers)
        if len(labels) > 1:
            sides = [side(part[part["label"] == label], claim.at, claim.measure) for label in (labels[-1], labels[0])]
            yield _pair(f"{labels[-1]} over {labels[0]}", claim, sides[0], sides[1])


def _numbers(label: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", label)]


def _where(claim: Claim, points: Points) -> Iterator[Compared]:
    here = dict(_groups(at_defaults(points["local"]), "line"))
    for line, there in _groups(at_defaults(points["remote"]), "line"):
        if line in here:
            sides = side(there, claim.at, claim.measure), side(here[line], claim.at, claim.measure)
            yield _pair(line, claim, *sides)


_WAYS: Final[dict[str, Callable[[Claim, Points], Iterator[Compared]]]] = {
    "over": _over,
    "kind": _kind,
    "sessions": _sessions,
    "factor": _factor,
    "series": _series,
    "version": _version,
    "where": _where,
}
