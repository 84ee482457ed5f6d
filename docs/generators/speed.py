"""The tables and the chart of measured speed, from `bench/results/pairs*.json` and `setups.json`.

    PYTHONPATH=docs python -m generators.speed          # writes docs/_static/speed.svg

The file is committed, as the README shows it; a test compares it.
"""

from __future__ import annotations

import json
import statistics
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generators.svg import FAINT, text
from kvref_bench.pairs.document import table
from kvref_bench.setups import document as setups
from kvref_bench.turns import report

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "bench" / "results" / "pairs.json"
CHART: Final = ROOT / "docs" / "_static" / "speed.svg"
# Row of the results, title of the pair of bars.
SHOWN: Final = (
    ("get-64", "get, 64 connections; kvref over SQLite"),
    ("set-1", "set, 64 connections; kvref over SQLite"),
    ("mixed-plugin", "90 % get, 10 % set; kvref over SQLite"),
    ("mysql-get", "get, 128 connections; all over MySQL"),
    ("mysql-set", "set, 128 connections; all over MySQL"),
    ("mixed-memcached", "90 % get, 10 % set; kvref over SQLite"),
)
LABELS: Final = {
    "plugin": "the plugin",
    "plugin, same server": "the plugin",
    "prepared selects": "prepared SELECT",
    "memcached": "memcached",
}
WIDTH, LEFT, RIGHT, BAR, ROW, TOP = 840, 290, 150, 18, 58, 74
OURS, OTHER = "#c2500a", "#7a828c"


def pages() -> Mapping[str, str]:
    """Return the set-up and the tables, which `reference/speed.md` and `setups.md` include."""
    document = _document()
    settings, machine = document["settings"], document["machine"]
    said = (
        f"{document['kvref']}; {machine['cpu_model']}; servers on processor"
        f" {_joined(settings['server_cpus'])}, generator on processor {_joined(settings['client_cpus'])};"
        f" {settings['pairs']} pairs of {settings['seconds']:g} s; {settings['keys']:,} keys; values of"
        f" {settings['value_bytes']} bytes; measured {document['made'][:10]}.\n"
    )
    costs = report.read(RESULTS.with_name("setups.json"), "setups")
    set_ups = f"{setups.table(costs)}\n{setups.absent(costs)}"
    results = {path.stem: report.read(path, "rows") for path in sorted(RESULTS.parent.glob("pairs*.json"))}
    tables = {f"reference/generated/speed-{name}.txt": table(document) for name, document in results.items()}
    return {"reference/generated/speed-setup.txt": said, "reference/generated/setups.txt": set_ups, **tables}


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
    widest = max(_rate(rows[name], side) for name, _ in SHOWN for side in ("ours", "theirs"))
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
    return f"kvref {_rate(row, 'ours'):,.0f}, {LABELS[row['theirs']]} {_rate(row, 'theirs'):,.0f}"


def _bars(row: Mapping[str, Any], title: str, top: float, scale: float) -> Iterator[str]:
    yield text(LEFT - 12, top + 22, title, anchor="end", size=13)
    for side, colour, label, place in (("ours", OURS, "kvref", 0), ("theirs", OTHER, LABELS[row["theirs"]], 1)):
        rate = _rate(row, side)
        y = top + place * (BAR + 3)
        yield f'<rect x="{LEFT}" y="{y}" width="{rate * scale:.1f}" height="{BAR}" fill="{colour}"/>'
        yield text(LEFT + rate * scale + 6, y + 14, f"{rate:,.0f} {label}", size=12)


def _rate(row: Mapping[str, Any], side: str) -> float:
    return float(statistics.median(pair[side]["per_second"] for pair in row["pairs"]))


def _joined(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return document


if __name__ == "__main__":
    CHART.write_text(chart(), encoding="utf-8")
