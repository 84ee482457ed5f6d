"""The report on consistency: the record `seen.json`, and the table of the documentation made of it.

    python tests/consistency/report.py build/consistency.jsonl --into docs/reference/consistency.md

puts the lines of a run, one for each system, in the place of what the record has of the same systems, and writes the table.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from kvref_bench.runs import machine
from kvref_conformance.data.marks import between

RECORD: Final = Path(__file__).with_name("seen.json")
MARKS: Final = ("<!-- consistency: begin -->\n", "<!-- consistency: end -->\n")
Record = dict[str, Any]


@click.command()
@click.argument("lines", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--into", "page", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
def main(lines: Path, page: Path) -> None:
    """Take a run over into the record and the page."""
    record: Record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"rows": {}}
    for line in lines.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        record["rows"][row.pop("system")] = {"made": time.strftime("%Y-%m-%d", time.gmtime()), **row}
    here = machine.machine()
    record["machine"] = {name: here[name] for name in ("cpu_model", "cores")}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(between(page.read_text(encoding="utf-8"), MARKS, table(record)), encoding="utf-8")


def table(record: Record) -> str:
    """Return the table in Markdown."""
    lines = [
        "| system | run | faults, each with the time until all clients were served again: median (shortest to longest)"
        " | commands | histories | not as promised |",
        "|---|---|---|---|---|---|",
    ]
    total = 0
    for name, row in record["rows"].items():
        faults = "; ".join(f"{count} {fault}, {_spread(row, fault)}" for fault, count in row["faults"].items())
        commands = f"{row['acknowledged']:,} applied, {row['refused']:,} refused, {row['unknown']:,} of unknown outcome"
        if row.get("stale"):
            commands += f"; {row['stale']:,} gets missed a write of another connection"
        wrong = len(row["wrong"])
        lines.append(
            f"| {name} | {row['made']}, {row['seconds']:,.0f} s | {faults} | {commands} | {row['keys']:,} | {wrong} |"
        )
        total += sum(row["faults"].values())
    where = record["machine"]
    lines.append(f"\n{total:,} faults in all. {where['cpu_model']}, {where['cores']} cores.")
    return "\n".join(lines) + "\n"


def _spread(row: Record, fault: str) -> str:
    """Return the times of a fault: median, shortest and longest."""
    if "times" not in row:  # of an earlier version of the test
        return f"at most {row['longest'][fault]:.1f} s"
    times = row["times"][fault]
    return f"{median(times):.1f} s ({min(times):.1f} to {max(times):.1f})"


if __name__ == "__main__":
    main()
