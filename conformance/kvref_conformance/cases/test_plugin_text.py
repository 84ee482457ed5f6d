"""Quirks of the C plugin in the basic text protocol, as they were recorded.

The requirements that they break are in the other chapters, for other endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send, send_unanswered, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, mapping, miss, store, try_store, unmap

if TYPE_CHECKING:
    from kvref_conformance.case import Case

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(1024), {OPTIONS}")
LARGE = Shape("k VARCHAR(32) PRIMARY KEY, v LONGBLOB, f INT, c BIGINT UNSIGNED, e INT")
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"
TOO_LARGE = "SERVER_ERROR object too large for cache\r\n"
NO_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
# A number that was never set, or what an endpoint says that has no such thing.
UNSET = ("<number>\r\n", "NOT_FOUND\r\n", NO_NUMBER)
# Seconds: 8.0 answers within its background thread's tick.
FLUSH = 15.0

STORAGE = (
    *(
        case(
            f"{verb}-takes-the-flags-of-the-request",
            "KV-CORE-029",
            store("{k}", "x", flags=3),
            store("{k}", "y", verb, flags=7),
            hit("{k}", value, flags=7),
            shape=ONE,
        )
        for verb, value in (("append", "xy"), ("prepend", "yx"))
    ),
    case(
        "bget",
        "KV-CORE-050",
        store("{k}", "1"),
        send("bget {k} {k2}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n"),
        shape=ONE,
    ),
    case(
        "bget-mapped",
        "KV-CORE-050 KV-MAP-001",
        store("{k}", "1"),
        store("@@{m2}.{k}", "2"),
        send("bget @@{m}.{k}\r\n", "VALUE @@{m}.{k} 0 1\r\n1\r\nEND\r\n"),
        send("bget {k} {k2}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n"),
        shape=ONE,
    ),
    *(
        case(f"no-{verb}", "KV-CORE-066", send(f"{verb} {words}\r\n", "ERROR\r\n"), shape=ONE)
        for verb, words in (("touch", "{k} 10"), ("gat", "10 {k}"), ("gats", "10 {k}"))
    ),
    case(
        "no-meta-commands",
        "KV-CORE-067 KV-CORE-071",
        send("mn\r\nmg {k} v\r\nmd {k}\r\nma {k}\r\nme {k}\r\n", "ERROR\r\n" * 5),
        send("ms {k} 7\r\nversion\r\n", "ERROR\r\nVERSION <text>\r\n"),
        shape=ONE,
    ),
    case(
        "stored-before-the-end-of-the-data",
        "KV-CONN-018",
        send("set {k} 0 0 1\r\nx", "STORED\r\n", quiet=True),
        send("\r\n", ""),
        hit("{k}", "x"),
        shape=ONE,
    ),
)

FLUSHES = (
    case(
        "flush-at-once-with-a-delay",
        "KV-FLUSH-008",
        store("{k}", "x"),
        send("flush_all 3600\r\n", "OK\r\n", patience=FLUSH),
        miss("{k}"),
        shape=ONE,
    ),
    *(
        case(
            f"flush-at-once-with-{name}",
            "KV-FLUSH-009 KV-MAP-007",
            store("{k}", "x"),
            store("@@{m2}.{k}", "2"),
            send("bind {m}\r\n", "SUCCEED\r\n"),
            send(f"flush_all {word}\r\n", "OK\r\n", patience=FLUSH),
            miss("{k}"),
            hit("@@{m2}.{k}", "2"),
            shape=ONE,
        )
        for name, word in (("a-word", "abc"), ("a-mapping", "@@{m2}"))
    ),
    case(
        "flush-of-a-dropped-table",
        "KV-FLUSH-011",
        sql("CREATE TABLE {t}_{k4} (k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED, e INT)"),
        mapping("{k2}", "{t}_{k4}"),
        send("bind {k2}\r\n", "SUCCEED\r\n"),
        sql("DROP TABLE {t}_{k4}"),
        send("flush_all\r\n", "SERVER_ERROR failed to flush cache\r\n", patience=FLUSH),
        unmap("{k2}"),
        shape=ONE,
    ),
    case(
        "flush-waits-for-a-reader",
        "KV-FLUSH-010",
        store("{k}", "x"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n", on="b"),
        send("flush_all\r\n", "OK\r\n", patience=FLUSH),
        send("get {k}\r\n", "END\r\n", on="b"),
        shape=ONE,
    ),
)

LINES = (
    case(
        "two-bytes-thrown-away",
        "KV-PARSE-019",
        send("set {k} 0 0 2\r\nabXYversion\r\n", "STORED\r\nVERSION <text>\r\n"),
        hit("{k}", "ab"),
        shape=ONE,
    ),
    *(
        case(
            f"data-of-a-refused-line-{name}",
            "KV-PARSE-020",
            send(f"set {line}\r\nversion\r\n", f"{answer}VERSION <text>\r\n"),
            miss("{k}"),
            shape=ONE,
        )
        for name, line, answer in (
            ("flags", "{k} abc 0 7", BAD_FORMAT),
            ("key", "{k:251} 0 0 7", BAD_FORMAT),
            ("words", "{k} 0 0", "ERROR\r\n"),
        )
    ),
    case(
        "length-2-32-taken-for-0",
        "KV-PARSE-021",
        send("set {k} 0 0 4294967296\r\n\r\n", "STORED\r\n"),
        hit("{k}", ""),
        shape=ONE,
    ),
    case(
        "no-limit-for-a-length",
        "KV-LIMIT-010",
        send_unanswered("set {k} 0 0 100000000\r\n"),
        send("get {k}\r\n", "END\r\n", on="b"),
        shape=LARGE,
    ),
    case(
        "value-and-key-of-a-mebibyte",
        "KV-LIMIT-009",
        send("set x 0 0 1048519\r\n{v~1048519}\r\n", "STORED\r\n", patience=15.0),
        sql("SELECT LENGTH(v) FROM {t}", (1048519,)),
        send("set y 0 0 1048520\r\n{v~1048520}\r\n", TOO_LARGE, patience=15.0),
        miss("y"),
        shape=LARGE,
    ),
    case(
        "noreply-data-too-large-runs",
        "KV-PARSE-028",
        send("set x 0 0 1048600 noreply\r\nset y 0 0 1\r\ny\r\nget y\r\n", "STORED\r\nVALUE y 0 1\r\ny\r\nEND\r\n"),
        miss("x"),
        shape=LARGE,
    ),
    case(
        "refused-set-deletes",
        "KV-LIMIT-012",
        store("x", "old"),
        send("set x 0 0 1048520\r\n{v~1048520}\r\n", TOO_LARGE, patience=15.0),
        miss("x"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=LARGE,
        engine="mysql",
    ),
)


def count_case(
    name: str, requirement: str, text: str, *answers: tuple[str, str | tuple[str, ...]], after: str = ""
) -> Case:
    """Write a case that counts on a stored text; pairs of words behind the key's verb, and the answer."""
    steps = [
        send(f"{words.partition(' ')[0]} {{k}} {words.partition(' ')[2]}\r\n", answer) for words, answer in answers
    ]
    return case(
        name,
        requirement,
        try_store("{k}", text, "STORED\r\n"),
        *steps,
        *([hit("{k}", after)] if after else []),
        shape=ONE,
    )


