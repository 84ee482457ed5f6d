"""Rows that another transaction has locked: which commands wait, and their result when the row is free.

Rows that stay locked: `test_lock_wait.py`; tables as a whole: `test_table_locks.py`. Holder and waiter are the first
two connections of a case: the plugin assigns connections to its two threads in turn, and a request that waits blocks
its thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import answers, asks, case, ends, eventually, say, sql, starts
from kvref_conformance.cases.batches import (
    BEGIN,
    COMMIT,
    NO_ROW_LOCKS,
    ROLLBACK,
    SNAPSHOT,
    WRITES,
    becomes,
    committed,
    holds,
    put,
    puts,
    reads,
    row,
    vanishes,
)
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

SET = "set {k}1 0 0 4\r\nmemc\r\n"
STORED = answers("STORED\r\n", "b")
UPDATE = "UPDATE {t1} SET c2 = CONCAT(c2, '+sql') WHERE c1 = '{k}1'"
CROWD = tuple(f"{letter}{n}" for letter in "de" for n in range(5))


def batched(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case with four writes to a batch."""
    return case(id_, requirements, *steps, settings=WRITES, engine=engine)


def behind(id_: str, requirements: str, *steps: Step, settings: Mapping[str, int] | None = None) -> Case:
    """Return a case with a SQL transaction, which only a MySQL server can run concurrently with others."""
    return case(id_, requirements, *steps, settings=settings, engine="mysql")


