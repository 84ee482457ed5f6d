"""set, add, replace, append and prepend: answers, cas numbers, flags, expiry. Widths: `test_binary_widths.py`."""

from __future__ import annotations

from kvref_conformance.case import case, frames, sql
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    NOT_STORED,
    hit,
    miss,
    store,
    try_frames,
)
from kvref_conformance.steps import Pause, Tick

SET_A = frames("set key={k} flags=4 value=one", "set ok cas=<cas a>")
A_CAS = "18446744073709551614"

PLAIN = (
    case(
        "bin-set",
        "KV-BINSTORE-001",
        frames("set key={k} flags=4 value=one", "set ok cas=<cas a>"),
        frames("get key={k}", "get ok cas={a} flags=4 value=one"),
    ),
    case(
        "bin-set-again",
        "KV-BINSTORE-002",
        SET_A,
        frames("set key={k} value=two", "set ok cas=<new cas b>"),
        frames("set key={k} value=two", "set ok cas=<new cas c>"),
        hit("{k}", "two"),
    ),
    *(
        case(f"bin-flags-{flags:#x}", "KV-BINSTORE-003", store("{k}", "x", flags=flags), hit("{k}", "x", flags=flags))
        for flags in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    ),
    case(
        "bin-flags-in-the-table",
        "KV-BINSTORE-004",
        store("{k}", "x", flags=0xFFFFFFFF),
        sql("SELECT c3 FROM {t1} WHERE c1 = '{k}'", (-1,)),
        store("{k}", "x", flags=0x80000000),
        sql("SELECT c3 FROM {t1} WHERE c1 = '{k}'", (-2147483648,)),
    ),
    case(
        "bin-cas-in-the-table",
        "KV-BINSTORE-005",
        SET_A,
        sql("SELECT c2, c3, c4 = {a}, c5 FROM {t1} WHERE c1 = '{k}'", ("one", 4, 1, 0)),
    ),
    case("bin-add", "KV-BINSTORE-006", store("{k}", "one", "add", flags=4), hit("{k}", "one", flags=4)),
    case(
        "bin-add-existing",
        "KV-BINSTORE-007",
        SET_A,
        try_frames("add key={k} value=x", f"add {EXISTS}"),
        hit("{k}", "one", flags=4),
    ),
    case("bin-replace", "KV-BINSTORE-008", SET_A, store("{k}", "two", "replace"), hit("{k}", "two")),
    case(
        "bin-flags-of-each-opcode",
        "KV-BINSTORE-003",
        store("{k}", "x"),
        frames("replace key={k} flags=7 value=x", "replace ok cas=<cas>"),
        hit("{k}", "x", flags=7),
        frames("replaceq key={k} flags=8 value=x", ""),
        hit("{k}", "x", flags=8),
        frames("addq key={k2} flags=9 value=x", ""),
        hit("{k2}", "x", flags=9),
    ),
    case(
        "bin-replace-missing", "KV-BINSTORE-009", frames("replace key={k} value=x", f"replace {NOT_FOUND}"), miss("{k}")
    ),
    *(
        case(
            f"bin-{verb}",
            "KV-BINSTORE-010",
            SET_A,
            frames(f"{verb} key={{k}} value=+", f"{verb} ok cas=<new cas b>"),
            frames("getk key={k}", f"getk ok cas={{b}} flags=<number> key={{k}} value={value}"),
        )
        for verb, value in (("append", "one+"), ("prepend", "+one"))
    ),
    *(
        case(
            f"bin-{verb}-missing",
            "KV-BINSTORE-011",
            try_frames(f"{verb} key={{k}} value=x", f"{verb} {NOT_STORED}"),
            miss("{k}"),
        )
        for verb in ("append", "prepend")
    ),
    *(
        case(
            f"bin-{verb}-and-flags",
            "KV-BINSTORE-012",
            store("{k}", "one", flags=9),
            store("{k}", "+", verb),
            hit("{k}", value, flags=9),
        )
        for verb, value in (("append", "one+"), ("prepend", "+one"))
    ),
    case(
        "bin-append-and-lost-flags",
        "KV-BINSTORE-013",
        store("{k}", "one", flags=9),
        store("{k}", "+", "append"),
        hit("{k}", "one+"),
        store("{k2}", "one", flags=9),
        store("{k2}", "+", "prepend"),
        hit("{k2}", "+one"),
    ),
    case(
        "bin-append-nothing",
        "KV-BINSTORE-010",
        SET_A,
        store("{k}", "", "append"),
        frames("get key={k}", "get ok cas=<new cas b> flags=<number> value=one"),
    ),
)

