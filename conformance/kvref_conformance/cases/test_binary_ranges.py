"""Ranges (`@>key` and its like) in frames: one request has one answer."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, frames, sql
from kvref_conformance.cases.binary_phrases import NOT_FOUND, hit, miss, store
from kvref_conformance.cases.phrases import OPTIONS

KEYS = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(32), {OPTIONS}")
ROWS = tuple(store(key, value) for key, value in (("aaaa", "1"), ("b", "2"), ("cccc", "3"), ("d", "4")))

CASES = (
    *(
        case(
            f"bin-range-{name}",
            "KV-BINRANGE-001",
            *ROWS,
            frames(f"get key={key}", f"get ok cas=<cas> flags=0 value={value}"),
            shape=KEYS,
        )
        for name, key, value in (
            *(("above", "@>b", "3"), ("from", "@>=b", "2"), ("below", "@<c", "1"), ("up-to", "@<=c", "1")),
            *(("between", "@>b@<d", "3"), ("alone", "@>", "1")),
        )
    ),
    case(
        "bin-quiet-range",
        "KV-BINRANGE-001",
        *ROWS,
        frames("getq key=@>b; noop", "getq ok cas=<cas> flags=0 value=3; noop ok"),
        shape=KEYS,
    ),
    *(
        case(
            f"bin-range-key-{verb}",
            "KV-BINRANGE-002",
            *ROWS,
            frames(f"{verb} key=@>a", f"{verb} ok cas=<cas> flags=0 key=aaaa value=1"),
            frames(f"{verb} key=@>cccc", f"{verb} ok cas=<cas> flags=0 key=d value=4"),
            shape=KEYS,
        )
        for verb in ("getk", "getkq")
    ),
    case(
        "bin-range-key-cut",
        "KV-BINRANGE-003",
        *ROWS,
        frames("getk key=@>a", "getk ok cas=<cas> flags=0 key=aaa value=1"),
        frames("getk key=@>=cccc", "getk ok cas=<cas> flags=0 key=cccc<key> value=3"),
        shape=KEYS,
    ),
    case(
        "bin-empty-range",
        "KV-BINRANGE-004",
        *ROWS,
        miss("@>x"),
        frames("getk key=@>x", "getk 0x01 key=@>x"),
        frames("getq key=@>x; getkq key=@>x; noop", "noop ok"),
        shape=KEYS,
    ),
    case(
        "bin-no-range",
        "KV-BINRANGE-005",
        *ROWS,
        miss("@"),
        miss("@x"),
        frames("getk key=@b", "getk 0x01 key=@b"),
        shape=KEYS,
    ),
    case(
        "bin-writes-of-a-range-word",
        "KV-BINRANGE-006",
        *ROWS,
        frames("delete key=@>b", f"delete {NOT_FOUND}"),
        frames("incr key=@>b initial=5", "incr ok cas=<cas> number=5"),
        store("@<b", "x"),
        sql("SELECT k, v FROM {t} WHERE k LIKE '@%' ORDER BY k", ("@<b", "x"), ("@>b", "5")),
        shape=KEYS,
    ),
    case(
        "bin-gets-behind-a-range",
        "KV-BINRANGE-007",
        *ROWS,
        frames(
            "get key=@>b; get key=b; get key=d",
            "get ok cas=<cas> flags=0 value=3; get ok cas=<cas> flags=0 value=2; get ok cas=<cas> flags=0 value=4",
        ),
        hit("cccc", "3"),
        shape=KEYS,
    ),
    *(
        case(
            f"bin-range-unknown-{name}",
            "KV-BINRANGE-008",
            *ROWS,
            miss(key),
            frames(f"getk key={key}", f"getk 0x01 key={key}"),
            hit("b", "2"),
            shape=KEYS,
        )
        for name, key in (("above", "@>b"), ("up-to", "@<=c"), ("between", "@>b@<d"))
    ),
)
