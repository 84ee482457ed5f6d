"""A run on disk: run.json, two tables and the replies that were not allowed.

    with RunWriter(folder, header) as writer:    # `runs.document.begin` makes the header
        writer.add(point)                        # on disk when it returns
        writer.close()

    run = read(folder)
    run.points, run.hist

The tables are written again with each point, so that a run that was killed has those before.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from kvref.errors import cause_of
from kvref_bench.errors import BenchError
from kvref_bench.runs import document, gates, tables

if TYPE_CHECKING:
    import pandas as pd

    from kvref_bench.runs.document import Document
    from kvref_bench.runs.records import Point

ERRORS: Final = "errors.jsonl"
MAX_UNEXPECTED: Final = 100  # of the replies that were not allowed, verbatim
# What points of one place in the figure share; they differ in `rep`.
SAME: Final = ("series", "server", "sessions", "processes", "depth", "multiget", "rate")


@dataclass(frozen=True)
class Run:
    """A run as read.

    info: run.json. points, hist: columns as in `runs.tables`. In `hist` a whole point is the sum of its seconds.
    Factors that a point does not have are NaN.
    """

    folder: Path
    info: Document
    points: pd.DataFrame
    hist: pd.DataFrame

    @property
    def id(self) -> str:
        """The run's name."""
        return str(self.info["run_id"])

    @property
    def factors(self) -> list[str]:
        """The columns of `points` with settings of the server."""
        return [name for name in self.points.columns if name.startswith(tables.FACTOR)]

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


class RunWriter:
    """Writes a run, point by point.

    Args:
        folder: of the run; is made, and must not have a run in it.
        header: run.json as it begins.
    """

    def __init__(self, folder: Path, header: Document) -> None:
        if (folder / document.NAME).exists():
            raise BenchError(f"{folder} has a run already: give another folder")
        self.folder = folder
        self._document = header
        self._rows: list[tables.Row] = []
        self._tables = {name: tables.table(name, []) for name in tables.SCHEMAS}
        self._recorded = 0
        self._closed = False
        folder.mkdir(parents=True, exist_ok=True)
        document.write(folder, header)
        for name in tables.SCHEMAS:
            self._write(name, [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not self._closed:
            self.close(stopped=None if kind is None else f"{kind.__name__}: {error}".rstrip(": "))

    def add(self, point: Point) -> list[str]:
        """Judge a point and write it at once.

        Returns:
            Why it is not valid; nothing where it is.
        """
        place = {"run_id": self._document["run_id"], "point_id": len(self._rows)}
        reasons = gates.judge(point)
        row = tables.point_row(place, self._document["scenario"]["name"], point, reasons)
        self._keep_unexpected(point)
        self._write("hist", tables.hist_rows(place, point.merged))
        self._write("points", [row])  # last: a point that is in `points` is whole
        self._rows.append(row)
        return reasons

    def close(self, stopped: str | None = None, **more: Any) -> None:
        """Write down that the run is over.

        Args:
            stopped: why it ended before its last point; None when it did not.
            more: `calibration`: further facts; `notes`: texts; `peers`: the servers as they are now.
        """
        written = [path for name in (*map(_file, tables.SCHEMAS), ERRORS) if (path := self.folder / name).exists()]
        files = {path.name: document.digest(path) for path in written}
        facts = document.end(self._document, stopped, self._warnings(), **more)
        document.write(self.folder, {**facts, "points": len(self._rows), "sha256": files})
        self._closed = True

    def discard(self) -> None:
        """Take away what this run wrote: there is no point in it. The folder goes unless it holds something else."""
        for name in (*map(_file, tables.SCHEMAS), document.NAME):
            (self.folder / name).unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
        self._closed = True

    def _write(self, name: str, rows: list[tables.Row]) -> None:
        both = (self._tables[name], tables.table(name, rows))
        self._tables[name] = pa.concat_tables(both, promote_options="default")
        draft = self.folder / f".{_file(name)}"
        pq.write_table(self._tables[name], draft, compression="zstd", compression_level=9)
        draft.replace(self.folder / _file(name))

    def _keep_unexpected(self, point: Point) -> None:
        found = [(result.worker, *exchange) for result in point.results for exchange in result.unexpected]
        recorded = found[: max(MAX_UNEXPECTED - self._recorded, 1)]  # of each point at least one
        if not recorded:
            return
        self._recorded += len(recorded)
        with (self.folder / ERRORS).open("a", encoding="utf-8") as file:
            for worker, request, reply in recorded:
                texts = {"request": request.decode("latin-1"), "reply": reply.decode("latin-1")}
                file.write(json.dumps({"point_id": len(self._rows), "worker": worker, **texts}) + "\n")

    def _warnings(self) -> list[str]:
        factors = sorted({key for row in self._rows for key in row if key.startswith(tables.FACTOR)})
        counts: Counter[tuple[Any, ...]] = Counter()
        for row in self._rows:
            counts[tuple(row.get(name) for name in (*SAME, *factors))] += row["valid"]
        return gates.warnings(counts, self._document["machine"]["busy_before"])


def find(root: Path | str, scenario: str) -> list[Path]:
    """Find the run folders of a scenario below a folder, oldest first."""
    found = [(document.read(path.parent), path.parent) for path in Path(root).rglob(document.NAME)]
    named = [(info["run_id"], folder) for info, folder in found if info["scenario"]["name"] == scenario]
    return [folder for _, folder in sorted(named)]


def read(folder: Path | str) -> Run:
    """Read a run and check that it is whole.

    Raises:
        BenchError: a file is missing, was changed or cut short, is of another version, or has no sample.
    """
    folder = Path(folder)
    info = document.read(folder)
    points, hist = (_frame(folder, name, info) for name in tables.SCHEMAS)
    # A run that was killed may have the latencies of one more point.
    run = Run(folder, info, points, hist[hist["point_id"].isin(points["point_id"])])
    if run.points.empty:
        raise BenchError(f"{folder} has no point: it ended before its first one; repeat the run")
    if not run.points["ops"].sum():
        why = run.points["invalid_reason"].iloc[0]
        raise BenchError(
            f"{folder} has zero samples: no operation was answered in any of its {len(run.points)} points ({why});"
            " repeat the run"
        )
    return run


def _frame(folder: Path, name: str, info: Document) -> pd.DataFrame:
    path = folder / _file(name)
    frame: pd.DataFrame = _read(path).to_pandas()
    if info["finished"]:
        _check_sum(path, info)
    return frame


def _file(name: str) -> str:
    return f"{name}.parquet"


def _read(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except FileNotFoundError:
        raise BenchError(f"{path} is missing: copy the whole run folder again, or repeat the run") from None
    except (pa.ArrowException, OSError) as error:
        raise BenchError(f"{path} is not a whole parquet file ({cause_of(error)}): copy it again") from None


def _check_sum(path: Path, info: Document) -> None:
    if document.digest(path) != info["sha256"].get(path.name):
        raise BenchError(f"{path} was changed after the run (SHA-256 differs from {document.NAME}): copy it again")
