"""Rows of `stats` and of its fixed sub-commands, in the plugin's order."""

from __future__ import annotations

from typing import Final

from kvref.engine.counters import Counters
from kvref.protocol.grammar import BAD_FORMAT
from kvref.protocol.numbers import unsigned
from kvref.protocol.replies import ClientError, Line, Reply, ServerError, StatRows

# The plugin's rows in the plugin's order (core:verb-054); a name that is neither a counter nor the server's own is 0.
GENERAL: Final = (
    "pid uptime time version libevent pointer_size rusage_user rusage_system daemon_connections curr_connections "
    "total_connections connection_structures cmd_get cmd_set cmd_flush auth_cmds auth_errors get_hits get_misses "
    "delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval bytes_read "
    "bytes_written limit_maxbytes accepting_conns listen_disabled_num rejected_conns threads conn_yields"
).split()
# Behind which of them stand others that memcached 1.6 has there, and that mean something here; the last is kvref's own.
NEWER: Final = {
    "daemon_connections": ["max_connections"],
    "total_connections": ["rejected_connections"],
    "cmd_flush": ["cmd_touch", "cmd_meta"],
    "get_misses": ["get_expired", "get_flushed"],
    "cas_badval": ["touch_hits", "touch_misses", "store_too_large", "store_no_memory"],
    "listen_disabled_num": ["time_in_listen_disabled_us"],
    "rejected_conns": ["foreign_protocol_conns"],
}
# Where memcached has it, which shows it too only where idle_timeout is set.
IDLE: Final = {"connection_structures": ["idle_kicks"]}
# Shown if expired_rows_purge_interval is not 0.
PURGE: Final = {"conn_yields": ["crawler_reclaimed"]}
# Shown with row_cache_binlog=1.
ROW_CACHE: Final = {
    "conn_yields": [
        "row_cache_hits", "row_cache_misses", "row_cache_stale", "row_cache_evictions", "row_cache_lag_us",
        "row_cache_age_us",
    ]
}  # fmt: skip
# Shown with reads=replica and reads=session.
REPLICA: Final = {"conn_yields": ["replica_gets", "replica_behind", "replica_unavailable"]}
BAD_LINE: Final = b"CLIENT_ERROR bad command line"
SLABS: Final = 200
CLASSES: Final = 64  # MAX_NUMBER_OF_SLAB_CLASSES of memcached 1.6
ENGINE: Final = "evictions curr_items total_items bytes reclaimed engine_maxbytes".split()
EVICTS: Final = "settings evictions"  # the row of `stats settings`; that of `stats` is a number
SETTINGS: Final = (
    "maxbytes maxconns tcpport udpport inter verbosity oldest evictions domain_socket umask shutdown_command "
    "growth_factor chunk_size num_threads num_threads_per_udp stat_key_prefix detail_enabled allow_detailed "
    "reqs_per_event reqs_per_tap_event cas_enabled tcp_backlog binding_protocol auth_enabled_sasl auth_enabled_ascii "
    "auth_sasl_engine auth_required_sasl item_size_max maxconns_fast lru_crawler flush_enabled dump_enabled topkeys "
    "logger idle_timeout track_sizes ssl_enabled ssl_chain_cert ssl_key ssl_verify_mode ssl_keyformat ssl_ciphers "
    "ssl_ca_cert ssl_session_cache ssl_kernel_tls ssl_min_version"
).split()


def general(own: dict[str, str], counters: Counters, *, newer: bool) -> StatRows:
    """Return the rows of `stats aggregate`.

    Args:
        own: the server's own values by row name.
        newer: with those that memcached 1.6 has and the plugin never had.
    """
    return _rows(_general(own, newer=newer), counters, own)


def general_and_engine(own: dict[str, str], counters: Counters, *, newer: bool, engine_first: bool) -> StatRows:
    """Return the rows of `stats`, in the binary protocol those of the engine first (bin-stat-001); see `general`."""
    names, engine = _general(own, newer=newer), ENGINE
    if newer and "curr_items" not in own:
        engine = [name for name in ENGINE if name != "curr_items"]  # 0 would be taken for an empty table
    return _rows(engine + names if engine_first else names + engine, counters, own)


def settings(own: dict[str, str], counters: Counters) -> StatRows:
    """Return the rows of `stats settings`; arguments as of `general`."""
    if EVICTS in own:
        own["evictions"] = own[EVICTS]
    return _rows([name for name in SETTINGS if name in own], counters, own)


def _general(own: dict[str, str], *, newer: bool) -> list[str]:
    additions = NEWER if newer else {}
    if int(own.get("idle_timeout", 0)):
        additions = additions | IDLE
    if int(own.get("expired_rows_purge_interval", 0)):
        additions = additions | PURGE
    for first, rows in (("row_cache_hits", ROW_CACHE), ("replica_gets", REPLICA)):
        if newer and first in own:
            additions = additions | {"conn_yields": additions.get("conn_yields", []) + rows["conn_yields"]}
    return [each for name in GENERAL for each in (name, *additions.get(name, ()))]


def cachedump(limits: list[bytes], *, empty: bool) -> Reply:
    """Answer `stats cachedump SLAB LIMIT`: no items, or a lack of memory unless `empty`, as in 1.6 (more:count-012)."""
    if len(limits) < 2:
        return Line(BAD_LINE)
    slab, limit = unsigned(limits[0]), unsigned(limits[1])
    if slab is None or limit is None:
        return Line(BAD_FORMAT)
    if slab % (1 << 32) >= (CLASSES if empty else SLABS):
        return ClientError("Illegal slab id")
    return StatRows([]) if empty else ServerError("out of memory writing stats")


def _rows(names: list[str], counters: Counters, process: dict[str, str]) -> StatRows:
    totals = counters.totals()
    return StatRows([(name, process.get(name) or str(totals.get(name, 0))) for name in names])
