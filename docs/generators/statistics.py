"""The rows of `stats`, as the server itself replies with them for each profile, and their meanings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import table
from kvref.engine import stats
from kvref.engine.counters import Counters
from kvref.specification import normative

if TYPE_CHECKING:
    from collections.abc import Mapping

# Values with which every row of the default profile is shown.
PROCESS: Final = dict.fromkeys(
    ("idle_timeout", "expired_rows_purge_interval", "curr_items", "row_cache_hits", "replica_gets"), "1"
)


def pages() -> Mapping[str, str]:
    """Return the table, which `reference/stats.md` includes."""
    chapter = normative.of_profile("statistics", "kvref")
    rows = [
        (f"`{name}`", chapter[name]["means"], "yes", "yes" if name in names(beyond_plugin=False) else "no")
        for name in names(beyond_plugin=True)
    ]
    head = ("row", "meaning", "`kvref`", "`mysql-8.0`, `mysql-5.6`")
    return {"reference/generated/stats.txt": table(head, rows)}


def names(*, beyond_plugin: bool) -> list[str]:
    """Return the names in the order of `stats`, with those of the default profile or without."""
    own = dict(PROCESS) if beyond_plugin else {}
    reply = stats.general_and_engine(own, Counters(), newer=beyond_plugin, engine_first=False)
    return [name for name, _ in reply.rows]
