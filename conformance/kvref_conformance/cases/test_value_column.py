"""The type of the value column: text and bytes of every size, and what does not fit.

Integer columns: `test_value_integer.py`; types that no mapping should use: `test_value_raw.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import case, say, sql
from kvref_conformance.cases.phrases import answered, misses, named, shows, stored, valued

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case


TEXTS: Final = ("VARCHAR(100)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT")
BLOBS: Final = ("VARBINARY(300)", "BLOB", "MEDIUMBLOB", "LONGBLOB")
EVERY_BYTE: Final = "".join(map(chr, range(256)))
TOO_LARGE: Final = "SERVER_ERROR object too large for cache<text>\r\n"  # KV-LIMIT-015 judges the text alone
REFUSED = ("CLIENT_ERROR <text>\r\n", "SERVER_ERROR <text>\r\n")
E_ACUTE, EMOJI = "\xc3\xa9", "\xf0\x9f\x98\x80"
FOUR = valued("VARCHAR(4) CHARACTER SET utf8mb4")
UTF8, LATIN1, CHAR = (
    valued("VARCHAR(40) CHARACTER SET utf8"),
    valued("VARCHAR(40) CHARACTER SET latin1"),
    valued("CHAR(6)"),
)
ROW = "SELECT v FROM {t} WHERE k = '{k}'"
HEX = "SELECT HEX(v) FROM {t} WHERE k = '{k}'"


FITTING = (
    *(
        case(
            f"{named(declared)}-value",
            "KV-TYPE-001",
            stored("{k}", "Some, text."),
            sql(ROW, ("Some, text.",)),
            shows("{k}", "Some, text."),
            shape=valued(declared),
        )
        for declared in TEXTS
    ),
    *(
        case(
            f"{named(declared)}-value",
            "KV-TYPE-002",
            stored("{k}", EVERY_BYTE),
            shows("{k}", EVERY_BYTE),
            sql(HEX, (EVERY_BYTE.encode("latin-1").hex().upper(),)),
            shape=valued(declared),
        )
        for declared in BLOBS
    ),
    case(
        "large-text",
        "KV-TYPE-001",
        stored("{k}", "v" * 70000),
        sql("SELECT LENGTH(v) FROM {t}", (70000,)),
        shows("{k}", "v" * 70000),
        shape=valued("MEDIUMTEXT"),
    ),
    *(
        case(
            f"empty-{named(declared)}",
            "KV-TYPE-003",
            stored("{k}", ""),
            sql("SELECT v, v IS NULL FROM {t}", ("", 0)),
            shows("{k}", ""),
            shape=valued(declared),
        )
        for declared in ("VARCHAR(100)", "TEXT")
    ),
    case(
        "empty-value-of-not-null",
        "KV-TYPE-030",
        stored("{k}", "x"),
        stored("{k}", ""),
        sql("SELECT v FROM {t}", ("",)),
        shows("{k}", ""),
        shape=valued("VARCHAR(100) NOT NULL"),
    ),
    case(
        "width-in-characters",
        "KV-TYPE-006",
        stored("{k}", E_ACUTE * 4),
        shows("{k}", E_ACUTE * 4),
        stored("{k}", EMOJI * 4),
        shows("{k}", EMOJI * 4),
        shape=FOUR,
    ),
    case(
        "latin1-value",
        "KV-TYPE-009",
        stored("{k}", EVERY_BYTE[:40]),
        stored("{k2}", EVERY_BYTE[216:]),
        shows("{k2}", EVERY_BYTE[216:]),
        sql("SELECT HEX(v) FROM {t} WHERE k = '{k2}'", (EVERY_BYTE[216:].encode("latin-1").hex().upper(),)),
        shape=LATIN1,
    ),
    case(
        "unique-value",
        "KV-TYPE-034",
        stored("{k}", "x"),
        stored("{k2}", "y"),
        answered("{k2}", "x", ("NOT_STORED\r\n", *REFUSED)),
        shows("{k2}", "y"),
        shape=valued("VARCHAR(40)", ", UNIQUE INDEX uv (v)"),
    ),
    case(
        "unique-value-new-key",
        "KV-TYPE-034",
        stored("{k}", "x"),
        answered("{k2}", "x", ("NOT_STORED\r\n", *REFUSED)),
        misses("{k2}"),
        shape=valued("VARCHAR(40)", ", UNIQUE INDEX uv (v)"),
    ),
    case(
        "indexed-value",
        "KV-TYPE-035",
        stored("{k}", "x"),
        stored("{k}", "y"),
        sql("SELECT COUNT(*) FROM {t} WHERE v = 'x'", (0,)),
        sql("SELECT k FROM {t} WHERE v = 'y'", ("{k}",)),
        say("delete {k}\r\n", "DELETED\r\n"),
        sql("SELECT COUNT(*) FROM {t} WHERE v = 'y'", (0,)),
        shape=valued("VARCHAR(40)", ", INDEX iv (v)"),
    ),
)

NOT_FITTING = (
    *(
        case(f"long-value-cut-{name}", "KV-TYPE-004", stored("{k}", value), sql(ROW, (kept,)), shape=FOUR)
        for name, value, kept in (("ascii", "abcdef", "abcd"), ("accents", E_ACUTE * 5, "\xe9" * 4))
    ),
    case(
        "long-value-of-five-characters",
        "KV-LIMIT-003",
        stored("{k}", "abcd"),
        answered("{k}", E_ACUTE * 5, TOO_LARGE),
        misses("{k}"),
        shape=FOUR,
    ),
    case(
        "append-cut",
        "KV-TYPE-005",
        stored("{k}", "abc"),
        stored("{k}", "def", "append"),
        shows("{k}", "abcd"),
        shape=FOUR,
    ),
    case(
        "prepend-cut",
        "KV-TYPE-005",
        stored("{k}", "abc"),
        stored("{k}", "de", "prepend"),
        shows("{k}", "deab"),
        shape=FOUR,
    ),
    case(
        "cut-between-characters",
        "KV-TYPE-007",
        stored("{k}", f"abc{E_ACUTE}d"),
        shows("{k}", f"abc{E_ACUTE}"),
        shape=FOUR,
    ),
    *(
        case(f"malformed-value-cut-{name}", "KV-TYPE-008", stored("{k}", value), shows("{k}", kept), shape=UTF8)
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
            stored("{k}", "x"),
            answered("{k}", value, "SERVER_ERROR <text>\r\n"),
            misses("{k}"),
            shape=UTF8,
        )
        for name, value in (("between", "ab\xffcd"), ("half-a-character", "ab\xc3"), ("four-bytes", f"ab{EMOJI}cd"))
    ),
    *(
        case(
            f"long-{named(declared)}",
            "KV-TYPE-011",
            stored("{k}", "v" * (size - 1)),
            stored("{k}", "v" * size),
            answered("{k}", "w" * (size + 1), TOO_LARGE),
            misses("{k}"),
            shape=valued(declared),
        )
        for declared, size in (("TINYTEXT", 255), ("TINYBLOB", 255), ("TEXT", 65535))
    ),
    *(
        case(
            f"reply-to-a-long-value-of-{name}",
            "KV-LIMIT-015",
            answered(
                "{k}", "w" * (size + 1), f"SERVER_ERROR object too large for cache: column v takes {size} {unit}\r\n"
            ),
            shape=valued(declared),
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
        answered("{k}", E_ACUTE * 128, TOO_LARGE),
        misses("{k}"),
        shape=valued("TINYTEXT CHARACTER SET utf8mb4"),
    ),
    case("char-value-padded", "KV-TYPE-012", stored("{k}", "abc"), shows("{k}", "abc   "), shape=CHAR),
    case(
        "char-value-appended",
        "KV-TYPE-013",
        stored("{k}", "abc"),
        stored("{k}", "def", "append"),
        shows("{k}", "abc   "),
        shape=CHAR,
    ),
)

CASES = (*FITTING, *NOT_FITTING)


def test_value_column(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