CAS = (
    case(
        "bin-set-right-cas",
        "KV-BINSTORE-014",
        SET_A,
        frames("set key={k} cas={a} value=two", "set ok cas=<new cas b>"),
        frames("get key={k}", "get ok cas={b} flags=0 value=two"),
        frames("replace key={k} cas={b} value=three", "replace ok cas=<new cas c>"),
        frames("get key={k}", "get ok cas={c} flags=0 value=three"),
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas",
            "KV-BINSTORE-015",
            SET_A,
            try_frames(f"{verb} key={{k}} cas={A_CAS} value=two", f"{verb} {EXISTS}"),
            frames("get key={k}", "get ok cas={a} flags=4 value=one"),
        )
        for verb in ("set", "add", "replace")
    ),
    *(
        case(
            f"bin-{verb}-cas-missing",
            "KV-BINSTORE-016",
            frames(f"{verb} key={{k}} cas={A_CAS} value=x", f"{verb} {NOT_FOUND}"),
            miss("{k}"),
        )
        for verb in ("set", "add", "replace")
    ),
    case(
        "bin-add-right-cas",
        "KV-BINSTORE-017",
        SET_A,
        frames("add key={k} cas={a} value=two", "add ok cas=<new cas b>"),
    ),
    case(
        "bin-set-stale-cas",
        "KV-BINSTORE-018",
        SET_A,
        frames("set key={k} value=two", "set ok cas=<new cas b>", on="b"),
        try_frames("set key={k} cas={a} value=three", f"set {EXISTS}"),
        frames("set key={k} cas={b} value=four", "set ok cas=<new cas c>"),
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-refused",
            "KV-BINSTORE-019",
            SET_A,
            try_frames(f"{verb} key={{k}} cas={A_CAS} value=+", f"{verb} {EXISTS}"),
            frames("get key={k}", "get ok cas={a} flags=4 value=one"),
            frames(f"{verb} key={{k}} cas={{a}} value=+", f"{verb} ok cas=<new cas b>"),
        )
        for verb in ("append", "prepend")
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-ignored",
            "KV-BINSTORE-020",
            SET_A,
            frames(f"{verb} key={{k}} cas={A_CAS} value=+", f"{verb} ok cas=<new cas b>"),
            hit("{k}", value),
        )
        for verb, value in (("append", "one+"), ("prepend", "+one"))
    ),
)

EXPIRY = (
    case(
        "bin-expiry-of-a-second",
        "KV-BINSTORE-021 KV-BINGET-020",
        Tick(),
        frames("set key={k} exp=1 value=x", "set ok cas=<cas>"),
        frames("addq key={k2} exp=1 value=x", ""),
        frames("getq key={k}", "getq ok cas=<cas> flags=0 value=x"),
        Pause(2.1),
        miss("{k}"),
        frames("getq key={k}; getk key={k}; getkq key={k2}", "getk 0x01 key={k}"),
    ),
    case(
        "bin-expiry-of-30-days-and-a-second",
        "KV-BINSTORE-022",
        frames("set key={k} exp=2592001 value=x", "set ok cas=<cas>"),
        miss("{k}"),
    ),
    case(
        "bin-expiry-of-30-days-and-a-second-of-each-opcode",
        "KV-BINSTORE-022",
        *(store(f"{{k{n}}}", "old") for n in (1, 2, 3)),
        frames("add key={k} exp=2592001 value=x", "add ok cas=<cas>"),
        frames("replace key={k1} exp=2592001 value=x", "replace ok cas=<cas>"),
        frames("setq key={k2} exp=2592001 value=x", ""),
        frames("replaceq key={k3} exp=2592001 value=x", ""),
        frames("addq key={k4} exp=2592001 value=x", ""),
        *map(miss, ("{k}", "{k1}", "{k2}", "{k3}", "{k4}")),
    ),
    case(
        "bin-expiry-in-2033",
        "KV-BINSTORE-023",
        frames("set key={k} exp=2000000000 value=x", "set ok cas=<cas>"),
        hit("{k}", "x"),
    ),
    case(
        "bin-expiry-of-30-days",
        "KV-BINSTORE-024",
        frames("set key={k} exp=2592000 value=x", "set ok cas=<cas>"),
        hit("{k}", "x"),
    ),
    case(
        "bin-expiry-of-30-days-at-once",
        "KV-BINSTORE-025",
        frames("set key={k} exp=2592000 value=x", "set ok cas=<cas>"),
        miss("{k}"),
    ),
    *(
        case(
            f"bin-{verb}-expiry-{expiry}",
            "KV-BINSTORE-044",
            *([] if verb == "add" else [store("{k}", "old")]),
            frames(f"{verb} key={{k}} exp={expiry} value=x", f"{verb} ok cas=<cas>"),
            miss("{k}"),
        )
        for verb in ("set", "add", "replace")
        for expiry in (1 << 31, 0xFFFFFFFF)
    ),
    case(
        "bin-created-expiry-2147483648",
        "KV-BINSTORE-044",
        frames("incr key={k} initial=5 exp=2147483648", "incr ok cas=<cas> number=5"),
        miss("{k}"),
    ),
    case(
        "bin-expiry-ffffffff",
        "KV-BINSTORE-026",
        frames("set key={k} exp=4294967295 value=x", "set ok cas=<cas>"),
        hit("{k}", "x"),
        sql("SELECT c5 FROM {t1} WHERE c1 = '{k}'", (-1,)),
    ),
)

CASES = (*PLAIN, *CAS, *EXPIRY)
