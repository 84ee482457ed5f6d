"""What a run says, in one table: for each place of the figure the medians of its repetitions, and what is wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kvref_bench.runs.tables import FACTOR

if TYPE_CHECKING:
    import pandas as pd

    from kvref_bench.runs.run import Run

Row = dict[str, Any]
_LATENCIES = ("p50", "p99", "p999")
_MEDIANS = ("qps", *_LATENCIES, "client_cpu_us_per_op", "server_cpu_us_per_op", "ceiling")


def rows(run: Run) -> list[Row]:
    """Return each place of a run: series, server, sessions, rate, settings, and the medians of its valid repetitions.

    Where none is valid the medians are those of all, and `valid` is 0. Latencies are ns, of an open loop from the
    moment of the schedule on.
    """
    names = ["series", "server", *run.factors, "sessions", "rate"]
    return [_row(run, part) for _, part in run.points.groupby(names, dropna=False, sort=False)]


def table(run: Run) -> Table:
    """Return the table for a terminal; where no repetition is valid the figures are dim and in parentheses."""
    shown = Table(title=f"{run.info['scenario']['name']}, scale {run.info['scenario']['scale']}: {run.id}")
    left, figures = ("series", "server", "settings"), ("sessions", "op/s", "p50, ms", "p99, ms", "p99.9, ms")
    for name in (*left, *figures, "client, µs/op", "valid", "why not"):
        shown.add_column(name, justify="left" if name in (*left, "why not") else "right")
    for row in rows(run):
        settings = "\n".join(f"{name}={value}" for name, value in row["settings"].items())
        if row["rate"] is not None:
            settings = f"{settings}\nopen loop, {row['rate']:,.0f}/s".strip()
        cells = [
            f"{row['qps']:,.0f}",
            *("-" if row[name] is None else f"{row[name] / 1e6:.3f}" for name in _LATENCIES),
            "-" if row["client_cpu_us_per_op"] is None else f"{row['client_cpu_us_per_op']:.1f}",
        ]
        shown.add_row(
            row["series"],
            row["server"],
            settings,
            str(row["sessions"]),
            *(cells if row["valid"] else [f"({cell})" for cell in cells]),
            f"{row['valid']} of {row['repetitions']}" if row["valid"] else "NOT VALID",
            "; ".join(row["reasons"]),
            style="" if row["valid"] else "dim",
        )
    return shown


def _row(run: Run, part: pd.DataFrame) -> Row:
    first, good = part.iloc[0], part[part["valid"]]
    used = part if good.empty else good
    settings = {name.removeprefix(FACTOR): int(first[name]) for name in run.factors if not math.isnan(first[name])}
    # The numbers in a reason differ from one repetition to the next.
    reasons = {each.partition(":")[0]: None for text in part["invalid_reason"] for each in text.split("; ") if each}
    return {
        "series": str(first["series"]),
        "server": str(first["server"]),
        "settings": settings,
        "sessions": int(first["sessions"]),
        "rate": _number(first["rate"]),
        **{name: _median(used, name) for name in _MEDIANS},
        **({} if _number(first["rate"]) is None else {n: _median(used, f"intended_{n}") for n in _LATENCIES}),
        "valid": len(good),
        "repetitions": len(part),
        "reasons": list(reasons),
    }


def _median(part: pd.DataFrame, name: str) -> float | None:
    return _number(part[name].median())


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
