"""Expiry: which times are taken, which rows are over and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, say, sql
from kvref_conformance.cases.phrases import OPTIONS, inserted, misses, shows, stored
from kvref_conformance.steps import Pause, Tick

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
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
OVER = inserted("{k}", "'5', 3, 5, 1000000000")
EXPIRY = "SELECT e FROM {t} WHERE k = '{k}'"


def timed(expiry: int, answer: str | tuple[str, ...] = "STORED\r\n", verb: str = "set") -> Send:
    """Store {k} with that exptime."""
    return say(f"{verb} {{k}} 0 {expiry} 1\r\nx\r\n", answer)


def refused(line: str) -> tuple[str, str]:
    """Allow that line, with or without the ERROR of the data block as a command."""
    return line, f"{line}ERROR\r\n"


TIMES = (
    *(
        case(name, "KV-EXP-001", timed(1), Pause(2.2), say(f"{verb} {{k}}\r\n", "END\r\n"))
        for name, verb in (("seconds-that-pass", "get"), ("seconds-that-pass-gets", "gets"))
    ),
    case(
        "seconds-that-do-not-pass",
        "KV-EXP-001",
        say("set {k} 0 100 1\r\nx\r\n", "STORED\r\n"),
        say("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "thirty-days-as-an-absolute-time",
        "KV-EXP-002",
        timed(2592000),
        misses("{k}"),
        sql(EXPIRY, (2592000,)),
        shape=ONE,
    ),
    case("expiry-negative-stored", "KV-EXP-003", timed(-1), shows("{k}", "x")),
    case("expiry-negative-refused", "KV-EXP-004", timed(-1, refused(INVALID)), misses("{k}")),
    case("negative-time-stored", "KV-EXP-003", timed(-100), shows("{k}", "x"), sql(EXPIRY, (-100,)), shape=ONE),
    *(
        case(
            f"negative-time-{-expiry}",
            "KV-EXP-004",
            timed(expiry, refused(INVALID)),
            sql("SELECT COUNT(*) FROM {t}", (0,)),
            shape=ONE,
        )
        for expiry in (-1, -100)
    ),
    case(
        "negative-time-over-a-row",
        "KV-EXP-004",
        stored("{k}", "old"),
        timed(-1, refused(INVALID)),
        shows("{k}", "old"),
        shape=ONE,
    ),
    *(
        case(f"time-{expiry}-by-low-bits", "KV-EXP-005", timed(expiry), sql(EXPIRY, (kept,)), shape=ONE)
        for expiry, kept in ((1 << 31, -(1 << 31)), (99999999999, 1215752191))
    ),
    case("time-from-2-31-refused", "KV-EXP-006", timed(1 << 31, refused(BAD_FORMAT)), misses("{k}"), shape=WIDE),
    *(
        case(
            f"time-beyond-the-column-{expiry}",
            "KV-EXP-008",
            stored("{k}", "old"),
            timed(expiry, "CLIENT_ERROR <text>\r\n"),
            shows("{k}", "old"),
            shape=NARROW,
        )
        for expiry in (100, LATER)
    ),
    *(
        case(
            f"negative-time-{verb}",
            "KV-EXP-022",
            *([] if verb == "add" else [stored("{k}", "old")]),
            timed(-1, verb=verb),
            misses("{k}"),
            say("add {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
            shows("{k}", "y"),
        )
        for verb in ("set", "add", "replace")
    ),
    case(
        "negative-time-cas",
        "KV-EXP-022",
        stored("{k}", "old"),
        say("gets {k}\r\n", "VALUE {k} 0 3 <cas a>\r\nold\r\nEND\r\n"),
        say("cas {k} 0 -2147483648 1 {a}\r\nx\r\n", "STORED\r\n"),
        misses("{k}"),
    ),
    case(
        "negative-time-noreply",
        "KV-EXP-022",
        stored("{k}", "old"),
        say("set {k} 0 -1 1 noreply\r\nx\r\n", ""),
        misses("{k}"),
    ),
    *(
        case(f"time-{expiry}-{'passed' if over else 'to-come'}", "KV-EXP-023", stored("{k}", "old"), timed(expiry), end)
        for expiry, over in (
            *((number, True) for number in (1 << 31, (1 << 32) - 2, (1 << 32) - 1, 99999999999, -(1 << 32) - 1)),
            *((number, False) for number in ((1 << 32) + 100, 1 << 32, -(1 << 32) + 100)),
        )
        for end in (misses("{k}") if over else shows("{k}", "x"),)
    ),
    *(
        case(f"negative-time-in-{name}", "KV-EXP-024", timed(expiry), misses("{k}"), sql(EXPIRY, (1,)), shape=shape)
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
        stored("{k}", "old"),
        timed(-1),
        misses("{k}"),
        timed(-1, verb="add"),
        timed(-1, "NOT_STORED\r\n", "replace"),
        stored("{k2}", "old"),
        say("replace {k2} 0 -1 1\r\nx\r\nadd {k2} 0 -1 1\r\nx\r\n", "STORED\r\nSTORED\r\n"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=NONE,
    ),
    *(
        case(
            f"negative-time-{verb}",
            "KV-EXP-026",
            stored("{k}", "x"),
            timed(-1, verb=verb),
            shows("{k}", "xx"),
        )
        for verb in ("append", "prepend")
    ),
    case(
        "time-2147483647",
        "KV-EXP-009",
        say("set {k} 0 2147483647 1\r\nx\r\n", "STORED\r\n"),
        say("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "no-time",
        "KV-EXP-014",
        say("set {k} 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        say("set {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        say("get {k}\r\n", "VALUE {k} 0 1\r\ny\r\nEND\r\n"),
    ),
    case(
        "no-expire-column",
        "KV-EXP-018",
        timed(1000000000),
        shows("{k}", "x"),
        timed(LATER),
        shows("{k}", "x"),
        shape=NONE,
    ),
    *(
        case(
            f"{verb}-takes-the-time-of-the-request",
            "KV-EXP-017",
            inserted("{k}", f"'x', 0, 0, {LATER}"),
            timed(0, verb=verb),
            sql(EXPIRY, (0,)),
            shape=ONE,
        )
        for verb in ("append", "prepend")
    ),
    case(
        "append-counts-from-now",
        "KV-EXP-016",
        stored("{k}", "x"),
        timed(100000000, verb="append"),
        sql("SELECT e > 1800000000 FROM {t}", (1,)),
        shape=ONE,
    ),
)

ROWS = (
    *(
        case(f"expired-row-for-{verb}", "KV-EXP-010", OVER, say(line, answer), shape=ONE)
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
        misses("{k}"),
        stored("{k}", "x"),
        shows("{k}", "x"),
        sql("SELECT v, e FROM {t}", ("x", 0)),
        shape=ONE,
    ),
    case(
        "expired-row-stays",
        "KV-EXP-012",
        OVER,
        misses("{k}"),
        misses("{k}"),
        sql("SELECT v, f, e FROM {t}", ("5", 3, 1000000000)),
        shape=ONE,
    ),
    case(
        "expired-row-stays-behind-other-commands",
        "KV-EXP-029",
        OVER,
        say("delete {k}\r\nincr {k} 1\r\ndecr {k} 1\r\n", "NOT_FOUND\r\n" * 3),
        say("replace {k} 0 0 1\r\nx\r\nappend {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n" * 2),
        sql("SELECT v, f, c, e FROM {t}", ("5", 3, 5, 1000000000)),
        shape=ONE,
    ),
    case(
        "expired-row-among-others",
        "KV-EXP-013",
        OVER,
        stored("{k2}", "x"),
        stored("{k3}", "y"),
        say("get {k2} {k} {k3}\r\n", "VALUE {k2} 0 1\r\nx\r\nVALUE {k3} 0 1\r\ny\r\nEND\r\n"),
        shape=ONE,
    ),
    case("expiry-0-of-sql", "KV-EXP-015", inserted("{k}", "'x', 3, 5, 0"), shows("{k}", "x", flags=3), shape=ONE),
    *(
        case(
            f"time-of-sql-{name}",
            "KV-EXP-019",
            inserted("{k}", f"'x', 3, 5, {expiry}"),
            shows("{k}", "x", flags=3),
            sql("UPDATE {t} SET e = 1000000000"),
            misses("{k}"),
            shape=shape,
        )
        for name, expiry, shape in (("unsigned", 4294967295, UNSIGNED), ("bigint", 99999999999, WIDE))
    ),
    case(
        "second-of-the-time",
        "KV-EXP-020",
        Tick(),
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        shows("{k}", "x", flags=3),
        shape=ONE,
    ),
    case(
        "second-of-the-time-over",
        "KV-EXP-027",
        Tick(),
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        misses("{k}"),
        say("gets {k}\r\n", "END\r\n"),
        say("get {k} {k2}\r\n", "END\r\n"),
        say("add {k} 0 0 1\r\ny\r\n", "STORED\r\n"),
        shape=ONE,
    ),
    case(
        "second-of-the-time-over-for-mg-and-touch",
        "KV-EXP-027 KV-MG-003 KV-TOUCH-002",
        Tick(),
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        say("mg {k} v\r\n", "EN\r\n"),
        say("touch {k} 0\r\n", "NOT_FOUND\r\n"),
        shape=ONE,
    ),
    case(
        "one-second",
        "KV-EXP-027",
        say("set {k} 0 1 1\r\nx\r\n", "STORED\r\n"),
        Pause(1.05),
        misses("{k}"),
    ),
    case(
        "one-second-of-touch",
        "KV-EXP-027 KV-TOUCH-003",
        say("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        say("touch {k} 1\r\n", "TOUCHED\r\n"),
        Pause(1.05),
        misses("{k}"),
    ),
    case(
        "seconds-in-the-table",
        "KV-EXP-028",
        Tick(),
        timed(100),
        sql("SELECT COUNT(*) FROM {t} WHERE e = UNIX_TIMESTAMP() + 100", (1,)),
        sql("INSERT INTO {t} VALUES ('{k2}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        sql("SELECT k FROM {t} WHERE e IS NULL OR e <= 0 OR e > UNIX_TIMESTAMP()", ("{k}",)),
        say("get {k} {k2}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "second-after-the-time",
        "KV-EXP-021",
        sql("INSERT INTO {t} VALUES ('{k}', 'x', 3, 5, UNIX_TIMESTAMP())"),
        Pause(2.2),
        misses("{k}"),
        shape=ONE,
    ),
)

CASES = (*TIMES, *ROWS)


def test_expiry(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
