"""Several value columns: how `get` joins them, how a value is cut into them, how `containers` lists them.

The separator is `|` here; other ones: `test_separator.py`. What appending and counting do: `test_columns_changed.py`.
"""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store, try_store, unmapped

TEXTS = f"k VARCHAR(32) PRIMARY KEY, x VARCHAR(10), y VARCHAR(10), z VARCHAR(10), {OPTIONS}"
THREE = Shape(TEXTS, values="x,y,z")
# The list is in another order than the table, and a column between them is in no list.
TURNED = Shape(f"z VARCHAR(10), n INT, x VARCHAR(10), k VARCHAR(32) PRIMARY KEY, {OPTIONS}", values="x,z")
PLAIN = Shape("k VARCHAR(32) PRIMARY KEY, x VARCHAR(10), y VARCHAR(10)", values="x,y", flags="0", cas="0", expiry="0")
STRICT = Shape(f"k VARCHAR(32) PRIMARY KEY, x VARCHAR(10) NOT NULL, y VARCHAR(10) NOT NULL, {OPTIONS}", values="x,y")
NUMBERS = Shape(f"k VARCHAR(32) PRIMARY KEY, x INT, y INT, {OPTIONS}", values="x,y")
MIXED = Shape(f"k VARCHAR(32) PRIMARY KEY, x VARCHAR(10), y INT, z VARCHAR(10), {OPTIONS}", values="x,y,z")
BYTES = Shape(f"k VARCHAR(32) PRIMARY KEY, x VARCHAR(10), y VARBINARY(10), {OPTIONS}", values="x,y")
ALONE = Shape(TEXTS, values="x")
NAMES = [f"v{n}" for n in range(1, 31)]
THIRTY = Shape(
    f"k VARCHAR(32) PRIMARY KEY, {', '.join(f'{name} VARCHAR(5)' for name in NAMES)}, {OPTIONS}", values=",".join(NAMES)
)
ROW = "SELECT x, y, z FROM {t} WHERE k = '{k}'"
WHOLE = insert("{k}", "'one', 'two', 'three', 3, 0, 0")
UNTOUCHED = hit("{k}", "one|two|three", flags=3)
CLIENT_ERROR = "CLIENT_ERROR <text>\r\n"
REFUSED = (CLIENT_ERROR, "SERVER_ERROR <text>\r\n")

READ = (
    case("columns-joined", "KV-COL-001", WHOLE, UNTOUCHED, shape=THREE),
    case(
        "columns-in-a-multiget",
        "KV-COL-001",
        WHOLE,
        insert("{k2}", "'a', 'b', 'c', 7, 0, 0"),
        send("get {k2} {k}\r\n", "VALUE {k2} 7 5\r\na|b|c\r\nVALUE {k} 3 13\r\none|two|three\r\nEND\r\n"),
        shape=THREE,
    ),
    case(
        "columns-in-the-order-of-the-list",
        "KV-COL-002",
        sql("INSERT INTO {t} VALUES ('second', 0, 'first', '{k}', 0, 0, 0)"),
        hit("{k}", "first|second"),
        shape=TURNED,
    ),
    case(
        "columns-anywhere-in-the-table",
        "KV-COL-030",
        store("{k}", "first|second"),
        sql("SELECT x, z FROM {t} WHERE k = '{k}'", ("first", "second")),
        hit("{k}", "first|second"),
        shape=TURNED,
    ),
    *(
        case(f"null-column-{name}", "KV-COL-003", insert("{k}", cells, "0, 0, 0"), hit("{k}", value), shape=THREE)
        for name, cells, value in (
            ("first", "NULL, 'two', 'three'", "|two|three"),
            ("between", "'one', NULL, 'three'", "one||three"),
            ("last", "'one', 'two', NULL", "one|two|"),
            ("everywhere", "NULL, NULL, NULL", "||"),
        )
    ),
    *(
        case(f"empty-column-{name}", "KV-COL-004", insert("{k}", cells, "0, 0, 0"), hit("{k}", value), shape=THREE)
        for name, cells, value in (("first-and-last", "'', 'two', ''", "|two|"), ("between", "'a', '', 'c'", "a||c"))
    ),
    case(
        "separator-in-a-column",
        "KV-COL-032",
        insert("{k}", "'o|e', 'two', NULL, 0, 0, 0"),
        hit("{k}", "o|e|two|"),
        shape=THREE,
    ),
    case("thirty-columns", "KV-COL-029", store("{k}", "|".join(NAMES)), hit("{k}", "|".join(NAMES)), shape=THIRTY),
    case(
        "flags-and-expiry-of-columns",
        "KV-COL-040",
        send("set {k} 7 2000000000 5\r\na|b|c\r\n", "STORED\r\n"),
        sql("SELECT x, z, f, e FROM {t} WHERE k = '{k}'", ("a", "c", 7, 2000000000)),
        hit("{k}", "a|b|c", flags=7),
        sql("UPDATE {t} SET e = 1000000000 WHERE k = '{k}'"),
        miss("{k}"),
        shape=THREE,
    ),
    case(
        "columns-without-options",
        "KV-COL-041",
        store("{k}", "a|b", flags=7),
        send("gets {k}\r\n", "VALUE {k} 0 3 0\r\na|b\r\nEND\r\n"),
        send("delete {k}\r\n", "DELETED\r\n"),
        shape=PLAIN,
    ),
    case(
        "one-column",
        "KV-COL-031",
        store("{k}", "a|b|c"),
        hit("{k}", "a|b|c"),
        sql("SELECT x FROM {t}", ("a|b|c",)),
        shape=ALONE,
    ),
)

