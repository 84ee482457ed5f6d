"""`kvref bench export`: a run in the formats of other tools.

hlog     HdrHistogram log, format 1.3: each second of a point as a histogram of ns, V2, tagged with its clock
hgrm     HdrHistogram's percentile text in ms, a file for each clock of a point
memtier  JSON in the shape of memtier_benchmark's --json-out-file
csv      the four tables as they are
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.errors import BenchError
from kvref_bench.runs import hdr, memtier, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd

    from kvref_bench.runs.run import Run

MS: Final = 1e6


def export(run: Run, format_name: str, folder: Path | str) -> list[Path]:
    """Write a run in another tool's format.

    Args:
        run: as read.
        format_name: one of FORMATS.
        folder: where the files go; is made.

    Returns:
        The files.
    """
    if format_name not in FORMATS:
        raise BenchError(f"no format {format_name!r}: choose {', '.join(FORMATS)}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return FORMATS[format_name](run, folder)


def _hlog(run: Run, folder: Path) -> list[Path]:
    written = []
    for point, hist in _points(run):
        lines = [
            "#[Histogram log format version 1.3]",
            f"#[kvref bench: {_title(run, point)}; values in ns]",
            f"#[StartTime: {point['t_start_ns'] / 1e9:.3f} (seconds since epoch)]",
            '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
        ]
        for clock, rows in _clocks(hist):
            for second in range(int(rows["second"].max()) + 1):
                made = hdr.histogram(hdr.bins(rows[rows["second"] == second]))
                length = min(1.0, point["seconds"] - second) if point["seconds"] > second else 0.0
                longest = made.get_max_value() / MS
                lines.append(f"Tag={clock},{second:.3f},{length:.3f},{longest:.3f},{hdr.encoded(made)}")
        written.append(_write(folder, point, ".hlog", "\n".join(lines) + "\n"))
    return written


def _hgrm(run: Run, folder: Path) -> list[Path]:
    written = []
    for point, hist in _points(run):
        # A point without a sample has a file as well, with a count of 0.
        for clock, rows in [*_clocks(hist)] or [("service", hist)]:
            made = hdr.histogram(hdr.bins(rows))
            text = io.BytesIO()
            made.output_percentile_distribution(text, MS)
            # The library prints the deviation in ns next to a mean in ms.
            deviation = f"StdDeviation   = {made.get_stddev() / MS:12.3f}]"
            lines = re.sub(r"StdDeviation\s*=\s*[\d.]+\]", deviation, text.getvalue().decode("ascii"))
            written.append(_write(folder, point, f"-{clock}.hgrm", lines))
    return written


def _memtier(run: Run, folder: Path) -> list[Path]:
    return [
        _write(folder, point, ".json", json.dumps(memtier.document(run, point, hist), indent=1, allow_nan=False) + "\n")
        for point, hist in _points(run)
    ]


def _csv(run: Run, folder: Path) -> list[Path]:
    written = []
    for name in tables.SCHEMAS:
        path = folder / f"{name}.csv"
        getattr(run, name).to_csv(path, index=False)
        written.append(path)
    return written


FORMATS: Final[Mapping[str, Callable[[Run, Path], list[Path]]]] = {
    "hlog": _hlog, "hgrm": _hgrm, "memtier": _memtier, "csv": _csv,
}  # fmt: skip


def _points(run: Run) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    hists = dict(list(run.hist.groupby("point_id")))
    for point in run.points.to_dict("records"):
        named = {str(name): value for name, value in point.items()}
        yield named, hists.get(point["point_id"], run.hist.iloc[:0])


def _clocks(hist: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for clock, rows in hist[hist["outcome"] != "error"].groupby("clock"):
        yield str(clock), rows


def _title(run: Run, point: Mapping[str, Any]) -> str:
    return f"run {run.id}, {point['series']} on {point['server']}, {point['sessions']} sessions, {point['rep']}"


def _write(folder: Path, point: Mapping[str, Any], ending: str, text: str) -> Path:
    words = f"{point['point_id']:05d}-{point['series']}-{point['server']}-{point['sessions']}-{point['rep']}"
    path = folder / (re.sub(r"[^\w.-]+", "_", words) + ending)
    path.write_text(text, encoding="utf-8")
    return path
