"""Rows that another transaction has locked: which commands wait, and their result when the row is free.

Rows that stay locked: `test_lock_wait.py`; tables as a whole: `test_table_locks.py`. Holder and waiter are the first
two connections of a case: the plugin assigns connections to its two threads in turn, and a request that waits blocks
its thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import await_reply, await_sql, case, eventually, send, sql, start_request, start_sql
from kvref_conformance.cases.batches import (
    BEGIN,
    COMMIT,
    COMMITTED,
    DIRTY,
    LEVEL,
    NO_ROW_LOCKS,
    ROLLBACK,
    SNAPSHOT,
    WRITES,
    committed,
    delete,
    get,
    insert,
    pending,
    put,
    puts,
    select,
    update,
)
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

SET = "set {k}1 0 0 4\r\nmemc\r\n"
STORED = await_reply("STORED\r\n", "b")
UPDATE = "UPDATE {t1} SET c2 = CONCAT(c2, '+sql') WHERE c1 = '{k}1'"
CROWD = tuple(f"{letter}{n}" for letter in "de" for n in range(5))


def batch_case(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case with four writes to a batch."""
    return case(id_, requirements, *steps, settings=WRITES, engine=engine)


def sql_case(id_: str, requirements: str, *steps: Step, settings: Mapping[str, int] | None = None) -> Case:
    """Return a case with a SQL transaction, which only a MySQL server can run concurrently with others."""
    return case(id_, requirements, *steps, settings=settings, engine="mysql")


