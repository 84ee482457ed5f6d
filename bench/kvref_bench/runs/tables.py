"""The tables of a run: their columns, and the rows that one point makes. Durations are ns, CPU times s."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kvref_bench.load.histogram import BITS, middle
from kvref_bench.runs.merge import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_bench.load.result import Timing
    from kvref_bench.runs.merge import Merged
    from kvref_bench.runs.records import Point

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
LATENCIES: Final = (*QUANTILES, "max", "mean")
FACTOR: Final = "factor_"


def _schema(text: str, **metadata: str) -> pa.Schema:
    kinds = {"str": pa.string(), "int": pa.int64(), "num": pa.float64(), "bool": pa.bool_()}
    words = [word.partition(":") for word in text.split()]
    return pa.schema([pa.field(name, kinds[kind]) for name, _, kind in words], metadata=metadata)


POINTS: Final = _schema(
    "run_id:str point_id:int scenario:str series:str server:str sessions:int processes:int depth:int multiget:int "
    "rep:int rate:num t_start_ns:int t_end_ns:int seconds:num "
    "ops:int hits:int misses:int errors:int open:int skipped:int bytes_tx:int bytes_rx:int qps:num "
    + " ".join(f"{name}:num" for name in LATENCIES)
    + " "
    + " ".join(f"intended_{name}:num" for name in LATENCIES)
    + " lag_p99:num lag_max:num "
    "client_cpu_user:num client_cpu_sys:num client_cpu_us_per_op:num client_busiest:num client_rss:int "
    "client_vctx:int client_nvctx:int "
    "server_cpu_user:num server_cpu_sys:num server_cpu_us_per_op:num server_rss:int "
    "expected_hits:num ceiling:num load_average:num counters:str valid:bool invalid_reason:str"
)
HIST: Final = _schema(
    "run_id:str point_id:int second:int verb:str outcome:str clock:str bin_index:int count:int",
    bins=f"log-linear, {1 << BITS} bins for each power of two",
    unit="ns",
)
SERIES: Final = _schema(
    "run_id:str point_id:int second:int ops:int errors:int p50:num p99:num intended_p50:num intended_p99:num"
)
RESOURCES: Final = _schema("run_id:str point_id:int t_ns:int role:str pid:int cpu_user_s:num cpu_sys_s:num rss:int")
SCHEMAS: Final = {"points": POINTS, "hist": HIST, "series": SERIES, "resources": RESOURCES}

Row = dict[str, Any]


class Place(NamedTuple):
    """Where a point belongs."""

    run_id: str
    point_id: int


def latencies(bins: Mapping[int, int], prefix: str = "") -> Row:
    """Return the percentiles, the maximum and the mean of a histogram, ns; None where nothing was answered."""
    row: Row = {prefix + name: percentile(bins, share) for name, share in QUANTILES.items()}
    row[prefix + "max"] = percentile(bins, 1.0)
    if bins:
        durations = middle(np.array(list(bins), dtype=np.int64))
        row[prefix + "mean"] = float(np.average(durations, weights=list(bins.values())))
    else:
        row[prefix + "mean"] = None
    return row


def point_row(place: Place, scenario: str, point: Point, merged: Merged, reasons: list[str]) -> Row:
    """Return the row of `points`.

    reasons: why the point must not be used; none: it is valid.
    """
    results, ops, lag = point.results, merged.ops, merged.bins("lag")
    return {
        **place._asdict(),
        "scenario": scenario,
        **{name: getattr(point, name) for name in ("series", "server", "sessions", "processes", "depth", "multiget")},
        **{name: getattr(point, name) for name in ("rate", "expected_hits", "ceiling", "load_average")},
        "rep": point.repetition,
        "t_start_ns": point.began,
        "t_end_ns": point.ended,
        "seconds": merged.seconds,
        "ops": ops,
        "hits": merged.outcome("hit"),
        "misses": merged.outcome("miss"),
        "errors": sum(result.errors for result in results),
        "open": sum(result.open for result in results),
        "skipped": sum(result.skipped for result in results),
        "bytes_tx": sum(result.sent for result in results),
        "bytes_rx": sum(result.received for result in results),
        "qps": ops / merged.seconds if merged.seconds else 0.0,
        **latencies(merged.bins("service")),
        **latencies(merged.bins("intended"), "intended_"),
        "lag_p99": percentile(lag, 0.99),
        "lag_max": percentile(lag, 1.0),
        **_usage_of_clients(point, ops),
        **_usage_of_server(point, merged),
        "counters": json.dumps(point.sample.counters, sort_keys=True),
        "valid": not reasons,
        "invalid_reason": "; ".join(reasons),
        **{FACTOR + name: value for name, value in point.settings.items()},
    }


def _usage_of_clients(point: Point, ops: int) -> Row:
    user = sum(result.usage.user for result in point.results)
    system = sum(result.usage.system for result in point.results)
    return {
        "client_cpu_user": user,
        "client_cpu_sys": system,
        "client_cpu_us_per_op": 1e6 * (user + system) / ops if ops else None,
        "client_busiest": busiest(point),
        "client_rss": sum(result.usage.rss for result in point.results),
        "client_vctx": sum(result.usage.voluntary for result in point.results),
        "client_nvctx": sum(result.usage.involuntary for result in point.results),
    }


def _usage_of_server(point: Point, merged: Merged) -> Row:
    usage, known = point.sample.usage, point.sample.seconds
    if usage is None:
        return {}
    # What it used before the first reading was no less; after the end it does nothing.
    whole = max(1.0, merged.seconds / known) if known else 1.0
    user, system = usage.user * whole, usage.system * whole
    return {
        "server_cpu_user": user,
        "server_cpu_sys": system,
        "server_cpu_us_per_op": 1e6 * (user + system) / merged.ops if merged.ops else None,
        "server_rss": usage.rss,
    }


def busiest(point: Point) -> float:
    """Return the share of a core that the busiest worker used."""
    shares = ((each.usage.user + each.usage.system) / each.seconds for each in point.results if each.seconds)
    return max(shares, default=0.0)


def hist_rows(place: Place, merged: Merged) -> list[Row]:
    """Return the rows of `hist`: of each second, verb, outcome and clock the bins that are not empty."""
    return [
        {
            **place._asdict(),
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


def series_rows(place: Place, merged: Merged) -> list[Row]:
    """Return the rows of `series`: each second, also one in which nothing was answered."""

    def of(timing: Timing, second: int, prefix: str) -> Row:
        bins = merged.bins(timing, second)
        return {f"{prefix}{name}": percentile(bins, QUANTILES[name]) for name in ("p50", "p99")}

    return [
        {
            **place._asdict(),
            "second": second,
            "ops": ops,
            "errors": errors,
            **of("service", second, ""),
            **of("intended", second, "intended_"),
        }
        for second, (ops, errors) in enumerate(merged.by_second)
    ]


def resource_rows(place: Place, point: Point) -> list[Row]:
    """Return the rows of `resources`: each reading of a process."""
    return [
        {
            **place._asdict(),
            "t_ns": each.time,
            "role": each.role,
            "pid": each.pid,
            "cpu_user_s": each.user,
            "cpu_sys_s": each.system,
            "rss": each.rss,
        }
        for each in point.resources
    ]


def table(name: str, rows: list[Row]) -> pa.Table:
    """Make a table of rows; in `points` each setting of the server is one more column."""
    schema = SCHEMAS[name]
    factors = dict.fromkeys(key for row in rows for key in row if key.startswith(FACTOR))
    for factor in factors:
        schema = schema.append(pa.field(factor, pa.int64()))
    return pa.Table.from_pylist(rows, schema=schema)
