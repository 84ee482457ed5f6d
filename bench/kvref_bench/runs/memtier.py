"""One point in the shape of memtier_benchmark's --json-out-file, for the scripts that plot it.

Names and nesting are those of its format version 2: latencies in ms, KB are 1024 bytes, the histogram counts us. A verb
that memtier has not is a section of its own, `Deletes`. Bytes are known for the whole point alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from kvref_bench.load.histogram import middle, quantile
from kvref_bench.runs import hdr
from kvref_bench.runs.gates import STORED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_bench.runs.run import Run

FORMAT: Final = 2
MS: Final = 1e6
PERCENTILES: Final = {"p50.00": 0.5, "p99.00": 0.99, "p99.90": 0.999}
SECTIONS: Final = dict.fromkeys(STORED, "Sets") | {"get": "Gets", "gets": "Gets"}

Section = dict[str, Any]


def document(run: Run, point: Mapping[str, Any], hist: pd.DataFrame) -> Section:
    """Give one point as memtier would have written it.

    Args:
        run: that it is of. point: its row of `points`. hist: its rows of `hist`.
    """
    service = hist[(hist["clock"] == "service") & (hist["outcome"] != "error")]
    names = service["verb"].map(lambda verb: SECTIONS.get(verb, f"{verb.capitalize()}s"))
    seconds = run.series.loc[run.series["point_id"] == point["point_id"], "second"].tolist()
    parts = {name: service[names == name] for name in dict.fromkeys(["Sets", "Gets", "Waits", *names])}
    stats = {name: _section(rows, point["seconds"], seconds) for name, rows in parts.items()}
    totals = {**_section(service, point["seconds"], seconds), **_traffic(point)}
    return {
        "configuration": _configuration(run, point),
        "run information": {
            "Threads": point["processes"],
            "Connections per thread": point["sessions"] // max(point["processes"], 1),
            "Requests per client": point["ops"] // max(point["sessions"], 1),
            "Actual benchmark duration (seconds)": round(point["seconds"], 2),
            "Benchmark completion status": "COMPLETED" if point["valid"] else f"INVALID ({point['invalid_reason']})",
            "Format version": FORMAT,
        },
        "ALL STATS": {
            "Runtime": {
                "Start time": point["t_start_ns"] // 1_000_000,
                "Finish time": point["t_end_ns"] // 1_000_000,
                "Total duration": round(point["seconds"] * 1000),
                "Time unit": "MILLISECONDS",
            },
            **stats,
            "Totals": totals,
        },
    }


def _configuration(run: Run, point: Mapping[str, Any]) -> Section:
    server = next(each for each in run.info["servers"] if each["name"] == point["server"])
    host, _, port = (server["address"] or "").rpartition(":")
    works = {each["name"]: each["work"] for each in run.info["scenario"]["spec"]["series"]}
    protocol = works[point["series"]]["protocol"] if point["series"] in works else "text"
    return {
        "server": host,
        "port": int(port) if port.isdigit() else 0,
        "protocol": protocol if protocol == "mysql" else f"memcache_{protocol}",
        "clients": point["sessions"] // max(point["processes"], 1),
        "threads": point["processes"],
        "pipeline": point["depth"],
        "multi_key_get": point["multiget"] if point["multiget"] > 1 else 0,
        "run_count": 1,
        "kvref": {
            "run_id": run.id,
            **{name: point[name] for name in ("point_id", "scenario", "series", "server", "rep")},
            "conformance": server["judged"],
        },
    }


def _section(rows: pd.DataFrame, duration: float, seconds: list[int]) -> Section:
    counts = hdr.bins(rows)
    by_second = dict(list(rows.groupby("second")))
    outcomes = rows.groupby("outcome")["count"].sum()

    def rate(count: float) -> float:
        return round(float(count) / duration, 2) if duration else 0.0

    return {
        "Count": sum(counts.values()),
        "Ops/sec": rate(sum(counts.values())),
        "Hits/sec": rate(outcomes.get("hit", 0)),
        "Misses/sec": rate(outcomes.get("miss", 0)),
        **_latencies(counts),
        "Time-Serie": {str(second): _second(by_second.get(second)) for second in seconds},
        "Percentile Latencies": {
            **_percentiles(counts),
            "Histogram log format": {"Compressed Histogram": hdr.encoded(hdr.histogram(counts, hdr.US))},
        },
    }


def _second(rows: pd.DataFrame | None) -> Section:
    if rows is None:
        return {"Count": 0}
    counts = hdr.bins(rows)
    latencies = {name: value for name, value in _latencies(counts).items() if name != "Latency"}
    return {"Count": sum(counts.values()), **latencies, **_percentiles(counts)}


def _latencies(counts: Mapping[int, int]) -> Section:
    durations = middle(np.array(list(counts), dtype=np.int64)) / MS
    total = float(np.dot(durations, np.array(list(counts.values()), dtype=np.float64)))
    mean = round(total / sum(counts.values()), 3) if counts else 0.0
    return {
        "Latency": mean,
        "Average Latency": mean,
        "Accumulated Latency": round(total),
        "Min Latency": round(float(min(durations, default=0.0)), 3),
        "Max Latency": round(float(max(durations, default=0.0)), 3),
    }


def _percentiles(counts: Mapping[int, int]) -> Section:
    return {name: round(quantile(counts, share) / MS, 3) for name, share in PERCENTILES.items()}


def _traffic(point: Mapping[str, Any]) -> Section:
    seconds = point["seconds"]
    received, sent = ((point[name] / 1024 / seconds if seconds else 0.0) for name in ("bytes_rx", "bytes_tx"))
    return {
        "KB/sec": round(received + sent, 2),
        "KB/sec RX/TX": round(received + sent, 2),
        "KB/sec RX": round(received, 2),
        "KB/sec TX": round(sent, 2),
    }
