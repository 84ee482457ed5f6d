"""stat: pairs, one frame each, and the frame that ends them."""

from __future__ import annotations

from kvref_conformance.case import case, frames
from kvref_conformance.cases.binary_phrases import NOT_FOUND, store

NAMES = (
    "evictions curr_items total_items bytes reclaimed engine_maxbytes pid uptime time version libevent pointer_size "
    "rusage_user rusage_system daemon_connections curr_connections total_connections connection_structures cmd_get "
    "cmd_set cmd_flush auth_cmds auth_errors get_hits get_misses delete_misses delete_hits incr_misses incr_hits "
    "decr_misses decr_hits cas_misses cas_hits cas_badval bytes_read bytes_written limit_maxbytes accepting_conns "
    "listen_disabled_num rejected_conns threads conn_yields"
).split()


def stat_frames(names: list[str]) -> str:
    """Return the frames of these names with any values, and the one that ends them."""
    return "".join(f"stat ok key={name} value=<value>; " for name in names) + "stat ok"


CASES = (
    case(
        "bin-stat",
        "KV-BINSTAT-001",
        frames("stat", "stat ok key=<key> value=<value>; <pairs>stat ok"),
        frames("noop", "noop ok"),
    ),
    case("bin-stat-opaque", "KV-BINSTAT-002", frames("stat key=kvc-none opaque=4", 'stat 0x01 opaque=4 "Not found"')),
    case(
        "bin-stat-version",
        "KV-BINSTAT-003",
        frames("stat", "<pairs>stat ok key=version value={version}; <pairs>stat ok"),
    ),
    case(
        "bin-stat-unknown",
        "KV-BINSTAT-004",
        frames("stat key=kvc-none", f"stat {NOT_FOUND}"),
        frames("noop", "noop ok"),
    ),
    case("bin-stat-names", "KV-BINSTAT-005", frames("stat", stat_frames(NAMES))),
    case(
        "bin-stat-rows",
        "KV-BINSTAT-006",
        store("{k}", "x"),
        frames("stat", "<pairs>stat ok key=curr_items value=0; <pairs>stat ok"),
    ),
    case(
        "bin-stat-settings",
        "KV-BINSTAT-007",
        frames("stat key=settings", "<pairs>stat ok key=cas_enabled value=yes; <pairs>stat ok"),
    ),
    case(
        "bin-stat-groups-without-pairs",
        "KV-BINSTAT-008",
        *(frames(f"stat key={name}", "stat ok") for name in ("items", "sizes", "reset", "detail%20on", "detail%20off")),
    ),
    case(
        "bin-stat-detail-dump",
        "KV-BINSTAT-009",
        frames("stat key=detail%20dump", "stat ok key=detailed value=END%0d%0a; stat ok"),
    ),
    case("bin-stat-aggregate", "KV-BINSTAT-010", frames("stat key=aggregate", stat_frames(NAMES[6:]))),
    case(
        "bin-stat-groups-that-are-not-there",
        "KV-BINSTAT-011",
        *(
            frames(f"stat key={name}", f"stat {NOT_FOUND}")
            for name in ("topkeys", "cachedump%201%200%200", "conns", "detail")
        ),
    ),
    case(
        "bin-stat-of-the-engine",
        "KV-BINSTAT-012 KV-BINSTAT-015",
        frames("stat key=vbucket", "stat ok key=vb_0 value=active; stat ok"),
        # Behind the first scrub its counters follow.
        frames("stat key=scrub", "stat ok key=scrubber:status value=stopped; <pairs>stat ok"),
    ),
    case(
        "bin-stat-with-a-value",
        "KV-BINSTAT-013",
        frames("stat key=vbucket value=x; noop", "stat ok key=vb_0 value=active; stat ok", closes=True),
    ),
    case(
        "bin-stat-counts-sets",
        "KV-BINSTAT-014",
        frames("stat", "<pairs>stat ok key=cmd_set value=<number a>; <pairs>stat ok"),
        store("{k}", "x"),
        frames("stat", "<pairs>stat ok key=cmd_set value=<new number b>; <pairs>stat ok"),
    ),
)