WAITS = (
    batched(
        "waits-for-a-batch",
        "KV-LOCK-001",
        row(1, "old"),
        put(1, value="first"),
        asks(SET, "b"),
        Disconnect(how="close"),
        STORED,
        holds(1, "first"),
        Disconnect("b"),
        eventually(holds(1, "memc")),
    ),
    batched(
        "frame-waits-for-a-batch",
        "KV-LOCK-001",
        row(1, "old"),
        put(1, value="first"),
        asks("set key={k}1 value=memc", "b", binary=True),
        Disconnect(how="close"),
        answers("set ok cas=<cas>", "b"),
        Disconnect("b"),
        eventually(holds(1, "memc")),
    ),
    batched(
        "waits-for-an-insert",
        "KV-LOCK-001",
        put(1, value="first"),
        asks("append {k}1 0 0 1\r\n!\r\n", "b"),
        Disconnect(how="close"),
        STORED,
        Disconnect("b"),
        eventually(holds(1, "first!")),
    ),
    batched(
        "waits-until-the-batch-is-full",
        "KV-LOCK-001",
        row(1, "5"),
        say("incr {k}1 1\r\n", "6\r\n"),
        asks("incr {k}1 1\r\n", "b"),
        *puts(6, 8),
        answers("7\r\n", "b"),
        holds(1, "6"),
    ),
    *(
        behind(
            f"{verb}-waits-for-sql",
            "KV-LOCK-002",
            row(1, "old"),
            say("get {k}1\r\n", "VALUE {k}1 0 3\r\nold\r\nEND\r\n"),
            BEGIN,
            becomes(1, "sql", on="s"),
            asks(f"{verb} {{k}}1 0 0 1\r\n!\r\n", "b"),
            COMMIT,
            STORED,
            holds(1, left),
        )
        for verb, left in (("set", "!"), ("append", "sql!"), ("replace", "!"))
    ),
    behind(
        "waits-for-a-delete-taken-back",
        "KV-LOCK-002",
        row(1, "old"),
        say("get {k}1\r\n", "VALUE {k}1 0 3\r\nold\r\nEND\r\n"),
        BEGIN,
        vanishes(1, on="s"),
        asks("append {k}1 0 0 1\r\n!\r\n", "b"),
        ROLLBACK,
        STORED,
        holds(1, "old!"),
    ),
    behind(
        "sql-waits-for-a-batch",
        "KV-LOCK-003",
        row(1, "old"),
        put(1, value="memc"),
        starts(UPDATE, "s"),
        Disconnect(),
        ends("s"),
        holds(1, "memc+sql"),
        settings=WRITES,
    ),
    behind(
        "sql-is-refused-a-row-of-a-batch",
        "KV-LOCK-004",
        row(1, "old"),
        put(1),
        put(2),
        sql("SET SESSION innodb_lock_wait_timeout = 1", on="s"),
        starts(UPDATE, "s"),
        ends("s", fails=True),
        holds(1, "old"),
        *puts(3, 4),
        holds(1, "x"),
        settings=WRITES,
    ),
)
GOES_ON = (
    case(
        "waits-beside-a-new-row",
        "KV-LOCK-014",
        put(1),
        asks("set {k}2 0 0 1\r\nx\r\n", "b"),
        Disconnect(),
        STORED,
        settings=SNAPSHOT,
        engine="mysql",
    ),
    batched("other-row", "KV-LOCK-005", row(1), row(2), put(1), put(2, on="b"), put(3, on="b"), committed(2)),
    batched("reads-do-not-wait", "KV-LOCK-006", row(1, "old"), put(1, value="new"), reads(1, "new", on="b")),
    behind(
        "reads-do-not-wait-for-sql",
        "KV-LOCK-006",
        row(1, "old"),
        BEGIN,
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}1' FOR UPDATE", ("old",), on="s"),
        reads(1, "old"),
        COMMIT,
    ),
    batched(
        "waits-alone",
        "KV-LOCK-007",
        row(1),
        put(1),
        asks(SET, "b"),
        *(put(n, on=f"c{n}") for n in range(2, 9)),
        *(reads(n, "x", on=f"d{n}") for n in range(2, 9)),
        Disconnect(),
        STORED,
    ),
    batched(
        "waiter-that-closes",
        "KV-LOCK-015",
        row(1, "old"),
        put(1, value="first"),
        asks("set {k}1 0 0 4\r\nmemc\r\n", "b"),
        Disconnect("b", how="close"),
        Disconnect(how="close"),
        eventually(holds(1, "memc")),
    ),
    batched(
        "lock-of-a-closed-connection",
        "KV-LOCK-008",
        row(1),
        put(1),
        Disconnect(),
        put(1, on="b"),
        say("quit\r\n", "", on="b", closes=True),
        put(1, on="c"),
    ),
)
DEADLOCK = tuple(
    batched(
        id_,
        requirements,
        row(1, "old"),
        row(2, "old"),
        put(1, value="a"),
        put(2, on="b", value="b"),
        asks("set {k}2 0 0 1\r\na\r\n", "a"),
        say("set {k}1 0 0 1\r\nb\r\n", ("STORED\r\n", lost), on="b"),
        answers(("STORED\r\n", lost), "a"),
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
        row(1, "0"),
        *(asks("incr {k}1 1\r\n", each, silent=0) for each in CROWD),
        *(answers(f"<new number {each}>\r\n", each) for each in CROWD),
        holds(1, "10"),
    ),
    case(
        "set-together",
        "KV-LOCK-010",
        row(1, "old"),
        *(asks("set {k}1 0 0 1\r\nx\r\n", each, silent=0) for each in CROWD),
        *(answers("STORED\r\n", each) for each in CROWD),
        holds(1, "x"),
    ),
    case(
        "append-together",
        "KV-LOCK-010",
        row(1, ""),
        *(asks("append {k}1 0 0 1\r\nx\r\n", each, silent=0) for each in CROWD),
        *(answers("STORED\r\n", each) for each in CROWD),
        holds(1, "x" * 10),
    ),
)
WITHOUT = (
    case(
        "no-row-locks-between-batches",
        "KV-LOCK-011",
        row(1, "old"),
        put(1, value="first"),
        put(1, on="b", value="second"),
        Disconnect(),
        eventually(holds(1, "first")),
        Disconnect("b"),
        eventually(holds(1, "second")),
        settings=NO_ROW_LOCKS,
    ),
    case(
        "no-row-lock-against-sql",
        "KV-LOCK-012",
        row(1, "old"),
        BEGIN,
        becomes(1, "sql", on="s"),
        put(1, value="memc"),
        *puts(6, 8),
        holds(1, "memc"),
        ROLLBACK,
        holds(1, "memc"),
        settings=NO_ROW_LOCKS,
        engine="plugin",
    ),
    behind(
        "sql-waits-all-the-same",
        "KV-LOCK-013",
        row(1, "old"),
        put(1),
        sql("SET SESSION innodb_lock_wait_timeout = 1", on="s"),
        starts(UPDATE, "s"),
        ends("s", fails=True),
        settings=NO_ROW_LOCKS,
    ),
)
CASES: tuple[Case, ...] = (*WAITS, *GOES_ON, *DEADLOCK, *TOGETHER, *WITHOUT)


def test_locks(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
