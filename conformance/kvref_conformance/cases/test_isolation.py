"""What a connection sees of writes that are not committed: of SQL's and of other connections'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, eventually, send, sql
from kvref_conformance.cases.batches import (
    BEGIN,
    COMMITTED,
    DIRTY,
    ROLLBACK,
    SERIAL,
    SINGLE_COMMITTED,
    SINGLE_READS,
    SINGLE_REPEATABLE,
    SNAPSHOT,
    WRITES,
    delete,
    get,
    insert,
    item_reply,
    miss,
    put,
    puts,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

INSERT = sql("INSERT INTO {t1} VALUES ('{k}2', 'x', 0, 0, 0)", on="s")
ALL_LEVELS: dict[str, Mapping[str, int]] = {"1": COMMITTED, "2": SNAPSHOT, "3": SERIAL}
LEVELS: dict[str, Mapping[str, int]] = {"1": COMMITTED, "2": SNAPSHOT}
# Each get outside a batch, in the way of most gets.
SINGLE: dict[str, Mapping[str, int]] = {"1": SINGLE_COMMITTED, "2": SINGLE_REPEATABLE}
# One transaction of the level of the batch, as InnoDB lists it; its list is renewed ten times a second.
LISTED = "SELECT COUNT(*) > 0 FROM information_schema.innodb_trx WHERE trx_isolation_level = 'REPEATABLE READ'"


def sql_case(id_: str, requirements: str, *steps: Step, settings: Mapping[str, int] | None = None) -> Case:
    """Return a case with a SQL transaction, which only a MySQL server can run concurrently with others."""
    return case(id_, requirements, *steps, settings=settings, engine="mysql")


OF_SQL = (
    sql_case(
        "update-seen-at-0",
        "KV-ISO-001",
        insert(1, "old"),
        BEGIN,
        update(1, "new", on="s"),
        get(1, "new"),
        ROLLBACK,
        get(1, "old"),
        settings=DIRTY,
    ),
    sql_case("insert-seen-at-0", "KV-ISO-001", BEGIN, INSERT, get(2, "x"), ROLLBACK, miss(2), settings=DIRTY),
    sql_case(
        "delete-seen-at-0",
        "KV-ISO-001",
        insert(1),
        BEGIN,
        delete(1, on="s"),
        miss(1),
        ROLLBACK,
        get(1, "x"),
        settings=DIRTY,
    ),
    *(
        sql_case(
            f"update-unseen-at-{level}",
            "KV-ISO-002",
            insert(1, "old"),
            BEGIN,
            update(1, "new", on="s"),
            INSERT,
            get(1, "old"),
            miss(2),
            ROLLBACK,
            get(1, "old"),
            settings=settings,
        )
        for level, settings in LEVELS.items()
    ),
    *(
        sql_case(
            f"rolled-back-unseen-{name}",
            requirements,
            insert(1, "old"),
            get(1, "old"),
            BEGIN,
            update(1, "new", on="s"),
            INSERT,
            get(1, "old"),
            miss(2),
            send("get {k}1 {k}2\r\n", item_reply(1, "old")),
            send("gets {k}1\r\n", "VALUE {k}1 0 3 <cas>\r\nold\r\nEND\r\n"),
            send("get {k}1\r\nget {k}2\r\nget {k}1\r\n", f"{item_reply(1, 'old')}END\r\n{item_reply(1, 'old')}"),
            ROLLBACK,
            get(1, "old"),
            miss(2),
            settings=settings,
        )
        for name, requirements, settings in (
            *((f"at-{level}", "KV-ISO-002", settings) for level, settings in SINGLE.items()),
            ("by-default", "KV-ISO-011", SINGLE_READS),
        )
    ),
    *(
        sql_case(
            f"delete-unseen-before-its-commit-at-{level}",
            "KV-ISO-003",
            insert(1),
            BEGIN,
            delete(1, on="s"),
            get(1, "x"),
            ROLLBACK,
            settings=settings,
        )
        for level, settings in (*LEVELS.items(), *((f"{level}-alone", each) for level, each in SINGLE.items()))
    ),
    *(
        sql_case(
            f"delete-seen-before-its-commit-at-{level}",
            "KV-ISO-010",
            insert(1),
            BEGIN,
            delete(1, on="s"),
            miss(1),
            ROLLBACK,
            settings=settings,
        )
        for level, settings in LEVELS.items()
    ),
)
OF_OTHERS = (
    case(
        "pending-seen-at-0",
        "KV-ISO-004",
        insert(1, "old"),
        insert(3),
        get(1, "old", on="b"),
        put(1, value="new"),
        put(2),
        send("delete {k}3\r\n", "DELETED\r\n"),
        get(1, "new", on="b"),
        get(2, "x", on="b"),
        miss(3, on="b"),
        settings=DIRTY,
    ),
    case(
        "pending-unseen-by-default",
        "KV-ISO-011",
        insert(1, "old"),
        insert(3),
        put(1, value="new"),
        put(2),
        send("delete {k}3\r\n", "DELETED\r\n"),
        get(1, "old", on="b"),
        miss(2, on="b"),
        get(3, "x", on="b"),
        settings=WRITES,
    ),
    *(
        case(
            f"pending-unseen-at-{level}",
            "KV-ISO-005",
            insert(1, "old"),
            put(1, value="new"),
            put(2),
            get(1, "old", on="b"),
            miss(2, on="b"),
            settings=settings,
        )
        for level, settings in ALL_LEVELS.items()
    ),
    case(
        "pending-delete-unseen",
        "KV-ISO-006",
        insert(1),
        send("delete {k}1\r\n", "DELETED\r\n"),
        get(1, "x", on="b"),
        settings=SNAPSHOT,
    ),
    case(
        "pending-delete-seen",
        "KV-ISO-010",
        insert(1),
        send("delete {k}1\r\n", "DELETED\r\n"),
        miss(1, on="b"),
        settings=SNAPSHOT,
    ),
    case(
        "unseen-also-after-the-commit",
        "KV-ISO-007",
        insert(1, "old"),
        put(1, value="new"),
        get(1, "old", on="b"),
        *puts(6, 8),
        *(get(1, "old", on="b") for _ in range(3)),
        get(1, "new", on="b"),
        settings=SNAPSHOT,
    ),
)
OTHERWISE = (
    sql_case("batch-is-a-transaction", "KV-ISO-008", put(1), eventually(sql(LISTED, (1,))), settings=SNAPSHOT),
    case(
        "level-at-run-time",
        "KV-ISO-009",
        insert(1, "old"),
        sql("SET GLOBAL innodb_api_trx_level = 2"),
        BEGIN,
        update(1, "new", on="s"),
        get(1, "new"),
        ROLLBACK,
        sql("SET GLOBAL innodb_api_trx_level = DEFAULT"),
        engine="plugin",
    ),
)

CASES: tuple[Case, ...] = (*OF_SQL, *OF_OTHERS, *OTHERWISE)
