"""NULL in value, flags, cas and expiry, as SQL leaves it. NULL in `containers`: `test_optional_columns.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, say, sql
from kvref_conformance.cases.phrases import OPTIONS, answered, inserted, misses, shows, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
NULL_VALUE = inserted("{k}", "NULL, 3, 5, 0")
NULLS = inserted("{k}", "'7', NULL, NULL, NULL")
SQL_NULL = "SELECT v, v IS NULL FROM {t} WHERE k = '{k}'"

VALUE = (
    case(
        "null-value-shown",
        "KV-NULL-001",
        NULL_VALUE,
        shows("{k}", "", flags=3),
        say("gets {k}\r\n", "VALUE {k} 3 0 5\r\n\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "null-value-exists",
        "KV-NULL-002",
        NULL_VALUE,
        answered("{k}", "x", "NOT_STORED\r\n", "add"),
        shows("{k}", "", flags=3),
        shape=ONE,
    ),
    case("null-value-replaced", "KV-NULL-002", NULL_VALUE, stored("{k}", "x", "replace"), shows("{k}", "x"), shape=ONE),
    case(
        "null-value-cas",
        "KV-NULL-002",
        NULL_VALUE,
        say("cas {k} 0 0 1 4\r\nx\r\n", "EXISTS\r\n"),
        say("cas {k} 0 0 1 5\r\nx\r\n", "STORED\r\n"),
        shows("{k}", "x"),
        shape=ONE,
    ),
    case(
        "null-value-deleted", "KV-NULL-002", NULL_VALUE, say("delete {k}\r\n", "DELETED\r\n"), misses("{k}"), shape=ONE
    ),
    *(
        case(
            f"null-value-{verb}",
            "KV-NULL-003",
            NULL_VALUE,
            stored("{k}", "ab", verb, flags=3),
            shows("{k}", "ab", flags=3),
            shape=ONE,
        )
        for verb in ("append", "prepend")
    ),
    case(
        "null-value-counted",
        "KV-NULL-004",
        NULL_VALUE,
        say("incr {k} 5\r\n", "5\r\n"),
        say("decr {k} 2\r\n", "3\r\n"),
        shape=ONE,
    ),
    case(
        "null-value-not-counted",
        "KV-NULL-005",
        NULL_VALUE,
        say("incr {k} 5\r\n", "CLIENT_ERROR <text>\r\n"),
        sql(SQL_NULL, (None, 1)),
        shape=ONE,
    ),
    case(
        "null-value-among-others",
        "KV-NULL-006",
        NULL_VALUE,
        stored("{k2}", "x"),
        say("get {k2} {k} {k2}\r\n", "VALUE {k2} 0 1\r\nx\r\nVALUE {k} 3 0\r\n\r\nVALUE {k2} 0 1\r\nx\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "text-null", "KV-NULL-007", stored("{k}", "NULL"), shows("{k}", "NULL"), sql(SQL_NULL, ("NULL", 0)), shape=ONE
    ),
    case(
        "null-and-empty",
        "KV-NULL-013",
        NULL_VALUE,
        shows("{k}", "", flags=3),
        sql(SQL_NULL, (None, 1)),
        stored("{k}", ""),
        shows("{k}", ""),
        sql(SQL_NULL, ("", 0)),
        shape=ONE,
    ),
)

NUMBERS = (
    case("null-flags", "KV-NULL-008", NULLS, shows("{k}", "7"), shape=ONE),
    case("null-flags-counted", "KV-NULL-008", NULLS, say("incr {k} 1\r\n", "8\r\n"), shows("{k}", "8"), shape=ONE),
    case(
        "null-cas",
        "KV-NULL-009",
        NULLS,
        say("gets {k}\r\n", "VALUE {k} 0 1 0\r\n7\r\nEND\r\n"),
        say("cas {k} 0 0 1 1\r\nx\r\n", "EXISTS\r\n"),
        shows("{k}", "7"),
        shape=ONE,
    ),
    case(
        "null-cas-zero",
        "KV-NULL-009",
        NULLS,
        say("cas {k} 0 0 1 0\r\nx\r\n", "STORED\r\n"),
        shows("{k}", "x"),
        shape=ONE,
    ),
    case(
        "null-expiry", "KV-NULL-010", NULLS, shows("{k}", "7"), answered("{k}", "x", "NOT_STORED\r\n", "add"), shape=ONE
    ),
    case(
        "nulls-overwritten",
        "KV-NULL-011",
        NULLS,
        say("set {k} 4 2000000000 1\r\nx\r\n", "STORED\r\n"),
        sql("SELECT v, f, e FROM {t}", ("x", 4, 2000000000)),
        shape=ONE,
    ),
    case(
        "nulls-overwritten-by-zero",
        "KV-NULL-011",
        NULLS,
        stored("{k}", "x"),
        sql("SELECT v, f, e FROM {t}", ("x", 0, 0)),
        shape=ONE,
    ),
)

CASES = (*VALUE, *NUMBERS)


def test_nulls(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
