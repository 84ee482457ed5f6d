"""`kvref bench compare A B`: every point that both have, A against B."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
from rich.table import Table

from kvref_bench.errors import BenchError
from kvref_bench.runs import ratio
from kvref_bench.runs.tables import FACTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.runs.ratio import Measure, Ratio
    from kvref_bench.runs.run import Run
    from kvref_bench.runs.selection import Selection

THRESHOLD: Final = 0.05
NOT_INTERLEAVED: Final = (
    "not interleaved: A and B were measured at different times, what changed in between is in the ratio"
)
# pyperf's rule: figures of another machine or another Python are no figures of this one.
MUST_AGREE: Final = (
    ("scenario", "name"), ("scenario", "version"), ("scenario", "spec_sha256"), ("machine", "cpu_model"),
    ("machine", "cores"), ("machine", "memory"), ("machine", "kernel"), ("machine", "hostname_hash"),
    ("runtime", "python"),
)  # fmt: skip

Place = dict[str, Any]
Key = tuple[Any, ...]
Own = tuple[tuple[str, int], ...]
Places = dict[tuple[Key, Own], pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Compared:
    """One place of the figure: its factors, and the ratios there."""

    place: Place
    ratios: tuple[Ratio, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A against B.

    a, b: in words. judged: what is known of their servers' answers, by server.
    warnings: what limits the comparison as a whole.
    left_out: points that were not used, and why.
    """

    a: str
    b: str
    threshold: float
    compared: tuple[Compared, ...]
    judged: dict[str, str]
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def table(self) -> Table:
        """Return a table for the terminal."""
        table = Table(title=f"A = {self.a}\nB = {self.b}")
        for name in ("point", "measure", "A", "B", "A : B", "95 %", "P(A > B)", "verdict on A"):
            table.add_column(name, justify="right" if name in {"A", "B", "A : B"} else "left")
        for each in self.compared:
            place = _words({name: value for name, value in each.place.items() if self._tells(name)})
            for number, one in enumerate(each.ratios):
                interval = "-" if one.low is None or one.high is None else f"{one.low:.2f} to {one.high:.2f}"
                table.add_row(
                    "" if number else place,
                    f"{one.measure}, {one.unit}",
                    *(f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" for value in (one.a, one.b)),
                    f"{one.ratio:.2f}",
                    interval,
                    f"{one.superiority:.2f}",
                    one.verdict,
                )
        return table

    def _tells(self, name: str) -> bool:
        """Whether a part of the place is worth a word in each row: what is the same in all is not."""
        return name == "sessions" or len({str(each.place.get(name)) for each in self.compared}) > 1

    def notes(self) -> list[str]:
        """Return the lines that belong under the table."""
        judged = [f"{server}: {words}" for server, words in self.judged.items()]
        return [
            *(f"warning: {text}" for text in self.warnings),
            *judged,
            *(f"left out: {text}" for text in self.left_out),
        ]


def compare(a: Selection, b: Selection, threshold: float = THRESHOLD) -> Comparison:
    """Compare the points that two selections have in common.

    Args:
        a, b: of one run (then by pairs of interleaved repetitions), or of two.
        threshold: share below which a difference is none, whatever the interval says.

    Raises:
        BenchError: both are the same; they are no load; they have no valid point in common; or two runs differ in
            machine, Python or scenario.
    """
    same = a.run.id == b.run.id
    if same and a.name == b.name:
        raise BenchError(f"{a.name} is compared with itself: name a server, RUN:SERVER, or a series, RUN:SERVER:SERIES")
    if a.run.info["scenario"]["spec"].get("kind") == "lag":
        raise BenchError(f"{a.name} has trials of a lag and no load: there is no throughput to compare; draw its lags")
    if not same:
        _refuse_other_conditions(a.run, b.run)
    seed = f"{a.run.id}/{b.run.id}"
    common = _common(a, b)
    ours, theirs = _places(a, common, b), _places(b, common, a)
    compared = tuple(
        Compared(
            {**_told(common, key), **dict(own), **dict(other)},
            tuple(_ratios(mine, yours, pairs=same, threshold=threshold, seed=f"{seed}/{key}/{own}/{other}")),
        )
        for (key, own), mine in ours.items()
        for (counterpart, other), yours in theirs.items()
        if key == counterpart
    )
    lonely = (*_lonely("A", common, ours, theirs), *_lonely("B", common, theirs, ours))
    left_out = (*_invalid("A", a), *_invalid("B", b), *lonely)
    if not compared:
        raise BenchError(
            f"{a.name} and {b.name} have no valid point in common: {'; '.join(left_out[:5]) or 'choose others'}"
        )
    warnings = () if same else (NOT_INTERLEAVED,)
    return Comparison(a.name, b.name, threshold, compared, _judged(a, b), (*warnings, *_unfinished(a, b)), left_out)


def _refuse_other_conditions(a: Run, b: Run) -> None:
    differing = [
        f"{room} {name} ({a.info[room].get(name)!r} and {b.info[room].get(name)!r})"
        for room, name in MUST_AGREE
        if a.info[room].get(name) != b.info[room].get(name)
    ]
    if differing:
        raise BenchError(
            f"{a.folder} and {b.folder} must not be compared, they differ in {', '.join(differing)}: "
            "repeat one of them under the conditions of the other"
        )


def _common(a: Selection, b: Selection) -> list[str]:
    """Name the columns in which points must agree; where each side has one server or series, that is what differs."""
    one_server = all(each.points["server"].nunique() == 1 for each in (a, b))
    one_series = a.series is not None and b.series is not None
    names = [*([] if one_series else ["series"]), *([] if one_server else ["server"]), "sessions", "processes"]
    return [*names, "depth", "multiget", "rate", *sorted(_factors(a) & _factors(b))]


def _factors(side: Selection) -> set[str]:
    return {name for name in side.run.factors if side.points[name].notna().any()}


def _places(side: Selection, common: list[str], other: Selection) -> Places:
    """Return the valid repetitions of each place: values of the common columns, and of settings only this side has."""
    numbers: dict[tuple[Key, Own], list[int]] = {}
    rows, own = side.points[side.points["valid"]], sorted(_factors(side) - _factors(other))
    for number, row in enumerate(rows.to_dict("records")):
        # None for what a point does not have: NaN is not even itself.
        key = tuple(None if pd.isna(row.get(name)) else row[name] for name in common)
        numbers.setdefault((key, tuple(_told(own, [row[name] for name in own]).items())), []).append(number)
    return {place: rows.iloc[each].set_index("rep").sort_index() for place, each in numbers.items()}


def _told(names: Sequence[str], values: Sequence[Any]) -> Place:
    """Name what a point has; numbers that pandas made fractions of are whole again."""
    named = {name: value for name, value in zip(names, values, strict=True) if not pd.isna(value)}
    return {name: int(value) if name.startswith(FACTOR) else value for name, value in named.items()}


def _ratios(a: pd.DataFrame, b: pd.DataFrame, *, pairs: bool, threshold: float, seed: str) -> list[Ratio]:
    found = []
    for measure in ratio.MEASURES:
        first, second = _values(a, measure), _values(b, measure)
        if pairs:
            both = first.index.intersection(second.index)
            first, second = first[both], second[both]
        if len(first) and len(second):
            found.append(
                ratio.compare(measure, first.tolist(), second.tolist(), pairs=pairs, threshold=threshold, seed=seed)
            )
    return found


def _values(rows: pd.DataFrame, measure: Measure) -> pd.Series[float]:
    values = rows[measure.column].dropna()
    return values[values > 0]


def _invalid(side: str, selection: Selection) -> list[str]:
    rows = selection.points[~selection.points["valid"]]
    return [
        f"{side}: point {row['point_id']} ({row['server']}, {row['series']}, {row['sessions']} sessions, repetition "
        f"{row['rep']}) is not valid: {row['invalid_reason']}"
        for row in rows.to_dict("records")
    ]


def _lonely(side: str, common: list[str], mine: Places, others: Places) -> list[str]:
    there = {key for key, _ in others}
    alone = {key: None for key, _ in mine if key not in there}
    return [f"{side} alone has {_words(_told(common, key))}" for key in alone]


def _words(place: Place) -> str:
    return ", ".join(f"{name.removeprefix(FACTOR)} {value}" for name, value in place.items())


def _judged(*sides: Selection) -> dict[str, str]:
    return {f"{side.run.id}:{name}": side.run.judged(name) for side in sides for name in side.points["server"].unique()}


def _unfinished(*sides: Selection) -> list[str]:
    runs = {side.run.id: side.run for side in sides}
    said = [f"{name} was killed before its end" for name, run in runs.items() if not run.finished]
    return said + [f"{name} ended early: {run.info['stopped']}" for name, run in runs.items() if run.info["stopped"]]
