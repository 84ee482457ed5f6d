"""Columns for flags, cas number and expiry: named, left out in every way, of any integer type, of other types."""

from __future__ import annotations

from dataclasses import replace

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store, try_store, unmapped

COLUMNS = f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"
ONE = Shape(COLUMNS)
TWO_COLUMNS = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40)", flags="0", cas="0", expiry="0")
NUMBERS_ALONE = replace(TWO_COLUMNS, columns="k VARCHAR(32) PRIMARY KEY, v VARCHAR(41)")  # a table of its own
# The published example of 5.7.3: an integer key, a text, NULL for the three.
PUBLISHED = Shape("id INT PRIMARY KEY, name VARCHAR(50)", "name", "id", flags=None, cas=None, expiry=None)
INTEGERS = ("TINYINT", "TINYINT UNSIGNED", "SMALLINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED")
LATER = 2000000000


def option_column(option: str, text: str | None) -> Shape:
    """Return the usual table with another name for flags, cas or expiry in the row of `containers`."""
    named = {"flags": ONE.flags, "cas": ONE.cas, "expiry": ONE.expiry, option: text}
    return Shape(COLUMNS, flags=named["flags"], cas=named["cas"], expiry=named["expiry"])


def option_types(flags: str = "INT", cas: str = "BIGINT UNSIGNED", expiry: str = "INT") -> Shape:
    """Return the usual table with these types."""
    return Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f {flags}, c {cas}, e {expiry}")


STORED_WITH_ALL = send(f"set {{k}} 7 {LATER} 1\r\nx\r\n", "STORED\r\n")
# What shows that a feature is not in use; the time is long past.
WITHOUT = {
    "flags": (STORED_WITH_ALL, hit("{k}", "x")),
    "cas": (STORED_WITH_ALL, send("gets {k}\r\n", "VALUE {k} 7 1 0\r\nx\r\nEND\r\n")),
    "expiry": (send("set {k} 7 1000000000 1\r\nx\r\n", "STORED\r\n"), hit("{k}", "x", flags=7)),
}

USE = (
    case(
        "options-in-use",
        "KV-FLAG-001",
        STORED_WITH_ALL,
        send("gets {k}\r\n", "VALUE {k} 7 1 <cas a>\r\nx\r\nEND\r\n"),
        sql("SELECT v, f, e FROM {t} WHERE c = {a}", ("x", 7, LATER)),
        shape=ONE,
    ),
    *(
        case(f"no-{option}-{name}", requirement, *steps, shape=option_column(option, text))
        for requirement, name, text in (
            ("KV-FLAG-002", "zero", "0"),
            ("KV-FLAG-003", "empty", ""),
            ("KV-FLAG-004", "of-no-column", "nothing"),
        )
        for option, steps in WITHOUT.items()
    ),
    *(
        case(f"{option}-in-capitals", "KV-FLAG-005", *WITHOUT[option], shape=option_column(option, name))
        for option, name in (("flags", "F"), ("cas", "C"), ("expiry", "E"))
    ),
    *(
        case(f"{option}-null", "KV-FLAG-007", *steps, shape=option_column(option, None))
        for option, steps in WITHOUT.items()
    ),
    *(
        case(f"{option}-null-refused", "KV-FLAG-006", unmapped("{m}"), shape=option_column(option, None), bind="m1")
        for option in WITHOUT
    ),
    case(
        "published-row-with-nulls",
        "KV-FLAG-007",
        store("1", "Larry"),
        send("gets 1\r\n", "VALUE 1 0 5 0\r\nLarry\r\nEND\r\n"),
        sql("SELECT id, name FROM {t}", (1, "Larry")),
        sql("UPDATE {t} SET name = NULL"),
        hit("1", ""),
        shape=PUBLISHED,
    ),
    case("published-row-refused", "KV-FLAG-006", unmapped("{m}"), shape=PUBLISHED, bind="m1"),
    case(
        "every-item-with-flags-0",
        "KV-FLAG-014",
        store("{k}", "x", flags=7),
        store("{k}", "y", "append", flags=9),
        hit("{k}", "xy"),
        shape=TWO_COLUMNS,
    ),
    case(
        "two-columns",
        "KV-FLAG-020",
        store("{k}", "1", "add"),
        try_store("{k}", "1", "NOT_STORED\r\n", "add"),
        store("{k}", "2", "replace"),
        store("{k}", "0", "append"),
        store("{k}", "1", "prepend"),
        send("gets {k}\r\n", "VALUE {k} 0 3 0\r\n120\r\nEND\r\n"),
        send("cas {k} 0 0 1 0\r\nx\r\n", "STORED\r\n"),
        send("delete {k}\r\n", "DELETED\r\n"),
        miss("{k}"),
        shape=TWO_COLUMNS,
    ),
    case(
        "two-columns-and-a-number",
        "KV-FLAG-020",
        store("{k}", "120"),
        # The plugin reads on behind the value, the last column: where nothing was deleted, the next row begins there.
        store("{k2}", "x"),
        send("incr {k} 5\r\n", "125\r\n"),
        hit("{k}", "125"),
        shape=NUMBERS_ALONE,
    ),
)

