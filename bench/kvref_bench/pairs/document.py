"""What pairs become: a JSON document, and the table of its ratios in Markdown."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.pairs.rows import VALUE
from kvref_bench.runs import machine
from kvref_bench.turns import cpus, report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.pairs.measure import Measured, Settings
    from kvref_bench.turns.loaded import Done

SIDES: Final = ("ours", "theirs")
# Of the generator's processors: where it is this busy, a faster server would not show.
BUSY: Final = 0.9
LIMITED: Final = "\\*"
HEAD: Final = (
    "row", "work", "against", "to reach", "ratio", "range", "reached", "kvref, 1/s", "other, 1/s", "servers' CPU, µs",
    "ratio of CPU", "generator, busy",
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


def _how(document: Document) -> str:
    settings = document["settings"]
    return (
        f"{document['kvref']}: {settings['pairs']} pairs of {settings['seconds']:g} s in alternating order,"
        f" {settings['keys']:,} keys,"
        f" values of {settings['value_bytes']} bytes; {document['machine']['cpu_model']}, servers on processor"
        f" {cpus.words(settings['server_cpus'])}, generator on {cpus.words(settings['client_cpus'])}."
        " Ratios are medians of"
        " those within a pair; CPU is that of the servers for each operation. \\*: the generator was busy all the time"
        " on one side or both: there the CPU ratio is more reliable."
    )


def _line(row: Document) -> list[str]:
    ours, theirs = ([pair[side] for pair in row["pairs"]] for side in SIDES)
    ratio, cpu = row["ratio"], row["cpu_ratio"]
    busy = [statistics.median(each["client"] for each in side) for side in (ours, theirs)]
    used = [statistics.median(sum(each["server"].values()) for each in side) for side in (ours, theirs)]
    generators = " : ".join(dict.fromkeys((ours[0]["generator"], theirs[0]["generator"])))
    return [
        row["name"],
        f"{row['work']}, {row['ours']}",
        row["theirs"],
        f"{row['target']:g}",
        f"{ratio['median']:.2f}{LIMITED if row['generator_is_limit'] else ''}",
        f"{ratio['min']:.2f} to {ratio['max']:.2f}",
        "yes" if row["reached"] else "no",
        _rate(ours, row["unit"]),
        _rate(theirs, row["unit"]),
        f"{used[0]:.1f} : {used[1]:.1f}",
        f"{cpu['median']:.2f}",
        f"{generators} {busy[0]:.0%} : {busy[1]:.0%}",
    ]


def _rate(side: Sequence[Document], unit: str) -> str:
    return f"{statistics.median(each['per_second'] for each in side):,.0f}{' keys' if unit == 'keys' else ''}"


def _cpu(done: Done) -> float:
    return sum(done.server.values())
