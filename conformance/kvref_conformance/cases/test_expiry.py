"""Expiry: which times are taken, which rows are over and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store
from kvref_conformance.steps import Pause, Tick

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

COLUMNS = f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"
ONE = Shape(COLUMNS)
NONE = Shape(COLUMNS, expiry="0")
UNSIGNED = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED, e INT UNSIGNED")
WIDE = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED, e BIGINT")
NARROW = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED, e SMALLINT")
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"
INVALID = "CLIENT_ERROR Invalid expire time\r\n"
LATER = 2000000000
OVER = insert("{k}", "'5', 3, 5, 1000000000")
EXPIRY = "SELECT e FROM {t} WHERE k = '{k}'"


def expiring(expiry: int, answer: str | tuple[str, ...] = "STORED\r\n", verb: str = "set") -> Send:
    """Store {k} with that exptime."""
    return send(f"{verb} {{k}} 0 {expiry} 1\r\nx\r\n", answer)


def errors(line: str) -> tuple[str, str]:
    """Allow that line, with or without the ERROR of the data block as a command."""
    return line, f"{line}ERROR\r\n"


TIMES = (
    *(
        case(name, "KV-EXP-001", expiring(1), Pause(2.2), send(f"{verb} {{k}}\r\n", "END\r\n"))
        for name, verb in (("seconds-that-pass", "get"), ("seconds-that-pass-gets", "gets"))
    ),
    case(
        "seconds-that-pass-of-add-and-replace",
        "KV-EXP-001",
        expiring(1, verb="add"),
        store("{k2}", "old"),
        send("replace {k2} 0 1 1\r\nx\r\n", "STORED\r\n"),
        Pause(2.2),
        miss("{k}"),
        miss("{k2}"),
    ),
    case(
        "seconds-that-pass-of-cas",
        "KV-EXP-001",
        store("{k}", "old"),
        send("gets {k}\r\n", "VALUE {k} 0 3 <cas a>\r\nold\r\nEND\r\n"),
        send("cas {k} 0 1 1 {a}\r\nx\r\n", "STORED\r\n"),
        Pause(2.2),
        miss("{k}"),
    ),
    case(
        "seconds-that-do-not-pass",
        "KV-EXP-001",
        send("set {k} 0 100 1\r\nx\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "thirty-days-as-an-absolute-time",
        "KV-EXP-002",
        expiring(2592000),
        miss("{k}"),
        sql(EXPIRY, (2592000,)),
        shape=ONE,
    ),
    case("expiry-negative-stored", "KV-EXP-003", expiring(-1), hit("{k}", "x")),
    case("expiry-negative-refused", "KV-EXP-004", expiring(-1, errors(INVALID)), miss("{k}")),
    case("negative-time-stored", "KV-EXP-003", expiring(-100), hit("{k}", "x"), sql(EXPIRY, (-100,)), shape=ONE),
    *(
        case(
            f"negative-time-{-expiry}",
            "KV-EXP-004",
            expiring(expiry, errors(INVALID)),
            sql("SELECT COUNT(*) FROM {t}", (0,)),
            shape=ONE,
        )
        for expiry in (-1, -100)
    ),
    case(
        "negative-time-over-a-row",
        "KV-EXP-004",
        store("{k}", "old"),
        expiring(-1, errors(INVALID)),
        hit("{k}", "old"),
        shape=ONE,
    ),
    *(
        case(f"time-{expiry}-by-low-bits", "KV-EXP-005", expiring(expiry), sql(EXPIRY, (kept,)), shape=ONE)
        for expiry, kept in ((1 << 31, -(1 << 31)), (99999999999, 1215752191))
    ),
    case("time-from-2-31-refused", "KV-EXP-006", expiring(1 << 31, errors(BAD_FORMAT)), miss("{k}"), shape=WIDE),
    *(
        case(
            f"time-beyond-the-column-{expiry}",
            "KV-EXP-008",
            store("{k}", "old"),
            expiring(expiry, "CLIENT_ERROR <text>\r\n"),
            hit("{k}", "old"),
            shape=NARROW,
        )
        for expiry in (100, LATER)
    ),
    *(
        case(
            f"negative-time-{verb}",
            "KV-EXP-022",
            *([] if verb == "add" else [store("{k}", "old")]),
            expiring(-1, verb=verb),
            miss("{k}"),
            send("add {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
            hit("{k}", "y"),
        )
        for verb in ("set", "add", "replace")
    ),
    case(
        "negative-time-cas",
        "KV-EXP-022",
        store("{k}", "old"),
        send("gets {k}\r\n", "VALUE {k} 0 3 <cas a>\r\nold\r\nEND\r\n"),
        send("cas {k} 0 -2147483648 1 {a}\r\nx\r\n", "STORED\r\n"),
        miss("{k}"),
    ),
    case(
        "negative-time-noreply",
        "KV-EXP-022",
        store("{k}", "old"),
        send("set {k} 0 -1 1 noreply\r\nx\r\n", ""),
        miss("{k}"),
    ),
    *(
        case(
            f"time-{expiry}-{'passed' if over else 'to-come'}", "KV-EXP-023", store("{k}", "old"), expiring(expiry), end
        )
        for expiry, over in (
            *((number, True) for number in (1 << 31, (1 << 32) - 2, (1 << 32) - 1, 99999999999, -(1 << 32) - 1)),
            *((number, False) for number in ((1 << 32) + 100, 1 << 32, -(1 << 32) + 100)),
        )
        for end in (miss("{k}") if over else hit("{k}", "x"),)
    ),
    *(
        case(f"negative-time-in-{name}", "KV-EXP-024", expiring(expiry), miss("{k}"), sql(EXPIRY, (1,)), shape=shape)
        for name, expiry, shape in (
            ("int", -1, ONE),
            ("unsigned", -1, UNSIGNED),
            ("bigint", (1 << 32) - 1, WIDE),
            ("smallint", -1, NARROW),
        )
    ),
    case(
        "negative-time-no-column",
        "KV-EXP-025",
        store("{k}", "old"),
        expiring(-1),
        miss("{k}"),
        expiring(-1, verb="add"),
        expiring(-1, "NOT_STORED\r\n", "replace"),
        store("{k2}", "old"),
        send("replace {k2} 0 -1 1\r\nx\r\nadd {k2} 0 -1 1\r\nx\r\n", "STORED\r\nSTORED\r\n"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=NONE,
    ),
    *(
        case(
            f"negative-time-{verb}",
            "KV-EXP-026",
            store("{k}", "x"),
            expiring(-1, verb=verb),
            hit("{k}", "xx"),
        )
        for verb in ("append", "prepend")
    ),
    case(
        "time-2147483647",
        "KV-EXP-009",
        send("set {k} 0 2147483647 1\r\nx\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "no-time",
        "KV-EXP-014",
        send("set {k} 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        send("set {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\ny\r\nEND\r\n"),
    ),
    case(
        "no-expire-column",
        "KV-EXP-018",
        expiring(1000000000),
        hit("{k}", "x"),
        expiring(LATER),
        hit("{k}", "x"),
        shape=NONE,
    ),
    *(
        case(
            f"{verb}-takes-the-time-of-the-request",
            "KV-EXP-017",
            insert("{k}", f"'x', 0, 0, {LATER}"),
            expiring(0, verb=verb),
            sql(EXPIRY, (0,)),
            shape=ONE,
        )
        for verb in ("append", "prepend")
    ),
    case(
        "append-counts-from-now",
        "KV-EXP-016",
        store("{k}", "x"),
        expiring(100000000, verb="append"),
        sql("SELECT e > 1800000000 FROM {t}", (1,)),
        shape=ONE,
    ),
)

ROWS = (
    *(
        case(f"expired-row-for-{verb}", "KV-EXP-010", OVER, send(line, answer), shape=ONE)
        for verb, line, answer in (
            ("add", "add {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
            ("replace", "replace {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
            ("append", "append {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
            ("cas", "cas {k} 0 0 1 5\r\nx\r\n", "STORED\r\n"),
            ("incr", "incr {k} 1\r\n", "6\r\n"),
            ("delete", "delete {k}\r\n", "DELETED\r\n"),
        )
    ),
    case(
        "expired-row-set",
        "KV-EXP-011",
        OVER,
        miss("{k}"),
        store("{k}", "x"),
        hit("{k}", "x"),
        sql("SELECT v, e FROM {t}", ("x", 0)),
        shape=ONE,
    ),
    case(
        "expired-row-stays",
        "KV-EXP-012",
        OVER,
        miss("{k}"),
        miss("{k}"),
        sql("SELECT v, f, e FROM {t}", ("5", 3, 1000000000)),
        shape=ONE,
    ),
    case(
        "expired-row-stays-behind-other-commands",
        "KV-EXP-029",
        OVER,
        send("delete {k}\r\nincr {k} 1\r\ndecr {k} 1\r\n", "NOT_FOUND\r\n" * 3),
        send("replace {k} 0 0 1\r\nx\r\nappend {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n" * 2),
        sql("SELECT v, f, c, e FROM {t}", ("5", 3, 5, 1000000000)),
        shape=ONE,
    ),
    case(
        "expired-row-among-others",
        "KV-EXP-013",
        OVER,
        store("{k2}", "x"),
        store("{k3}", "y"),
        send("get {k2} {k} {k3}\r\n", "VALUE {k2} 0 1\r\nx\r\nVALUE {k3} 0 1\r\ny\r\nEND\r\n"),
        shape=ONE,
    ),
    case("expiry-0-of-sql", "KV-EXP-015", insert("{k}", "'x', 3, 5, 0"), hit("{k}", "x", flags=3), shape=ONE),
    *(
        case(
            f"time-of-sql-{name}",
            "KV-EXP-019",
            insert("{k}", f"'x', 3, 5, {expiry}"),
            hit("{k}", "x", flags=3),
            sql("UPDATE {t} SET e = 1000000000"),
            miss("{k}"),
            shape=shape,
        )
        for name, expiry, shape in (("unsigned", 4294967295, UNSIGNED), ("bigint", 99999999999, WIDE))
    ),
    case(
        "second-of-the-time",
        "KV-EXP-020",
        Tick(),
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        hit("{k}", "x", flags=3),
        shape=ONE,
    ),
    case(
        "second-of-the-time-over",
        "KV-EXP-027",
        Tick(),
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        miss("{k}"),
        send("gets {k}\r\n", "END\r\n"),
        send("get {k} {k2}\r\n", "END\r\n"),
        send("add {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        shape=ONE,
    ),
    case(
        "second-of-the-time-over-for-mg-and-touch",
        "KV-EXP-027 KV-MG-003 KV-TOUCH-002",
        Tick(),
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        send("mg {k} v\r\n", "EN\r\n"),
        send("touch {k} 0\r\n", "NOT_FOUND\r\n"),
        shape=ONE,
    ),
    case(
        "one-second",
        "KV-EXP-027",
        send("set {k} 0 1 1\r\nx\r\n", "STORED\r\n"),
        Pause(1.05),
        miss("{k}"),
    ),
    case(
        "one-second-of-touch",
        "KV-EXP-027 KV-TOUCH-003",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("touch {k} 1\r\n", "TOUCHED\r\n"),
        Pause(1.05),
        miss("{k}"),
    ),
    case(
        "seconds-in-the-table",
        "KV-EXP-028",
        Tick(),
        expiring(100),
        sql("SELECT COUNT(*) FROM {t} WHERE e = UNIX_TIMESTAMP() + 100", (1,)),
        sql("INSERT INTO {t} VALUES ('{k2}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        sql("SELECT k FROM {t} WHERE e IS NULL OR e <= 0 OR e > UNIX_TIMESTAMP()", ("{k}",)),
        send("get {k} {k2}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "second-after-the-time",
        "KV-EXP-021",
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        Pause(2.2),
        miss("{k}"),
        shape=ONE,
    ),
)

CASES = (*TIMES, *ROWS)