COUNTING = (
    count_case("text-counts-as-0", "KV-ARITH-019", "HELLO", ("incr 5", "5\r\n"), after="5"),
    count_case("leading-number-counts", "KV-ARITH-019", "12ab", ("incr 5", "17\r\n"), after="17"),
    count_case("text-counts-down-to-0", "KV-ARITH-019", "HELLO", ("decr 5", "0\r\n"), after="0"),
    count_case("number-beyond-64-bits-counts", "KV-ARITH-020", "18446744073709551616", ("incr 5", "4\r\n"), after="4"),
    count_case(
        "number-beyond-64-bits-unset",
        "KV-ARITH-021",
        "18446744073709551616",
        ("incr 5", UNSET),
        after="18446744073709551616",
    ),
    case(
        "missing-key-answers-a-number",
        "KV-ARITH-022",
        send("incr {k} 1\r\n", UNSET),
        send("decr {k} 1\r\n", UNSET),
        miss("{k}"),
        shape=ONE,
    ),
    count_case(
        "amount-by-its-low-bits",
        "KV-ARITH-023",
        "1000",
        ("incr 4294967296", "1000\r\n"),
        ("incr 4294967295", "999\r\n"),
        ("incr 4294967301", "1004\r\n"),
    ),
    count_case("stored-number-by-its-low-bits", "KV-ARITH-024", "4294967296", ("decr 1", "0\r\n")),
    count_case("long-text-refused", "KV-ARITH-027", "7" + "x" * 126, ("incr 1", NO_NUMBER)),
    count_case("shorter-text-counts", "KV-ARITH-027", "7" + "x" * 125, ("incr 1", "8\r\n")),
    count_case("long-text-unset", "KV-ARITH-028", "7" + "x" * 126, ("incr 1", UNSET)),
    count_case("bytes-behind-a-nul", "KV-ARITH-040", "12\x0034", ("incr 1", "13\r\n"), after="13"),
    count_case("minus-sign-wraps", "KV-ARITH-041", "-5", ("incr 2", "18446744073709551613\r\n")),
    case(
        "text-columns-behind-are-read-too",
        "KV-ARITH-042",
        insert("{k}", "'10', '5', 0, 0, 0"),
        send("incr {k} 1\r\n", "106\r\n"),
        shape=Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), x VARCHAR(40), {OPTIONS}"),
    ),
)

CASES = (*STORAGE, *FLUSHES, *LINES, *COUNTING)
