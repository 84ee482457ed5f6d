"""`@@mapping.key` in frames: which opcodes read it, what they answer, what stays bound.

Each connection begins bound to {m1}; {m2} and {q} (one letter) map other tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, ask, case, sql
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    NOT_STORED,
    answered,
    in_text,
    misses,
    shows,
    stored,
)
from kvref_conformance.cases.phrases import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

# {k} is 1 in {m1}, 2 in {m2}, 3 in {q}; the connection ends bound to {m1}.
EVERYWHERE = (stored("@@{m2}.{k}", "2"), stored("@@{q}.{k}", "3"), stored("@@{m1}.{k}", "1"))
BY_NUMBER = Shape(f"k INT PRIMARY KEY, v VARCHAR(32), {OPTIONS}")

READS = (
    *(
        case(
            id_,
            requirements,
            *EVERYWHERE,
            ask("get key=@@{m2}", f"get ok flags=0 value={table}"),
            shows("{k}", "2"),
            ask("getk key=@@{m1}", "getk ok flags=0 key=@@{m1} value=<value>"),
            shows("{k}", "1"),
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
        ask("get key=@@{m2}.", "get ok flags=0 value=<value>"),
        shows("{k}", "2"),
    ),
    case(
        "bin-get-word",
        "KV-BINMAP-003",
        *EVERYWHERE,
        shows("@@{m2}.{k}", "2"),
        shows("{k}", "2"),
        shows("@@{q}.{k}", "3"),
        shows("{k}", "3"),
    ),
    case(
        "bin-getk-word",
        "KV-BINMAP-004",
        *EVERYWHERE,
        ask("getk key=@@{m2}.{k}", "getk ok cas=<cas> flags=0 key=@@{m2}.{k} value=2"),
        ask("getk key=@@{m2}.{k2}", "getk 0x01 key=@@{m2}.{k2}"),
    ),
    case(
        "bin-quiet-get-word",
        "KV-BINMAP-005",
        *EVERYWHERE,
        ask("getq key=@@{m2}.{k}", "getq ok cas=<cas> flags=0 value=2"),
        shows("{k}", "2"),
        ask("getkq key=@@{q}.{k2}", ""),
        shows("{k}", "3"),
    ),
    case(
        "bin-getkq-of-three-mappings",
        "KV-BINMAP-006",
        *EVERYWHERE,
        ask(
            "getkq key=@@{m2}.{k}; getkq key={k}; getkq key=@@{q}.{k}; getkq key=@@{m1}.{k2}; getkq key={k}; noop",
            "getkq ok cas=<cas> flags=0 key=@@{m2}.{k} value=2; getkq ok cas=<cas> flags=0 key={k} value=2; "
            "getkq ok cas=<cas> flags=0 key=@@{q}.{k} value=3; getkq ok cas=<cas> flags=0 key={k} value=1; noop ok",
        ),
    ),
    case("bin-missing-word", "KV-BINMAP-007", *EVERYWHERE, misses("@@{m2}.{k2}"), shows("{k}", "2")),
    case(
        "bin-connection-of-its-own",
        "KV-BINMAP-008",
        *EVERYWHERE,
        in_text("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n"),
        shows("{k}", "1", on="b"),
        shows("@@{m2}.{k}", "2"),
        in_text("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n"),
        shows("{k}", "1", on="b"),
        in_text("get @@{q}.{k}\r\n", "VALUE @@{q}.{k} 0 1\r\n3\r\nEND\r\n"),
        shows("{k}", "2"),
    ),
    case(
        "bin-word-in-pieces",
        "KV-BINMAP-003",
        *EVERYWHERE,
        ask("get key=@@{m2}.{k}", "get ok cas=<cas> flags=0 value=2", cuts=(25, 30)),
    ),
)

WRITES = (
    *(
        case(
            f"bin-{verb}-word",
            "KV-BINMAP-009",
            *EVERYWHERE,
            stored(f"@@{{m2}}.{key}", "+", verb),
            shows(key, value),
            shows("@@{m1}.{k}", "1"),
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
            ask(f"{verb} key=@@{{m2}}.{key} value=+", ""),
            shows(key, value),
            shows("@@{m1}.{k}", "1"),
        )
        for verb, key, value in (("setq", "{k}", "+"), ("addq", "{k2}", "+"), ("appendq", "{k}", "2+"))
    ),
    *(
        case(
            f"bin-{verb}-missing-word",
            "KV-BINMAP-011",
            *EVERYWHERE,
            answered(f"{verb} key=@@{{m2}}.{{k2}} value=x", f"{verb} {answer}"),
            shows("{k}", "2"),
        )
        for verb, answer in (("append", NOT_STORED), ("prepend", NOT_STORED), ("replace", NOT_FOUND))
    ),
    case(
        "bin-delete-word",
        "KV-BINMAP-012",
        *EVERYWHERE,
        ask("delete key=@@{m2}.{k}", "delete ok"),
        misses("{k}"),
        shows("@@{m1}.{k}", "1"),
    ),
    *(
        case(
            f"bin-{verb}-word",
            "KV-BINMAP-013",
            *EVERYWHERE,
            ask(f"{verb} key=@@{{m2}}.{{k}} delta=2", f"{verb} ok cas=<cas> number={number}"),
            shows("{k}", str(number)),
            ask(f"{verb} key=@@{{q}}.{{k2}} initial=9", f"{verb} ok cas=<cas> number=9"),
            shows("{k2}", "9"),
            shows("@@{m1}.{k}", "1"),
        )
        for verb, number in (("incr", 4), ("decr", 0))
    ),
    case(
        "bin-delete-of-a-whole-word",
        "KV-BINMAP-014",
        *EVERYWHERE,
        ask("delete key=@@{m2}.{k}", f"delete {NOT_FOUND}"),
        shows("{k}", "1"),
        shows("@@{m2}.{k}", "2"),
    ),
    case(
        "bin-incr-of-a-whole-word",
        "KV-BINMAP-015",
        *EVERYWHERE,
        ask("incr key=@@{m2}.{k} initial=9", "incr ok cas=<cas> number=9"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '@@{m2}.{k}'", ("9",)),
        shows("{k}", "1"),
        shows("@@{m2}.{k}", "2"),
    ),
    case(
        "bin-cas-of-a-word",
        "KV-BINMAP-016",
        ask("set key=@@{m2}.{k} value=1", "set ok cas=<cas a>"),
        ask("set key=@@{m2}.{k} cas={a} value=2", "set ok cas=<new cas b>"),
        answered("set key=@@{m2}.{k} cas={a} value=3", 'set 0x02 "Data exists for key"'),
        ask("get key={k}", "get ok cas={b} flags=0 value=2"),
    ),
)

WORDS = (
    case(
        "bin-unknown-mapping",
        "KV-BINMAP-017",
        *EVERYWHERE,
        ask("get key=@@kvc-none.{k}; getk key=@@kvc-none", f"get {NOT_FOUND}; getk 0x01 key=@@kvc-none"),
        shows("{k}", "1"),
        ask("getq key=@@kvc-none.{k}; getkq key=@@kvc-none", ""),
        shows("{k}", "1"),
    ),
    *(
        case(
            f"bin-{verb}-into-an-unknown-mapping",
            "KV-BINMAP-018",
            *EVERYWHERE,
            ask(f"{verb} key=@@kvc-none.{{k}} value=x", f"{verb} {NOT_FOUND}"),
            shows("{k}", "1"),
        )
        for verb in ("set", "setq")
    ),
    case(
        "bin-store-without-a-key",
        "KV-BINMAP-019",
        *EVERYWHERE,
        answered("set key=@@{m2} value={k2}", f"set {NOT_STORED}"),
        sql("SELECT COUNT(*) FROM {t2} WHERE c2 = '{k2}' OR c1 = '' OR c1 = '@@{m2}'", (0,)),
        shows("{k}", "2"),
    ),
    case(
        "bin-other-storage-without-a-key",
        "KV-BINMAP-026 KV-BINMAP-032 KV-BINMAP-033",
        *EVERYWHERE,
        answered("add key=@@{m2} value=x", f"add {EXISTS}"),
        shows("{k}", "2"),
        answered("append key=@@{m1} value=x; prepend key=@@{m1} value=x", f"append {NOT_STORED}; prepend {NOT_STORED}"),
        shows("{k}", "1"),
        ask("replace key=@@{m2} value=x", f"replace {NOT_FOUND}"),
        shows("{k}", "2"),
    ),
    *(
        case(
            id_,
            requirements,
            *EVERYWHERE,
            ask("set key=@@{m2}. value=x", f"set {reply}"),
            misses("{k2}"),
        )
        for id_, requirements, reply in (
            ("bin-store-under-an-empty-key", "KV-BINMAP-027", '0x04 "no key behind the delimiter in @@{m2}."'),
            ("bin-store-under-an-empty-key-not-stored", "KV-BINMAP-029", NOT_STORED),
        )
    ),
    *(
        case(id_, requirements, *EVERYWHERE, ask("get key=@@{q}; get key={k}", replies), shows("@@{q}.{k}", "3"))
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
    case("bin-words-without-a-name", "KV-BINMAP-021", *EVERYWHERE, misses("@@"), misses("@@."), shows("{k}", "1")),
    case(
        "bin-flush-of-the-bound-table",
        "KV-BINMAP-022",
        *EVERYWHERE,
        shows("@@{m2}.{k}", "2"),
        ask("flush", "flush ok"),
        misses("{k}"),
        shows("@@{m1}.{k}", "1"),
        shows("@@{q}.{k}", "3"),
    ),
    case(
        "bin-touch-of-a-word",
        "KV-BINMAP-023",
        *EVERYWHERE,
        ask("touch key=@@{m2}.{k} exp=2000000000", ("touch ok", "touch ok cas=<cas> flags=0 value=")),
        shows("{k}", "2"),
        ask("gat key=@@{q}.{k} exp=2000000000", "gat ok cas=<cas> flags=0 value=3"),
        shows("{k}", "3"),
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
        ask("touch key=@@{m2}.{k} exp=1; gat key=@@{m2}.{k} exp=1", "touch 0x81; gat 0x81"),
        shows("{k}", "1"),
    ),
    case(
        "bin-integer-keys",
        "KV-BINMAP-025",
        stored("17", "x"),
        ask("getk key=17", "getk ok cas=<cas> flags=0 key=17 value=x"),
        misses("x"),
        shape=BY_NUMBER,
    ),
)

CASES = (*READS, *WRITES, *WORDS)


def test_binary_mapping(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
