"""The background commit: an incomplete batch is committed after `innodb_api_bk_commit_interval` seconds.

Here every 2 seconds. 8.0 then commits every open batch, 5.6 those that are older than 5 seconds, six at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import await_sql, case, eventually, send, sql, start_sql
from kvref_conformance.cases.batches import COUNT, IDLE, WRITES, committed, get, insert, put, puts, select, update
from kvref_conformance.steps import Pause

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Sql, Step

# A pending write on each of twelve connections; of rows that are there, since at level 2 a new one holds the gap.
MANY: tuple[Step, ...] = (*(insert(n, "old") for n in range(12)), *(put(n, on=f"c{n}") for n in range(12)))
VERSION = send("version\r\n", "VERSION <text>\r\n")
# Requests for longer than the interval and the second after which it is looked at.
TRAFFIC = tuple(step for _ in range(9) for step in (Pause(0.4), VERSION))


def changed(rows: int) -> Sql:
    """Want so many rows to have the value that `MANY` wrote."""
    return sql(f"{COUNT} AND c2 = 'x'", (rows,))


def idle_case(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case with four writes and four reads to a batch, and an idle commit."""
    return case(id_, requirements, *steps, settings=IDLE, engine=engine)


CASES: tuple[Case, ...] = (
    idle_case(
        "idle-batch",
        "KV-IDLE-001 KV-IDLE-002 KV-IDLE-003",
        insert(1, "old"),
        insert(2),
        get(1, "old"),
        *puts(3, 4),
        send("delete {k}2\r\n", "DELETED\r\n"),
        update(1, "new"),
        eventually(committed(3)),
        get(1, "new"),
        *puts(5, 7),
        committed(3),
        put(8),
        committed(7),
    ),
    idle_case(
        "idle-batch-frees-its-rows",
        "KV-IDLE-004",
        insert(1, "old"),
        put(1, value="memc"),
        start_sql("UPDATE {t1} SET c2 = CONCAT(c2, '+sql') WHERE c1 = '{k}1'", "s"),
        await_sql("s"),
        select(1, "memc+sql"),
        engine="mysql",
    ),
    idle_case("idle-batches-of-many", "KV-IDLE-005", *MANY, eventually(changed(12))),
    idle_case("six-batches-at-a-time", "KV-IDLE-006", *MANY, eventually(changed(6)), eventually(changed(12))),
    idle_case(
        "busy-batch",
        "KV-IDLE-007",
        put(1),
        *TRAFFIC,
        committed(0),
    ),
    *(
        idle_case(id_, requirements, put(1), *TRAFFIC, eventually(committed(1)))
        for id_, requirements in (
            ("busy-batch-ends", "KV-IDLE-008"),
            ("busy-batch-ends-after-5-seconds", "KV-IDLE-010"),
        )
    ),
    case(
        "interval-at-run-time",
        "KV-IDLE-009",
        sql("SET GLOBAL innodb_api_bk_commit_interval = 1"),
        put(1),
        Pause(1.4),
        committed(0),
        sql("SET GLOBAL innodb_api_bk_commit_interval = 100000"),
        settings=WRITES,
        engine="plugin",
    ),
)
