"""A run that was read: its tables, and queries on them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from kvref_bench.errors import BenchError
from kvref_bench.runs import tables

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_bench.runs.document import Document

# What points of one place in the figure share; they differ in `rep`.
SAME: Final = ("series", "server", "sessions", "processes", "depth", "multiget", "rate")


class Unexpected(NamedTuple):
    """An exchange with an answer that is not allowed; bytes as latin-1 characters."""

    point_id: int
    worker: int
    request: str
    reply: str


@dataclass(frozen=True)
class Run:
    """A run as read.

    info: run.json. points, hist, series, resources: columns as in `runs.tables`. In `hist` a whole point is the sum
    of its seconds. Factors that a point does not have are NaN.
    """

    folder: Path
    info: Document
    points: pd.DataFrame
    hist: pd.DataFrame
    series: pd.DataFrame
    resources: pd.DataFrame
    errors: list[Unexpected]

    @property
    def id(self) -> str:
        """The run's name."""
        return str(self.info["run_id"])

    @property
    def finished(self) -> bool:
        """Whether it was closed; False: it was killed, and has the points until then."""
        return bool(self.info["finished"])

    @property
    def factors(self) -> list[str]:
        """The columns of `points` with settings of the server."""
        return [name for name in self.points.columns if name.startswith(tables.FACTOR)]

    @property
    def place(self) -> list[str]:
        """The columns that repetitions of one point share."""
        return [*SAME, *self.factors]

    @cached_property
    def counters(self) -> pd.DataFrame:
        """What the servers' own counters moved by: point_id, name, value."""
        rows = [
            {"point_id": point_id, "name": name, "value": value}
            for point_id, text in zip(self.points["point_id"], self.points["counters"], strict=True)
            for name, value in json.loads(text).items()
        ]
        return pd.DataFrame(rows, columns=["point_id", "name", "value"])

    def judged(self, server: str) -> str:
        """Say what is known of a server's answers."""
        told = next((each["judged"] for each in self.info["servers"] if each["name"] == server), None)
        if told is None:
            raise BenchError(f"{self.folder}: no server {server!r}; it has {', '.join(self.points['server'].unique())}")
        return str(told)

    def bins(self, point_id: int, clock: str = "service", **where: str | int) -> dict[int, int]:
        """Return a histogram of one point: counts by bin (`load.histogram`), without errors.

        Args:
            point_id: of the point.
            clock: `service`, `intended` or `lag`.
            where: `verb`, `outcome` or `second`, to have only these.
        """
        rows = self.hist[(self.hist["point_id"] == point_id) & (self.hist["clock"] == clock)]
        for name, wanted in {"outcome": None, **where}.items():
            rows = rows[rows[name] == wanted] if wanted is not None else rows[rows[name] != "error"]
        summed = rows.groupby("bin_index")["count"].sum()
        return {int(each): int(count) for each, count in zip(summed.index, summed, strict=True)}
