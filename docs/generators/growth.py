"""The charts of how costs grow, from `bench/results/growth.json`: a panel for each axis, both scales logarithmic."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generators.svg import FAINT, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RESULTS: Final = Path(__file__).parents[2] / "bench" / "results" / "growth.json"
PAGE: Final = "reference/generated/growth.svg"
COLOURS: Final = {
    "kvref-sqlite": "#c2500a", "kvref-mysql-8.0": "#1d6fb8", "mysql-8.0-plugin": "#7a828c", "memcached": "#2e7d4f",
}  # fmt: skip
DASHES: Final = {"get": "", "set": "5 4"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, HEAD = 420, 250, 54, 34, 34, 34, 62
COLUMNS: Final = 2
LINE: Final = "#e3e5e8"

Costs = list[tuple[int, float]]


def pages() -> Mapping[str, str]:
    """Return the chart, which `explanation/growth.md` shows."""
    return {PAGE: chart(json.loads(RESULTS.read_text(encoding="utf-8")))}


def chart(document: Mapping[str, Any]) -> str:
    """Return the panels as SVG, on white so that they are readable on any page.

    Args:
        document: as `kvref bench growth --json` writes it.
    """
    axes = list(dict.fromkeys(point["axis"] for point in document["points"]))
    height = HEAD + HEIGHT * -(-len(axes) // COLUMNS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * WIDTH} {height}" width="{COLUMNS * WIDTH}"'
        f' height="{height}" role="img" font-family="system-ui, sans-serif">',
        "<title>CPU time of a get and of a set against what grows</title>",
        f'<rect width="{COLUMNS * WIDTH}" height="{height}" fill="#ffffff"/>',
        text(16, 24, "Microseconds of CPU time for each get (lines) and set (dashes)", size=15, weight="bold"),
        *_legend(document["servers"]),
    ]
    for number, axis in enumerate(axes):
        x, y = WIDTH * (number % COLUMNS), HEAD + HEIGHT * (number // COLUMNS)
        parts.append(f'<g transform="translate({x} {y})">')
        parts += _panel(document["axes"][axis], _lines(document["points"], axis))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lines(points: Sequence[Mapping[str, Any]], axis: str) -> dict[tuple[str, str], Costs]:
    """Return the median costs along an axis, by server and verb."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for point in points:
        if point["axis"] == axis:
            of = found.setdefault((point["server"], point["verb"]), {})
            of.setdefault(point["at"], []).append(point["cpu"])
    return {
        key: [(at, statistics.median(costs)) for at, costs in sorted(of.items())] for key, of in sorted(found.items())
    }


def _panel(title: str, lines: Mapping[tuple[str, str], Costs]) -> Iterator[str]:
    ats = sorted({at for costs in lines.values() for at, _ in costs})
    all_costs = [cost for costs in lines.values() for _, cost in costs]
    low, high = math.floor(math.log10(min(all_costs))), math.ceil(math.log10(max(all_costs)))
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    width = math.log10(ats[-1] / ats[0])

    def x(at: float) -> float:
        return LEFT + inner * math.log10(at / ats[0]) / width

    def y(cost: float) -> float:
        return TOP + tall * (high - math.log10(cost)) / (high - low)

    yield text(LEFT, 20, title, weight="bold")
    for power in range(low, high + 1):
        place = y(10.0**power)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}" stroke="{LINE}"/>'
        yield text(LEFT - 6, place + 4, f"{10.0**power:,g}", anchor="end", size=11, fill=FAINT)
    for at in ats:
        yield text(x(at), HEIGHT - BOTTOM + 18, f"{at:,}", anchor="middle", size=11, fill=FAINT)
    for (server, verb), costs in lines.items():
        places = " ".join(f"{x(at):.1f},{y(cost):.1f}" for at, cost in costs)
        dashes = f' stroke-dasharray="{DASHES[verb]}"' if DASHES[verb] else ""
        for at, cost in costs:
            yield f'<circle cx="{x(at):.1f}" cy="{y(cost):.1f}" r="3" fill="{COLOURS[server]}"/>'
        yield f'<polyline points="{places}" fill="none" stroke="{COLOURS[server]}" stroke-width="2"{dashes}/>'


def _legend(servers: Mapping[str, str]) -> Iterator[str]:
    at = 16
    for server, label in servers.items():
        yield f'<rect x="{at}" y="38" width="18" height="4" fill="{COLOURS[server]}"/>'
        yield text(at + 24, 45, label, size=12)
        at += 44 + 7 * len(label)
