"""The metrics of `kvref serve --metrics`, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generators.markup import prose, table
from kvref.server.telemetry.metrics import MEMCACHED_METRICS, METRICS, Family

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def pages() -> Mapping[str, str]:
    """Return the tables, which `reference/metrics.md` includes."""
    return {
        "reference/generated/metrics.txt": _table(METRICS.values()),
        "reference/generated/memcached-metrics.txt": _table(MEMCACHED_METRICS.values()),
    }


def _table(rows: Iterable[Family]) -> str:
    cells = [(f"`{row.name}`", row.kind, row.label, prose(row.help)) for row in rows]
    return table(("metric", "kind", "label", "meaning"), cells)
