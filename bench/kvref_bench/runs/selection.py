"""What one side of a comparison is: RUN, RUN:SERVER or RUN:SERVER:SERIES."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError
from kvref_bench.runs import folder

if TYPE_CHECKING:
    import pandas as pd

    from kvref_bench.runs.run import Run


@dataclass(frozen=True)
class Selection:
    """Points of a run.

    server, series: only theirs; None: all.
    """

    run: Run
    server: str | None = None
    series: str | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read a run and take a part of it; raises BenchError, naming what there is, for a part that it does not have.

        text: the run's folder, and behind colons a server and a series.
        """
        path, server, series = _split(text)
        return cls.of(folder.read(path), server, series)

    @classmethod
    def of(cls, run: Run, server: str | None = None, series: str | None = None) -> Selection:
        """Take a part of a run; raises BenchError for one that it does not have."""
        for column, wanted in (("server", server), ("series", series)):
            known = sorted(run.points[column].unique())
            if wanted is not None and wanted not in known:
                raise BenchError(f"{run.folder} has no {column} {wanted!r}: choose {', '.join(known)}")
        chosen = cls(run, server, series)
        if chosen.points.empty:
            raise BenchError(f"{run.folder} has no point of server {server!r} and series {series!r}: choose others")
        return chosen

    @property
    def points(self) -> pd.DataFrame:
        """Its rows of `points`."""
        rows = self.run.points
        for column, wanted in (("server", self.server), ("series", self.series)):
            rows = rows if wanted is None else rows[rows[column] == wanted]
        return rows

    @property
    def name(self) -> str:
        """In words."""
        return ":".join(filter(None, (self.run.id, self.server, self.series)))


def _split(text: str) -> tuple[Path, str | None, str | None]:
    # A folder may have colons in its name, so the longest that is there is the run.
    words = text.split(":")
    for count in range(len(words), 0, -1):
        path = Path(":".join(words[:count]))
        if path.is_dir() and len(words) - count <= 2:
            server, series = [*words[count:], "", ""][:2]
            return path, server or None, series or None
    raise BenchError(f"{text}: no such run folder; give RUN, RUN:SERVER or RUN:SERVER:SERIES")
