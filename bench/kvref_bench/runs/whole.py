"""Whether a run that was read is whole: every point, every second and every operation that it counts."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.runs.merge import BESIDE

if TYPE_CHECKING:
    from kvref_bench.runs.run import Run

FIX: Final = "copy the run folder again, or repeat the run"
NAMED: Final = 5  # of the places of a gap


def check(run: Run) -> None:
    """Raise BenchError, naming the file, where something is missing in a run or it has no sample."""
    _points(run)
    _samples(run)
    _seconds(run)
    _operations(run)


def _points(run: Run) -> None:
    numbers = run.points["point_id"].tolist()
    if not numbers:
        raise BenchError(f"{run.folder} has no point: it ended before its first one; repeat the run")
    expected = run.info["points"] if run.finished else len(numbers)
    if len(numbers) != expected or numbers != list(range(len(numbers))):
        known = set(numbers)
        missing = [*islice((number for number in range(expected) if number not in known), NAMED)]
        raise BenchError(
            f"{run.folder / 'points.parquet'} has a gap: {len(numbers)} points instead of {expected}, "
            f"missing {missing}; {FIX}"
        )


def _samples(run: Run) -> None:
    if not run.points["ops"].sum():
        raise BenchError(
            f"{run.folder} has zero samples: no operation was answered in any of its {len(run.points)} points "
            f"({run.points['invalid_reason'].iloc[0]}); repeat the run"
        )


def _seconds(run: Run) -> None:
    for point_id, seconds in run.series.groupby("point_id")["second"]:
        if seconds.tolist() != list(range(len(seconds))):
            missing = sorted(set(range(int(seconds.max()) + 1)) - set(seconds))
            raise BenchError(
                f"{run.folder / 'series.parquet'} has a gap: point {point_id} has no second {missing[:NAMED]}; {FIX}"
            )


def _operations(run: Run) -> None:
    numbers = run.points["point_id"]
    expected = run.points.set_index("point_id")["ops"]
    series = run.series.groupby("point_id")[["ops", "errors"]].sum().reindex(numbers, fill_value=0)
    service = run.hist[(run.hist["clock"] == "service") & ~run.hist["outcome"].isin(BESIDE)]
    hist = service.groupby("point_id")["count"].sum().reindex(numbers, fill_value=0)
    for name, counted in (("series", series["ops"]), ("hist", hist - series["errors"])):
        differing = numbers[(counted != expected).to_numpy()].tolist()
        if differing:
            raise BenchError(
                f"{run.folder / name}.parquet has a gap: the operations of point {differing[:NAMED]} do not add up to "
                f"those of points.parquet; {FIX}"
            )
