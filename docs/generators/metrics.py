"""The metrics of `kvref serve --metrics`, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generators.markup import prose, table
from kvref.server.telemetry.metrics import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping


def pages() -> Mapping[str, str]:
    """Return the table, which `reference/metrics.md` includes."""
    rows = [(f"`{row.name}`", row.kind, row.label, prose(row.help)) for row in ROWS.values()]
    return {"reference/generated/metrics.txt": table(("metric", "kind", "label", "meaning"), rows)}
