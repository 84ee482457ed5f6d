"""The plugin's variables of batches and transactions: defaults, limits, what can be changed while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import case, sql, sql_error
from kvref_conformance.cases.batches import LEVEL, R, W

if TYPE_CHECKING:
    from kvref_conformance.case import Case

INTERVAL: Final = "innodb_api_bk_commit_interval"
SWITCHES: Final = ("innodb_api_enable_binlog", "innodb_api_enable_mdl", "innodb_api_disable_rowlock")
FIXED: Final = (W, R, "daemon_memcached_enable_binlog", *SWITCHES)
VALUES: Final = f"SELECT @@GLOBAL.{W}, @@GLOBAL.{R}, @@GLOBAL.{INTERVAL}, @@GLOBAL.{LEVEL}"
TOO_LARGE: Final = 99999999999

CASES: tuple[Case, ...] = (
    case(
        "defaults",
        "KV-SET-001",
        sql(VALUES, (1, 1, 5, 0)),
        sql(f"SELECT {', '.join(f'@@GLOBAL.{name}' for name in SWITCHES)}", (0, 0, 0)),
        settings={INTERVAL: 5},
        engine="plugin",
    ),
    *(case(f"read-only-{name}", "KV-SET-002", sql_error(f"SET GLOBAL {name} = 1"), engine="plugin") for name in FIXED),
    *(
        case(
            f"at-run-time-{name}",
            "KV-SET-003 KV-SET-007 KV-SET-008",
            sql(f"SET GLOBAL {name} = {given}"),
            sql(f"SELECT @@GLOBAL.{name}", (taken,)),
            sql(f"SET GLOBAL {name} = {TOO_LARGE}"),
            sql(f"SELECT @@GLOBAL.{name}", (largest,)),
            sql(f"SET GLOBAL {name} = DEFAULT"),
            sql_error(f"SET SESSION {name} = 1"),
            engine="plugin",
        )
        for name, given, taken, largest in ((INTERVAL, 0, 1, 1073741824), (LEVEL, 2, 2, 3))
    ),
    case(
        "cut-at-the-start",
        "KV-SET-004",
        sql(VALUES, (1, 1073741824, 1, 3)),
        settings={W: 0, R: TOO_LARGE, INTERVAL: 0, LEVEL: 9},
        engine="plugin",
    ),
    case(
        "cut-at-the-start-the-other-way",
        "KV-SET-004",
        sql(VALUES, (1048576, 1, 1073741824, 0)),
        settings={W: TOO_LARGE, R: 0, INTERVAL: TOO_LARGE, LEVEL: 0},
        engine="plugin",
    ),
)
