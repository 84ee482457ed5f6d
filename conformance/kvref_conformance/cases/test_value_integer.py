"""Integer value columns: decimal text, its limits, and what is not a number.

Counting on them: `test_arithmetic_columns.py`. 5.6 ends with several of these types (columns:type-110, type-114).
"""

from __future__ import annotations

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import hit, insert, miss, store, try_store, value_table
from kvref_conformance.cases.test_key_column import RANGES, type_name

CLIENT_ERROR = "CLIENT_ERROR <text>\r\n"
INT, TINY, UNSIGNED = value_table("INT"), value_table("TINYINT"), value_table("INT UNSIGNED")
ROW = "SELECT v FROM {t} WHERE k = '{k}'"

CASES = (
    *(
        case(
            f"{type_name(declared)}-value",
            "KV-TYPE-020",
            store("{k}", f"{low}"),
            hit("{k}", f"{low}"),
            sql(ROW, (low,)),
            store("{k}", f"{high}"),
            hit("{k}", f"{high}"),
            sql(ROW, (high,)),
            shape=value_table(declared),
        )
        for declared, (low, high) in RANGES.items()
    ),
    case("integer-of-sql", "KV-TYPE-020", insert("{k}", "-7, 3, 0, 0"), hit("{k}", "-7", flags=3), shape=INT),
    *(
        case(f"integer-by-its-front-{name}", "KV-TYPE-021", store("{k}", text), sql(ROW, (number,)), shape=INT)
        for name, text, number in (
            ("zeros", "0012", 12),
            ("tail", "12abc", 12),
            ("blank", " 12", 12),
            ("fraction", "1.9", 1),
        )
    ),
    *(
        case(
            f"no-integer-not-stored-{name}",
            "KV-TYPE-022",
            store("{k}", "7"),
            try_store("{k}", text, "NOT_STORED\r\n"),
            hit("{k}", "7"),
            shape=INT,
        )
        for name, text in (("text", "hello"), ("empty", ""))
    ),
    *(
        case(
            f"no-integer-refused-{name}",
            "KV-TYPE-023",
            store("{k}", "7"),
            try_store("{k}", text, CLIENT_ERROR),
            miss("{k}"),
            shape=INT,
        )
        for name, text in (
            ("text", "hello"),
            ("tail", "12abc"),
            ("fraction", "1.9"),
            ("exponent", "1e3"),
            ("empty", ""),
        )
    ),
    case("no-integer-refused-new-key", "KV-TYPE-023", try_store("{k}", "hello", CLIENT_ERROR), miss("{k}"), shape=INT),
    *(
        case(
            f"{type_name(declared)}-value-too-{name}",
            "KV-TYPE-025",
            store("{k}", "7"),
            try_store("{k}", f"{number}", CLIENT_ERROR),
            miss("{k}"),
            shape=value_table(declared),
        )
        for declared, (low, high) in RANGES.items()
        for name, number in (("low", low - 1), ("high", high + 1))
    ),
    case(
        "thirty-nines",
        "KV-TYPE-025",
        store("{k}", "7"),
        try_store("{k}", "9" * 30, CLIENT_ERROR),
        miss("{k}"),
        shape=INT,
    ),
    *(
        case(f"{name}-value-by-low-bits", "KV-TYPE-024", store("{k}", text), sql(ROW, (number,)), shape=shape)
        for name, text, number, shape in (
            ("bigint", "9" * 30, 9223372036854775807, value_table("BIGINT")),
            ("signed", "2147483648", -2147483648, value_table("INT")),
        )
    ),
    case(
        "append-to-an-integer-not-stored",
        "KV-TYPE-026",
        store("{k}", "7"),
        try_store("{k}", "1", "NOT_STORED\r\n", "append"),
        hit("{k}", "7"),
        shape=INT,
    ),
    case(
        "add-and-replace-an-integer",
        "KV-TYPE-020",
        store("{k}", "5", "add"),
        try_store("{k}", "6", "NOT_STORED\r\n", "add"),
        store("{k}", "7", "replace"),
        send("delete {k}\r\n", "DELETED\r\n"),
        shape=INT,
    ),
)
