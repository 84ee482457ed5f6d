"""Key columns of text: width, character set and collation decide which keys fit and which are equal.

Letters outside ASCII are written as the bytes of UTF-8, one character a byte, unless the column is of latin1.
"""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store, try_store


def key_column(declared: str) -> Shape:
    """Return the usual table with a key column declared so."""
    return Shape(f"k {declared} PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def collated_key(collation: str, width: int = 32, kind: str = "VARCHAR") -> Shape:
    """Return the usual table with a key column of that collation."""
    return key_column(f"{kind}({width}) CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}")


# é, É, ß, ü and an emoji in UTF-8.
E_ACUTE, E_CAPITAL, SHARP_S, U_UMLAUT, EMOJI = "\xc3\xa9", "\xc3\x89", "\xc3\x9f", "\xc3\xbc", "\xf0\x9f\x98\x80"
NARROW = collated_key("utf8mb4_general_ci", 4)
REFUSED = "CLIENT_ERROR <text>\r\n", "SERVER_ERROR <text>\r\n"
MALFORMED = "SERVER_ERROR <text>\r\n"

CASES = (
    *(
        case(
            f"{name}-key",
            "KV-KEY-001",
            store("{k}", "x"),
            hit("{k}", "x"),
            sql("SELECT k, v FROM {t}", ("{k}", "x")),
            shape=shape,
        )
        for name, shape in (
            ("varchar", key_column("VARCHAR(32)")),
            ("latin1", collated_key("latin1_swedish_ci")),
            ("ascii", collated_key("ascii_general_ci")),
            ("utf8", collated_key("utf8_general_ci")),
            ("utf8mb4", collated_key("utf8mb4_unicode_ci")),
        )
    ),
    *(
        case(
            f"letter-case-{collation}",
            "KV-CORE-047 KV-KEY-001",
            store("{k}ab", "x"),
            hit("{k}AB", "x"),
            hit("{k}Ab", "x"),
            shape=collated_key(collation),
        )
        for collation in ("latin1_swedish_ci", "utf8_general_ci", "utf8mb4_unicode_ci", "ascii_general_ci")
    ),
    case(
        "letter-case-for-other-verbs",
        "KV-KEY-024",
        store("{k}ab", "7"),
        try_store("{k}AB", "y", "NOT_STORED\r\n", "add"),
        send("incr {k}Ab 1\r\n", "8\r\n"),
        store("{k}aB", "1", "append"),
        hit("{k}ab", "81"),
        send("delete {k}AB\r\n", "DELETED\r\n"),
        miss("{k}ab"),
        shape=collated_key("utf8mb4_general_ci"),
    ),
    *(
        case(
            f"letter-case-{collation}",
            "KV-KEY-023",
            store("{k}ab", "x"),
            miss("{k}AB"),
            store("{k}AB", "y", "add"),
            send("delete {k}Ab\r\n", "NOT_FOUND\r\n"),
            send("get {k}ab {k}AB\r\n", "VALUE {k}ab 0 1\r\nx\r\nVALUE {k}AB 0 1\r\ny\r\nEND\r\n"),
            shape=collated_key(collation),
        )
        for collation in ("utf8mb4_bin", "latin1_bin", "latin1_general_cs")
    ),
    *(
        case(
            f"accents-equal-{collation}",
            "KV-KEY-025",
            store(f"{{k}}{E_ACUTE}", "x"),
            hit("{k}e", "x"),
            hit(f"{{k}}{E_CAPITAL}", "x"),
            shape=collated_key(collation),
        )
        for collation in ("utf8_general_ci", "utf8mb4_unicode_ci")
    ),
    case(
        "accents-apart-utf8_bin",
        "KV-KEY-025",
        store(f"{{k}}{E_ACUTE}", "x"),
        miss("{k}e"),
        miss(f"{{k}}{E_CAPITAL}"),
        shape=collated_key("utf8_bin"),
    ),
    case(
        "accents-of-swedish",
        "KV-KEY-025",
        store("{k}\xe9", "x"),
        hit("{k}e", "x"),
        store("{k}\xf6", "y", "add"),
        miss("{k}o"),
        shape=collated_key("latin1_swedish_ci"),
    ),
    case(
        "sharp-s-unicode",
        "KV-KEY-053",
        store("{k}ss", "x"),
        hit(f"{{k}}{SHARP_S}", "x"),
        shape=collated_key("utf8_unicode_ci"),
    ),
    case(
        "sharp-s-general",
        "KV-KEY-053",
        store("{k}ss", "x"),
        miss(f"{{k}}{SHARP_S}"),
        shape=collated_key("utf8_general_ci"),
    ),
    case(
        "key-of-sql-as-bytes",
        "KV-KEY-001",
        insert(f"{{k}}{E_ACUTE}".encode("latin-1").decode("utf-8"), "'x', 0, 0, 0"),
        hit(f"{{k}}{E_ACUTE}", "x"),
        shape=collated_key("utf8mb4_bin"),
    ),
    case(
        "key-bytes-of-latin1",
        "KV-KEY-032",
        store("a\xe9\xff", "x"),
        hit("a\xe9\xff", "x"),
        sql("SELECT HEX(k) FROM {t}", ("61E9FF",)),
        shape=collated_key("latin1_bin"),
    ),
    case(
        "key-of-four-characters",
        "KV-KEY-028",
        store(U_UMLAUT * 4, "x"),
        hit(U_UMLAUT * 4, "x"),
        miss(U_UMLAUT * 3),
        shape=NARROW,
    ),
    case(
        "key-of-four-emoji",
        "KV-KEY-028",
        store(EMOJI * 4, "x"),
        hit(EMOJI * 4, "x"),
        shape=collated_key("utf8mb4_bin", 4),
    ),
    case(
        "key-of-five-characters",
        "KV-LIMIT-007 KV-KEY-028",
        store("abcd", "x"),
        try_store("abcde", "y", REFUSED),
        hit("abcd", "x"),
        shape=NARROW,
    ),
    *(
        case(
            f"long-key-cut-by-{verb}",
            "KV-KEY-027",
            store("abcd", "5"),
            send(f"{verb} abcdef{rest}\r\n", answer),
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
        store("{k}ab", "x"),
        store("{k}AB", "y"),
        sql("SELECT k, v FROM {t}", ("{k}AB", "y")),
        shape=collated_key("utf8_general_ci"),
    ),
    *(
        case(
            f"malformed-key-{verb}",
            "KV-KEY-030",
            try_store("{k}a\xffb", "x", MALFORMED, verb),
            sql("SELECT COUNT(*) FROM {t}", (0,)),
            shape=collated_key("utf8_general_ci"),
        )
        for verb in ("set", "add", "replace", "append", "prepend")
    ),
    case(
        "malformed-key-missing",
        "KV-KEY-031 KV-KEY-066",
        store("{k}a", "x"),
        miss("{k}a\xffb"),
        send("delete {k}a\xff\r\n", "NOT_FOUND\r\n"),
        hit("{k}a", "x"),
        shape=collated_key("utf8_general_ci"),
    ),
    case(
        "malformed-key-cut",
        "KV-KEY-029",
        store("{k}a\xffb", "x"),
        sql("SELECT k FROM {t}", ("{k}a",)),
        hit("{k}a", "x"),
        hit("{k}a\xfe", "x"),
        send("delete {k}a\xff\r\n", "DELETED\r\n"),
        shape=collated_key("utf8_general_ci"),
    ),
    *(
        case(
            f"trailing-blank-{name}",
            "KV-KEY-033",
            insert("{k} ", "'x', 0, 0, 0"),
            hit("{k}", "x"),
            shape=collated_key(collation),
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
        store("{k}", "x"),
        hit("{k}", "x"),
        sql("SELECT k FROM {t}", ("{k}",)),
        shape=collated_key("latin1_swedish_ci", 20, "CHAR"),
    ),
    case(
        "char-key-of-sql",
        "KV-KEY-034",
        insert("{k}", "'x', 0, 0, 0"),
        hit("{k}", "x"),
        shape=collated_key("utf8_general_ci", 20, "CHAR"),
    ),
    case(
        "key-of-250-bytes-stored",
        "KV-KEY-052",
        store("{k:250}", "x"),
        hit("{k:250}", "x"),
        miss("{k:249}"),
        send("delete {k:250}\r\n", "DELETED\r\n"),
        shape=collated_key("latin1_swedish_ci", 255),
    ),
    case(
        "ucs2-key",
        "KV-KEY-035",
        insert("\u4e2d\u6587", "'x', 0, 0, 0"),
        miss("\u4e2d\u6587".encode().decode("latin-1")),
        hit("N-e\x87", "x"),
        shape=collated_key("ucs2_general_ci"),
    ),
)
