"""What runs of faults found: the record `survived.json`, and the table of the documentation made of it.

    python tests/faults/survived.py build/faults.jsonl --into docs/reference/faults.md

puts the lines of a run, one JSON object each, in the place of what the record has of the same faults, and writes the table.
Numbers are taken over as they are; further ones become words by their names, see `figures`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import click
from faults.description import FULL, described

from kvref_bench.runs import machine
from kvref_conformance.data.marks import between

RECORD: Final = Path(__file__).with_name("survived.json")
MARKS: Final = ("<!-- faults: begin -->\n", "<!-- faults: end -->\n")
UNITS: Final = {"s": "s", "ms": "ms", "kib": "KiB", "mib": "MiB"}
# What every object has, or may have; any other number is a figure of that fault.
KNOWN: Final = {
    "fault", "title", "expected", "length", "seconds", "cycles", "acknowledged", "lost", "failed", "not_run", "made",
}  # fmt: skip

# Of what the tests of other folders tell.
TITLES = {
    "fuzz-batches": "any messages, batches",
    "fuzz-configuration-mariadb": "any rows in the configuration tables, MariaDB",
    "fuzz-configuration-mysql-8.0": "any rows in the configuration tables, MySQL 8.0",
    "fuzz-configuration-sqlite": "any rows in the configuration tables, SQLite",
    "fuzz-innodb": "any messages, MySQL 8.0",
    "fuzz-mysql-5.6-profile": "any messages, profile `mysql-5.6`",
    "fuzz-mysql-8.0-profile": "any messages, profile `mysql-8.0`",
    "fuzz-parsers": "any bytes to the parsers, guided by coverage",
    "fuzz-text-binary": "any messages in text and binary, SQLite",
    "fuzz-workers": "any messages, two workers",
    "galera-cut-off": "Galera: the node in use is cut off",
    "galera-kill": "Galera: kill -9 of the node in use",
    "galera-kill-other": "Galera: kill -9 of another node",
    "galera-sigstop": "Galera: the node in use hangs (SIGSTOP)",
    "vitess-kill-gate": "Vitess: kill -9 of the vtgate in use",
    "vitess-kill-primary": "Vitess: kill -9 of the primary of a shard",
    "vitess-reparent": "Vitess: planned change of the primary of a shard",
    "vitess-reshard": "Vitess: rows move from two shards to four",
    "vitess-sigstop-gate": "Vitess: the vtgate in use hangs (SIGSTOP)",
}
Record = dict[str, Any]


@click.command()
@click.argument("lines", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--into", "page", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
def main(lines: Path, page: Path) -> None:
    """Take a run over into the record and the page."""
    found = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"rows": []}
    record = merged(record, found, time.strftime("%Y-%m-%d", time.gmtime()))
    here = machine.machine()
    record["machine"] = {name: here[name] for name in ("cpu_model", "cores")}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(between(page.read_text(encoding="utf-8"), MARKS, table(record)), encoding="utf-8")


def merged(record: Record, found: list[Record], day: str) -> Record:
    """Return a record with the rows of a run instead of its own of the same faults.

    Args:
        record: what was there.
        found: rows of the run.
        day: of the run.
    """
    names = {row["fault"] for row in found}
    length = "full" if FULL else "short"
    new = [{"length": length, **row, "made": day} for row in found]
    rows = [row for row in record["rows"] if row["fault"] not in names] + new
    order = list(described())
    rows.sort(key=lambda row: (order.index(row["fault"]) if row["fault"] in order else len(order), row["fault"]))
    return {**record, "rows": rows}


def table(record: Record) -> str:
    """Return the table in Markdown."""
    lines = ["| fault | expectation | run | survived |", "|---|---|---|---|"]
    for row in record["rows"]:
        cells = (
            row.get("title") or TITLES.get(row["fault"], row["fault"]),
            row["expected"],
            figures(row),
            verdict(row),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    where = record.get("machine")
    if where:
        lines.append(f"\n{where['cpu_model']}, {where['cores']} cores; a short run is what CI does.")
    return "\n".join(lines) + "\n"


def verdict(row: Record) -> str:
    """Return whether a fault was survived."""
    if row.get("not_run"):
        return f"not tried: {row['not_run']}"
    if row.get("failed"):
        return f"**no**: {row['failed']}"
    return "**no**" if row["lost"] else "yes"


def figures(row: Record) -> str:
    """Return the numbers of a row as text; `longest_answer_s` is `longest answer 0.1 s`."""
    parts = [f"{row['cycles']:,} cycle{'s' * (row['cycles'] > 1)}"] if row["cycles"] else []
    if row.get("acknowledged"):
        parts.append(f"{row['acknowledged']:,} writes acknowledged")
    parts.append(f"{row['lost']:,} lost")
    for name, number in row.items():
        if name in KNOWN or not number or not isinstance(number, int | float):
            continue
        words, _, unit = name.rpartition("_")
        if unit in UNITS:
            parts.append(f"{words.replace('_', ' ')} {number:,.3g} {UNITS[unit]}")
        else:
            parts.append(f"{number:,} {name.replace('_', ' ')}")
    took = f"{row['seconds']:,.0f} s"
    return f"{row['made']}, {row['length']}, {took}: {', '.join(parts)}"


if __name__ == "__main__":
    main()
