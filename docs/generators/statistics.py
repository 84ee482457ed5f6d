"""The rows of `stats`, as the server itself answers them for each profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import table
from kvref.engine import stats
from kvref.engine.stats import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping

MEANINGS: Final = {
    "pid": "process ID; with `--workers`, the parent's",
    "uptime": "seconds since the server started",
    "time": "UNIX time in seconds",
    "version": "what `version` replies",
    "libevent": "version of uvloop; in the profiles `mysql-*`, of the plugin's libevent",
    "pointer_size": "bits of a pointer",
    "rusage_user": "user CPU time in seconds",
    "rusage_system": "system CPU time in seconds",
    "daemon_connections": "1: sockets for listening, as the plugin counts them",
    "curr_connections": "connected clients, and 1 for the listening socket",
    "total_connections": "connections accepted since the start or `stats reset`",
    "connection_structures": "largest value of `curr_connections`",
    "max_connections": "the setting `maxconns`",
    "rejected_connections": "connections refused because of `maxconns`",
    "cmd_get": "keys read by get commands",
    "cmd_set": "`set`, `add`, `replace`, `append` and `prepend` commands",
    "cmd_flush": "`flush_all` commands",
    "cmd_touch": "keys of `touch`, `gat` and `gats`",
    "get_hits": "keys read that have a row",
    "get_misses": "keys read that have no row",
    "get_expired": "keys read whose row has expired",
    "get_flushed": "0: a flush deletes rows at once",
    "store_too_large": "values refused because they are too large",
    "curr_items": "rows of the bound mapping's table, possibly an estimate",
    "total_items": "items stored since the start or `stats reset`",
    "delete_hits": "`delete` of an existing row",
    "delete_misses": "`delete` of a missing row",
    "incr_hits": "`incr` of an existing row",
    "incr_misses": "`incr` of a missing row",
    "decr_hits": "`decr` of an existing row",
    "decr_misses": "`decr` of a missing row",
    "cas_hits": "`cas` that stored",
    "cas_misses": "`cas` of a missing row",
    "cas_badval": "`cas` refused because the row has another cas number",
    "touch_hits": "touched rows",
    "touch_misses": "`touch` of a missing row",
    "auth_cmds": "authentication attempts",
    "auth_errors": "failed authentication attempts",
    "bytes_read": "bytes received from clients",
    "bytes_written": "bytes of replies",
    "accepting_conns": "1 while the server accepts connections",
    "rejected_conns": "connections refused because of `maxconns`",
    "foreign_protocol_conns": "connections closed because the client used another protocol",
    "idle_kicks": "connections closed because of `idle_timeout`; present if that setting is not 0",
    "threads": "worker processes; in the profiles `mysql-*`, the plugin's number of threads",
    "limit_maxbytes": "0: items are not kept in memory; in the profiles `mysql-*`, the plugin's 64 MiB",
    "listen_disabled_num": "0",
    "bytes": "0: items are not kept in memory",
    "reclaimed": "0: no item memory is reclaimed",
    "engine_maxbytes": "as `limit_maxbytes`",
    "conn_yields": "0",
    "crawler_reclaimed": "expired rows removed in the background; present if `expired_rows_purge_interval` is not 0",
    "evictions": "0: rows are never evicted",
}
# Values with which every row of the default profile is shown.
PROCESS: Final = {"idle_timeout": "1", "expired_rows_purge_interval": "1", "curr_items": "1"}


def pages() -> Mapping[str, str]:
    """Return the table, which `reference/stats.md` includes."""
    shown = {True: _names(beyond_plugin=True), False: _names(beyond_plugin=False)}
    rows = [(f"`{name}`", MEANINGS[name], "yes", "yes" if name in shown[False] else "no") for name in shown[True]]
    head = ("row", "meaning", "`kvref`", "`mysql-8.0`, `mysql-5.6`")
    return {"reference/generated/stats.txt": table(head, rows)}


def _names(*, beyond_plugin: bool) -> list[str]:
    """Return the names in the order of `stats`, with those of the default profile or without."""
    own = dict(PROCESS) if beyond_plugin else {}
    reply = stats.general_and_engine(own, Counters(), newer=beyond_plugin, engine_first=False)
    return [name for name, _ in reply.rows]