WAITS = (
    batch_case(
        "waits-for-a-batch",
        "KV-LOCK-001",
        insert(1, "old"),
        put(1, value="first"),
        start_request(SET, "b"),
        Disconnect(how="close"),
        STORED,
        select(1, "first"),
        Disconnect("b"),
        eventually(select(1, "memc")),
    ),
    batch_case(
        "frame-waits-for-a-batch",
        "KV-LOCK-001",
        insert(1, "old"),
        put(1, value="first"),
        start_request("set key={k}1 value=memc", "b", binary=True),
        Disconnect(how="close"),
        await_reply("set ok cas=<cas>", "b"),
        Disconnect("b"),
        eventually(select(1, "memc")),
    ),
    batch_case(
        "waits-for-an-insert",
        "KV-LOCK-001",
        put(1, value="first"),
        start_request("append {k}1 0 0 1\r\n!\r\n", "b"),
        Disconnect(how="close"),
        STORED,
        Disconnect("b"),
        eventually(select(1, "first!")),
    ),
    batch_case(
        "waits-until-the-batch-is-full",
        "KV-LOCK-001",
        insert(1, "5"),
        send("incr {k}1 1\r\n", "6\r\n"),
        start_request("incr {k}1 1\r\n", "b"),
        *puts(6, 8),
        await_reply("7\r\n", "b"),
        select(1, "6"),
    ),
    *(
        sql_case(
            f"{verb}-waits-for-sql",
            "KV-LOCK-002",
            insert(1, "old"),
            send("get {k}1\r\n", "VALUE {k}1 0 3\r\nold\r\nEND\r\n"),
            BEGIN,
            update(1, "sql", on="s"),
            start_request(f"{verb} {{k}}1 0 0 1\r\n!\r\n", "b"),
            COMMIT,
            STORED,
            select(1, left),
        )
        for verb, left in (("set", "!"), ("append", "sql!"), ("replace", "!"))
    ),
    sql_case(
        "waits-for-a-delete-taken-back",
        "KV-LOCK-002",
        insert(1, "old"),
        send("get {k}1\r\n", "VALUE {k}1 0 3\r\nold\r\nEND\r\n"),
        BEGIN,
        delete(1, on="s"),
        start_request("append {k}1 0 0 1\r\n!\r\n", "b"),
        ROLLBACK,
        STORED,
        select(1, "old!"),
    ),
    sql_case(
        "sql-waits-for-a-batch",
        "KV-LOCK-003",
        insert(1, "old"),
        put(1, value="memc"),
        start_sql(UPDATE, "s"),
        Disconnect(),
        await_sql("s"),
        select(1, "memc+sql"),
        settings=WRITES,
    ),
    sql_case(
        "sql-is-refused-a-row-of-a-batch",
        "KV-LOCK-004",
        insert(1, "old"),
        put(1),
        put(2),
        sql("SET SESSION innodb_lock_wait_timeout = 1", on="s"),
        start_sql(UPDATE, "s"),
        await_sql("s", fails=True),
        select(1, "old"),
        *puts(3, 4),
        select(1, "x"),
        settings=WRITES,
    ),
)
GOES_ON = (
    case(
        "waits-beside-a-new-row",
        "KV-LOCK-014",
        put(1),
        start_request("set {k}2 0 0 1\r\nx\r\n", "b"),
        Disconnect(),
        STORED,
        settings=SNAPSHOT,
        engine="mysql",
    ),
    batch_case("other-row", "KV-LOCK-005", insert(1), insert(2), put(1), put(2, on="b"), put(3, on="b"), committed(2)),
    *(
        case(
            f"reads-do-not-wait-at-{level}",
            "KV-LOCK-006",
            insert(1, "old"),
            put(1, value="new"),
            get(1, "old" if settings[LEVEL] else "new", on="b"),
            settings=settings,
        )
        for level, settings in (("0", DIRTY), ("1", COMMITTED), ("2", SNAPSHOT))
    ),
    sql_case(
        "reads-do-not-wait-for-sql",
        "KV-LOCK-006",
        insert(1, "old"),
        BEGIN,
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}1' FOR UPDATE", ("old",), on="s"),
        get(1, "old"),
        COMMIT,
    ),
    batch_case(
        "waits-alone",
        "KV-LOCK-007",
        insert(1),
        put(1),
        start_request(SET, "b"),
        *(put(n, on=f"c{n}") for n in range(2, 9)),
        *(get(n, pending(n), on=f"d{n}") for n in range(2, 9)),
        Disconnect(),
        STORED,
    ),
    batch_case(
        "waiter-that-closes",
        "KV-LOCK-015",
        insert(1, "old"),
        put(1, value="first"),
        start_request("set {k}1 0 0 4\r\nmemc\r\n", "b"),
        Disconnect("b", how="close"),
        Disconnect(how="close"),
        eventually(select(1, "memc")),
    ),
    batch_case(
        "lock-of-a-closed-connection",
        "KV-LOCK-008",
        insert(1),
        put(1),
        Disconnect(),
        put(1, on="b"),
        send("quit\r\n", "", on="b", closes=True),
        put(1, on="c"),
    ),
)
DEADLOCK = tuple(
    batch_case(
        id_,
        requirements,
        insert(1, "old"),
        insert(2, "old"),
        put(1, value="a"),
        put(2, on="b", value="b"),
        start_request("set {k}2 0 0 1\r\na\r\n", "a"),
        send("set {k}1 0 0 1\r\nb\r\n", ("STORED\r\n", lost), on="b"),
        await_reply(("STORED\r\n", lost), "a"),
        Disconnect("a"),
        Disconnect("b"),
        eventually(sql("SELECT COUNT(DISTINCT c2) FROM {t1} WHERE c1 IN ('{k}1', '{k}2') AND c2 <> 'old'", (1,))),
    )
    for id_, requirements, lost in (
        ("deadlock", "KV-LOCK-009", "SERVER_ERROR deadlock: 1 pending writes are lost\r\n"),
        ("deadlock-as-refused", "KV-LOCK-045", "NOT_STORED\r\n"),
    )
)
TOGETHER = (
    case(
        "incr-together",
        "KV-LOCK-010",
        insert(1, "0"),
        *(start_request("incr {k}1 1\r\n", each, silent=0) for each in CROWD),
        *(await_reply(f"<new number {each}>\r\n", each) for each in CROWD),
        select(1, "10"),
    ),
    case(
        "set-together",
        "KV-LOCK-010",
        insert(1, "old"),
        *(start_request("set {k}1 0 0 1\r\nx\r\n", each, silent=0) for each in CROWD),
        *(await_reply("STORED\r\n", each) for each in CROWD),
        select(1, "x"),
    ),
    case(
        "append-together",
        "KV-LOCK-010",
        insert(1, ""),
        *(start_request("append {k}1 0 0 1\r\nx\r\n", each, silent=0) for each in CROWD),
        *(await_reply("STORED\r\n", each) for each in CROWD),
        select(1, "x" * 10),
    ),
)
WITHOUT = (
    case(
        "no-row-locks-between-batches",
        "KV-LOCK-011",
        insert(1, "old"),
        put(1, value="first"),
        put(1, on="b", value="second"),
        Disconnect(),
        eventually(select(1, "first")),
        Disconnect("b"),
        eventually(select(1, "second")),
        settings=NO_ROW_LOCKS,
    ),
    case(
        "no-row-lock-against-sql",
        "KV-LOCK-012",
        insert(1, "old"),
        BEGIN,
        update(1, "sql", on="s"),
        put(1, value="memc"),
        *puts(6, 8),
        select(1, "memc"),
        ROLLBACK,
        select(1, "memc"),
        settings=NO_ROW_LOCKS,
        engine="plugin",
    ),
    sql_case(
        "sql-waits-all-the-same",
        "KV-LOCK-013",
        insert(1, "old"),
        put(1),
        sql("SET SESSION innodb_lock_wait_timeout = 1", on="s"),
        start_sql(UPDATE, "s"),
        await_sql("s", fails=True),
        settings=NO_ROW_LOCKS,
    ),
)
CASES: tuple[Case, ...] = (*WAITS, *GOES_ON, *DEADLOCK, *TOGETHER, *WITHOUT)