WRITTEN = (
    case("parts-to-columns", "KV-COL-005", store("{k}", "a|b|c"), sql(ROW, ("a", "b", "c")), shape=THREE),
    case(
        "parts-as-wide-as-their-columns",
        "KV-COL-005",
        store("{k}", "0123456789|abcdefghij|c"),
        hit("{k}", "0123456789|abcdefghij|c"),
        shape=THREE,
    ),
    case("parts-of-add", "KV-COL-016", store("{k}", "a|b|c", "add"), sql(ROW, ("a", "b", "c")), shape=THREE),
    case(
        "parts-of-replace",
        "KV-COL-016",
        WHOLE,
        store("{k}", "a|b|c", "replace"),
        sql(ROW, ("a", "b", "c")),
        shape=THREE,
    ),
    case(
        "parts-of-cas",
        "KV-COL-016",
        WHOLE,
        send("cas {k} 5 0 5 1\r\na|b|c\r\n", "EXISTS\r\n"),
        UNTOUCHED,
        send("cas {k} 5 0 5 0\r\na|b|c\r\n", "STORED\r\n"),
        hit("{k}", "a|b|c", flags=5),
        shape=THREE,
    ),
    *(
        case(f"few-parts-{name}", "KV-COL-006", store("{k}", value), sql(ROW, row), hit("{k}", shown), shape=THREE)
        for name, value, row, shown in (
            ("one", "a", ("a", None, None), "a||"),
            ("two", "a|b", ("a", "b", None), "a|b|"),
        )
    ),
    case("few-parts-over-a-row", "KV-COL-007", WHOLE, store("{k}", "a"), sql(ROW, ("a", None, None)), shape=THREE),
    *(
        case(
            f"surplus-part-{name}",
            "KV-COL-009 KV-COL-047",
            WHOLE,
            try_store("{k}", value, CLIENT_ERROR),
            miss("{k}"),
            shape=THREE,
        )
        for name, value in (("one", "a|b|c|d"), ("empty", "a|b|c|"), ("many", "a|b|c|d|e|f|g"))
    ),
    case("surplus-part-new-key", "KV-COL-009", try_store("{k}", "a|b|c|d", CLIENT_ERROR), miss("{k}"), shape=THREE),
    case("surplus-part-dropped", "KV-COL-008", store("{k}", "a|b|c|d"), sql(ROW, ("a", "b", "c")), shape=THREE),
    *(
        case(f"empty-part-{name}", "KV-COL-011", store("{k}", value), hit("{k}", value), shape=THREE)
        for name, value in (("between", "a||c"), ("first-and-between", "||c"), ("everywhere", "||"))
    ),
    case("empty-part-lost", "KV-COL-010", store("{k}", "a||c"), sql(ROW, ("a", "c", None)), shape=THREE),
    case("empty-part-first", "KV-COL-012", store("{k}", "|b|c"), hit("{k}", "|b|c"), shape=THREE),
    case("empty-part-last", "KV-COL-013", store("{k}", "a|b|"), hit("{k}", "a|b|"), shape=THREE),
    case("no-bytes", "KV-COL-042", store("{k}", ""), hit("{k}", "||"), shape=THREE),
    case("no-bytes-over-a-row", "KV-COL-042", WHOLE, store("{k}", ""), hit("{k}", "||"), shape=THREE),
    *(
        case(
            f"long-part-{name}",
            "KV-COL-015 KV-COL-048",
            WHOLE,
            try_store("{k}", value, REFUSED),
            miss("{k}"),
            shape=THREE,
        )
        for name, value in (("first", "0123456789a|b|c"), ("last", "a|b|0123456789c"))
    ),
    case(
        "long-part-cut", "KV-COL-014", store("{k}", "0123456789a|b|c"), sql(ROW, ("0123456789", "b", "c")), shape=THREE
    ),
    case("integer-parts", "KV-COL-022", store("{k}", "5|-6"), sql("SELECT x, y FROM {t}", (5, -6)), shape=NUMBERS),
    case("integer-parts-of-sql", "KV-COL-022", insert("{k}", "5, -6, 0, 0, 0"), hit("{k}", "5|-6"), shape=NUMBERS),
    case("integer-part-between", "KV-COL-022", store("{k}", "a|7|c"), sql(ROW, ("a", 7, "c")), shape=MIXED),
    *(
        case(
            f"no-integer-part-{name}",
            "KV-COL-024 KV-COL-049",
            store("{k}", "5|6"),
            try_store("{k}", value, CLIENT_ERROR),
            miss("{k}"),
            shape=NUMBERS,
        )
        for name, value in (("last", "7|a"), ("first", "a|7"), ("fraction", "7|1.5"))
    ),
    case(
        "no-integer-part-ends-the-value", "KV-COL-023", store("{k}", "a|b|c"), sql(ROW, ("a", None, None)), shape=MIXED
    ),
    case("not-null-with-all-parts", "KV-COL-005", store("{k}", "a|b"), hit("{k}", "a|b"), shape=STRICT),
    case(
        "not-null-with-few-parts",
        "KV-COL-025",
        try_store("{k}", "a", ("NOT_STORED\r\n", *REFUSED)),
        miss("{k}"),
        shape=STRICT,
    ),
    case(
        "not-null-with-few-parts-over-a-row",
        "KV-COL-025",
        store("{k}", "a|b"),
        try_store("{k}", "c", ("NOT_STORED\r\n", *REFUSED)),
        hit("{k}", "a|b"),
        shape=STRICT,
    ),
    case("nul-in-a-part", "KV-COL-027", store("{k}", "a|b\0d|e"), hit("{k}", "a|b\0d|e"), shape=THREE),
    case("nul-ends-the-value", "KV-COL-026", store("{k}", "a|b\0d|e"), sql(ROW, ("a", "b", None)), shape=THREE),
    case("crlf-in-a-part", "KV-COL-028", store("{k}", "a\r\n|\r\nEND|c"), hit("{k}", "a\r\n|\r\nEND|c"), shape=THREE),
)

