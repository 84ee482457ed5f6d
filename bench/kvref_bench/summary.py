"""What points say, in one table for a terminal: figures of a point that is not valid are dim and in parentheses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kvref_bench.runs.tables import FACTOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from kvref_bench.runs.folder import Run

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
    """Return the table of a run."""
    lines = []
    for row in rows(run):
        settings = "\n".join(f"{name}={value}" for name, value in row["settings"].items())
        if row["rate"] is not None:
            settings = f"{settings}\nopen loop, {row['rate']:,.0f}/s".strip()
        cpu = row["client_cpu_us_per_op"]
        figures = [
            f"{row['qps']:,.0f}",
            *latencies(row[name] for name in _LATENCIES),
            "-" if cpu is None else f"{cpu:.1f}",
        ]
        valid = f"{row['valid']} of {row['repetitions']}" if row["valid"] else ""
        lines.append(([row["series"], row["server"], settings, str(row["sessions"])], figures, valid, row["reasons"]))
    scenario = run.info["scenario"]
    left, right = (
        ("series", "server", "settings"),
        ("sessions", "op/s", "p50, ms", "p99, ms", "p99.9, ms", "client, µs/op"),
    )
    return shown(f"{scenario['name']}, scale {scenario['scale']}: {run.id}", left, right, lines)


def shown(
    title: str, left: Sequence[str], right: Sequence[str], lines: Iterable[tuple[list[str], list[str], str, list[str]]]
) -> Table:
    """Return a table.

    left, right: titles of the columns by how they are aligned. lines: words, figures, how many repetitions are valid
        ("": none), and why the others are not.
    """
    table = Table(title=title)
    for name in (*left, *right):
        table.add_column(name, justify="left" if name in left else "right")
    table.add_column("valid")
    table.add_column("why not")
    for words, figures, valid, reasons in lines:
        cells = figures if valid else [f"({figure})" for figure in figures]
        style = "" if valid else "dim"
        table.add_row(*words, *cells, valid or "NOT VALID", "; ".join(reasons), style=style)
    return table


def latencies(given: Iterable[float | None]) -> list[str]:
    """Return latencies, given in ns, as milliseconds."""
    return ["-" if took is None else f"{took / 1e6:.3f}" for took in given]


def _row(run: Run, part: pd.DataFrame) -> Row:
    first, good = part.iloc[0], part[part["valid"]]
    used = part if good.empty else good
    settings = {name.removeprefix(FACTOR): int(first[name]) for name in run.factors if not math.isnan(first[name])}
    # The numbers in a reason differ from one repetition to the next.
    reasons = {each.partition(":")[0]: None for text in part["invalid_reason"] for each in text.split("; ") if each}
    rate = _number(first["rate"])
    intended = {} if rate is None else {name: _median(used, f"intended_{name}") for name in _LATENCIES}
    return {
        "series": str(first["series"]),
        "server": str(first["server"]),
        "settings": settings,
        "sessions": int(first["sessions"]),
        "rate": rate,
        **{name: _median(used, name) for name in _MEDIANS},
        **intended,
        "valid": len(good),
        "repetitions": len(part),
        "reasons": list(reasons),
    }


def _median(part: pd.DataFrame, name: str) -> float | None:
    return _number(part[name].median())


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
