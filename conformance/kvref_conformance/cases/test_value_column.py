"""The type of the value column: text and bytes of every size, and what does not fit.

Integer columns: `test_value_integer.py`; types that no mapping should use: `test_value_raw.py`.
"""

from __future__ import annotations

from typing import Final

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import hit, miss, store, try_store, type_name, value_table

TEXTS: Final = ("VARCHAR(100)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT")
BLOBS: Final = ("VARBINARY(300)", "BLOB", "MEDIUMBLOB", "LONGBLOB")
EVERY_BYTE: Final = "".join(map(chr, range(256)))
TOO_LARGE: Final = "SERVER_ERROR object too large for cache<text>\r\n"  # KV-LIMIT-015 judges the text alone
REFUSED = ("CLIENT_ERROR <text>\r\n", "SERVER_ERROR <text>\r\n")
E_ACUTE, EMOJI = "\xc3\xa9", "\xf0\x9f\x98\x80"
FOUR = value_table("VARCHAR(4) CHARACTER SET utf8mb4")
UTF8, LATIN1, CHAR = (
    value_table("VARCHAR(40) CHARACTER SET utf8"),
    value_table("VARCHAR(40) CHARACTER SET latin1"),
    value_table("CHAR(6)"),
)
ROW = "SELECT v FROM {t} WHERE k = '{k}'"
HEX = "SELECT HEX(v) FROM {t} WHERE k = '{k}'"


FITTING = (
    *(
        case(
            f"{type_name(declared)}-value",
            "KV-TYPE-001",
            store("{k}", "Some, text."),
            sql(ROW, ("Some, text.",)),
            hit("{k}", "Some, text."),
            shape=value_table(declared),
        )
        for declared in TEXTS
    ),
    *(
        case(
            f"{type_name(declared)}-value",
            "KV-TYPE-002",
            store("{k}", EVERY_BYTE),
            hit("{k}", EVERY_BYTE),
            sql(HEX, (EVERY_BYTE.encode("latin-1").hex().upper(),)),
            shape=value_table(declared),
        )
        for declared in BLOBS
    ),
    case(
        "large-text",
        "KV-TYPE-001",
        store("{k}", "v" * 70000),
        sql("SELECT LENGTH(v) FROM {t}", (70000,)),
        hit("{k}", "v" * 70000),
        shape=value_table("MEDIUMTEXT"),
    ),
    *(
        case(
            f"empty-{type_name(declared)}",
            "KV-TYPE-003",
            store("{k}", ""),
            sql("SELECT v, v IS NULL FROM {t}", ("", 0)),
            hit("{k}", ""),
            shape=value_table(declared),
        )
        for declared in ("VARCHAR(100)", "TEXT")
    ),
    case(
        "empty-value-of-not-null",
        "KV-TYPE-030",
        store("{k}", "x"),
        store("{k}", ""),
        sql("SELECT v FROM {t}", ("",)),
        hit("{k}", ""),
        shape=value_table("VARCHAR(100) NOT NULL"),
    ),
    case(
        "width-in-characters",
        "KV-TYPE-006",
        store("{k}", E_ACUTE * 4),
        hit("{k}", E_ACUTE * 4),
        store("{k}", EMOJI * 4),
        hit("{k}", EMOJI * 4),
        shape=FOUR,
    ),
    case(
        "latin1-value",
        "KV-TYPE-009",
        store("{k}", EVERY_BYTE[:40]),
        store("{k2}", EVERY_BYTE[216:]),
        hit("{k2}", EVERY_BYTE[216:]),
        sql("SELECT HEX(v) FROM {t} WHERE k = '{k2}'", (EVERY_BYTE[216:].encode("latin-1").hex().upper(),)),
        shape=LATIN1,
    ),
    case(
        "unique-value",
        "KV-TYPE-034",
        store("{k}", "x"),
        store("{k2}", "y"),
        try_store("{k2}", "x", ("NOT_STORED\r\n", *REFUSED)),
        hit("{k2}", "y"),
        shape=value_table("VARCHAR(40)", ", UNIQUE INDEX uv (v)"),
    ),
    case(
        "unique-value-new-key",
        "KV-TYPE-034",
        store("{k}", "x"),
        try_store("{k2}", "x", ("NOT_STORED\r\n", *REFUSED)),
        miss("{k2}"),
        shape=value_table("VARCHAR(40)", ", UNIQUE INDEX uv (v)"),
    ),
    case(
        "indexed-value",
        "KV-TYPE-035",
        store("{k}", "x"),
        store("{k}", "y"),
        sql("SELECT COUNT(*) FROM {t} WHERE v = 'x'", (0,)),
        sql("SELECT k FROM {t} WHERE v = 'y'", ("{k}",)),
        send("delete {k}\r\n", "DELETED\r\n"),
        sql("SELECT COUNT(*) FROM {t} WHERE v = 'y'", (0,)),
        shape=value_table("VARCHAR(40)", ", INDEX iv (v)"),
    ),
)

