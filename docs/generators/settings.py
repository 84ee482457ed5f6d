"""The settings of `kvref serve`, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generators.markup import indexed, prose, table
from kvref.server.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping


def pages() -> Mapping[str, str]:
    """Return the table, which `reference/settings.md` includes."""
    rows = [
        (
            f"`{each.name}`",
            f"{each.default:,}",
            f"{each.low:,} to {each.high:,}",
            each.unit,
            "yes" if each.dynamic else "no",
            prose(each.help),
        )
        for each in SETTINGS.values()
    ]
    head = ("setting", "default", "range", "unit", "reload", "meaning")
    names = sorted({*SETTINGS, *(name.removeprefix("daemon_memcached_").removeprefix("innodb_") for name in SETTINGS)})
    return {"reference/generated/settings.txt": f"{indexed(*names)}\n{table(head, rows)}"}
