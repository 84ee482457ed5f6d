"""The tables and the chart of measured speed, from `pairs*.json` and `setups.json` of `bench/results`.

    PYTHONPATH=docs python -m generators.speed          # writes docs/_static/speed.svg

The file is committed, as the README shows it; a test compares it.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generators.svg import FAINT, text
from kvref_bench.pairs.document import LIMITED, cpu_time, instructions, interpreter, rate
from kvref_bench.pairs.rows import rows as known_rows
from kvref_bench.setups import document as setups
from kvref_bench.turns import report

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "bench" / "results" / "pairs.json"
# Some of the rows on the same machine, with an interpreter built without profile-guided optimization.
WITHOUT_PGO: Final = RESULTS.with_name("pairs-without-pgo.json")
CHART: Final = ROOT / "docs" / "_static" / "speed.svg"
# Row of the results, title of the pair of bars.
SHOWN: Final = (
    ("get-64", "get, 64 connections; kvref over SQLite"),
    ("set-1", "set, 64 connections; kvref over SQLite"),
    ("mixed-plugin", "90 % get, 10 % set; kvref over SQLite"),
    ("mysql-get-plugin", "get, 128 connections; all over MySQL"),
    ("mysql-set", "set, 128 connections; all over MySQL"),
    ("mixed-memcached", "90 % get, 10 % set; kvref over SQLite"),
)
LABELS: Final = {
    "plugin": "the plugin",
    "plugin, same server": "the plugin",
    "memcached": "memcached",
}
UNCOUNTED: Final = " This machine has no counter of instructions."
HEAD: Final = (
    "row", "ratio", "without PGO", "to reach", "reached", "work", "against", "kvref, 1/s", "other, 1/s",
    "servers' CPU, µs",
)  # fmt: skip
# Tables of the page, by kvref's server of a row.
GROUPS: Final = {
    "sqlite": {"kvref-sqlite", "kvref-workers"},
    "mysql": {"kvref-mysql", "kvref-mysql-profile", "kvref-mysql-level-2"},
    "cached": {"kvref-cached"},
    "generator": {"floor", "memcached"},
}
WIDTH, LEFT, RIGHT, BAR, ROW, TOP = 840, 290, 150, 18, 58, 74
OURS, OTHER = "#c2500a", "#7a828c"


def pages() -> Mapping[str, str]:
    """Return the set-up and the tables, which `reference/speed.md` and `setups.md` include."""
    document, slower = _document(), report.read(WITHOUT_PGO, "rows")
    settings, machine = document["settings"], document["machine"]
    said = (
        f"{document['kvref']}; {machine['cpu_model']}; {interpreter(document)}, and the column *without PGO*:"
        f" {interpreter(slower)}; servers on processor"
        f" {_joined(settings['server_cpus'])}, generator on processor {_joined(settings['client_cpus'])};"
        f" {settings['pairs']} pairs of {settings['seconds']:g} s; {settings['keys']:,} keys; values of"
        f" {settings['value_bytes']} bytes; measured {document['made'][:10]}."
        f"{'' if any(instructions(row) != '-' for row in document['rows']) else UNCOUNTED}\n"
    )
    costs = report.read(RESULTS.with_name("setups.json"), "setups")
    set_ups = f"{setups.table(costs)}\n{setups.absent(costs)}"
    tables = {f"reference/generated/speed-{name}.txt": table(document, slower, of) for name, of in GROUPS.items()}
    return {"reference/generated/speed-setup.txt": said, "reference/generated/setups.txt": set_ups, **tables}


def table(document: Mapping[str, Any], slower: Mapping[str, Any], servers: set[str]) -> str:
    """Return the table of the rows in which one of the servers is kvref's side.

    document, slower: measured with two interpreters. A row is reached if each median reaches its goal.
    """
    names = {row.name for row in known_rows() if row.ours.server in servers}
    others = {row["name"]: row for row in slower["rows"]}
    rows = [row for row in document["rows"] if row["name"] in names]
    lines = [_line(row, others.get(row["name"])) for row in rows]
    if all(instructions(row) == "-" for row in rows):
        return report.grid(HEAD, lines)
    counted = ([*line, instructions(row)] for line, row in zip(lines, rows, strict=True))
    return report.grid((*HEAD, "instructions"), counted)


def _line(row: Mapping[str, Any], slower: Mapping[str, Any] | None) -> list[str]:
    reached = min(each["ratio"]["median"] for each in (row, slower) if each is not None) >= row["target"]
    unit = " keys" if row["unit"] == "keys" else ""
    return [
        row["name"],
        _ratio(row),
        "-" if slower is None else _ratio(slower),
        f"{row['target']:g}",
        "yes" if reached else "no",
        f"{row['work']}, {row['ours']}",
        row["theirs"],
        *(f"{rate(row, side):,.0f}{unit}" for side in ("ours", "theirs")),
        " : ".join(f"{cpu_time(row, side):.1f}" for side in ("ours", "theirs")),
    ]


def _ratio(row: Mapping[str, Any]) -> str:
    ratio, limited = row["ratio"], LIMITED if row["generator_is_limit"] else ""
    return f"{ratio['median']:.2f}{limited} ({ratio['min']:.2f} to {ratio['max']:.2f})"


def chart() -> str:
    """Return the chart as SVG, drawn on white so that it is readable on any page."""
    document = _document()
    rows = {row["name"]: row for row in document["rows"]}
    height = TOP + ROW * len(SHOWN) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title description" font-family="system-ui, sans-serif">',
        '<title id="title">Operations per second: kvref and its peers</title>',
        f'<desc id="description">{escape(alternative())}</desc>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(20, 30, "Operations per second, kvref and its peers", size=18, weight="bold"),
        text(
            20,
            52,
            f"{document['machine']['cpu_model']}, one processor for the servers, one for the generator",
            fill=FAINT,
        ),
    ]
    widest = max(rate(rows[name], side) for name, _ in SHOWN for side in ("ours", "theirs"))
    for number, (name, title) in enumerate(SHOWN):
        parts += _bars(rows[name], title, TOP + ROW * number, (WIDTH - LEFT - RIGHT) / widest)
    settings = document["settings"]
    foot = f"Medians of {settings['pairs']} interleaved pairs, {document['made'][:10]}; bench/results/pairs.json"
    parts.append(text(20, height - 12, foot, fill=FAINT, size=12))
    return "\n".join([*parts, "</svg>"]) + "\n"


def alternative() -> str:
    """Return the figures of the chart in words."""
    rows = {row["name"]: row for row in _document()["rows"]}
    return "; ".join(f"{title}: {_in_words(rows[name])}" for name, title in SHOWN)


def _in_words(row: Mapping[str, Any]) -> str:
    return f"kvref {rate(row, 'ours'):,.0f}, {LABELS[row['theirs']]} {rate(row, 'theirs'):,.0f}"


def _bars(row: Mapping[str, Any], title: str, top: float, scale: float) -> Iterator[str]:
    yield text(LEFT - 12, top + 22, title, anchor="end", size=13)
    for side, colour, label, place in (("ours", OURS, "kvref", 0), ("theirs", OTHER, LABELS[row["theirs"]], 1)):
        speed = rate(row, side)
        y = top + place * (BAR + 3)
        yield f'<rect x="{LEFT}" y="{y}" width="{speed * scale:.1f}" height="{BAR}" fill="{colour}"/>'
        yield text(LEFT + speed * scale + 6, y + 14, f"{speed:,.0f} {label}", size=12)


def _joined(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return document


if __name__ == "__main__":
    CHART.write_text(chart(), encoding="utf-8")
