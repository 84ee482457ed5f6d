"""The wait for a row that stays locked: its duration, the reply, and the effect on the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, await_reply, case, eventually, frames, send, sql, start_request
from kvref_conformance.cases.batches import (
    BEGIN,
    COMMIT,
    IDLE,
    ROLLBACK,
    SHORT_WAIT,
    SINGLE_SERIAL,
    WRITES,
    delete,
    get,
    insert,
    item_reply,
    miss,
    put,
    puts,
    select,
    update,
)
from kvref_conformance.cases.phrases import OPTIONS
from kvref_conformance.steps import PATIENCE, Disconnect

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

OVER = "SERVER_ERROR lock wait timeout\r\n"
NOT_STORED = "NOT_STORED\r\n"
TAIL = "{k}1 0 0 1\r\n!\r\n"
# What the plugin replies when the wait is over; each of them costs the run a second or two.
REFUSED = {
    "set": (f"set {TAIL}", NOT_STORED),
    "append": (f"append {TAIL}", NOT_STORED),
    "delete": ("delete {k}1\r\n", "NOT_FOUND\r\n"),
}
OWN = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def short_wait_case(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case where a wait is over after a second."""
    return case(id_, requirements, *steps, settings=SHORT_WAIT, engine=engine)


def lock_timeout_case(id_: str, requirements: str, step: Step) -> Case:
    """Write a case where a command waits for a row of another connection's batch until the wait is over."""
    return short_wait_case(
        id_, requirements, insert(1, "old"), put(1, value="held"), step, Disconnect(), eventually(select(1, "held"))
    )


def sql_lock_case(id_: str, requirements: str, reply: str) -> Case:
    """Write a case where a write waits for a row that a transaction of SQL has changed."""
    return short_wait_case(
        id_,
        requirements,
        insert(1, "old"),
        BEGIN,
        update(1, "sql", on="s"),
        send(f"set {TAIL}", reply, patience=PATIENCE),
        COMMIT,
        select(1, "sql"),
        engine="mysql",
    )


GIVEN_UP = (
    *(
        lock_timeout_case(id_, requirements, frames("set key={k}1 value=x", reply, on="b", patience=PATIENCE))
        for id_, requirements, reply in (
            ("frame-gives-up", "KV-LOCK-030", 'set 0x86 "lock wait timeout"'),
            ("frame-gives-up-as-refused", "KV-LOCK-036", 'set 0x05 "Not stored"'),
        )
    ),
    *(
        lock_timeout_case(f"{name}-gives-up", "KV-LOCK-030", send(request, OVER, on="b", patience=PATIENCE))
        for name, (request, _) in REFUSED.items()
    ),
    *(
        lock_timeout_case(
            f"{name}-gives-up-as-refused",
            "KV-LOCK-050" if name == "delete" else "KV-LOCK-036",
            send(request, reply, on="b", patience=PATIENCE),
        )
        for name, (request, reply) in REFUSED.items()
    ),
    short_wait_case(
        "incr-gives-up",
        "KV-LOCK-031",
        insert(1, "5"),
        put(1, value="6"),
        send("incr {k}1 1\r\n", ("SERVER_ERROR failed to store item\r\n", OVER), on="b", patience=PATIENCE),
        Disconnect(),
        eventually(select(1, "6")),
    ),
    sql_lock_case("gives-up-a-row-of-sql", "KV-LOCK-030", OVER),
    sql_lock_case("gives-up-a-row-of-sql-as-refused", "KV-LOCK-036", NOT_STORED),
    short_wait_case(
        "gives-up-and-keeps-the-rest",
        "KV-LOCK-032",
        insert(1, "old"),
        put(1, value="held"),
        put(2, on="b"),
        send(f"set {TAIL}", OVER, on="b", patience=PATIENCE),
        get(1, "held"),
        get(2, "x", on="b"),
    ),
    short_wait_case(
        "gives-up-and-loses-the-rest",
        "KV-LOCK-033",
        insert(1, "old"),
        put(1, value="held"),
        put(2, on="b"),
        send(f"set {TAIL}", NOT_STORED, on="b", patience=PATIENCE),
        miss(2, on="b"),
        Disconnect(),
        eventually(select(1, "held")),
    ),
    case(
        "wait-set-at-run-time",
        "KV-LOCK-016",
        insert(1, "old"),
        put(1, value="held"),
        sql("SET GLOBAL innodb_lock_wait_timeout = 1"),
        send(f"set {TAIL}", "NOT_STORED\r\n", on="b", patience=PATIENCE),
        sql("SET GLOBAL innodb_lock_wait_timeout = DEFAULT"),
        settings=WRITES,
        engine="plugin",
    ),
    case(
        "gives-up-after-a-second",
        "KV-LOCK-034",
        insert(1, "old"),
        put(1, value="held"),
        send(f"set {TAIL}", "NOT_STORED\r\n", on="b", patience=PATIENCE),
        get(1, "held"),
        settings=WRITES,
    ),
)
SERIALIZABLE = (
    *(
        case(
            f"a-read-gives-up-{name}{suffix}",
            requirements,
            insert(1, "old"),
            BEGIN,
            change,
            send("get {k}1\r\n", reply, patience=PATIENCE),
            ROLLBACK,
            get(1, "old"),
            settings=SINGLE_SERIAL,
            engine="mysql",
        )
        for name, change in (("update", update(1, "new", on="s")), ("delete", delete(1, on="s")))
        for suffix, requirements, reply in (("", "KV-LOCK-035", OVER), ("-as-refused", "KV-LOCK-051", "END\r\n"))
    ),
)
FLUSHES = (
    case(
        "flush-beside-an-idle-connection",
        "KV-LOCK-044",
        *puts(1, 4),
        send("flush_all\r\n", "OK\r\n", on="b", patience=PATIENCE),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=OWN,
        settings=IDLE,
    ),
    case(
        "flush-waits-for-a-batch",
        "KV-LOCK-040",
        *puts(1, 2),
        start_request("flush_all\r\n", "b"),
        Disconnect(),
        await_reply("OK\r\n", "b"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=OWN,
        settings=WRITES,
    ),
    case(
        "flush-gives-up",
        "KV-LOCK-041",
        put(1),
        send("flush_all\r\n", OVER, on="b", patience=PATIENCE),
        get(1, "x"),
        shape=OWN,
        settings=SHORT_WAIT,
    ),
    case(
        "flush-of-nothing",
        "KV-LOCK-042",
        send("get {k}\r\n", "END\r\n"),
        *puts(1, 2),
        send("flush_all\r\n", "OK\r\n", on="b", patience=PATIENCE),
        send("get {k}1\r\n", item_reply(1, "x")),
        Disconnect(),
        eventually(sql("SELECT COUNT(*) FROM {t}", (2,))),
        shape=OWN,
        settings=WRITES,
    ),
)

CASES: tuple[Case, ...] = (*GIVEN_UP, *SERIALIZABLE, *FLUSHES)
