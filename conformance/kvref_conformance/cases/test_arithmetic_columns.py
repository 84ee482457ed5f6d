"""incr and decr over several value columns, integer columns, narrow ones and values of SQL."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, store
from kvref_conformance.cases.test_columns import NUMBERS, ROW, THREE

NO_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
REFUSED = ("CLIENT_ERROR <text>\r\n", "SERVER_ERROR <text>\r\n")
INT, BIGINT, NARROW = (
    Shape(f"k VARCHAR(32) PRIMARY KEY, v {declared}, {OPTIONS}") for declared in ("INT", "BIGINT", "VARCHAR(2)")
)
SMALL = Shape(f"k VARCHAR(32) PRIMARY KEY, x SMALLINT, y TINYINT, {OPTIONS}", values="x,y")
MIXED = Shape(f"k VARCHAR(32) PRIMARY KEY, x VARCHAR(10), y INT, z VARCHAR(10), {OPTIONS}", values="x,y,z")

SEVERAL = (
    *(
        case(
            f"{verb}-several-columns",
            "KV-ARITH-032",
            insert("{k}", "'10', '20', '30', 0, 0, 0"),
            send(f"{verb} {{k}} 5\r\n", NO_NUMBER),
            hit("{k}", "10|20|30"),
            shape=THREE,
        )
        for verb in ("incr", "decr")
    ),
    case(
        "incr-several-integers",
        "KV-ARITH-032",
        store("{k}", "10|20"),
        send("incr {k} 5\r\n", NO_NUMBER),
        hit("{k}", "10|20"),
        shape=NUMBERS,
    ),
    *(
        case(
            f"flags-{flags}-choose-the-column",
            "KV-ARITH-029",
            insert("{k}", f"'1', '2', '3', {flags}, 0, 0"),
            send("incr {k} 1\r\n", f"{answer}\r\n"),
            sql(ROW, row),
            shape=THREE,
        )
        for flags, answer, row in (
            (0, 124, ("124", None, None)),
            (1, 24, (None, "24", None)),
            (2, 4, (None, None, "4")),
            (3, 124, ("124", None, None)),
        )
    ),
    case(
        "texts-run-together",
        "KV-ARITH-030",
        insert("{k}", "'7', NULL, '5', 0, 0, 0"),
        send("incr {k} 1\r\n", "76\r\n"),
        shape=THREE,
    ),
    case(
        "texts-run-together-up-to-an-integer",
        "KV-ARITH-030",
        insert("{k}", "'7', 2, '5', 0, 0, 0"),
        send("incr {k} 1\r\n", "8\r\n"),
        shape=MIXED,
    ),
    case(
        "other-columns-become-null",
        "KV-ARITH-031",
        insert("{k}", "'10', '20', '30', 0, 0, 0"),
        send("decr {k} 5\r\n", "102025\r\n"),
        sql(ROW, ("102025", None, None)),
        shape=THREE,
    ),
)

INTEGERS = (
    case(
        "incr-an-integer",
        "KV-ARITH-034",
        store("{k}", "10"),
        send("incr {k} 5\r\n", "15\r\n"),
        send("decr {k} 2\r\n", "13\r\n"),
        sql("SELECT v FROM {t}", (13,)),
        send("decr {k} 100\r\n", "0\r\n"),
        hit("{k}", "0"),
        shape=INT,
    ),
    case(
        "incr-an-integer-from-0",
        "KV-ARITH-033",
        insert("{k}", "10, 0, 0, 0"),
        send("incr {k} 5\r\n", "5\r\n"),
        hit("{k}", "5"),
        shape=INT,
    ),
    *(
        case(
            f"digits-for-column-{flags}-of-{number}",
            "KV-ARITH-046",
            insert("{k}", f"5, 6, {flags}, 0, 0"),
            send(f"incr {{k}} {number}\r\n", f"{number}\r\n"),
            sql("SELECT x, y FROM {t}", row),
            shape=SMALL,
        )
        for flags, number, row in ((0, 12, (0x3231, None)), (1, 7, (None, 0x37)))
    ),
    case(
        "digits-that-do-not-fill-their-column",
        "KV-ARITH-048",
        insert("{k}", "5, 6, 0, 0, 0"),
        send("incr {k} 123\r\n", "<number>\r\n"),
        sql("SELECT x, y FROM {t}", (5, 6)),
        shape=SMALL,
    ),
    case(
        "incr-an-integer-beyond-its-range",
        "KV-ARITH-035",
        insert("{k}", "2147483647, 0, 0, 0"),
        send("incr {k} 1\r\n", "2147483648\r\n"),
        sql("SELECT v FROM {t}", (-2147483648,)),
        shape=INT,
    ),
    case(
        "incr-a-bigint-beyond-its-range",
        "KV-ARITH-035",
        insert("{k}", "9223372036854775807, 0, 0, 0"),
        send("incr {k} 1\r\n", "9223372036854775808\r\n"),
        sql("SELECT v FROM {t}", (9223372036854775807,)),
        shape=BIGINT,
    ),
    *(
        case(
            f"incr-{name}-refused-beyond-its-range",
            "KV-ARITH-036",
            insert("{k}", f"{largest}, 3, 5, 0"),
            send("incr {k} 1\r\n", REFUSED),
            hit("{k}", f"{largest}", flags=3),
            shape=shape,
        )
        for name, largest, shape in (("an-integer", 2147483647, INT), ("a-bigint", 9223372036854775807, BIGINT))
    ),
    case(
        "result-as-wide-as-its-column",
        "KV-ARITH-039",
        store("{k}", "9"),
        send("incr {k} 1\r\n", "10\r\n"),
        hit("{k}", "10"),
        shape=NARROW,
    ),
    case(
        "result-refused-wider-than-its-column",
        "KV-ARITH-044",
        store("{k}", "99"),
        send("incr {k} 1\r\n", "SERVER_ERROR <text>\r\n"),
        hit("{k}", "99"),
        shape=NARROW,
    ),
    case(
        "result-cut-to-its-column",
        "KV-ARITH-043",
        store("{k}", "99"),
        send("incr {k} 1\r\n", "100\r\n"),
        hit("{k}", "10"),
        shape=NARROW,
    ),
    case(
        "number-of-sql",
        "KV-ARITH-039",
        store("{k}", "10"),
        send("incr {k} 5\r\n", "15\r\n"),
        sql("UPDATE {t} SET v = '7'"),
        send("incr {k} 5\r\n", "12\r\n"),
        sql("UPDATE {t} SET v = '1'"),
        send("decr {k} 1\r\n", "0\r\n"),
        shape=NARROW,
    ),
)

CASES = (*SEVERAL, *INTEGERS)
