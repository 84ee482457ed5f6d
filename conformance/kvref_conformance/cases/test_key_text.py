"""Key columns of text: width, character set and collation decide which keys fit and which are equal.

Letters outside ASCII are written as the bytes of UTF-8, one character a byte, unless the column is of latin1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, say, sql
from kvref_conformance.cases.phrases import OPTIONS, answered, inserted, misses, shows, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case


def keyed(declared: str) -> Shape:
    """Return the usual table with a key column declared so."""
    return Shape(f"k {declared} PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def collated(collation: str, width: int = 32, kind: str = "VARCHAR") -> Shape:
    """Return the usual table with a key column of that collation."""
    return keyed(f"{kind}({width}) CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}")


# é, É, ß, ü and an emoji in UTF-8.
E_ACUTE, E_CAPITAL, SHARP_S, U_UMLAUT, EMOJI = "\xc3\xa9", "\xc3\x89", "\xc3\x9f", "\xc3\xbc", "\xf0\x9f\x98\x80"
NARROW = collated("utf8mb4_general_ci", 4)
REFUSED = "CLIENT_ERROR <text>\r\n", "SERVER_ERROR <text>\r\n"
MALFORMED = "SERVER_ERROR <text>\r\n"

CASES = (
    *(
        case(
            f"{name}-key",
            "KV-KEY-001",
            stored("{k}", "x"),
            shows("{k}", "x"),
            sql("SELECT k, v FROM {t}", ("{k}", "x")),
            shape=shape,
        )
        for name, shape in (
            ("varchar", keyed("VARCHAR(32)")),
            ("latin1", collated("latin1_swedish_ci")),
            ("ascii", collated("ascii_general_ci")),
            ("utf8", collated("utf8_general_ci")),
            ("utf8mb4", collated("utf8mb4_unicode_ci")),
        )
    ),
    *(
        case(
            f"letter-case-{collation}",
            "KV-CORE-047 KV-KEY-001",
            stored("{k}ab", "x"),
            shows("{k}AB", "x"),
            shows("{k}Ab", "x"),
            shape=collated(collation),
        )
        for collation in ("latin1_swedish_ci", "utf8_general_ci", "utf8mb4_unicode_ci", "ascii_general_ci")
    ),
    case(
        "letter-case-for-other-verbs",
        "KV-KEY-024",
        stored("{k}ab", "7"),
        answered("{k}AB", "y", "NOT_STORED\r\n", "add"),
        say("incr {k}Ab 1\r\n", "8\r\n"),
        stored("{k}aB", "1", "append"),
        shows("{k}ab", "81"),
        say("delete {k}AB\r\n", "DELETED\r\n"),
        misses("{k}ab"),
        shape=collated("utf8mb4_general_ci"),
    ),
    *(
        case(
            f"letter-case-{collation}",
            "KV-KEY-023",
            stored("{k}ab", "x"),
            misses("{k}AB"),
            stored("{k}AB", "y", "add"),
            say("delete {k}Ab\r\n", "NOT_FOUND\r\n"),
            say("get {k}ab {k}AB\r\n", "VALUE {k}ab 0 1\r\nx\r\nVALUE {k}AB 0 1\r\ny\r\nEND\r\n"),
            shape=collated(collation),
        )
        for collation in ("utf8mb4_bin", "latin1_bin", "latin1_general_cs")
    ),
    *(
        case(
            f"accents-equal-{collation}",
            "KV-KEY-025",
            stored(f"{{k}}{E_ACUTE}", "x"),
            shows("{k}e", "x"),
            shows(f"{{k}}{E_CAPITAL}", "x"),
            shape=collated(collation),
        )
        for collation in ("utf8_general_ci", "utf8mb4_unicode_ci")
    ),
    case(
        "accents-apart-utf8_bin",
        "KV-KEY-025",
        stored(f"{{k}}{E_ACUTE}", "x"),
        misses("{k}e"),
        misses(f"{{k}}{E_CAPITAL}"),
        shape=collated("utf8_bin"),
    ),
    case(
        "accents-of-swedish",
        "KV-KEY-025",
        stored("{k}\xe9", "x"),
        shows("{k}e", "x"),
        stored("{k}\xf6", "y", "add"),
        misses("{k}o"),
        shape=collated("latin1_swedish_ci"),
    ),
    case(
        "sharp-s-unicode",
        "KV-KEY-053",
        stored("{k}ss", "x"),
        shows(f"{{k}}{SHARP_S}", "x"),
        shape=collated("utf8_unicode_ci"),
    ),
    case(
        "sharp-s-general",
        "KV-KEY-053",
        stored("{k}ss", "x"),
        misses(f"{{k}}{SHARP_S}"),
        shape=collated("utf8_general_ci"),
    ),
    case(
        "key-of-sql-as-bytes",
        "KV-KEY-001",
        inserted(f"{{k}}{E_ACUTE}".encode("latin-1").decode("utf-8"), "'x', 0, 0, 0"),
        shows(f"{{k}}{E_ACUTE}", "x"),
        shape=collated("utf8mb4_bin"),
    ),
    case(
        "key-bytes-of-latin1",
        "KV-KEY-032",
        stored("a\xe9\xff", "x"),
        shows("a\xe9\xff", "x"),
        sql("SELECT HEX(k) FROM {t}", ("61E9FF",)),
        shape=collated("latin1_bin"),
    ),
    case(
        "key-of-four-characters",
        "KV-KEY-028",
        stored(U_UMLAUT * 4, "x"),
        shows(U_UMLAUT * 4, "x"),
        misses(U_UMLAUT * 3),
        shape=NARROW,
    ),
    case(
        "key-of-four-emoji",
        "KV-KEY-028",
        stored(EMOJI * 4, "x"),
        shows(EMOJI * 4, "x"),
        shape=collated("utf8mb4_bin", 4),
    ),
    case(
        "key-of-five-characters",
        "KV-LIMIT-007 KV-KEY-028",
        stored("abcd", "x"),
        answered("abcde", "y", REFUSED),
        shows("abcd", "x"),
        shape=NARROW,
    ),
    *(
        case(
            f"long-key-cut-by-{verb}",
            "KV-KEY-027",
            stored("abcd", "5"),
            say(f"{verb} abcdef{rest}\r\n", answer),
            sql("SELECT k, v FROM {t}", *rows),
            shape=NARROW,
        )
        for verb, rest, answer, rows in (
            ("get", "", "VALUE abcdef 0 1\r\n5\r\nEND\r\n", (("abcd", "5"),)),
            ("set", " 0 0 1\r\nx", "STORED\r\n", (("abcd", "x"),)),
            ("add", " 0 0 1\r\nx", "NOT_STORED\r\n", (("abcd", "5"),)),
            ("incr", " 1", "6\r\n", (("abcd", "6"),)),
            ("delete", "", "DELETED\r\n", ()),
        )
    ),
    case(
        "key-rewritten",
        "KV-KEY-026",
        stored("{k}ab", "x"),
        stored("{k}AB", "y"),
        sql("SELECT k, v FROM {t}", ("{k}AB", "y")),
        shape=collated("utf8_general_ci"),
    ),
    *(
        case(
            f"malformed-key-{verb}",
            "KV-KEY-030",
            answered("{k}a\xffb", "x", MALFORMED, verb),
            sql("SELECT COUNT(*) FROM {t}", (0,)),
            shape=collated("utf8_general_ci"),
        )
        for verb in ("set", "add", "replace", "append", "prepend")
    ),
    case(
        "malformed-key-missing",
        "KV-KEY-031 KV-KEY-066",
        stored("{k}a", "x"),
        misses("{k}a\xffb"),
        say("delete {k}a\xff\r\n", "NOT_FOUND\r\n"),
        shows("{k}a", "x"),
        shape=collated("utf8_general_ci"),
    ),
    case(
        "malformed-key-cut",
        "KV-KEY-029",
        stored("{k}a\xffb", "x"),
        sql("SELECT k FROM {t}", ("{k}a",)),
        shows("{k}a", "x"),
        shows("{k}a\xfe", "x"),
        say("delete {k}a\xff\r\n", "DELETED\r\n"),
        shape=collated("utf8_general_ci"),
    ),
    *(
        case(
            f"trailing-blank-{name}",
            "KV-KEY-033",
            inserted("{k} ", "'x', 0, 0, 0"),
            shows("{k}", "x"),
            shape=collated(collation),
        )
        for name, collation in (
            ("of-latin1", "latin1_swedish_ci"),
            ("of-utf8", "utf8_general_ci"),
            ("of-a-binary-collation", "utf8mb4_bin"),
        )
    ),
    case(
        "char-key",
        "KV-KEY-034",
        stored("{k}", "x"),
        shows("{k}", "x"),
        sql("SELECT k FROM {t}", ("{k}",)),
        shape=collated("latin1_swedish_ci", 20, "CHAR"),
    ),
    case(
        "char-key-of-sql",
        "KV-KEY-034",
        inserted("{k}", "'x', 0, 0, 0"),
        shows("{k}", "x"),
        shape=collated("utf8_general_ci", 20, "CHAR"),
    ),
    case(
        "key-of-250-bytes-stored",
        "KV-KEY-052",
        stored("{k:250}", "x"),
        shows("{k:250}", "x"),
        misses("{k:249}"),
        say("delete {k:250}\r\n", "DELETED\r\n"),
        shape=collated("latin1_swedish_ci", 255),
    ),
    case(
        "ucs2-key",
        "KV-KEY-035",
        inserted("\u4e2d\u6587", "'x', 0, 0, 0"),
        misses("\u4e2d\u6587".encode().decode("latin-1")),
        shows("N-e\x87", "x"),
        shape=collated("ucs2_general_ci"),
    ),
)


def test_key_text(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
