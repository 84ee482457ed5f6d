"""The type of the key column: which types, which keys fit, which spellings of a number are one key.

Character sets and collations: `test_key_text.py`. Indexes: `test_key_index.py`.
"""

from __future__ import annotations

from typing import Final

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store, try_store, unmapped


def key_column(declared: str) -> Shape:
    """Return the usual table with a key column declared so."""
    return Shape(f"k {declared} PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


# Smallest and largest number by type; the plugin cannot live with MEDIUMINT (columns:type-036).
RANGES: Final = {
    "TINYINT": (-128, 127),
    "TINYINT UNSIGNED": (0, 255),
    "SMALLINT": (-32768, 32767),
    "SMALLINT UNSIGNED": (0, 65535),
    "INT": (-2147483648, 2147483647),
    "INT UNSIGNED": (0, 4294967295),
    "BIGINT": (-9223372036854775808, 9223372036854775807),
}
INT, UNSIGNED, TINY, LARGE = (key_column(words) for words in ("INT", "INT UNSIGNED", "TINYINT", "BIGINT UNSIGNED"))
FIVE = store("5", "five")
# Store 25 under the key 5 with every verb that writes a value.
TO_25: Final = (
    store("5", "1", "add"),
    store("5", "2", "replace"),
    store("5", "0", "append"),
    send("incr 5 5\r\n", "25\r\n"),
)
# Whatever a storage verb says when it stores nothing.
NOT_TAKEN = ("CLIENT_ERROR <text>\r\n", "NOT_STORED\r\n")


def type_name(declared: str) -> str:
    """Return a type as a part of a case's name."""
    return declared.lower().replace(" ", "-")


INTEGERS = (
    *(
        case(
            f"{type_name(declared)}-key",
            "KV-KEY-002",
            store(f"{low}", "lowest"),
            store(f"{high}", "highest"),
            send(f"get {high} {low}\r\n", f"VALUE {high} 0 7\r\nhighest\r\nVALUE {low} 0 6\r\nlowest\r\nEND\r\n"),
            sql("SELECT k, v FROM {t} ORDER BY k", (low, "lowest"), (high, "highest")),
            shape=key_column(declared),
        )
        for declared, (low, high) in RANGES.items()
    ),
    case("integer-key-of-sql", "KV-KEY-003", insert("5", "'five', 2, 0, 0"), hit("5", "five", flags=2), shape=INT),
    case(
        "integer-key-for-every-verb",
        "KV-KEY-003",
        *TO_25,
        send("decr 5 1\r\n", "24\r\n"),
        hit("5", "24"),
        send("delete 5\r\n", "DELETED\r\n"),
        miss("5"),
        shape=INT,
    ),
    case("negative-key", "KV-KEY-004", insert("-5", "'minus', 0, 0, 0"), FIVE, hit("-5", "minus"), shape=INT),
    case(
        "one-row-under-several-spellings",
        "KV-KEY-013",
        FIVE,
        send("get 5 6 05 5\r\n", "VALUE 5 0 4\r\nfive\r\nVALUE 05 0 4\r\nfive\r\nVALUE 5 0 4\r\nfive\r\nEND\r\n"),
        shape=INT,
    ),
    *(
        case(
            f"integer-key-{name}",
            "KV-KEY-005",
            FIVE,
            hit(spelling, "five"),
            try_store(spelling, "x", "NOT_STORED\r\n", "add"),
            shape=INT,
        )
        for name, spelling in (("zeros", "005"), ("plus", "+5"), ("tail", "5abc"), ("fraction", "5.5"))
    ),
    case(
        "integer-key-spelled-otherwise",
        "KV-KEY-003",
        FIVE,
        hit("005", "five"),
        hit("+5", "five"),
        try_store("005", "x", "NOT_STORED\r\n", "add"),
        store("+5", "other"),
        hit("5", "other"),
        shape=INT,
    ),
    *(
        case(
            f"no-integer-{name}",
            "KV-KEY-059",
            FIVE,
            store("0", "7"),
            miss(spelling),
            send(f"incr {spelling} 1\r\ndecr {spelling} 1\r\n", "NOT_FOUND\r\n" * 2),
            send(f"delete {spelling}\r\n", "NOT_FOUND\r\n"),
            hit("5", "five"),
            hit("0", "7"),
            shape=INT,
        )
        for name, spelling in (("tail", "5abc"), ("fraction", "5.5"), ("hexadecimal", "0x5"))
    ),
    *(
        case(
            f"no-integer-{name}-stored",
            "KV-KEY-060",
            FIVE,
            try_store(spelling, "x", "CLIENT_ERROR <text>\r\n", verb),
            sql("SELECT k, v FROM {t}", (5, "five")),
            shape=INT,
        )
        for name, verb, spelling in (
            ("tail", "set", "5abc"),
            ("tail-added", "add", "6abc"),
            ("tail-appended", "append", "5abc"),
            ("fraction", "replace", "5.5"),
        )
    ),
    *(
        case(f"no-integer-{name}", "KV-KEY-006", FIVE, store("0", "zero"), miss(spelling), shape=INT)
        for name, spelling in (("text", "abc"), ("sign", "-"), ("signs", "--5"), ("bar", "_5"))
    ),
    *(
        case(
            f"no-integer-{name}-stored",
            "KV-KEY-007",
            store("0", "zero"),
            try_store(spelling, "x", NOT_TAKEN, verb),
            sql("SELECT k, v FROM {t}", (0, "zero")),
            shape=INT,
        )
        for name, verb, spelling in (("text", "set", "abc"), ("text-added", "add", "abc"), ("signs", "set", "--5"))
    ),
)

BEYOND = (
    *(
        case(
            f"{type_name(declared)}-key-too-{name}",
            "KV-KEY-009",
            try_store(f"{number}", "x", "CLIENT_ERROR <text>\r\n"),
            sql("SELECT COUNT(*) FROM {t}", (0,)),
            shape=key_column(declared),
        )
        for declared, (low, high) in RANGES.items()
        for name, number in (("low", low - 1), ("high", high + 1))
    ),
    case("key-beyond-64-bits", "KV-KEY-009", try_store("9" * 30, "x", "CLIENT_ERROR <text>\r\n"), shape=INT),
    *(
        case(
            f"key-out-of-range-{name}",
            "KV-KEY-010 KV-KEY-065",
            store(f"{kept}", "7"),
            send(f"get {number}\r\n", "END\r\n"),
            send(f"delete {number}\r\n", "NOT_FOUND\r\n"),
            send(f"incr {number} 1\r\n", "NOT_FOUND\r\n"),
            hit(f"{kept}", "7"),
            shape=shape,
        )
        for name, kept, number, shape in (
            ("tinyint", 44, 300, TINY),
            ("int", -2147483648, 2147483648, INT),
            ("unsigned", 4294967293, -3, UNSIGNED),
        )
    ),
    *(
        case(
            f"key-by-low-bits-{name}",
            "KV-KEY-008",
            store(f"{number}", "x"),
            sql("SELECT k, v FROM {t}", (kept, "x")),
            hit(f"{number}", "x"),
            hit(f"{kept}", "x"),
            shape=shape,
        )
        for name, kept, number, shape in (
            ("tinyint", 44, 300, TINY),
            ("int", 1215752191, 99999999999, INT),
            ("unsigned", 4294967293, -3, UNSIGNED),
        )
    ),
    case(
        "bigint-unsigned-key",
        "KV-KEY-012",
        store("18446744073709551615", "highest"),
        store("9223372036854775808", "x"),
        hit("18446744073709551615", "highest"),
        hit("9223372036854775808", "x"),
        send("delete 18446744073709551615\r\n", "DELETED\r\n"),
        hit("9223372036854775808", "x"),
        shape=LARGE,
    ),
    case(
        "bigint-unsigned-key-beyond-63-bits",
        "KV-KEY-011",
        store("9223372036854775807", "x"),
        hit("18446744073709551615", "x"),
        shape=LARGE,
    ),
)

# Each is an invalid row next to valid ones; a connection begins bound to {m1}.
ODD = {
    "KV-KEY-018": ("BINARY(8)", "VARBINARY(8)"),
    "KV-KEY-020": ("DECIMAL(8,2)", "FLOAT", "DOUBLE"),
    "KV-KEY-021": ("DATETIME", "BIT(8)"),
}
UNUSABLE = (
    *(
        case(
            f"{declared.partition('(')[0].lower()}-key",
            requirement,
            unmapped("{m}"),
            store("{k}", "x"),
            shape=key_column(declared),
            bind="m1",
        )
        for requirement, types in ODD.items()
        for declared in types
    ),
    *(
        case(
            f"{declared.lower()}-key",
            "KV-KEY-019",
            unmapped("{m}"),
            store("{k}", "x"),
            shape=Shape(f"k {declared}, v VARCHAR(40), {OPTIONS}, PRIMARY KEY (k(20))"),
            bind="m1",
        )
        for declared in ("TEXT", "BLOB")
    ),
    *(
        case(
            f"{type_name(declared.partition('(')[0])}-key-as-sql-shows-it",
            "KV-KEY-017",
            insert(text, "'x', 0, 0, 0"),
            send(f"get @@{{m}}.{text}\r\n", (f"VALUE @@{{m}}.{text} 0 1\r\nx\r\nEND\r\n", "END\r\n")),
            shape=key_column(declared),
            bind="m1",
        )
        for declared, text in (("MEDIUMINT", "5"), ("DATE", "2021-02-03"), ("YEAR", "2021"), ("ENUM('a','b')", "b"))
    ),
    case(
        "year-key-as-its-byte",
        "KV-KEY-015",
        store("121", "x"),
        sql("SELECT k FROM {t}", (2021,)),
        miss("2021"),
        shape=key_column("YEAR"),
    ),
    case(
        "enum-key-by-number",
        "KV-KEY-016",
        insert("b", "'x', 0, 0, 0"),
        hit("2", "x"),
        miss("b"),
        shape=key_column("ENUM('a','b')"),
    ),
)

BYTES = key_column("VARBINARY(250)")
BINARY = (
    case(
        "fixed-binary-key", "KV-KEY-058", unmapped("{m}"), store("{k}", "x"), shape=key_column("BINARY(8)"), bind="m1"
    ),
    case(
        "bytes-as-key",
        "KV-KEY-057",
        store("a\xe9\xff", "1"),
        store("A\xe9\xff", "2"),
        store("b" * 250, "3"),
        hit("a\xe9\xff", "1"),
        hit("A\xe9\xff", "2"),
        hit("b" * 250, "3"),
        miss("B" * 250),
        send("delete a\xe9\xff\r\n", "DELETED\r\n"),
        miss("a\xe9\xff"),
        hit("A\xe9\xff", "2"),
        shape=BYTES,
    ),
    case(
        "bytes-as-key-for-every-verb",
        "KV-KEY-057",
        *TO_25,
        send("touch 5 0\r\n", "TOUCHED\r\n"),
        hit("5", "25"),
        miss("05"),
        send("get @>4\r\n", "VALUE 5 0 2\r\n25\r\nEND\r\n"),
        send("delete 5\r\n", "DELETED\r\n"),
        miss("5"),
        shape=BYTES,
    ),
    case(
        "bytes-as-key-of-sql",
        "KV-KEY-057",
        sql("INSERT INTO {t} VALUES (X'6BE9', 'x', 0, 0, 0)"),
        hit("k\xe9", "x"),
        shape=BYTES,
    ),
)

CASES = (*INTEGERS, *BEYOND, *UNUSABLE, *BINARY)
