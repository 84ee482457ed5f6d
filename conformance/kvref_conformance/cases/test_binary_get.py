"""get, getk, getq and getkq: what a hit and a miss look like, keys and values of any bytes, rows as SQL left them."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, frames, send, sql
from kvref_conformance.cases.binary_phrases import EXISTS, hit, miss, store, try_frames
from kvref_conformance.cases.phrases import OPTIONS, value_table

BARE = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(32)", flags="0", cas="0", expiry="0")
TEXT_KEY = Shape(f"k VARCHAR(32) CHARACTER SET utf8mb4 PRIMARY KEY, v VARCHAR(32), {OPTIONS}")

HITS = (
    case(
        "bin-get-hit",
        "KV-BINGET-001",
        frames("set key={k} flags=8 value=HELLO, HELLO", "set ok cas=<cas a>"),
        frames("get key={k}", "get ok cas={a} flags=8 value=HELLO, HELLO"),
    ),
    case("bin-get-miss", "KV-BINGET-002", miss("{k}"), frames("get key={k} opaque=5", 'get 0x01 opaque=5 "Not found"')),
    case(
        "bin-getk-hit",
        "KV-BINGET-003",
        frames("set key={k} flags=8 value=one", "set ok cas=<cas a>"),
        frames("getk key={k}", "getk ok cas={a} flags=8 key={k} value=one"),
    ),
    case("bin-getk-miss", "KV-BINGET-004", frames("getk key={k}", "getk 0x01 key={k}")),
    case("bin-getq-miss", "KV-BINGET-005", frames("getq key={k}; noop", "noop ok")),
    case("bin-getkq-miss", "KV-BINGET-006", frames("getkq key={k}; noop", "noop ok")),
    *(
        case(
            f"bin-{verb}-hit",
            "KV-BINGET-007",
            store("{k}", "one", flags=3),
            frames(f"{verb} key={{k}}", f"{verb} ok cas=<cas> flags=3{key} value=one"),
        )
        for verb, key in (("getq", ""), ("getkq", " key={k}"))
    ),
    case(
        "bin-quiet-hit-at-once",
        "KV-BINGET-008",
        store("{k}", "one"),
        frames("getq key={k}", "getq ok cas=<cas> flags=0 value=one", quiet=True),
    ),
    case(
        "bin-get-with-a-cas-number",
        "KV-BINGET-009",
        store("{k}", "one"),
        frames("get key={k} cas=18446744073709551615", "get ok cas=<cas> flags=0 value=one"),
    ),
    case(
        "bin-many-getkq",
        "KV-BINGET-010",
        store("{k}", "1"),
        store("{k2}", "2"),
        frames(
            "getkq key={k} opaque=1; getkq key={k3} opaque=2; getkq key={k2} opaque=3; noop opaque=4",
            "getkq ok opaque=1 cas=<cas> flags=0 key={k} value=1; getkq ok opaque=3 cas=<cas> flags=0 key={k2} "
            "value=2; noop ok opaque=4",
        ),
    ),
    case("bin-empty-value", "KV-BINGET-011", store("{k}", "", flags=6), hit("{k}", "", flags=6)),
)

BYTES = (
    *(
        case(
            f"bin-key-with-{name}",
            "KV-BINGET-012",
            store(f"{{k}}{sign}b", "x"),
            frames(f"getk key={{k}}{sign}b", f"getk ok cas=<cas> flags=0 key={{k}}{sign}b value=x"),
            miss("{k}"),
            frames(f"delete key={{k}}{sign}b", "delete ok"),
            miss(f"{{k}}{sign}b"),
        )
        for name, sign in (("a-blank", "%20"), ("a-tab", "%09"), ("a-line-end", "%0d%0a"), ("a-nul", "%00"))
    ),
    *(
        case(
            f"bin-value-with-{name}",
            "KV-BINGET-013",
            store("{k}", value),
            hit("{k}", value),
            send("get {k}\r\n", f"VALUE {{k}} 0 {length}\r\n{text}\r\nEND\r\n", on="text"),
        )
        for name, value, length, text in (
            ("line-ends", "a%0d%0ab%0d%0a", 6, "a\r\nb\r\n"),
            ("a-nul", "a%00b", 3, "a\0b"),
            ("a-command", "x%0d%0adelete k%0d%0a", 13, "x\r\ndelete k\r\n"),
        )
    ),
    case(
        "bin-value-of-utf-8",
        "KV-BINGET-013",
        store("{k}", "%c2%a7%c3%a9"),
        hit("{k}", "%c2%a7%c3%a9"),
    ),
    case(
        "bin-getk-in-another-case",
        "KV-BINGET-014",
        store("{k}a", "x"),
        frames("getk key={k}A", "getk ok cas=<cas> flags=0 key={k}A value=x"),
        frames("getkq key={k}A", "getkq ok cas=<cas> flags=0 key={k}A value=x"),
    ),
    case(
        "bin-value-that-is-no-text",
        "KV-BINGET-021",
        store("{k}", "ab%ffcd"),
        hit("{k}", "ab"),
        shape=value_table("VARCHAR(32) CHARACTER SET utf8mb4"),
    ),
    case(
        "bin-key-that-is-no-text",
        "KV-BINGET-023",
        store("{k}%fea", "x"),
        frames("getk key={k}", "getk ok cas=<cas> flags=0 key={k} value=x"),
        frames("getk key={k}%feb", "getk ok cas=<cas> flags=0 key={k}%feb value=x"),
        frames("delete key={k}%ff", "delete ok"),
        miss("{k}"),
        shape=TEXT_KEY,
    ),
    case(
        "bin-key-that-is-no-text-refused",
        "KV-BINGET-024 KV-BINGET-029",
        store("{k}", "x"),
        frames("set key={k}%fe value=y", 'set 0x84 "<value>"'),
        miss("{k}%fe"),
        frames("delete key={k}%fe", 'delete 0x01 "Not found"'),
        hit("{k}", "x"),
        shape=TEXT_KEY,
    ),
    case(
        "bin-value-that-is-no-text-refused",
        "KV-BINGET-022",
        store("{k}", "old"),
        frames("set key={k} value=ab%ffcd", 'set 0x84 "<value>"'),
        miss("{k}"),
        shape=value_table("VARCHAR(32) CHARACTER SET utf8mb4"),
    ),
)

ROWS = (
    case(
        "bin-null-value",
        "KV-BINGET-015",
        sql("INSERT INTO {t1} VALUES ('{k}', NULL, 0, 7, 0)"),
        frames("get key={k}", "get ok cas=7 flags=0 value="),
    ),
    case(
        "bin-null-flags-and-cas",
        "KV-BINGET-016",
        sql("INSERT INTO {t1} VALUES ('{k}', 'x', NULL, NULL, NULL)"),
        frames("get key={k}", "get ok flags=0 value=x"),
    ),
    case(
        "bin-negative-flags",
        "KV-BINGET-017",
        sql("INSERT INTO {t1} VALUES ('{k}', 'x', -1, 5, 0)"),
        frames("get key={k}", "get ok cas=5 flags=4294967295 value=x"),
    ),
    case(
        "bin-cas-zero",
        "KV-BINGET-018 KV-BINGET-026",
        sql("INSERT INTO {t1} VALUES ('{k}', 'x', 0, 0, 0)"),
        frames("get key={k}", "get ok flags=0 value=x"),
        frames("set key={k} cas=0 value=y", "set ok cas=<cas>"),
    ),
    case(
        "bin-row-of-sql",
        "KV-BINGET-019 KV-BINGET-027",
        sql("INSERT INTO {t1} VALUES ('{k}', 'one', 4, 1234567890123, 0)"),
        frames("getk key={k}", "getk ok cas=1234567890123 flags=4 key={k} value=one"),
        frames("set key={k} cas=1234567890123 value=two", "set ok cas=<cas>"),
        sql("SELECT c2, c3 FROM {t1} WHERE c1 = '{k}'", ("two", 0)),
    ),
    case(
        "bin-expired-row-of-sql",
        "KV-BINGET-020",
        sql("INSERT INTO {t1} VALUES ('{k}', 'x', 0, 7, 1000000000)"),
        miss("{k}"),
    ),
    case(
        "bin-many-values",
        "KV-BINGET-010",
        *(store(f"{{k{n}}}", str(n)) for n in range(1, 6)),
        frames(
            "; ".join(f"getq key={{k{n}}} opaque={n}" for n in (3, 1, 5, 2, 4)),
            "; ".join(f"getq ok opaque={n} cas=<cas> flags=0 value={n}" for n in (3, 1, 5, 2, 4)),
        ),
    ),
)

UNUSED = (
    case(
        "bin-no-option-columns",
        "KV-BINGET-025 KV-BINGET-028",
        frames("set key={k} flags=7 exp=2592001 value=x", "set ok cas=<cas>"),
        frames("getk key={k}", "getk ok flags=0 key={k} value=x"),
        frames("append key={k} value=y", "append ok cas=<cas>"),
        frames("incr key={k2} initial=5", "incr ok cas=<cas> number=5"),
        frames("getq key={k2}", "getq ok flags=0 value=5"),
        try_frames("set key={k} cas=99 value=z", f"set {EXISTS}"),
        shape=BARE,
    ),
)

CASES = (*HITS, *BYTES, *ROWS, *UNUSED)
