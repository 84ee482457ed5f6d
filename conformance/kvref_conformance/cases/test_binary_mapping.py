"""`@@mapping.key` in frames: which opcodes read it, what they answer, what stays bound.

Each connection begins bound to {m1}; {m2} and {q} (one letter) map other tables.
"""

from __future__ import annotations

from kvref_conformance.case import Shape, case, frames, sql
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    NOT_STORED,
    hit,
    miss,
    send_text,
    store,
    try_frames,
)
from kvref_conformance.cases.phrases import OPTIONS

# {k} is 1 in {m1}, 2 in {m2}, 3 in {q}; the connection ends bound to {m1}.
EVERYWHERE = (store("@@{m2}.{k}", "2"), store("@@{q}.{k}", "3"), store("@@{m1}.{k}", "1"))
BY_NUMBER = Shape(f"k INT PRIMARY KEY, v VARCHAR(32), {OPTIONS}")

READS = (
    *(
        case(
            id_,
            requirements,
            *EVERYWHERE,
            frames("get key=@@{m2}", f"get ok flags=0 value={table}"),
            hit("{k}", "2"),
            frames("getk key=@@{m1}", "getk ok flags=0 key=@@{m1} value=<value>"),
            hit("{k}", "1"),
        )
        for id_, requirements, table in (
            ("bin-switch-word", "KV-BINMAP-001", "{w2}"),
            ("bin-switch-word-names-the-default", "KV-BINMAP-028", "{w0}"),
        )
    ),
    case(
        "bin-switch-word-with-delimiter",
        "KV-BINMAP-002",
        *EVERYWHERE,
        frames("get key=@@{m2}.", "get ok flags=0 value=<value>"),
        hit("{k}", "2"),
    ),
    case(
        "bin-get-word",
        "KV-BINMAP-003",
        *EVERYWHERE,
        hit("@@{m2}.{k}", "2"),
        hit("{k}", "2"),
        hit("@@{q}.{k}", "3"),
        hit("{k}", "3"),
    ),
    case(
        "bin-getk-word",
        "KV-BINMAP-004",
        *EVERYWHERE,
        frames("getk key=@@{m2}.{k}", "getk ok cas=<cas> flags=0 key=@@{m2}.{k} value=2"),
        frames("getk key=@@{m2}.{k2}", "getk 0x01 key=@@{m2}.{k2}"),
    ),
    case(
        "bin-quiet-get-word",
        "KV-BINMAP-005",
        *EVERYWHERE,
        frames("getq key=@@{m2}.{k}", "getq ok cas=<cas> flags=0 value=2"),
        hit("{k}", "2"),
        frames("getkq key=@@{q}.{k2}", ""),
        hit("{k}", "3"),
    ),
    case(
        "bin-getkq-of-three-mappings",
        "KV-BINMAP-006",
        *EVERYWHERE,
        frames(
            "getkq key=@@{m2}.{k}; getkq key={k}; getkq key=@@{q}.{k}; getkq key=@@{m1}.{k2}; getkq key={k}; noop",
            "getkq ok cas=<cas> flags=0 key=@@{m2}.{k} value=2; getkq ok cas=<cas> flags=0 key={k} value=2; "
            "getkq ok cas=<cas> flags=0 key=@@{q}.{k} value=3; getkq ok cas=<cas> flags=0 key={k} value=1; noop ok",
        ),
    ),
    case("bin-missing-word", "KV-BINMAP-007", *EVERYWHERE, miss("@@{m2}.{k2}"), hit("{k}", "2")),
    case(
        "bin-connection-of-its-own",
        "KV-BINMAP-008",
        *EVERYWHERE,
        send_text("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n"),
        hit("{k}", "1", on="b"),
        hit("@@{m2}.{k}", "2"),
        send_text("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n"),
        hit("{k}", "1", on="b"),
        send_text("get @@{q}.{k}\r\n", "VALUE @@{q}.{k} 0 1\r\n3\r\nEND\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "bin-word-in-pieces",
        "KV-BINMAP-003",
        *EVERYWHERE,
        frames("get key=@@{m2}.{k}", "get ok cas=<cas> flags=0 value=2", cuts=(25, 30)),
    ),
)

WRITES = (
    *(
        case(
            f"bin-{verb}-word",
            "KV-BINMAP-009",
            *EVERYWHERE,
            store(f"@@{{m2}}.{key}", "+", verb),
            hit(key, value),
            hit("@@{m1}.{k}", "1"),
        )
        for verb, key, value in (
            *(("set", "{k}", "+"), ("add", "{k2}", "+"), ("replace", "{k}", "+"), ("append", "{k}", "2+")),
            ("prepend", "{k}", "+2"),
        )
    ),
    *(
        case(
            f"bin-{verb}-word",
            "KV-BINMAP-010",
            *EVERYWHERE,
            frames(f"{verb} key=@@{{m2}}.{key} value=+", ""),
            hit(key, value),
            hit("@@{m1}.{k}", "1"),
        )
        for verb, key, value in (("setq", "{k}", "+"), ("addq", "{k2}", "+"), ("appendq", "{k}", "2+"))
    ),
    *(
        case(
            f"bin-{verb}-missing-word",
            "KV-BINMAP-011",
            *EVERYWHERE,
            try_frames(f"{verb} key=@@{{m2}}.{{k2}} value=x", f"{verb} {answer}"),
            hit("{k}", "2"),
        )
        for verb, answer in (("append", NOT_STORED), ("prepend", NOT_STORED), ("replace", NOT_FOUND))
    ),
    case(
        "bin-delete-word",
        "KV-BINMAP-012",
        *EVERYWHERE,
        frames("delete key=@@{m2}.{k}", "delete ok"),
        miss("{k}"),
        hit("@@{m1}.{k}", "1"),
    ),
    *(
        case(
            f"bin-{verb}-word",
            "KV-BINMAP-013",
            *EVERYWHERE,
            frames(f"{verb} key=@@{{m2}}.{{k}} delta=2", f"{verb} ok cas=<cas> number={number}"),
            hit("{k}", str(number)),
            frames(f"{verb} key=@@{{q}}.{{k2}} initial=9", f"{verb} ok cas=<cas> number=9"),
            hit("{k2}", "9"),
            hit("@@{m1}.{k}", "1"),
        )
        for verb, number in (("incr", 4), ("decr", 0))
    ),
    case(
        "bin-delete-of-a-whole-word",
        "KV-BINMAP-014",
        *EVERYWHERE,
        frames("delete key=@@{m2}.{k}", f"delete {NOT_FOUND}"),
        hit("{k}", "1"),
        hit("@@{m2}.{k}", "2"),
    ),
    case(
        "bin-incr-of-a-whole-word",
        "KV-BINMAP-015",
        *EVERYWHERE,
        frames("incr key=@@{m2}.{k} initial=9", "incr ok cas=<cas> number=9"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '@@{m2}.{k}'", ("9",)),
        hit("{k}", "1"),
        hit("@@{m2}.{k}", "2"),
    ),
    case(
        "bin-cas-of-a-word",
        "KV-BINMAP-016",
        frames("set key=@@{m2}.{k} value=1", "set ok cas=<cas a>"),
        frames("set key=@@{m2}.{k} cas={a} value=2", "set ok cas=<new cas b>"),
        try_frames("set key=@@{m2}.{k} cas={a} value=3", 'set 0x02 "Data exists for key"'),
        frames("get key={k}", "get ok cas={b} flags=0 value=2"),
    ),
)

WORDS = (
    case(
        "bin-unknown-mapping",
        "KV-BINMAP-017",
        *EVERYWHERE,
        frames("get key=@@kvc-none.{k}; getk key=@@kvc-none", f"get {NOT_FOUND}; getk 0x01 key=@@kvc-none"),
        hit("{k}", "1"),
        frames("getq key=@@kvc-none.{k}; getkq key=@@kvc-none", ""),
        hit("{k}", "1"),
    ),
    *(
        case(
            f"bin-{verb}-into-an-unknown-mapping",
            "KV-BINMAP-018",
            *EVERYWHERE,
            frames(f"{verb} key=@@kvc-none.{{k}} value=x", f"{verb} {NOT_FOUND}"),
            hit("{k}", "1"),
        )
        for verb in ("set", "setq")
    ),
    case(
        "bin-store-without-a-key",
        "KV-BINMAP-019",
        *EVERYWHERE,
        try_frames("set key=@@{m2} value={k2}", f"set {NOT_STORED}"),
        sql("SELECT COUNT(*) FROM {t2} WHERE c2 = '{k2}' OR c1 = '' OR c1 = '@@{m2}'", (0,)),
        hit("{k}", "2"),
    ),
    case(
        "bin-other-storage-without-a-key",
        "KV-BINMAP-026 KV-BINMAP-032 KV-BINMAP-033",
        *EVERYWHERE,
        try_frames("add key=@@{m2} value=x", f"add {EXISTS}"),
        hit("{k}", "2"),
        try_frames(
            "append key=@@{m1} value=x; prepend key=@@{m1} value=x", f"append {NOT_STORED}; prepend {NOT_STORED}"
        ),
        hit("{k}", "1"),
        frames("replace key=@@{m2} value=x", f"replace {NOT_FOUND}"),
        hit("{k}", "2"),
    ),
    *(
        case(
            id_,
            requirements,
            *EVERYWHERE,
            frames("set key=@@{m2}. value=x", f"set {reply}"),
            miss("{k2}"),
        )
        for id_, requirements, reply in (
            ("bin-store-under-an-empty-key", "KV-BINMAP-027", '0x04 "no key behind the delimiter in @@{m2}."'),
            ("bin-store-under-an-empty-key-not-stored", "KV-BINMAP-029", NOT_STORED),
        )
    ),
    *(
        case(id_, requirements, *EVERYWHERE, frames("get key=@@{q}; get key={k}", replies), hit("@@{q}.{k}", "3"))
        for id_, requirements, replies in (
            (
                "bin-word-of-one-letter",
                "KV-BINMAP-020",
                "get ok flags=0 value={w3}; get ok cas=<cas> flags=0 value=3",
            ),
            (
                "bin-word-of-three-bytes",
                "KV-BINMAP-030 KV-BINMAP-031",
                f"get {NOT_FOUND}; get ok cas=<cas> flags=0 value=1",
            ),
        )
    ),
    case("bin-words-without-a-name", "KV-BINMAP-021", *EVERYWHERE, miss("@@"), miss("@@."), hit("{k}", "1")),
    case(
        "bin-flush-of-the-bound-table",
        "KV-BINMAP-022",
        *EVERYWHERE,
        hit("@@{m2}.{k}", "2"),
        frames("flush", "flush ok"),
        miss("{k}"),
        hit("@@{m1}.{k}", "1"),
        hit("@@{q}.{k}", "3"),
    ),
    case(
        "bin-touch-of-a-word",
        "KV-BINMAP-023",
        *EVERYWHERE,
        frames("touch key=@@{m2}.{k} exp=2000000000", ("touch ok", "touch ok cas=<cas> flags=0 value=")),
        hit("{k}", "2"),
        frames("gat key=@@{q}.{k} exp=2000000000", "gat ok cas=<cas> flags=0 value=3"),
        hit("{k}", "3"),
        sql(
            "SELECT c5 FROM {t2} WHERE c1 = '{k}' UNION ALL SELECT c5 FROM {t3} WHERE c1 = '{k}'",
            (2000000000,),
            (2000000000,),
        ),
        sql("SELECT c5 FROM {t1} WHERE c1 = '{k}'", (0,)),
    ),
    case(
        "bin-touch-of-a-word-unknown",
        "KV-BINMAP-024",
        *EVERYWHERE,
        frames("touch key=@@{m2}.{k} exp=1; gat key=@@{m2}.{k} exp=1", "touch 0x81; gat 0x81"),
        hit("{k}", "1"),
    ),
    case(
        "bin-integer-keys",
        "KV-BINMAP-025",
        store("17", "x"),
        frames("getk key=17", "getk ok cas=<cas> flags=0 key=17 value=x"),
        miss("x"),
        shape=BY_NUMBER,
    ),
)

CASES = (*READS, *WRITES, *WORDS)