NOT_FITTING = (
    *(
        case(f"long-value-cut-{name}", "KV-TYPE-004", store("{k}", value), sql(ROW, (kept,)), shape=FOUR)
        for name, value, kept in (("ascii", "abcdef", "abcd"), ("accents", E_ACUTE * 5, "\xe9" * 4))
    ),
    case(
        "long-value-of-five-characters",
        "KV-LIMIT-003",
        store("{k}", "abcd"),
        try_store("{k}", E_ACUTE * 5, TOO_LARGE),
        miss("{k}"),
        shape=FOUR,
    ),
    case(
        "append-cut",
        "KV-TYPE-005",
        store("{k}", "abc"),
        store("{k}", "def", "append"),
        hit("{k}", "abcd"),
        shape=FOUR,
    ),
    case(
        "prepend-cut",
        "KV-TYPE-005",
        store("{k}", "abc"),
        store("{k}", "de", "prepend"),
        hit("{k}", "deab"),
        shape=FOUR,
    ),
    case(
        "cut-between-characters",
        "KV-TYPE-007",
        store("{k}", f"abc{E_ACUTE}d"),
        hit("{k}", f"abc{E_ACUTE}"),
        shape=FOUR,
    ),
    *(
        case(f"malformed-value-cut-{name}", "KV-TYPE-008", store("{k}", value), hit("{k}", kept), shape=UTF8)
        for name, value, kept in (
            ("between", "ab\xffcd", "ab"),
            ("first", "\xffab", ""),
            ("four-bytes", f"ab{EMOJI}cd", "ab"),
        )
    ),
    *(
        case(
            f"malformed-value-{name}",
            "KV-TYPE-037",
            store("{k}", "x"),
            try_store("{k}", value, "SERVER_ERROR <text>\r\n"),
            miss("{k}"),
            shape=UTF8,
        )
        for name, value in (("between", "ab\xffcd"), ("half-a-character", "ab\xc3"), ("four-bytes", f"ab{EMOJI}cd"))
    ),
    *(
        case(
            f"long-{type_name(declared)}",
            "KV-TYPE-011",
            store("{k}", "v" * (size - 1)),
            store("{k}", "v" * size),
            try_store("{k}", "w" * (size + 1), TOO_LARGE),
            miss("{k}"),
            shape=value_table(declared),
        )
        for declared, size in (("TINYTEXT", 255), ("TINYBLOB", 255), ("TEXT", 65535))
    ),
    *(
        case(
            f"reply-to-a-long-value-of-{name}",
            "KV-LIMIT-015",
            try_store(
                "{k}", "w" * (size + 1), f"SERVER_ERROR object too large for cache: column v takes {size} {unit}\r\n"
            ),
            shape=value_table(declared),
        )
        for name, declared, size, unit in (
            ("utf8mb4-text", "VARCHAR(4) CHARACTER SET utf8mb4", 4, "characters"),
            ("latin1-text", "VARCHAR(5) CHARACTER SET latin1", 5, "characters"),
            ("tinytext", "TINYTEXT", 255, "bytes"),
            ("bytes", "VARBINARY(6)", 6, "bytes"),
        )
    ),
    case(
        "long-tinytext-in-characters",
        "KV-TYPE-011",
        try_store("{k}", E_ACUTE * 128, TOO_LARGE),
        miss("{k}"),
        shape=value_table("TINYTEXT CHARACTER SET utf8mb4"),
    ),
    case("char-value-padded", "KV-TYPE-012", store("{k}", "abc"), hit("{k}", "abc   "), shape=CHAR),
    case(
        "char-value-appended",
        "KV-TYPE-013",
        store("{k}", "abc"),
        store("{k}", "def", "append"),
        hit("{k}", "abc   "),
        shape=CHAR,
    ),
)

CASES = (*FITTING, *NOT_FITTING)
