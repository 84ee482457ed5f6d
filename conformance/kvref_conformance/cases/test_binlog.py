"""The binary log: a batch is one transaction in it, a batch that is taken back none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, eventually, expect_binlog, send, sql_error
from kvref_conformance.cases.batches import LOGGED, SOON, WRITES, committed, get, insert, miss, put, puts
from kvref_conformance.cases.phrases import OPTIONS
from kvref_conformance.steps import Disconnect, Mark

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

OWN = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def binlog_case(id_: str, requirements: str, *steps: Step) -> Case:
    """Write a case with eight writes to a batch, on a server that logs them."""
    return case(id_, requirements, *steps, settings=LOGGED, engine="mysql")


CASES: tuple[Case, ...] = (
    binlog_case(
        "batch-is-logged-as-one",
        "KV-BINLOG-001 KV-BINLOG-002",
        Mark(),
        *puts(1, 7),
        expect_binlog(""),
        put(8),
        expect_binlog("Write"),
        put(9),
        expect_binlog("Write"),
        *puts(10, 16),
        expect_binlog("Write; Write"),
    ),
    binlog_case(
        "kinds-of-rows",
        "KV-BINLOG-003",
        insert(1),
        insert(2),
        Mark(),
        *puts(3, 4),
        send("set {k}1 0 0 1\r\ny\r\n", "STORED\r\n"),
        send("delete {k}2\r\n", "DELETED\r\n"),
        *puts(5, 8),
        expect_binlog("Write Update Delete Write"),
    ),
    binlog_case(
        "reads-and-failures-log-nothing",
        "KV-BINLOG-004",
        insert(1),
        Mark(),
        get(1, "x"),
        miss("none"),
        send("delete {k}none\r\n", "NOT_FOUND\r\n"),
        send("add {k}1 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
        Disconnect(),
        expect_binlog(""),
    ),
    binlog_case(
        "discarded-batch-logs-nothing",
        "KV-BINLOG-005",
        Mark(),
        *puts(1, 2),
        send("delete {k}none\r\n", "NOT_FOUND\r\n"),
        Disconnect(),
        committed(0),
        expect_binlog(""),
    ),
    binlog_case(
        "end-is-logged",
        "KV-BINLOG-006",
        Mark(),
        *puts(1, 2),
        Disconnect(),
        eventually(committed(2)),
        expect_binlog("Write"),
    ),
    binlog_case(
        "two-batches-are-two",
        "KV-BINLOG-006",
        Mark(),
        *puts(1, 2),
        put(3, on="b"),
        expect_binlog(""),
        Disconnect("b"),
        eventually(committed(1)),
        Disconnect(),
        eventually(committed(3)),
        expect_binlog("Write; Write"),
    ),
    case(
        "flush-is-logged",
        "KV-BINLOG-007",
        Mark(),
        *puts(1, 2),
        send("flush_all\r\n", "OK\r\n"),
        expect_binlog("Write; truncate", "Write; Delete", "Write Delete"),
        settings=LOGGED,
        shape=OWN,
        engine="mysql",
    ),
    binlog_case(
        "switch-is-logged",
        "KV-BINLOG-008",
        Mark(),
        *puts(1, 2),
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        expect_binlog("Write"),
    ),
    case(
        "ddl-beside-an-idle-connection-that-logs",
        "KV-BINLOG-013",
        *puts(1, 8),
        SOON,
        sql_error("ALTER TABLE {t} ADD COLUMN logged INT", on="s"),
        shape=OWN,
        settings=LOGGED,
        engine="plugin",
    ),
    case(
        "read-lock-beside-a-batch",
        "KV-BINLOG-014",
        put(1),
        SOON,
        sql_error("FLUSH TABLES WITH READ LOCK", on="s"),
        settings=LOGGED,
        engine="plugin",
    ),
    case(
        "not-logged",
        "KV-BINLOG-009",
        Mark(),
        *puts(1, 4),
        committed(4),
        expect_binlog(""),
        settings=WRITES,
        engine="plugin",
    ),
)
