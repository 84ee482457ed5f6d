"""Range gets: two bounds in a table that other cases use too, one bound in tables of a case's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, store

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

# {k}a to {k}e hold A to E.
LETTERS: Final = tuple(store(f"{{k}}{letter}", letter.upper()) for letter in "abcde")
ABCD = tuple(store(letter, letter.upper()) for letter in "abcd")
ONE = Shape(f"k VARCHAR(32) CHARACTER SET utf8 PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
TURNED = Shape(f"k VARCHAR(32) NOT NULL, v VARCHAR(40), {OPTIONS}, PRIMARY KEY (k DESC)")
NULLABLE = Shape(
    f"id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k VARCHAR(32), v VARCHAR(40), {OPTIONS}, UNIQUE INDEX u (k)",
    index="u",
)
NULL_KEYS = (
    sql("INSERT INTO {t} (v) VALUES ('n')" + ", ('n')" * 599),
    sql("INSERT INTO {t} (k, v, f, c, e) VALUES ('a', 'A', 0, 0, 0), ('b', 'B', 0, 0, 0)"),
)
NUMBERED = Shape(f"k INT PRIMARY KEY, v VARCHAR(40), {OPTIONS}")


def get_rows(words: str, *keys: str) -> Send:
    """Get the words and want the rows of these keys, each with its key in capitals."""
    blocks = "".join(f"VALUE {key} 0 {len(key)}\r\n{key.upper()}\r\n" for key in keys)
    return send(f"get {words}\r\n", f"{blocks}END\r\n")


def letters(words: str, letters: str) -> Send:
    """Get the words and want these rows, each under its own key."""
    rows = "".join(f"VALUE {{k}}{letter} 0 1\r\n{letter.upper()}\r\n" for letter in letters)
    return send(f"get {words}\r\n", f"{rows}END\r\n")


CASES = (
    case(
        "range-included", "KV-RANGE-001", *LETTERS, letters("@>={k}b@<={k}d", "bcd"), letters("@>={k}a@<={k}e", "abcde")
    ),
    case("range-one-row", "KV-RANGE-001", *LETTERS, letters("@>={k}c@<={k}c", "c")),
    case("range-left-out", "KV-RANGE-002", *LETTERS, letters("@>{k}b@<{k}d", "c"), letters("@>{k}a@<{k}e", "bcd")),
    case("range-mixed", "KV-RANGE-002", *LETTERS, letters("@>={k}b@<{k}d", "bc"), letters("@>{k}b@<={k}d", "cd")),
    case("range-order", "KV-RANGE-003", *LETTERS, letters("@<{k}d@>={k}b", "bc"), letters("@<={k}d@>{k}b", "cd")),
    case("range-empty", "KV-RANGE-004", *LETTERS, letters("@>{k}c@<{k}c", ""), letters("@>{k}d@<{k}b", "")),
    case("range-no-keys", "KV-RANGE-005", *LETTERS, letters("@>{k}bb@<{k}dd", "cd"), letters("@>{k}@<{k}c", "ab")),
    case(
        "range-gets",
        "KV-RANGE-006",
        *LETTERS,
        send(
            "gets @>={k}b@<={k}c\r\n",
            "VALUE {k}b 0 1 <number>\r\nB\r\nVALUE {k}c 0 1 <number>\r\nC\r\nEND\r\n",
        ),
    ),
    case(
        "range-bget",
        "KV-RANGE-036",
        *LETTERS,
        send("bget @>={k}b@<{k}d\r\n", "VALUE {k}b 0 1\r\nB\r\nVALUE {k}c 0 1\r\nC\r\nEND\r\n"),
    ),
    case(
        "range-word-as-key",
        "KV-RANGE-007",
        send("set @>{k} 0 0 1\r\n5\r\n", "STORED\r\n"),
        send("incr @>{k} 1\r\n", "6\r\n"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '@>{k}'", ("6",)),
        send("delete @>{k}\r\n", "DELETED\r\n"),
    ),
    case("range-behind-a-key", "KV-RANGE-008", *LETTERS, letters("{k}a @>={k}d@<={k}e", "ade")),
    case("range-behind-a-miss", "KV-RANGE-008", *LETTERS, letters("{k}z @>={k}d@<={k}e", "de")),
    case("range-then-key", "KV-RANGE-009", *LETTERS, letters("@>={k}d@<={k}e {k}a", "dea")),
    case("range-then-range", "KV-RANGE-009", *LETTERS, letters("@>={k}d@<={k}e @>={k}a@<={k}b", "deab")),
    case(
        "range-mapped",
        "KV-RANGE-010",
        *(store(f"@@{{m2}}.{{k}}{letter}", letter.upper()) for letter in "abc"),
        store("@@{m1}.{k}b", "x"),
        letters("@@{m2}.@>={k}a@<={k}b", "ab"),
        hit("{k}c", "C"),
    ),
    case(
        "range-expired",
        "KV-RANGE-011",
        *LETTERS,
        send("set {k}b 0 1000000000 1\r\nB\r\n", "STORED\r\n"),
        letters("@>={k}a@<={k}d", "acd"),
    ),
    case(
        "range-of-sql",
        "KV-RANGE-012",
        *LETTERS,
        sql("DELETE FROM {t1} WHERE c1 = '{k}b'"),
        sql("UPDATE {t1} SET c2 = 'n' WHERE c1 = '{k}c'"),
        send("get @>={k}a@<={k}c\r\n", "VALUE {k}a 0 1\r\nA\r\nVALUE {k}c 0 1\r\nn\r\nEND\r\n"),
    ),
    case(
        "range-upwards",
        "KV-RANGE-021",
        *ABCD,
        get_rows("@>b", "c", "d"),
        get_rows("@>=b", "b", "c", "d"),
        get_rows("@>d"),
        get_rows("@>=0", *"abcd"),
        shape=ONE,
    ),
    case(
        "range-downwards",
        "KV-RANGE-022",
        *ABCD,
        get_rows("@<c", "a", "b"),
        get_rows("@<=c", "a", "b", "c"),
        get_rows("@<a"),
        get_rows("@<=z", *"abcd"),
        shape=ONE,
    ),
    case(
        "range-by-collation",
        "KV-RANGE-023",
        *ABCD,
        get_rows("@>=B@<=C", "b", "c"),
        get_rows("@>A@<D", "b", "c"),
        store("e", "E"),
        get_rows("@>=\xc3\xa9", "e"),
        shape=ONE,
    ),
    case(
        "range-with-null",
        "KV-RANGE-024",
        insert("a", "'A', 0, 0, 0"),
        insert("b", "NULL, 3, 0, 0"),
        insert("c", "'', 0, 0, 0"),
        send("get @>=a\r\n", "VALUE a 0 1\r\nA\r\nVALUE b 3 0\r\n\r\nVALUE c 0 0\r\n\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "range-with-an-equal-sign-only",
        "KV-RANGE-025",
        *ABCD,
        get_rows("@=b"),
        store("@=b", "@=B"),
        get_rows("@=b", "@=b"),
        shape=ONE,
    ),
    case(
        "ranges-in-a-pipeline",
        "KV-RANGE-026",
        *ABCD,
        send(
            "get @>=c\r\nset e 0 0 1\r\nE\r\nget @>d\r\nget a\r\nget @<b\r\n",
            "VALUE c 0 1\r\nC\r\nVALUE d 0 1\r\nD\r\nEND\r\nSTORED\r\nVALUE e 0 1\r\nE\r\nEND\r\n"
            + "VALUE a 0 1\r\nA\r\nEND\r\n" * 2,
        ),
        shape=ONE,
    ),
    case(
        "range-over-integers",
        "KV-RANGE-028",
        *(store(number, number) for number in ("-5", "2", "9", "10", "20")),
        get_rows("@>=2@<20", "2", "9", "10"),
        get_rows("@>9", "10", "20"),
        get_rows("@<=2", "-5", "2"),
        get_rows("@>9@<99999999999", "10", "20"),
        get_rows("@>=-99999999999@<=02", "-5", "2"),
        get_rows("@>=99999999999"),
        shape=NUMBERED,
    ),
    case(
        "range-bound-no-integer",
        "KV-RANGE-035",
        *(store(number, number) for number in ("0", "5")),
        *(get_rows(words) for words in ("@>=abc", "@<abc", "@>=0x", "@<=5.5", "@>", "@<", "@>=0@<")),
        shape=NUMBERED,
    ),
    case(
        "range-along-a-descending-index",
        "KV-RANGE-030",
        *ABCD,
        get_rows("@>c", "b", "a"),
        get_rows("@<=b", "d", "c", "b"),
        get_rows("@<=a@>c", "b", "a"),
        get_rows("@>=a@<d"),
        shape=TURNED,
    ),
    case(
        "range-over-a-descending-index",
        "KV-RANGE-031",
        *ABCD,
        get_rows("@>b", "c", "d"),
        get_rows("@>=a@<c", "a", "b"),
        shape=TURNED,
    ),
    case(
        "range-reaches-null-keys",
        "KV-RANGE-032",
        *NULL_KEYS,
        get_rows("@>a", "b"),
        send("get @<b\r\n", "", closes=True, patience=15.0),
        shape=NULLABLE,
    ),
    case(
        "range-without-null-keys",
        "KV-RANGE-033",
        *NULL_KEYS,
        get_rows("@>a", "b"),
        get_rows("@<b", "a"),
        get_rows("@<=z", "a", "b"),
        shape=NULLABLE,
    ),
    case("range-below-no-bytes", "KV-RANGE-034", *NULL_KEYS[1:], get_rows("@<"), get_rows("@>=b", "b"), shape=NULLABLE),
)
