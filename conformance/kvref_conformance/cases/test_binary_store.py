"""set, add, replace, append and prepend: answers, cas numbers, flags, expiry, widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Pause, Shape, ask, by, case, sql, waits
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    NOT_STORED,
    TOO_LARGE,
    misses,
    refused,
    shows,
    stored,
    told,
)
from kvref_conformance.cases.phrases import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

NUMBER = Shape(f"k VARCHAR(32) PRIMARY KEY, v INT, {OPTIONS}")
TWO = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(32), w VARCHAR(32), {OPTIONS}", values="v,w")
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
        case(f"bin-flags-{flags:#x}", "KV-BINSTORE-003", stored("{k}", "x", flags=flags), shows("{k}", "x", flags=flags))
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
    case("bin-add-existing", "KV-BINSTORE-007", SET_A, told("add key={k} value=x", f"add {EXISTS}"), shows("{k}", "one", flags=4)),
    case("bin-replace", "KV-BINSTORE-008", SET_A, stored("{k}", "two", "replace"), shows("{k}", "two")),
    case("bin-replace-missing", "KV-BINSTORE-009", ask("replace key={k} value=x", f"replace {NOT_FOUND}"), misses("{k}")),
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
        case(f"bin-{verb}-missing", "KV-BINSTORE-011", told(f"{verb} key={{k}} value=x", f"{verb} {NOT_STORED}"), misses("{k}"))
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
    case("bin-append-nothing", "KV-BINSTORE-010", SET_A, stored("{k}", "", "append"), ask(
        "get key={k}", "get ok cas=<new cas b> flags=<number> value=one")),
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
            told(f"{verb} key={{k}} cas={A_CAS} value=two", f"{verb} {EXISTS}"),
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
        told("set key={k} cas={a} value=three", f"set {EXISTS}"),
        ask("set key={k} cas={b} value=four", "set ok cas=<new cas c>"),
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-refused",
            "KV-BINSTORE-019",
            SET_A,
            told(f"{verb} key={{k}} cas={A_CAS} value=+", f"{verb} {EXISTS}"),
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
        "KV-BINSTORE-021",
        ask("set key={k} exp=1 value=x", "set ok cas=<cas>"),
        ask("add key={k2} exp=1 value=x", "add ok cas=<cas>"),
        shows("{k}", "x"),
        Pause(2.1),
        misses("{k}"),
        misses("{k2}"),
    ),
    case("bin-expiry-of-30-days-and-a-second", "KV-BINSTORE-022", ask("set key={k} exp=2592001 value=x", "set ok cas=<cas>"), misses("{k}")),
    case("bin-expiry-in-2033", "KV-BINSTORE-023", ask("set key={k} exp=2000000000 value=x", "set ok cas=<cas>"), shows("{k}", "x")),
    case("bin-expiry-of-30-days", "KV-BINSTORE-024", ask("set key={k} exp=2592000 value=x", "set ok cas=<cas>"), shows("{k}", "x")),
    case("bin-expiry-of-30-days-at-once", "KV-BINSTORE-025", ask("set key={k} exp=2592000 value=x", "set ok cas=<cas>"), misses("{k}")),
    case(
        "bin-expiry-ffffffff",
        "KV-BINSTORE-026",
        ask("set key={k} exp=4294967295 value=x", "set ok cas=<cas>"),
        shows("{k}", "x"),
        sql("SELECT c5 FROM {t1} WHERE c1 = '{k}'", (-1,)),
    ),
)

WIDTHS = (
    case("bin-value-as-wide-as-its-column", "KV-BINSTORE-027", stored("{k}", "{v~1024}"), shows("{k}", "{v~1024}")),
    case(
        "bin-value-wider-than-its-column",
        "KV-BINSTORE-028",
        stored("{k}", "old"),
        ask("set key={k} value={v~1025}", f"set {TOO_LARGE}"),
        shows("{k}", "old"),
        stored("{k}", "{v~1023}"),
        ask("append key={k} value=12", f"append {TOO_LARGE}"),
        shows("{k}", "{v~1023}"),
    ),
    case(
        "bin-value-wider-than-its-column-cut", "KV-BINSTORE-029", stored("{k}", "{v~1025}"), shows("{k}", "{v~1024}")
    ),
    case(
        "bin-key-wider-than-its-column",
        "KV-BINSTORE-030",
        stored("{k:32}", "x"),
        ask("set key={k:33} value=y", 'set 0x04 "key too long for column c1 (32)"'),
        misses("{k:33}"),
        ask("delete key={k:33}", f"delete {NOT_FOUND}"),
        shows("{k:32}", "x"),
    ),
    case(
        "bin-key-wider-than-its-column-cut",
        "KV-BINSTORE-031",
        stored("{k:33}", "y"),
        shows("{k:32}", "y"),
        shows("{k:40}", "y"),
        ask("delete key={k:35}", "delete ok"),
        misses("{k:32}"),
    ),
    case(
        "bin-no-number-into-an-integer",
        "KV-BINSTORE-032",
        ask("set key={k} value=abc", 'set 0x04 "<value>"'),
        misses("{k}"),
        stored("{k}", "17"),
        shows("{k}", "17"),
        shape=NUMBER,
    ),
    case(
        "bin-no-number-into-an-integer-not-stored",
        "KV-BINSTORE-033",
        told("set key={k} value=abc", f"set {NOT_STORED}"),
        told("set key={k} value=", f"set {NOT_STORED}"),
        misses("{k}"),
        stored("{k}", "17"),
        shows("{k}", "17"),
        shape=NUMBER,
    ),
    case(
        "bin-two-columns",
        "KV-BINSTORE-034",
        stored("{k}", "a|b"),
        sql("SELECT v, w FROM {t} WHERE k = '{k}'", ("a", "b")),
        shows("{k}", "a|b"),
        shape=TWO,
    ),
    case(
        "bin-append-to-two-columns",
        "KV-BINSTORE-035",
        stored("{k}", "a|b"),
        stored("{k}", "c", "append"),
        shows("{k}", "a|bc"),
        stored("{k}", "d", "prepend"),
        shows("{k}", "da|bc"),
        shape=TWO,
    ),
    case(
        "bin-append-to-the-first-of-two-columns",
        "KV-BINSTORE-036",
        stored("{k}", "a|b"),
        stored("{k}", "c", "append"),
        sql("SELECT v, w FROM {t} WHERE k = '{k}'", ("ac", None)),
        shape=TWO,
    ),
    case("bin-separator-in-one-column", "KV-BINSTORE-037", stored("{k}", "a|b|c"), shows("{k}", "a|b|c")),
)

SIZES = (
    case(
        "bin-announced-2-31",
        "KV-BINSTORE-038",
        ask("set key={k} longer=2147483647 value=x", f"set {TOO_LARGE}", quiet=True),
        misses("{k}", on="b"),
    ),
    case(
        "bin-value-of-two-megabytes",
        "KV-BINSTORE-039",
        told("set key={k} value={v~2097152}", f"set {TOO_LARGE}", patience=15.0),
        ask("noop opaque=1", "noop ok opaque=1"),
        misses("{k}"),
    ),
    case(
        "bin-announced-2-31-waited-for",
        "KV-BINSTORE-040",
        waits("set key={k} longer=2147483000 value=x"),
        misses("{k}", on="b"),
    ),
    case("bin-value-of-two-megabytes-cut", "KV-BINSTORE-041", ask("set key={k} value={v~2097152}", "set ok cas=<cas>", patience=15.0), shows("{k}", "{v~1024}")),
)

CASES = (*PLAIN, *CAS, *EXPIRY, *WIDTHS, *SIZES)


def test_binary_store(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
