"""Quirks of the C plugin in mappings and ranges, as they were recorded.

The requirements that they break are in the other chapters, for other endpoints. An empty range followed by a word would
end 8.0 (core:range-077).
"""

from __future__ import annotations

from kvref_conformance.case import Setup, Shape, case, send, sql
from kvref_conformance.cases.phrases import EVERYWHERE, OPTIONS, hit, insert, miss, store

ARROW, LETTER = Setup("->"), Setup("m")
NUMBERED = Shape(f"k INT PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
SECONDARY = Shape(
    f"id VARCHAR(32) PRIMARY KEY, k VARCHAR(32) NOT NULL, v VARCHAR(40), {OPTIONS}, UNIQUE INDEX u (k)", index="u"
)
SECONDARY_NUMBERED = Shape(f"id INT PRIMARY KEY, k INT, v VARCHAR(40), {OPTIONS}, UNIQUE INDEX u (k)", index="u")
ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
ABCD = tuple(store(letter, letter.upper()) for letter in "abcd")
NUMBERS = tuple(insert(str(number), f"'n{number}', 0, 0, 0") for number in (2, 9, 10, 20))

WORDS = (
    *(
        case(
            f"{verb}-reads-no-at-signs",
            requirement,
            *EVERYWHERE,
            send("set @@{m1}.x{k2} 0 0 1\r\n5\r\n", "STORED\r\n"),
            send(line, answers),
            hit("@@{m2}.{k}", "2"),
        )
        for verb, requirement, line, answers in (
            ("delete", "KV-MAP-037", "delete @@{m2}.{k}\r\n", "NOT_FOUND\r\n"),
            ("incr", "KV-MAP-038", "incr @@{m2}.{k} 1\r\n", ("NOT_FOUND\r\n", "<number>\r\n")),
        )
    ),
    case(
        "delete-of-a-key-with-at-signs",
        "KV-MAP-037",
        *EVERYWHERE,
        sql("INSERT INTO {t1} VALUES ('@@{m2}.{k}', 'literal', 0, 0, 0)"),
        send("delete @@{m2}.{k}\r\n", "DELETED\r\n"),
        sql("SELECT COUNT(*) FROM {t1} WHERE c1 = '@@{m2}.{k}'", (0,)),
        hit("@@{m2}.{k}", "2"),
    ),
    case(
        "switch-word-names-the-default",
        "KV-MAP-039",
        *EVERYWHERE,
        send("get @@{m2}\r\n", "VALUE @@{m2} 0 {#w0}\r\n{w0}\r\nEND\r\n"),
        send("get @@{m1}\r\n", "VALUE @@{m1} 0 {#w0}\r\n{w0}\r\nEND\r\n"),
        hit("{k}", "1"),
    ),
    case("word-of-three-bytes", "KV-MAP-040", *EVERYWHERE, miss("@@{q}"), hit("{k}", "1")),
    case(
        "delimiters-in-front",
        "KV-MAP-041",
        *EVERYWHERE,
        sql("INSERT INTO {t2} VALUES ('.{k}', 'dot', 0, 0, 0)"),
        send("get @@.{m2}.{k}\r\n", "VALUE @@.{m2}.{k} 0 3\r\ndot\r\nEND\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "no-switch-behind-a-key",
        "KV-MGET-017",
        *EVERYWHERE,
        send(
            "get {k} @@{m2}.{k} @@{q}.{k}\r\n",
            "VALUE {k} 0 1\r\n1\r\nVALUE @@{m2}.{k} 0 1\r\n1\r\nVALUE @@{q}.{k} 0 1\r\n1\r\nEND\r\n",
        ),
        hit("{k}", "1"),
    ),
    case(
        "no-switch-behind-a-miss",
        "KV-MGET-017",
        *EVERYWHERE,
        send("get {k20} @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1\r\n1\r\nEND\r\n"),
        hit("{k}", "1"),
    ),
    case(
        "unknown-mapping-behind-a-key",
        "KV-MGET-018",
        *EVERYWHERE,
        send("get {k} @@no-such.{k}\r\n", "VALUE {k} 0 1\r\n1\r\nVALUE @@no-such.{k} 0 1\r\n1\r\nEND\r\n"),
    ),
    case(
        "switch-word-behind-a-key",
        "KV-MGET-019",
        *EVERYWHERE,
        send("get {k} @@{m2}\r\n", "VALUE {k} 0 1\r\n1\r\nVALUE @@{m2} 0 {#w1}\r\n{w1}\r\nEND\r\n"),
        hit("{k}", "1"),
    ),
    case(
        "every-word-switches",
        "KV-MGET-020",
        *EVERYWHERE,
        send(
            "get {k} @@{m2}.{k} @@{q}.{k}\r\n",
            "VALUE {k} 0 1\r\n1\r\nVALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE @@{q}.{k} 0 1\r\n3\r\nEND\r\n",
        ),
        hit("{k}", "3"),
    ),
)

# {k} is 2 in {m2}; the first byte of what a part of the delimiter leaves is cut off.
DELIMITERS = (
    case(
        "any-byte-ends-the-name",
        "KV-DELIM-009",
        send("bind {m2}\r\nset {k} 0 0 1\r\n2\r\nbind {m1}\r\n", "SUCCEED\r\nSTORED\r\nSUCCEED\r\n"),
        send("get @@{m2}>x{k}\r\n", "VALUE @@{m2}>x{k} 0 1\r\n2\r\nEND\r\n"),
        hit("{k}", "2"),
        setup=ARROW,
    ),
    case(
        "as-many-bytes-are-cut",
        "KV-DELIM-010",
        send("bind {m2}\r\nset {k} 0 0 1\r\n2\r\nbind {m1}\r\n", "SUCCEED\r\nSTORED\r\nSUCCEED\r\n"),
        send("get @@{m2}->{k} @@{m2}-x{k}\r\n", "VALUE @@{m2}->{k} 0 1\r\n2\r\nVALUE @@{m2}-x{k} 0 1\r\n2\r\nEND\r\n"),
        setup=ARROW,
    ),
    case(
        "name-with-a-byte-of-the-delimiter",
        "KV-DELIM-011",
        store("{k}", "1"),
        miss("@@{m1}m{k}"),
        miss("@@{m1}"),
        hit("{k}", "1"),
        setup=LETTER,
    ),
)

RANGES = (
    case(
        "range-mark-in-a-key",
        "KV-RANGE-013",
        store("a", "A"),
        store("@>a", "mark"),
        hit("@>a", "mark"),
        miss("@>=a"),
        shape=ONE,
    ),
    case(
        "range-with-words-behind",
        "KV-RANGE-014",
        *ABCD,
        send("get @>=c a @<b\r\n", "VALUE c 0 1\r\nC\r\nVALUE d 0 1\r\nD\r\nEND\r\n"),
        shape=ONE,
    ),
    *(
        case(
            f"range-of-a-mapping-with-{name}-behind",
            requirement,
            *ABCD,
            send(f"get @@{{m}}.@>=a {words}\r\n", f"VALUE a 0 1\r\nA\r\n{rest}END\r\n"),
            shape=ONE,
        )
        for name, requirement, words, rest in (
            ("a-key", "KV-RANGE-037", "d", "VALUE b 0 1\r\nB\r\n"),
            ("keys", "KV-RANGE-037", "x @@none.d", "VALUE b 0 1\r\nB\r\nVALUE c 0 1\r\nC\r\n"),
            ("a-range", "KV-RANGE-039", "x @>c", "".join(f"VALUE {key} 0 1\r\n{key.upper()}\r\n" for key in "bcd")),
        )
    ),
    case(
        "range-of-a-mapping-with-a-mapping-behind",
        "KV-RANGE-038",
        *(store(f"{{k}}{number}", "x") for number in (1, 2)),
        send(
            "get @@{m1}.@>={k}1@<={k}2 @@{m1} {k}1\r\n",
            "VALUE {k}1 0 1\r\nx\r\nVALUE  0 {#w1}\r\n{w1}\r\nVALUE {k}2 0 1\r\nx\r\nEND\r\n",
        ),
    ),
    case(
        "range-behind-a-mapping",
        "KV-RANGE-015",
        *ABCD,
        send("get @@{m}.@>=b\r\n", "VALUE b 0 1\r\nB\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "range-up-to-an-expired-row",
        "KV-RANGE-016",
        *ABCD,
        sql("UPDATE {t} SET e = 1000000000 WHERE k = 'c'"),
        send("get @>=a\r\n", "VALUE a 0 1\r\nA\r\nVALUE b 0 1\r\nB\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "range-with-storage-bytes",
        "KV-RANGE-017",
        *NUMBERS,
        send("get @>=9@<=10\r\n", "VALUE \x80\0\0\x09 0 2\r\nn9\r\nVALUE \x80\0\0\x0a 0 3\r\nn10\r\nEND\r\n"),
        shape=NUMBERED,
    ),
    case(
        "range-of-one-row",
        "KV-RANGE-018",
        *NUMBERS,
        send("get @>=9\r\n", "VALUE \x80\0\0\x09 0 2\r\nn9\r\nEND\r\n"),
        shape=NUMBERED,
    ),
    case(
        "range-compares-another-column",
        "KV-RANGE-019",
        sql("INSERT INTO {t} (id, k, v) VALUES ('d', 'a', 'A'), ('b', 'b', 'B'), ('c', 'c', 'C'), ('a', 'd', 'D')"),
        send("get @>=a@<c\r\n", "END\r\n"),
        send("get @>=b@<=c\r\n", "VALUE b 0 1\r\nB\r\nVALUE c 0 1\r\nC\r\nVALUE d 0 1\r\nD\r\nEND\r\n"),
        send("get @>=b@<c\r\n", "VALUE b 0 1\r\nB\r\nEND\r\n"),
        shape=SECONDARY,
    ),
    case(
        "range-compares-another-integer",
        "KV-RANGE-019",
        sql("INSERT INTO {t} (id, k, v) VALUES (3, 1, 'A'), (1, 2, 'B'), (9, 3, 'C'), (2, 4, 'D')"),
        send("get @>0@<=3\r\n", "VALUE \x80\0\0\x01 0 1\r\nA\r\nVALUE \x80\0\0\x02 0 1\r\nB\r\nEND\r\n"),
        send("get @>0@<3\r\n", "END\r\n"),
        send("get @<5\r\n", "VALUE \x80\0\0\x01 0 1\r\nA\r\nEND\r\n"),
        shape=SECONDARY_NUMBERED,
    ),
    case(
        "range-mark-in-a-row",
        "KV-RANGE-027",
        store("a", "A"),
        store("@>z", "mark"),
        sql("SELECT v FROM {t} WHERE k = '@>z'", ("mark",)),
        miss("@>z"),
        send("delete @>z\r\n", "DELETED\r\n"),
        shape=ONE,
    ),
)

CASES = (*WORDS, *DELIMITERS, *RANGES)
