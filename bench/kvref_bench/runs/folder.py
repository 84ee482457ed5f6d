"""A run on disk: run.json, four tables and the replies that were not allowed.

    with RunWriter(folder, header) as writer:    # `runs.document.begin` makes the header
        writer.add(point)                        # on disk when it returns
        writer.close()

    run = read(folder)
    run.points, run.hist, run.series, run.resources

Until it is closed, each point is a part of its own in `parts/`; a run that was killed is read from there.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from kvref import documents
from kvref_bench.errors import BenchError
from kvref_bench.runs import document, gates, parquet, tables, whole
from kvref_bench.runs.merge import Merged
from kvref_bench.runs.run import SAME, Run, Unexpected
from kvref_bench.runs.tables import Place

if TYPE_CHECKING:
    import pandas as pd

    from kvref_bench.runs.document import Document
    from kvref_bench.runs.records import Point

PARTS: Final = "parts"
ERRORS: Final = "errors.jsonl"
KEPT: Final = 100  # of the replies that were not allowed, verbatim


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
        self._kept = 0
        self._closed = False
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
        document.write(folder, header)

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
        place = Place(self._document["run_id"], len(self._rows))
        merged = Merged.of(point.results)
        scenario = self._document["scenario"]
        reasons = gates.judge(gates.Judged.by(point, merged, scenario["spec"]))
        row = tables.point_row(place, scenario["name"], point, merged, reasons)
        self._keep_unexpected(place, point)
        self._write("hist", tables.hist_rows(place, merged), place)
        self._write("series", tables.series_rows(place, merged), place)
        self._write("resources", tables.resource_rows(place, point), place)
        self._write("points", [row], place)  # last: a point that is in `points` is whole
        self._rows.append(row)
        return reasons

    def close(self, stopped: str | None = None, **more: Any) -> None:
        """Join the parts and write down that the run is over.

        Args:
            stopped: why it ended before its last point; None when it did not.
            more: `calibration`, `network`: further facts; `notes`: further texts; `peers`: the servers as they are now.
        """
        files, rows = {}, {}
        for name in tables.SCHEMAS:
            joined = pa.concat_tables([tables.table(name, []), *_parts(self.folder, name)], promote_options="default")
            path = self.folder / f"{name}.parquet"
            parquet.write(path, joined)
            files[path.name], rows[name] = document.digest(path), joined.num_rows
        if (self.folder / ERRORS).exists():
            files[ERRORS] = document.digest(self.folder / ERRORS)
        facts = document.end(self._document, stopped, self._warnings(), **more)
        document.write(self.folder, {**facts, "points": rows["points"], "sha256": files})
        shutil.rmtree(self.folder / PARTS)
        self._closed = True

    def discard(self) -> None:
        """Take away what this run wrote: there is no point in it. The folder goes unless it holds something else."""
        shutil.rmtree(self.folder / PARTS)
        (self.folder / document.NAME).unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
        self._closed = True

    def _write(self, name: str, rows: list[tables.Row], place: Place) -> None:
        path = self.folder / PARTS / f"{place.point_id:05d}-{name}.parquet"
        draft = path.with_suffix(".draft")
        parquet.write(draft, tables.table(name, rows))
        draft.replace(path)

    def _keep_unexpected(self, place: Place, point: Point) -> None:
        found = [(result.worker, *exchange) for result in point.results for exchange in result.unexpected]
        kept = found[: max(KEPT - self._kept, 1)]  # of each point at least one
        if not kept:
            return
        self._kept += len(kept)
        with (self.folder / ERRORS).open("a", encoding="utf-8") as file:
            for worker, request, reply in kept:
                line = Unexpected(place.point_id, worker, request.decode("latin-1"), reply.decode("latin-1"))
                file.write(json.dumps(line._asdict()) + "\n")

    def _warnings(self) -> list[str]:
        factors = sorted({key for row in self._rows for key in row if key.startswith(tables.FACTOR)})
        counts: Counter[tuple[Any, ...]] = Counter()
        for row in self._rows:
            counts[tuple(row.get(name) for name in (*SAME, *factors))] += row["valid"]
        return gates.warnings(counts, self._document["machine"]["busy_before"])


def find(root: Path | str, scenario: str) -> list[Path]:
    """Find the run folders of a scenario below a folder, oldest first."""
    found = []
    for path in Path(root).rglob(document.NAME):
        info = document.read(path.parent)
        if info["scenario"]["name"] == scenario:
            found.append((info["run_id"], path.parent))
    return [folder for _, folder in sorted(found)]


def read(folder: Path | str) -> Run:
    """Read a run and check that it is whole.

    Raises:
        BenchError: a file is missing, was changed or cut short, is of another version, has a gap, or has no sample.
    """
    folder = Path(folder)
    info = document.read(folder)
    frames = {name: _frame(folder, name, info) for name in tables.SCHEMAS}
    run = Run(folder, info, **frames, errors=_errors(folder, info))
    whole.check(run)
    return run


def _frame(folder: Path, name: str, info: Document) -> pd.DataFrame:
    if not info["finished"]:
        parts = [tables.table(name, []), *_parts(folder, name)]
        frame: pd.DataFrame = pa.concat_tables(parts, promote_options="default").to_pandas()
        return frame
    path = folder / f"{name}.parquet"
    table = parquet.read(path)
    _check_sum(path, info)
    missing = [field.name for field in tables.SCHEMAS[name] if field.name not in table.column_names]
    if missing:
        raise BenchError(f"{path} has no column {', '.join(missing)}: it is of another version; repeat the run")
    whole_table: pd.DataFrame = table.to_pandas()
    return whole_table


def _parts(folder: Path, name: str) -> list[pa.Table]:
    # Of a point that was being written when the run ended there are other parts, but none of `points`.
    whole_ones = sorted(path.name.partition("-")[0] for path in (folder / PARTS).glob("*-points.parquet"))
    return [parquet.read(folder / PARTS / f"{number}-{name}.parquet") for number in whole_ones]


def _check_sum(path: Path, info: Document) -> None:
    if document.digest(path) != info["sha256"].get(path.name):
        raise BenchError(f"{path} was changed after the run (SHA-256 differs from {document.NAME}): copy it again")


def _errors(folder: Path, info: Document) -> list[Unexpected]:
    path = folder / ERRORS
    if not path.exists():
        if ERRORS in info["sha256"]:
            raise BenchError(f"{path} is missing: copy the whole run folder again, or repeat the run")
        return []
    if info["finished"]:
        _check_sum(path, info)
    try:
        lines = documents.read_json_lines(path) if path.stat().st_size else []
        return [Unexpected(**line) for line in lines]
    except (ValueError, TypeError) as error:
        raise BenchError(
            f"{path} has a line that is not an exchange ({error}): copy it again, or repeat the run"
        ) from None