TYPES = (
    *(
        case(
            f"{option}-of-type-{kind.lower()}",
            requirement,
            unmapped("{m}"),
            shape=option_types(**{option: kind}),
            bind="m1",
        )
        for requirement, option, kind in (
            ("KV-FLAG-008", "flags", "VARCHAR(10)"),
            ("KV-FLAG-008", "cas", "VARCHAR(10)"),
            ("KV-FLAG-008", "expiry", "TEXT"),
            ("KV-FLAG-009", "expiry", "TIMESTAMP NULL"),
            ("KV-FLAG-009", "expiry", "DATETIME"),
            ("KV-FLAG-010", "flags", "DECIMAL(8,2)"),
            ("KV-FLAG-010", "flags", "FLOAT"),
        )
    ),
    *(
        case(
            f"flags-in-{kind.lower().replace(' ', '-')}",
            "KV-FLAG-011",
            store("{k}", "x", flags=100),
            hit("{k}", "x", flags=100),
            shape=option_types(flags=kind),
        )
        for kind in INTEGERS
    ),
    *(
        case(
            f"cas-and-expiry-in-{kind.lower().replace(' ', '-')}",
            "KV-FLAG-011",
            send(f"set {{k}} 0 {LATER} 1\r\nx\r\n", "STORED\r\n"),
            send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
            send("cas {k} 0 0 1 {a}\r\ny\r\n", "STORED\r\n"),
            hit("{k}", "y"),
            shape=option_types(cas=cas, expiry=kind),
        )
        # A cas column that is narrower than BIGINT is the subject of KV-CAS-016 and KV-CAS-017.
        for kind, cas in (
            ("INT", "BIGINT"),
            ("INT UNSIGNED", "BIGINT UNSIGNED"),
            ("BIGINT", "BIGINT"),
            ("BIGINT UNSIGNED", "BIGINT UNSIGNED"),
        )
    ),
    case(
        "not-null-options",
        "KV-FLAG-019",
        store("{k}", "x", flags=7),
        hit("{k}", "x", flags=7),
        send("incr {k} 1\r\n", ("CLIENT_ERROR <text>\r\n", "1\r\n")),
        shape=option_types("INT NOT NULL", "BIGINT UNSIGNED NOT NULL", "INT NOT NULL"),
    ),
    case(
        "year-as-flags",
        "KV-FLAG-013",
        insert("{k}", "'x', 2020, 0, 0"),
        hit("{k}", "x", flags=120),
        shape=option_types(flags="YEAR"),
    ),
)

FLAGS = (
    *(
        case(
            f"large-flags-{flags}",
            "KV-FLAG-015",
            store("{k}", "x", flags=flags),
            hit("{k}", "x", flags=flags),
            sql("SELECT f FROM {t}", (flags - (1 << 32),)),
            shape=ONE,
        )
        for flags in (1 << 31, (1 << 32) - 1)
    ),
    *(
        case(
            f"large-flags-{flags}-unsigned",
            "KV-FLAG-016",
            store("{k}", "x", flags=flags),
            hit("{k}", "x", flags=flags),
            sql("SELECT f FROM {t}", (flags,)),
            shape=option_types(flags="INT UNSIGNED"),
        )
        for flags in (1 << 31, (1 << 32) - 1)
    ),
    *(
        case(
            f"flags-of-sql-{number}",
            "KV-FLAG-017",
            insert("{k}", f"'x', {number}, 0, 0"),
            hit("{k}", "x", flags=shown),
            shape=option_types(flags="BIGINT"),
        )
        for number, shown in ((4294967301, 5), (-5, 4294967291), (9223372036854775807, 4294967295))
    ),
    case(
        "flags-beyond-a-smallint",
        "KV-FLAG-018",
        store("{k}", "x", flags=65541),
        sql("SELECT f FROM {t}", (5,)),
        shape=option_types(flags="SMALLINT"),
    ),
    case(
        "flags-beyond-a-tinyint",
        "KV-FLAG-018",
        store("{k}", "x", flags=300),
        sql("SELECT f FROM {t}", (44,)),
        shape=option_types(flags="TINYINT"),
    ),
    case(
        "value-column-as-flags",
        "KV-FLAG-022",
        store("{k}", "5", flags=7),
        hit("{k}", "5"),
        shape=Shape(f"k VARCHAR(32) PRIMARY KEY, v INT, {OPTIONS}", flags="v"),
    ),
    case(
        "one-column-for-cas-and-expiry",
        "KV-FLAG-021",
        send(f"set {{k}} 0 {LATER} 1\r\nx\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas>\r\nx\r\nEND\r\n"),
        shape=option_column("cas", "e"),
    ),
)

CASES = (*USE, *TYPES, *FLAGS)
