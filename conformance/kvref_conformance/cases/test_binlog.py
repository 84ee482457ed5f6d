"""The binary log: a batch is one transaction in it, a batch that is taken back none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, eventually, logged, refused, say
from kvref_conformance.cases.batches import LOGGED, SOON, WRITES, committed, nothing, put, puts, reads, row
from kvref_conformance.cases.phrases import OPTIONS
from kvref_conformance.steps import Disconnect, Mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

OWN = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def log(id_: str, requirements: str, *steps: Step) -> Case:
    """Write a case with eight writes to a batch, on a server that logs them."""
    return case(id_, requirements, *steps, settings=LOGGED, engine="mysql")


CASES: tuple[Case, ...] = (
    log(
        "batch-is-logged-as-one",
        "KV-BINLOG-001 KV-BINLOG-002",
        Mark(),
        *puts(1, 7),
        logged(""),
        put(8),
        logged("Write"),
        put(9),
        logged("Write"),
        *puts(10, 16),
        logged("Write; Write"),
    ),
    log(
        "kinds-of-rows",
        "KV-BINLOG-003",
        row(1),
        row(2),
        Mark(),
        *puts(3, 4),
        say("set {k}1 0 0 1\r\ny\r\n", "STORED\r\n"),
        say("delete {k}2\r\n", "DELETED\r\n"),
        *puts(5, 8),
        logged("Write Update Delete Write"),
    ),
    log(
        "reads-and-failures-log-nothing",
        "KV-BINLOG-004",
        row(1),
        Mark(),
        reads(1, "x"),
        nothing("none"),
        say("delete {k}none\r\n", "NOT_FOUND\r\n"),
        say("add {k}1 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
        Disconnect(),
        logged(""),
    ),
    log(
        "discarded-batch-logs-nothing",
        "KV-BINLOG-005",
        Mark(),
        *puts(1, 2),
        say("delete {k}none\r\n", "NOT_FOUND\r\n"),
        Disconnect(),
        committed(0),
        logged(""),
    ),
    log("end-is-logged", "KV-BINLOG-006", Mark(), *puts(1, 2), Disconnect(), eventually(committed(2)), logged("Write")),
    log(
        "two-batches-are-two",
        "KV-BINLOG-006",
        Mark(),
        *puts(1, 2),
        put(3, on="b"),
        logged(""),
        Disconnect("b"),
        eventually(committed(1)),
        Disconnect(),
        eventually(committed(3)),
        logged("Write; Write"),
    ),
    case(
        "flush-is-logged",
        "KV-BINLOG-007",
        Mark(),
        *puts(1, 2),
        say("flush_all\r\n", "OK\r\n"),
        logged("Write; truncate", "Write; Delete", "Write Delete"),
        settings=LOGGED,
        shape=OWN,
        engine="mysql",
    ),
    log(
        "switch-is-logged",
        "KV-BINLOG-008",
        Mark(),
        *puts(1, 2),
        say("bind {m2}\r\n", "SUCCEED\r\n"),
        logged("Write"),
    ),
    case(
        "ddl-beside-an-idle-connection-that-logs",
        "KV-BINLOG-013",
        *puts(1, 8),
        SOON,
        refused("ALTER TABLE {t} ADD COLUMN logged INT", on="s"),
        shape=OWN,
        settings=LOGGED,
        engine="plugin",
    ),
    case(
        "read-lock-beside-a-batch",
        "KV-BINLOG-014",
        put(1),
        SOON,
        refused("FLUSH TABLES WITH READ LOCK", on="s"),
        settings=LOGGED,
        engine="plugin",
    ),
    case(
        "not-logged",
        "KV-BINLOG-009",
        Mark(),
        *puts(1, 4),
        committed(4),
        logged(""),
        settings=WRITES,
        engine="plugin",
    ),
)


def test_binlog(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
