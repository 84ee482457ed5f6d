"""delete and flush_all: what goes, what stays.

One connection does the flushing, and no other is open: 8.0 lets flush_all wait while another connection has read the
table.
"""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS
from kvref_conformance.steps import Disconnect, Pause

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
SET = send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n")
THERE = send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n")
GONE = send("get {k}\r\n", "END\r\n")
USAGE = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
# Seconds: 8.0 answers within its background thread's tick.
FLUSH = 15.0
BAD_DELAY = "CLIENT_ERROR invalid exptime argument\r\n"

CASES = (
    case("delete-existing", "KV-CORE-060", SET, send("delete {k}\r\n", "DELETED\r\n"), GONE),
    case("delete-missing", "KV-CORE-061", send("delete {k}\r\n", "NOT_FOUND\r\n")),
    case(
        "delete-twice",
        "KV-CORE-061",
        SET,
        send("delete {k}\r\n", "DELETED\r\n"),
        send("delete {k}\r\n", "NOT_FOUND\r\n"),
    ),
    case("delete-zero", "KV-CORE-062", SET, send("delete {k} 0\r\n", "DELETED\r\n"), GONE),
    *(
        case(f"delete-word-{name}", "KV-CORE-063", SET, send(f"delete {{k}} {words}\r\n", USAGE), THERE)
        for name, words in (("ten", "10"), ("text", "abc"), ("two", "a b"), ("noreply-first", "noreply a"))
    ),
    case("delete-word-ten-noreply", "KV-CORE-063", SET, send("delete {k} 10 noreply\r\n", ""), THERE),
    case("delete-without-key", "KV-CORE-064", send("delete\r\n", "ERROR\r\n")),
    case(
        "delete-then-add",
        "KV-CORE-065",
        SET,
        send("delete {k}\r\n", "DELETED\r\n"),
        send("add {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        THERE,
    ),
    case(
        "delete-leaves-longer-keys",
        "KV-CORE-060",
        send("set {k}b 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("set {k}a 0 0 1\r\nx\r\n", "STORED\r\n"),
        SET,
        send("delete {k}\r\n", "DELETED\r\n"),
        GONE,
        send("get {k}a {k}b\r\n", "VALUE {k}a 0 1\r\nx\r\nVALUE {k}b 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "delete-leaves-longer-rows",
        "KV-CORE-060",
        send("set {k}b 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("set {k}a 0 0 1\r\nx\r\n", "STORED\r\n"),
        SET,
        send("delete {k}\r\n", "DELETED\r\n"),
        sql("SELECT k FROM {t} ORDER BY k", ("{k}a",), ("{k}b",)),
        shape=ONE,
    ),
    case("flush", "KV-FLUSH-001", SET, send("flush_all\r\n", "OK\r\n", patience=FLUSH), GONE, SET, THERE),
    case("flush-negative", "KV-FLUSH-019", SET, send("flush_all -5\r\n", "OK\r\n", patience=FLUSH), GONE, SET, THERE),
    case("flush-zero", "KV-FLUSH-003", SET, send("flush_all 0\r\n", "OK\r\n", patience=FLUSH), GONE),
    case(
        "flush-words",
        "KV-FLUSH-021",
        *(
            step
            for word in ("x", "0", "3600")
            for step in (SET, send(f"flush_all 0 {word}\r\n", "OK\r\n", patience=FLUSH), GONE)
        ),
    ),
    case(
        "flush-empty",
        "KV-FLUSH-007",
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
    ),
    case(
        "flush-delay",
        "KV-FLUSH-004",
        SET,
        send("flush_all 3600\r\n", "OK\r\n", patience=FLUSH),
        THERE,
        # An endpoint that honours the delay must not keep it for the cases that follow.
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
    ),
    case(
        "flush-delay-passed",
        "KV-FLUSH-004",
        SET,
        send("flush_all 1\r\n", "OK\r\n", patience=FLUSH),
        Pause(3.1),
        GONE,
        SET,
        THERE,
    ),
    case(
        "flush-delay-refused",
        "KV-FLUSH-020",
        SET,
        send("flush_all 3600\r\n", "CLIENT_ERROR <text>\r\n", patience=FLUSH),
        THERE,
    ),
    case(
        "flush-bad-delay",
        "KV-FLUSH-005",
        SET,
        send("flush_all abc\r\n", BAD_DELAY, patience=FLUSH),
        send("flush_all 1x\r\n", BAD_DELAY, patience=FLUSH),
        send("flush_all x 0\r\n", BAD_DELAY, patience=FLUSH),
        THERE,
    ),
    case(
        "flush-bound-table-only",
        "KV-FLUSH-002 KV-MAP-007",
        SET,
        send("set @@{m2}.{k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
        send("get {k}\r\n", "END\r\n"),
        send("bind {m1}\r\n", "SUCCEED\r\n"),
        THERE,
    ),
    case(
        "flush-after-bind",
        "KV-FLUSH-002 KV-BIND-001",
        SET,
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        send("set {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
        send("get @@{m1}.{k}\r\n", "VALUE @@{m1}.{k} 0 1\r\nx\r\nEND\r\n"),
        send("get @@{m2}.{k}\r\n", "END\r\n"),
    ),
    case(
        "flush-keeps-binding",
        "KV-FLUSH-006 KV-BIND-001",
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
        send("set {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        Disconnect(),
        send("get {k}\r\n", "END\r\n"),
        send("get @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1\r\ny\r\nEND\r\n"),
    ),
    case(
        "flush-for-every-connection",
        "KV-FLUSH-012",
        SET,
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
        send("get {k}\r\n", "END\r\n", on="b"),
        send("add {k} 0 0 1\r\nx\r\n", "STORED\r\n", on="b"),
        THERE,
    ),
    case(
        "flush-after-reads-and-writes",
        "KV-FLUSH-013",
        SET,
        THERE,
        send("get {k2} {k} {k3}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
        send("flush_all\r\n", "OK\r\n", patience=2.0),
        GONE,
    ),
)
