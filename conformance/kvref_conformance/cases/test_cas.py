"""cas numbers over tables: the counter, numbers of SQL, no cas column. The verb itself: `test_storage.py`."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, store
from kvref_conformance.steps import Reload

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
NO_CAS = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}", cas="0")
SIGNED = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT, e INT")
NARROW = ("TINYINT", "SMALLINT UNSIGNED", "MEDIUMINT", "INT", "INT UNSIGNED", "YEAR")
LARGEST = 18446744073709551615

CASES = (
    case(
        "cas-number-of-an-inserted-row",
        "KV-CAS-001",
        insert("{k}", "'x', 0, 0, 0"),
        send("cas {k} 0 0 1 0\r\ny\r\n", "STORED\r\n"),
        hit("{k}", "y"),
        send("cas {k} 0 0 1 0\r\nz\r\n", "EXISTS\r\n"),
        hit("{k}", "y"),
        shape=ONE,
    ),
    case(
        "cas-after-a-change-by-sql",
        "KV-CAS-002",
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        sql("UPDATE {t} SET v = 'sql'"),
        send("gets {k}\r\n", "VALUE {k} 0 3 {a}\r\nsql\r\nEND\r\n"),
        send("cas {k} 0 0 1 {a}\r\ny\r\n", "STORED\r\n"),
        shape=ONE,
    ),
    case(
        "one-counter",
        "KV-CAS-003 KV-MAP-007",
        *(
            step
            for number, (word, on) in enumerate((("{k}", "a"), ("@@{m2}.{k}", "a"), ("{k}", "b"), ("@@{m1}.{k}", "a")))
            for step in (
                send(f"set {word} 0 0 1\r\nx\r\n", "STORED\r\n", on=on),
                send(f"gets {word}\r\n", f"VALUE {word} 0 1 <new cas n{number}>\r\nx\r\nEND\r\n", on=on),
            )
        ),
    ),
    case(
        "counter-after-a-reload",
        "KV-CAS-006",
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        Reload(),
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas b>\r\nx\r\nEND\r\n"),
        sql("SELECT {a} < {b}", (1,)),
        shape=ONE,
    ),
    case(
        "counter-after-a-flush",
        "KV-CAS-007",
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas b>\r\nx\r\nEND\r\n"),
        sql("SELECT {a} < {b}", (1,)),
        shape=ONE,
    ),
    case(
        "no-cas-column",
        "KV-CAS-008",
        store("{k}", "x"),
        store("{k}", "y"),
        send("gets {k}\r\n", "VALUE {k} 0 1 0\r\ny\r\nEND\r\n"),
        shape=NO_CAS,
    ),
    case(
        "no-cas-column-stores-with-0",
        "KV-CAS-009 KV-CAS-015",
        store("{k}", "x"),
        send("cas {k} 0 0 1 0\r\ny\r\n", "STORED\r\n"),
        send("cas {k} 0 0 1 0\r\nz\r\n", "STORED\r\n"),
        send("cas {k} 0 0 1 1\r\nw\r\n", "EXISTS\r\n"),
        send("cas {k2} 0 0 1 0\r\nw\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "z"),
        shape=NO_CAS,
    ),
    case(
        "negative-cas-number",
        "KV-CAS-010",
        insert("{k}", "'x', 0, -5, 0"),
        send("gets {k}\r\n", "VALUE {k} 0 1 18446744073709551611\r\nx\r\nEND\r\n"),
        send("cas {k} 0 0 1 5\r\ny\r\n", "EXISTS\r\n"),
        send("cas {k} 0 0 1 18446744073709551611\r\ny\r\n", "STORED\r\n"),
        shape=SIGNED,
    ),
    case(
        "flags-and-expiry-of-cas",
        "KV-CAS-011",
        insert("{k}", "'x', 3, 5, 0"),
        send("cas {k} 7 2000000000 1 5\r\ny\r\n", "STORED\r\n"),
        sql("SELECT v, f, e FROM {t}", ("y", 7, 2000000000)),
        shape=ONE,
    ),
    *(
        case(
            f"cas-number-{number}",
            "KV-CAS-013",
            insert("{k}", f"'x', 0, {number}, 0"),
            send("gets {k}\r\n", f"VALUE {{k}} 0 1 {number}\r\nx\r\nEND\r\n"),
            send(f"cas {{k}} 0 0 1 {number - 1}\r\ny\r\n", "EXISTS\r\n"),
            send(f"cas {{k}} 0 0 1 {number % (1 << 32)}\r\ny\r\n", "EXISTS\r\n"),
            send(f"cas {{k}} 0 0 1 {number}\r\ny\r\n", "STORED\r\n"),
            shape=ONE,
        )
        for number in (9223372036854775807, LARGEST)
    ),
    *(
        case(
            f"cas-column-{declared.lower().replace(' ', '-')}",
            "KV-CAS-016",
            send("bind {m}\r\n", "NOT_FOUND\r\n"),
            shape=Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c {declared}, e INT"),
            bind="m1",
        )
        for declared in NARROW
    ),
    case(
        "cas-number-after-256-writes",
        "KV-CAS-017",
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        send("set {k2} 0 0 1\r\nx\r\n" * 255, "STORED\r\n" * 255),
        store("{k}", "y"),
        send("gets {k}\r\n", "VALUE {k} 0 1 {a}\r\ny\r\nEND\r\n"),
        shape=Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c TINYINT, e INT"),
    ),
    case(
        "two-cas-with-one-number",
        "KV-CAS-014",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 {a}\r\nx\r\nEND\r\n", on="b"),
        send("cas {k} 0 0 1 {a}\r\ny\r\n", "STORED\r\n", on="b"),
        send("cas {k} 0 0 1 {a}\r\nz\r\n", "EXISTS\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\ny\r\nEND\r\n"),
    ),
)
