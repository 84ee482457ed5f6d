"""NULL in value, flags, cas and expiry, as SQL leaves it. NULL in `containers`: `test_optional_columns.py`."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store, try_store

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
NULL_VALUE = insert("{k}", "NULL, 3, 5, 0")
NULLS = insert("{k}", "'7', NULL, NULL, NULL")
SQL_NULL = "SELECT v, v IS NULL FROM {t} WHERE k = '{k}'"

VALUE = (
    case(
        "null-value-shown",
        "KV-NULL-001",
        NULL_VALUE,
        hit("{k}", "", flags=3),
        send("gets {k}\r\n", "VALUE {k} 3 0 5\r\n\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "null-value-exists",
        "KV-NULL-002",
        NULL_VALUE,
        try_store("{k}", "x", "NOT_STORED\r\n", "add"),
        hit("{k}", "", flags=3),
        shape=ONE,
    ),
    case("null-value-replaced", "KV-NULL-002", NULL_VALUE, store("{k}", "x", "replace"), hit("{k}", "x"), shape=ONE),
    case(
        "null-value-cas",
        "KV-NULL-002",
        NULL_VALUE,
        send("cas {k} 0 0 1 4\r\nx\r\n", "EXISTS\r\n"),
        send("cas {k} 0 0 1 5\r\nx\r\n", "STORED\r\n"),
        hit("{k}", "x"),
        shape=ONE,
    ),
    case(
        "null-value-deleted", "KV-NULL-002", NULL_VALUE, send("delete {k}\r\n", "DELETED\r\n"), miss("{k}"), shape=ONE
    ),
    *(
        case(
            f"null-value-{verb}",
            "KV-NULL-003",
            NULL_VALUE,
            store("{k}", "ab", verb, flags=3),
            hit("{k}", "ab", flags=3),
            shape=ONE,
        )
        for verb in ("append", "prepend")
    ),
    case(
        "null-value-counted",
        "KV-NULL-004",
        NULL_VALUE,
        send("incr {k} 5\r\n", "5\r\n"),
        send("decr {k} 2\r\n", "3\r\n"),
        shape=ONE,
    ),
    case(
        "null-value-not-counted",
        "KV-NULL-005",
        NULL_VALUE,
        send("incr {k} 5\r\n", "CLIENT_ERROR <text>\r\n"),
        sql(SQL_NULL, (None, 1)),
        shape=ONE,
    ),
    case(
        "null-value-among-others",
        "KV-NULL-006",
        NULL_VALUE,
        store("{k2}", "x"),
        send("get {k2} {k} {k2}\r\n", "VALUE {k2} 0 1\r\nx\r\nVALUE {k} 3 0\r\n\r\nVALUE {k2} 0 1\r\nx\r\nEND\r\n"),
        shape=ONE,
    ),
    case("text-null", "KV-NULL-007", store("{k}", "NULL"), hit("{k}", "NULL"), sql(SQL_NULL, ("NULL", 0)), shape=ONE),
    case(
        "null-and-empty",
        "KV-NULL-013",
        NULL_VALUE,
        hit("{k}", "", flags=3),
        sql(SQL_NULL, (None, 1)),
        store("{k}", ""),
        hit("{k}", ""),
        sql(SQL_NULL, ("", 0)),
        shape=ONE,
    ),
)

NUMBERS = (
    case("null-flags", "KV-NULL-008", NULLS, hit("{k}", "7"), shape=ONE),
    case("null-flags-counted", "KV-NULL-008", NULLS, send("incr {k} 1\r\n", "8\r\n"), hit("{k}", "8"), shape=ONE),
    case(
        "null-cas",
        "KV-NULL-009",
        NULLS,
        send("gets {k}\r\n", "VALUE {k} 0 1 0\r\n7\r\nEND\r\n"),
        send("cas {k} 0 0 1 1\r\nx\r\n", "EXISTS\r\n"),
        hit("{k}", "7"),
        shape=ONE,
    ),
    case(
        "null-cas-zero",
        "KV-NULL-009",
        NULLS,
        send("cas {k} 0 0 1 0\r\nx\r\n", "STORED\r\n"),
        hit("{k}", "x"),
        shape=ONE,
    ),
    case(
        "null-expiry", "KV-NULL-010", NULLS, hit("{k}", "7"), try_store("{k}", "x", "NOT_STORED\r\n", "add"), shape=ONE
    ),
    case(
        "nulls-overwritten",
        "KV-NULL-011",
        NULLS,
        send("set {k} 4 2000000000 1\r\nx\r\n", "STORED\r\n"),
        sql("SELECT v, f, e FROM {t}", ("x", 4, 2000000000)),
        shape=ONE,
    ),
    case(
        "nulls-overwritten-by-zero",
        "KV-NULL-011",
        NULLS,
        store("{k}", "x"),
        sql("SELECT v, f, e FROM {t}", ("x", 0, 0)),
        shape=ONE,
    ),
)

CASES = (*VALUE, *NUMBERS)