# The names in one text: each list reaches the same columns.
LISTS = (
    *(
        case(
            f"list-with-{name}",
            "KV-COL-033",
            store("{k}", "a|b|c"),
            sql(ROW, ("a", "b", "c")),
            shape=Shape(TEXTS, values=text),
        )
        for name, text in (
            ("semicolons", "x;y;z"),
            ("bars", "x|y|z"),
            ("blanks", "x y z"),
            ("newlines", "x\ny\nz"),
            ("mixed", "x,y|z"),
            ("runs", "x, ,y;;z"),
            ("ends", ",x,y,z, "),
        )
    ),
    *(
        case(f"list-with-{name}", requirement, unmapped("{m}"), shape=Shape(TEXTS, values=text), bind="m1")
        for name, requirement, text in (
            ("colons", "KV-COL-034", "x:y"),
            ("slashes", "KV-COL-034", "x/y"),
            ("one-name-and-a-comma", "KV-COL-035", "x,"),
            ("one-name-and-a-blank", "KV-COL-035", " x"),
        )
    ),
    *(
        case(f"column-for-two-purposes-{name}", "KV-COL-037", unmapped("{m}"), shape=shape, bind="m1")
        for name, shape in (
            ("twice", Shape(TEXTS, values="x,x,y")),
            ("key", Shape(TEXTS, values="x,k")),
            ("flags", Shape(TEXTS, values="x,f")),
            ("flags-and-cas", Shape(TEXTS, values="x,y", flags="c")),
        )
    ),
    case(
        "key-among-the-values",
        "KV-COL-038",
        store("{k}", "a|other|b"),
        miss("{k}"),
        sql("SELECT k, x, y FROM {t}", ("other", "a", "b")),
        shape=Shape(TEXTS, values="x,k,y"),
    ),
    case(
        "flags-among-the-values",
        "KV-COL-039 KV-COL-046",
        store("{k}", "a|7|b", flags=3),
        sql("SELECT x, f, y FROM {t}", ("a", 7, "b")),
        hit("{k}", "a|7|b"),
        shape=Shape(TEXTS, values="x,f,y"),
    ),
    case("bytes-among-several", "KV-COL-043 KV-COL-045", unmapped("{m}"), store("{k}", "x"), shape=BYTES, bind="m1"),
    case(
        "bytes-among-several-kept",
        "KV-COL-044",
        store("{k}", "one|two"),
        sql("SELECT x, HEX(y) FROM {t} WHERE k = '{k}'", ("one", "74776F")),
        hit("{k}", "one|two"),
        shape=BYTES,
    ),
)

CASES = (*READ, *WRITTEN, *LISTS)
