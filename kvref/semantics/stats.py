"""What `stats` reports: counters of this server, in the plugin's order, and its fixed sub-commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from kvref.wire.replies import ClientError, Line, Reply, ServerError, StatRows, Status


@dataclass(slots=True)
class Counters:
    """Counters since start or `stats reset`; each is named as `stats` names it."""

    cmd_get: int = 0
    cmd_set: int = 0
    cmd_flush: int = 0
    get_hits: int = 0
    get_misses: int = 0
    delete_misses: int = 0
    delete_hits: int = 0
    incr_misses: int = 0
    incr_hits: int = 0
    decr_misses: int = 0
    decr_hits: int = 0
    cas_misses: int = 0
    cas_hits: int = 0
    cas_badval: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    total_connections: int = 0

    def reset(self) -> None:
        """Set every counter to 0."""
        for counter in fields(self):
            setattr(self, counter.name, 0)


# The plugin's rows in the plugin's order (verb-054); a name that is neither a counter nor the server's own is 0.
GENERAL: Final = (
    "pid uptime time version libevent pointer_size rusage_user rusage_system daemon_connections curr_connections "
    "total_connections connection_structures cmd_get cmd_set cmd_flush auth_cmds auth_errors get_hits get_misses "
    "delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval bytes_read "
    "bytes_written limit_maxbytes accepting_conns listen_disabled_num rejected_conns threads conn_yields"
).split()
ENGINE: Final = "evictions curr_items total_items bytes reclaimed engine_maxbytes".split()
SETTINGS: Final = (
    "maxbytes maxconns tcpport udpport inter verbosity oldest evictions domain_socket umask growth_factor chunk_size "
    "num_threads num_threads_per_udp stat_key_prefix detail_enabled allow_detailed reqs_per_event reqs_per_tap_event "
    "cas_enabled tcp_backlog binding_protocol auth_enabled_sasl auth_sasl_engine auth_required_sasl item_size_max "
    "topkeys logger"
).split()


# Sub-commands whose answer never changes over a table (verb-056..058, 069, 070).
FIXED: Final[dict[bytes, list[tuple[str, str]]]] = {
    b"items": [],
    b"sizes": [],
    b"slabs": [("active_slabs", "0"), ("total_malloced", "0")],
    b"scrub": [("scrubber:status", "stopped")],
    b"vbucket": [("vb_0", "active")],
}


def report(words: list[bytes], counters: Counters, process: Callable[[], dict[str, str]]) -> Reply:
    """Answer `stats` and its sub-commands.

    Args:
        words: what followed `stats`.
        counters: this server's counters; `reset` sets them to 0.
        process: gives the server's own values by row name.
    """
    match words:
        case []:
            return _rows(GENERAL + ENGINE, counters, process())
        case [b"aggregate"]:
            return _rows(GENERAL, counters, process())
        case [b"settings"]:
            own = process()
            return _rows([name for name in SETTINGS if name in own], counters, own)
        case [b"reset"]:
            counters.reset()
            return Status.RESET
        case [name] if name in FIXED:
            return StatRows(FIXED[name])
        case [b"detail", b"on"] | [b"detail", b"off"]:
            return Status.OK
        case [b"detail", b"dump"]:
            return Line(b"END")
        case [b"detail", *_]:
            return ClientError("usage: stats detail on|off|dump")
        case [b"cachedump", *_]:
            return ServerError("out of memory writing stats")
        case _:
            return Status.ERROR


def _rows(names: list[str], counters: Counters, process: dict[str, str]) -> StatRows:
    return StatRows([(name, process.get(name) or str(getattr(counters, name, 0))) for name in names])
