"""set, add, replace, append and prepend: answers, cas numbers, flags, expiry. Widths: `test_binary_widths.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import ask, case, sql
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    NOT_STORED,
    answered,
    misses,
    shows,
    stored,
)
from kvref_conformance.steps import Pause, Tick

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

SET_A = ask("set key={k} flags=4 value=one", "set ok cas=<cas a>")
A_CAS = "18446744073709551614"

PLAIN = (
    case(
        "bin-set",
        "KV-BINSTORE-001",
        ask("set key={k} flags=4 value=one", "set ok cas=<cas a>"),
        ask("get key={k}", "get ok cas={a} flags=4 value=one"),
    ),
    case(
        "bin-set-again",
        "KV-BINSTORE-002",
        SET_A,
        ask("set key={k} value=two", "set ok cas=<new cas b>"),
        ask("set key={k} value=two", "set ok cas=<new cas c>"),
        shows("{k}", "two"),
    ),
    *(
        case(
            f"bin-flags-{flags:#x}", "KV-BINSTORE-003", stored("{k}", "x", flags=flags), shows("{k}", "x", flags=flags)
        )
        for flags in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    ),
    case(
        "bin-flags-in-the-table",
        "KV-BINSTORE-004",
        stored("{k}", "x", flags=0xFFFFFFFF),
        sql("SELECT c3 FROM {t1} WHERE c1 = '{k}'", (-1,)),
        stored("{k}", "x", flags=0x80000000),
        sql("SELECT c3 FROM {t1} WHERE c1 = '{k}'", (-2147483648,)),
    ),
    case(
        "bin-cas-in-the-table",
        "KV-BINSTORE-005",
        SET_A,
        sql("SELECT c2, c3, c4 = {a}, c5 FROM {t1} WHERE c1 = '{k}'", ("one", 4, 1, 0)),
    ),
    case("bin-add", "KV-BINSTORE-006", stored("{k}", "one", "add", flags=4), shows("{k}", "one", flags=4)),
    case(
        "bin-add-existing",
        "KV-BINSTORE-007",
        SET_A,
        answered("add key={k} value=x", f"add {EXISTS}"),
        shows("{k}", "one", flags=4),
    ),
    case("bin-replace", "KV-BINSTORE-008", SET_A, stored("{k}", "two", "replace"), shows("{k}", "two")),
    case(
        "bin-replace-missing", "KV-BINSTORE-009", ask("replace key={k} value=x", f"replace {NOT_FOUND}"), misses("{k}")
    ),
    *(
        case(
            f"bin-{verb}",
            "KV-BINSTORE-010",
            SET_A,
            ask(f"{verb} key={{k}} value=+", f"{verb} ok cas=<new cas b>"),
            ask("getk key={k}", f"getk ok cas={{b}} flags=<number> key={{k}} value={value}"),
        )
        for verb, value in (("append", "one+"), ("prepend", "+one"))
    ),
    *(
        case(
            f"bin-{verb}-missing",
            "KV-BINSTORE-011",
            answered(f"{verb} key={{k}} value=x", f"{verb} {NOT_STORED}"),
            misses("{k}"),
        )
        for verb in ("append", "prepend")
    ),
    *(
        case(
            f"bin-{verb}-and-flags",
            "KV-BINSTORE-012",
            stored("{k}", "one", flags=9),
            stored("{k}", "+", verb),
            shows("{k}", value, flags=9),
        )
        for verb, value in (("append", "one+"), ("prepend", "+one"))
    ),
    case(
        "bin-append-and-lost-flags",
        "KV-BINSTORE-013",
        stored("{k}", "one", flags=9),
        stored("{k}", "+", "append"),
        shows("{k}", "one+"),
        stored("{k2}", "one", flags=9),
        stored("{k2}", "+", "prepend"),
        shows("{k2}", "+one"),
    ),
    case(
        "bin-append-nothing",
        "KV-BINSTORE-010",
        SET_A,
        stored("{k}", "", "append"),
        ask("get key={k}", "get ok cas=<new cas b> flags=<number> value=one"),
    ),
)

CAS = (
    case(
        "bin-set-right-cas",
        "KV-BINSTORE-014",
        SET_A,
        ask("set key={k} cas={a} value=two", "set ok cas=<new cas b>"),
        ask("get key={k}", "get ok cas={b} flags=0 value=two"),
        ask("replace key={k} cas={b} value=three", "replace ok cas=<new cas c>"),
        ask("get key={k}", "get ok cas={c} flags=0 value=three"),
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas",
            "KV-BINSTORE-015",
            SET_A,
            answered(f"{verb} key={{k}} cas={A_CAS} value=two", f"{verb} {EXISTS}"),
            ask("get key={k}", "get ok cas={a} flags=4 value=one"),
        )
        for verb in ("set", "add", "replace")
    ),
    *(
        case(
            f"bin-{verb}-cas-missing",
            "KV-BINSTORE-016",
            ask(f"{verb} key={{k}} cas={A_CAS} value=x", f"{verb} {NOT_FOUND}"),
            misses("{k}"),
        )
        for verb in ("set", "add", "replace")
    ),
    case(
        "bin-add-right-cas",
        "KV-BINSTORE-017",
        SET_A,
        ask("add key={k} cas={a} value=two", "add ok cas=<new cas b>"),
    ),
    case(
        "bin-set-stale-cas",
        "KV-BINSTORE-018",
        SET_A,
        ask("set key={k} value=two", "set ok cas=<new cas b>", on="b"),
        answered("set key={k} cas={a} value=three", f"set {EXISTS}"),
        ask("set key={k} cas={b} value=four", "set ok cas=<new cas c>"),
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-refused",
            "KV-BINSTORE-019",
            SET_A,
            answered(f"{verb} key={{k}} cas={A_CAS} value=+", f"{verb} {EXISTS}"),
            ask("get key={k}", "get ok cas={a} flags=4 value=one"),
            ask(f"{verb} key={{k}} cas={{a}} value=+", f"{verb} ok cas=<new cas b>"),
        )
        for verb in ("append", "prepend")
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-ignored",
            "KV-BINSTORE-020",
            SET_A,
            ask(f"{verb} key={{k}} cas={A_CAS} value=+", f"{verb} ok cas=<new cas b>"),
            shows("{k}", value),
        )
        for verb, value in (("append", "one+"), ("prepend", "+one"))
    ),
)

EXPIRY = (
    case(
        "bin-expiry-of-a-second",
        "KV-BINSTORE-021 KV-BINGET-020",
        Tick(),
        ask("set key={k} exp=1 value=x", "set ok cas=<cas>"),
        ask("addq key={k2} exp=1 value=x", ""),
        ask("getq key={k}", "getq ok cas=<cas> flags=0 value=x"),
        Pause(2.1),
        misses("{k}"),
        ask("getq key={k}; getk key={k}; getkq key={k2}", "getk 0x01 key={k}"),
    ),
    case(
        "bin-expiry-of-30-days-and-a-second",
        "KV-BINSTORE-022",
        ask("set key={k} exp=2592001 value=x", "set ok cas=<cas>"),
        misses("{k}"),
    ),
    case(
        "bin-expiry-in-2033",
        "KV-BINSTORE-023",
        ask("set key={k} exp=2000000000 value=x", "set ok cas=<cas>"),
        shows("{k}", "x"),
    ),
    case(
        "bin-expiry-of-30-days",
        "KV-BINSTORE-024",
        ask("set key={k} exp=2592000 value=x", "set ok cas=<cas>"),
        shows("{k}", "x"),
    ),
    case(
        "bin-expiry-of-30-days-at-once",
        "KV-BINSTORE-025",
        ask("set key={k} exp=2592000 value=x", "set ok cas=<cas>"),
        misses("{k}"),
    ),
    *(
        case(
            f"bin-{verb}-expiry-{expiry}",
            "KV-BINSTORE-044",
            *([] if verb == "add" else [stored("{k}", "old")]),
            ask(f"{verb} key={{k}} exp={expiry} value=x", f"{verb} ok cas=<cas>"),
            misses("{k}"),
        )
        for verb in ("set", "add", "replace")
        for expiry in (1 << 31, 0xFFFFFFFF)
    ),
    case(
        "bin-created-expiry-2147483648",
        "KV-BINSTORE-044",
        ask("incr key={k} initial=5 exp=2147483648", "incr ok cas=<cas> number=5"),
        misses("{k}"),
    ),
    case(
        "bin-expiry-ffffffff",
        "KV-BINSTORE-026",
        ask("set key={k} exp=4294967295 value=x", "set ok cas=<cas>"),
        shows("{k}", "x"),
        sql("SELECT c5 FROM {t1} WHERE c1 = '{k}'", (-1,)),
    ),
)

CASES = (*PLAIN, *CAS, *EXPIRY)


def test_binary_store(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
