"""What pairs become: a JSON document, and the table of its ratios in Markdown."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.pairs.rows import VALUE
from kvref_bench.runs import machine
from kvref_bench.turns import cpus, report

if TYPE_CHECKING:
    from kvref_bench.pairs.measure import Measured, Settings
    from kvref_bench.turns.loaded import Done

SIDES: Final = ("ours", "theirs")
# Of the generator's processors: where it is this busy, a faster server would not show.
BUSY: Final = 0.9
LIMITED: Final = "\\*"
HEAD: Final = (
    "row", "work", "against", "to reach", "ratio", "range", "reached", "kvref, 1/s", "other, 1/s", "servers' CPU, µs",
    "ratio of CPU", "instructions", "generator, busy",
)  # fmt: skip

Document = dict[str, Any]


def begin(settings: Settings, **more: Any) -> Document:
    """Make the document of a run without results. more: its lists; none: `rows`."""
    given = {
        "server_cpus": sorted(settings.where.servers),
        "client_cpus": sorted(settings.where.clients),
        "pairs": settings.pairs,
        "seconds": settings.seconds,
        "warmup": settings.warmup,
        "keys": settings.keys,
        "kvref": list(settings.kvref),
        "value_bytes": VALUE,
    }
    return report.begin(given, **more or {"rows": []}, skipped=[])


def add(document: Document, measured: Measured) -> None:
    """Put a row into a document."""
    row = measured.row
    if measured.skipped:
        document["skipped"].append({"name": row.name, "reason": machine.public(measured.skipped)})
        return
    ratios = [ours.per_second / theirs.per_second for ours, theirs in measured.pairs]
    cpu = [_cpu(ours) / _cpu(theirs) for ours, theirs in measured.pairs]
    ratio, sides = report.spread(ratios), list(zip(*measured.pairs, strict=True))
    limit = BUSY * len(document["settings"]["client_cpus"])
    document["rows"].append({
        **{name: getattr(row, name) for name in ("name", "work", "target", "unit", "durable")},
        "ours": row.ours.what,
        "theirs": row.theirs.what,
        "ratio": ratio,
        "reached": ratio["median"] >= row.target,
        "cpu_ratio": report.spread(cpu),
        "generator_is_limit": any(statistics.median(done.client for done in side) > limit for side in sides),
        "servers": measured.facts,
        "pairs": [dict(zip(SIDES, map(asdict, both), strict=True)) for both in measured.pairs],
    })  # fmt: skip


def table(document: Document) -> str:
    """Return the table of a document in Markdown, and below it what was left out."""
    left = [f"Left out: {each['name']}: {each['reason'].splitlines()[0]}\n" for each in document["skipped"]]
    return "\n".join([report.grid(HEAD, map(_line, document["rows"])), *left, _how(document)]) + "\n"


def interpreter(document: Document) -> str:
    """Return the Python that ran the servers of a document: implementation, version, build."""
    runtime = document["runtime"]
    build = "with" if runtime["pgo"] else "without"
    return f"{runtime['implementation']} {runtime['python']} {build} profile-guided optimization"


def rate(row: Document, side: str) -> float:
    """Return the median rate of a side of a row, in operations or keys a second."""
    return float(statistics.median(pair[side]["per_second"] for pair in row["pairs"]))


def cpu_time(row: Document, side: str) -> float:
    """Return the median CPU time of the servers of a side of a row, in microseconds for each operation or key."""
    return float(statistics.median(sum(pair[side]["server"].values()) for pair in row["pairs"]))


def instructions(row: Document) -> str:
    """Return the median instructions of the servers for each operation on both sides; "-" where they are not known."""
    counted = [[pair[side].get("instructions") for pair in row["pairs"]] for side in SIDES]
    if any(each is None for side in counted for each in side):
        return "-"
    return " : ".join(f"{statistics.median(sum(each.values()) for each in side):,.0f}" for side in counted)


def _how(document: Document) -> str:
    settings = document["settings"]
    return (
        f"{document['kvref']} on {interpreter(document)}: {settings['pairs']} pairs of"
        f" {settings['seconds']:g} s in alternating order, {settings['keys']:,} keys, values of"
        f" {settings['value_bytes']} bytes; {document['machine']['cpu_model']}, servers on processor"
        f" {cpus.words(settings['server_cpus'])}, generator on {cpus.words(settings['client_cpus'])}."
        " Ratios are medians of"
        " those within a pair; CPU is that of the servers for each operation. \\*: the generator was busy all the time"
        " on one side or both: there the CPU ratio is more reliable."
    )


def _line(row: Document) -> list[str]:
    ours, theirs = ([pair[side] for pair in row["pairs"]] for side in SIDES)
    ratio, cpu = row["ratio"], row["cpu_ratio"]
    busy = [statistics.median(each["client"] for each in side) for side in (ours, theirs)]
    used = [cpu_time(row, side) for side in SIDES]
    generators = " : ".join(dict.fromkeys((ours[0]["generator"], theirs[0]["generator"])))
    return [
        row["name"],
        f"{row['work']}, {row['ours']}",
        row["theirs"],
        f"{row['target']:g}",
        f"{ratio['median']:.2f}{LIMITED if row['generator_is_limit'] else ''}",
        f"{ratio['min']:.2f} to {ratio['max']:.2f}",
        "yes" if row["reached"] else "no",
        *(f"{rate(row, side):,.0f}{' keys' if row['unit'] == 'keys' else ''}" for side in SIDES),
        f"{used[0]:.1f} : {used[1]:.1f}",
        f"{cpu['median']:.2f}",
        instructions(row),
        f"{generators} {busy[0]:.0%} : {busy[1]:.0%}",
    ]


def _cpu(done: Done) -> float:
    return sum(done.server.values())
