"""The tables of a run: their columns, and the rows that one point makes. Durations are ns, CPU times s."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kvref_bench.load.histogram import BITS, middle
from kvref_bench.runs.records import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_bench.load.records import Usage
    from kvref_bench.runs.records import Merged, Point

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
LATENCIES: Final = (*QUANTILES, "max", "mean")
FACTOR: Final = "factor_"
# Columns that are fields of `Point`, and of its work.
OF_POINT: Final = ("series", "server", "rate", "expected_hits", "ceiling", "load_average")
OF_WORK: Final = ("sessions", "depth", "multiget")


def _schema(text: str, **metadata: str) -> pa.Schema:
    kinds = {"str": pa.string(), "int": pa.int64(), "num": pa.float64(), "bool": pa.bool_()}
    words = [word.partition(":") for word in text.split()]
    return pa.schema([pa.field(name, kinds[kind]) for name, _, kind in words], metadata=metadata)


POINTS: Final = _schema(
    "run_id:str point_id:int scenario:str series:str server:str sessions:int processes:int depth:int multiget:int "
    "rep:int rate:num t_start_ns:int t_end_ns:int seconds:num "
    "ops:int hits:int misses:int errors:int skipped:int qps:num "
    + " ".join(f"{prefix}{name}:num" for prefix in ("", "intended_") for name in LATENCIES)
    + " lag_p99:num client_cpu_user:num client_cpu_sys:num client_cpu_us_per_op:num client_busiest:num "
    "client_rss:int server_cpu_user:num server_cpu_sys:num server_cpu_us_per_op:num server_rss:int "
    "expected_hits:num ceiling:num load_average:num counters:str valid:bool invalid_reason:str"
)
HIST: Final = _schema(
    "run_id:str point_id:int second:int verb:str outcome:str clock:str bin_index:int count:int",
    bins=f"log-linear, {1 << BITS} bins for each power of two",
    unit="ns",
)
SCHEMAS: Final = {"points": POINTS, "hist": HIST}

Row = dict[str, Any]


def latencies(bins: Mapping[int, int], prefix: str = "") -> Row:
    """Return the percentiles, the maximum and the mean of a histogram, ns; None where nothing was answered."""
    shares = {**QUANTILES, "max": 1.0}
    row: Row = {prefix + name: percentile(bins, share) for name, share in shares.items()}
    durations = middle(np.array(list(bins), dtype=np.int64))
    row[prefix + "mean"] = float(np.average(durations, weights=list(bins.values()))) if bins else None
    return row


def point_row(place: Row, scenario: str, point: Point, reasons: list[str]) -> Row:
    """Return the row of `points`.

    place: `run_id` and `point_id`. reasons: why the point must not be used; none: it is valid.
    """
    results, merged = point.results, point.merged
    ops, lag = merged.ops, merged.bins("lag")
    return {
        **place,
        "scenario": scenario,
        **{name: getattr(point, name) for name in OF_POINT},
        **{name: getattr(point.work, name) for name in OF_WORK},
        "processes": len(results),
        "rep": point.repetition,
        "t_start_ns": point.began,
        "t_end_ns": point.ended,
        "seconds": merged.seconds,
        "ops": ops,
        "hits": merged.outcome("hit"),
        "misses": merged.outcome("miss"),
        **{name: sum(getattr(each, name) for each in results) for name in ("errors", "skipped")},
        "qps": merged.per_second,
        **latencies(merged.bins("service")),
        **latencies(merged.bins("intended"), "intended_"),
        "lag_p99": percentile(lag, 0.99),
        **_usage("client", merged.usage, ops),
        "client_busiest": busiest(point),
        **_usage_of_server(point),
        "counters": json.dumps(point.sample.counters, sort_keys=True),
        "valid": not reasons,
        "invalid_reason": "; ".join(reasons),
        **{FACTOR + name: value for name, value in point.settings.items()},
    }


def _usage(of: str, usage: Usage, ops: int, scale: float = 1.0) -> Row:
    figures: Row = {"cpu_user": usage.user * scale, "cpu_sys": usage.system * scale, "rss": usage.rss}
    figures["cpu_us_per_op"] = 1e6 * usage.cpu * scale / ops if ops else None
    return {f"{of}_{name}": figure for name, figure in figures.items()}


def _usage_of_server(point: Point) -> Row:
    sample, merged = point.sample, point.merged
    if sample.usage is None:
        return {}
    return _usage("server", sample.usage, merged.ops, sample.scale(merged.seconds))


def busiest(point: Point) -> float:
    """Return the share of a core that the busiest worker used."""
    shares = (each.usage.cpu / each.seconds for each in point.results if each.seconds)
    return max(shares, default=0.0)


def hist_rows(place: Row, merged: Merged) -> list[Row]:
    """Return the rows of `hist`: of each second, verb, outcome and clock the bins that are not empty."""
    return [
        {
            **place,
            "second": cell.second,
            "verb": cell.kind.verb,
            "outcome": cell.kind.outcome,
            "clock": cell.timing,
            "bin_index": each,
            "count": count,
        }
        for cell, bins in sorted(merged.cells.items())
        for each, count in sorted(bins.items())
    ]


def table(name: str, rows: list[Row]) -> pa.Table:
    """Make a table of rows; in `points` each setting of the server is one more column."""
    schema = SCHEMAS[name]
    for factor in dict.fromkeys(key for row in rows for key in row if key.startswith(FACTOR)):
        schema = schema.append(pa.field(factor, pa.int64()))
    return pa.Table.from_pylist(rows, schema=schema)
