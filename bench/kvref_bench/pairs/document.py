"""What pairs become: a JSON document, and the table of its ratios in Markdown."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kvref import documents
from kvref_bench.errors import BenchError
from kvref_bench.pairs.rows import VALUE
from kvref_bench.runs import machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kvref_bench.pairs.clients import Done
    from kvref_bench.pairs.measure import Measured, Settings
    from kvref_bench.pairs.rows import Row

VERSION: Final = 1
SIDES: Final = ("ours", "theirs")
# Of the generator's processors: where it is this busy, a faster server would not show.
BUSY: Final = 0.9
HEAD: Final = (
    "row", "work", "against", "to reach", "ratio", "range", "reached", "kvref, 1/s", "other, 1/s", "servers' CPU, µs",
    "ratio of CPU", "generator, busy",
)  # fmt: skip

Document = dict[str, Any]


def begin(settings: Settings, argv: Sequence[str]) -> Document:
    """Make the document of a run without rows."""
    return {
        "version": VERSION,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.public(machine.machine()),
        "kvref": _kvref(),
        "tool": machine.public(machine.tool(list(argv))),
        "settings": {
            "server_cpus": sorted(settings.where.servers),
            "client_cpus": sorted(settings.where.clients),
            "pairs": settings.pairs,
            "seconds": settings.seconds,
            "warmup": settings.warmup,
            "keys": settings.keys,
            "kvref": list(settings.kvref),
            "value_bytes": VALUE,
        },
        "rows": [],
        "skipped": [],
    }


def add(document: Document, measured: Measured) -> None:
    """Put a row into a document."""
    row = measured.row
    if measured.skipped:
        document["skipped"].append({"name": row.name, "reason": machine.public(measured.skipped)})
        return
    ratios = [ours.per_second / theirs.per_second for ours, theirs in measured.pairs]
    cpu = [_cpu(ours) / _cpu(theirs) for ours, theirs in measured.pairs]
    ratio = _spread(ratios)
    document["rows"].append({
        **_said(row),
        "ratio": ratio,
        "reached": ratio["median"] >= row.target,
        "cpu_ratio": _spread(cpu),
        "generator_is_limit": _limited(measured, len(document["settings"]["client_cpus"])),
        "ceilings": dict(zip(SIDES, measured.ceilings, strict=True)),
        "servers": measured.facts,
        "pairs": [dict(zip(SIDES, map(asdict, both), strict=True)) for both in measured.pairs],
    })  # fmt: skip


def table(document: Document) -> str:
    """Return the table of a document in Markdown, and below it what was left out."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}", *map(_line, document["rows"])]
    lines += [f"\nLeft out: {each['name']}: {each['reason'].splitlines()[0]}" for each in document["skipped"]]
    return "\n".join([*lines, f"\n{_how(document)}"]) + "\n"


def _how(document: Document) -> str:
    settings = document["settings"]
    return (
        f"{document['kvref']}: {settings['pairs']} pairs of {settings['seconds']:g} s in alternating order,"
        f" {settings['keys']:,} keys,"
        f" values of {settings['value_bytes']} bytes; {document['machine']['cpu_model']}, servers on processor"
        f" {_numbers(settings['server_cpus'])}, generator on {_numbers(settings['client_cpus'])}. Ratios are medians of"
        " those within a pair; CPU is that of the servers for each operation. \\*: the generator was busy all the time"
        " on one side or both: there the CPU ratio is more reliable."
    )


def write(document: Document, path: Path) -> None:
    """Write a document. Raises BenchError where the file cannot be written."""
    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path, key: str = "rows") -> Document:
    """Read a document with a list of that name. Raises BenchError where it is none, or of another version."""
    try:
        found = documents.read_json(path)
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("version") != VERSION or key not in found:
        raise BenchError(f"{path} holds no {'pairs' if key == 'rows' else key} of version {VERSION}: measure again")
    return found


def markers(name: str) -> tuple[str, str]:
    """Return the lines between which a README has the table of `bench/results/NAME.json`."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def insert(text: str, document: Document, name: str) -> str:
    """Put the table of a document between the two markers of a name in a text. Raises BenchError where it has none."""
    return insert_table(text, table(document), name)


def insert_table(text: str, made: str, name: str) -> str:
    """Put a table between the two markers of a name in a text. Raises BenchError where it has none."""
    begin, end = markers(name)
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise BenchError(f"no place for the table: put a line {begin} and a line {end}")
    return f"{before}{begin}\n{made}{end}{after}"


def _kvref() -> str:
    # The servers are booted by this Python, from where it finds kvref.
    told = subprocess.run([sys.executable, "-m", "kvref", "--version"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def _said(row: Row) -> Document:
    return {
        "name": row.name,
        "work": row.work,
        "ours": row.ours.what,
        "theirs": row.theirs.what,
        "target": row.target,
        "unit": row.unit,
        "durable": row.durable,
    }


def _line(row: Document) -> str:
    ours, theirs = ([pair[side] for pair in row["pairs"]] for side in SIDES)
    ratio, cpu = row["ratio"], row["cpu_ratio"]
    cells = (
        row["name"],
        f"{row['work']}, {row['ours']}",
        row["theirs"],
        f"{row['target']:g}",
        f"{ratio['median']:.2f}{'*' if row['generator_is_limit'] else ''}".replace("*", "\\*"),
        f"{ratio['min']:.2f} to {ratio['max']:.2f}",
        "yes" if row["reached"] else "no",
        _rate(ours, row["unit"]),
        _rate(theirs, row["unit"]),
        f"{_middle(ours, _sum):.1f} : {_middle(theirs, _sum):.1f}",
        f"{cpu['median']:.2f}",
        f"{_generators(ours, theirs)} {_middle(ours, _busy):.0%} : {_middle(theirs, _busy):.0%}",
    )
    return f"| {' | '.join(cells)} |"


def _generators(ours: Sequence[Document], theirs: Sequence[Document]) -> str:
    return " : ".join(dict.fromkeys((ours[0]["generator"], theirs[0]["generator"])))


def _rate(side: Sequence[Document], unit: str) -> str:
    rate = statistics.median(each["per_second"] for each in side)
    return f"{rate:,.0f}{' keys' if unit == 'keys' else ''}"


def _middle(side: Sequence[Document], what: Any) -> float:
    return float(statistics.median(map(what, side)))


def _busy(each: Document) -> float:
    return float(each["client"])


def _sum(each: Document) -> float:
    return float(sum(each["server"].values()))


def _cpu(done: Done) -> float:
    return sum(done.server.values())


def _spread(numbers: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers)}


def _limited(measured: Measured, cpus: int) -> bool:
    sides = ([pair[0] for pair in measured.pairs], [pair[1] for pair in measured.pairs])
    return any(statistics.median(done.client for done in side) > BUSY * cpus for side in sides)


def _numbers(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus))
