"""The cases whose conversations are generated: any commands, tables and rows, and histories of several connections.

`kvref_conformance.stateful` has their models. Each case of a group of settings is one start of the endpoint.
"""

from __future__ import annotations

from typing import Final

from kvref_conformance.case import case
from kvref_conformance.cases.chapter import common
from kvref_conformance.stateful.case_names import ANY_CONFIGURATION, ANY_ROW, ANY_TABLE, SIMULTANEOUS

SETTINGS: Final = common().settings
_W: Final = "daemon_memcached_w_batch_size"
_R: Final = "daemon_memcached_r_batch_size"
_LEVEL: Final = "innodb_api_trx_level"

HISTORIES: Final = (
    case("histories-of-writes", "KV-HIST-001", settings=SETTINGS["dirty"]),
    case("histories-at-level-1", "KV-HIST-002", settings=SETTINGS["committed"]),
    case("histories-at-level-2", "KV-HIST-002", settings=SETTINGS["snapshot"]),
    case("histories-of-reads-at-level-2", "KV-HIST-002", settings={_W: 1, _R: 3, _LEVEL: 2}),
    case("histories-at-level-3", "KV-HIST-002", settings=SETTINGS["serial"]),
    case("histories-of-locking-reads", "KV-HIST-003", settings={_W: 1000, _R: 1, _LEVEL: 3}),
    case("histories-with-a-lock-wait-that-ends", "KV-HIST-004", settings=SETTINGS["short-wait"]),
    case(SIMULTANEOUS, "KV-HIST-009"),
)
GENERATED: Final = (
    *HISTORIES,
    case("any-order-of-commands", "KV-SEQ-001"),
    case(ANY_TABLE, "KV-SEQ-002"),
    case(ANY_ROW, "KV-SEQ-003"),
    case(ANY_CONFIGURATION, "KV-SEQ-004"),
    case("any-arguments", "KV-SEQ-005"),
)
