"""Tables as a whole: DDL and LOCK TABLES during connections and their batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import (
    Shape,
    await_reply,
    await_sql,
    case,
    eventually,
    send,
    sql,
    sql_error,
    start_request,
    start_sql,
)
from kvref_conformance.cases.batches import SOON, TABLE_LOCKS, WRITES, committed, get, insert, put, puts
from kvref_conformance.cases.phrases import OPTIONS
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

OWN = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def sql_case(id_: str, requirements: str, *steps: Step, settings: Mapping[str, int]) -> Case:
    """Write a case with table locks of SQL's, which SQLite has not."""
    return case(id_, requirements, *steps, settings=settings, engine="mysql")


CASES: tuple[Case, ...] = (
    case(
        "ddl-beside-an-idle-connection",
        "KV-LOCK-020",
        *puts(1, 4),
        SOON,
        sql("ALTER TABLE {t} ADD COLUMN more INT", on="s"),
        shape=OWN,
        settings=WRITES,
        engine="mysql",
    ),
    case(
        "ddl-beside-a-connection-that-used-the-table",
        "KV-LOCK-047",
        *puts(1, 4),
        SOON,
        sql_error("ALTER TABLE {t} ADD COLUMN more INT", on="s"),
        shape=OWN,
        settings=WRITES,
        engine="plugin",
    ),
    *(
        case(
            f"ddl-beside-a-batch-{name}",
            "KV-LOCK-021",
            put(1),
            SOON,
            start_sql("ALTER TABLE {t} ADD COLUMN other INT", "s"),
            await_sql("s", fails=True),
            Disconnect(),
            eventually(sql("SELECT COUNT(*) FROM {t}", (1,))),
            shape=OWN,
            settings=settings,
            engine="mysql",
        )
        for name, settings in (("without-mdl", WRITES), ("with-mdl", TABLE_LOCKS))
    ),
    sql_case(
        "lock-tables-waits-for-a-batch",
        "KV-LOCK-022",
        put(1),
        SOON,
        start_sql("LOCK TABLES {t1} WRITE", "s"),
        await_sql("s", fails=True),
        settings=TABLE_LOCKS,
    ),
    sql_case(
        "a-set-waits-for-lock-tables",
        "KV-LOCK-023",
        sql("LOCK TABLES {t1} WRITE", on="s"),
        start_request("set {k}1 0 0 1\r\nx\r\n", "a"),
        sql("UNLOCK TABLES", on="s"),
        await_reply("STORED\r\n", "a"),
        settings=TABLE_LOCKS,
    ),
    case(
        "a-get-beside-lock-tables",
        "KV-LOCK-026",
        insert(1),
        sql("LOCK TABLES {t1} WRITE", on="s"),
        get(1, "x"),
        sql("UNLOCK TABLES", on="s"),
        settings=TABLE_LOCKS,
        engine="plugin",
    ),
    case(
        "lock-tables-beside-a-batch",
        "KV-LOCK-025 KV-LOCK-048",
        put(1),
        SOON,
        sql("LOCK TABLES {t1} WRITE", on="s"),
        put(2),
        sql("UNLOCK TABLES", on="s"),
        settings=WRITES,
        engine="plugin",
    ),
    case(
        "switch-with-mdl",
        "KV-BATCH-040",
        put(1),
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        committed(1),
        settings=TABLE_LOCKS,
    ),
)
