"""ma: what is counted, from which number on, and what is answered of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, say
from kvref_conformance.cases.phrases import OPTIONS, misses, shows, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send

NUMBER = Shape(f"k VARCHAR(32) PRIMARY KEY, v BIGINT, {OPTIONS}")
OTHER = 999999999999
TEN = stored("{k}", "10")
NONE = "NF\r\n"
EITHER = "CLIENT_ERROR invalid or duplicate flag\r\n"
MODE = "CLIENT_ERROR invalid mode for ma M token\r\n"
NO_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


def ma(flags: str, *allow: str, key: str = "{k}") -> Send:
    """Count {k} with those flags."""
    return say(f"ma {key} {flags}\r\n", allow)


def counted(flags: str, number: int) -> Send:
    """Count {k} and want that number."""
    return ma(f"{flags} v", f"VA {len(str(number))}\r\n{number}\r\n")


CASES = (
    case("ma", "KV-MA-001", TEN, ma("", "HD\r\n"), shows("{k}", "11")),
    case("ma-v", "KV-MA-002", TEN, counted("", 11), counted("", 12)),
    case("ma-D", "KV-MA-003", TEN, counted("D5", 15), counted("D0", 15), counted("D10000000000", 10000000015)),
    case("ma-missing", "KV-MA-004", ma("", NONE), ma("v J5", NONE), misses("{k}")),
    case("ma-modes", "KV-MA-005", TEN, counted("MI", 11), counted("M+", 12), counted("MD", 11), counted("M- D2", 9)),
    case("ma-below-zero", "KV-MA-006", TEN, counted("MD D100", 0), counted("D0", 0)),
    case("ma-round", "KV-MA-007", TEN, counted("D18446744073709551615", 9), counted("D0", 9)),
    case(
        "ma-N",
        "KV-MA-008",
        ma("N0 J13 v", "VA 2\r\n13\r\n"),
        shows("{k}", "13"),
        ma("N0 v", "VA 1\r\n0\r\n", key="{k2}"),
    ),
    case(
        "ma-N-time",
        "KV-MA-008",
        ma("N100 t", "HD t100\r\n", "HD t99\r\n"),
        say("mg {k} t v\r\n", ("VA 1 t100\r\n0\r\n", "VA 1 t99\r\n0\r\n")),
    ),
    case("ma-N-below-zero", "KV-MA-023", ma("N-1 J5 v", "VA 1\r\n5\r\n"), misses("{k}"), ma("", NONE)),
    case("ma-T-below-zero", "KV-MA-024", TEN, ma("T-1 v", "VA 2\r\n11\r\n"), misses("{k}"), ma("", NONE)),
    case("ma-N-there", "KV-MA-009", TEN, counted("N100 J13", 11), counted("D0", 11), say("mg {k} t\r\n", "HD t-1\r\n")),
    case(
        "ma-T",
        "KV-MA-010",
        TEN,
        ma("T100", "HD\r\n"),
        say("mg {k} t v\r\n", ("VA 2 t100\r\n11\r\n", "VA 2 t99\r\n11\r\n")),
    ),
    case("ma-T-missing", "KV-MA-010", ma("T100", NONE)),
    case("ma-t", "KV-MA-011", TEN, ma("t v", "VA 2 t-1\r\n11\r\n"), ma("T100 t", "HD t100\r\n", "HD t99\r\n")),
    case("ma-C-other", "KV-MA-012", TEN, ma(f"C{OTHER} v", "EX\r\n"), shows("{k}", "10")),
    case(
        "ma-C-same",
        "KV-MA-012",
        TEN,
        say("mg {k} c\r\n", "HD c<cas a>\r\n"),
        ma("C{a}", "HD\r\n"),
        ma("C{a}", "EX\r\n"),
        shows("{k}", "11"),
    ),
    case("ma-C-missing", "KV-MA-025", ma("C1", NONE)),
    case("ma-C-zero", "KV-MA-013", TEN, counted("C0", 11), counted("D0", 11)),
    case("ma-c", "KV-MA-014", TEN, ma("c", "HD c<cas a>\r\n"), say("mg {k} c\r\n", "HD c{a}\r\n")),
    case(
        "ma-k-O",
        "KV-MA-015",
        TEN,
        ma("k Oq v", "VA 2 k{k} Oq\r\n11\r\n"),
        ma("k C1 O", "EX k{k} O\r\n"),
        ma("Oq k", "NF Oq k{k2}\r\n", key="{k2}"),
    ),
    case("ma-q", "KV-MA-016", TEN, say("ma {k} q\r\nma {k} q v\r\nmn\r\n", "MN\r\n"), shows("{k}", "12")),
    case("ma-q-not", "KV-MA-027", ma("q", NONE), stored("{k}", "x"), ma("q", NO_NUMBER), ma("q C1", "EX\r\n")),
    case("ma-text", "KV-MA-017", stored("{k}", "x"), ma("", NO_NUMBER), ma("N0 J5 v", NO_NUMBER), shows("{k}", "x")),
    *(
        case(f"ma-flag-{flag.replace(' ', '-')}", "KV-MA-018", TEN, ma(flag, EITHER), shows("{k}", "10"))
        for flag in ("z", "v v", "Dx", "D-1", "D18446744073709551616", "Jx", "Nx", "Cx", "M", "MII")
    ),
    *(case(f"ma-mode-{mode}", "KV-MA-026", TEN, ma(f"M{mode}", MODE), shows("{k}", "10")) for mode in "xid"),
    case(
        "ma-keeps",
        "KV-MA-019",
        say("set {k} 7 100 2\r\n10\r\n", "STORED\r\n"),
        ma("", "HD\r\n"),
        say("mg {k} f t v\r\n", ("VA 2 f7 t100\r\n11\r\n", "VA 2 f7 t99\r\n11\r\n")),
    ),
    case(
        "ma-switches",
        "KV-MA-021",
        stored("@@{m2}.{k}", "20"),
        stored("@@{m1}.{k}", "10"),
        ma("v", "VA 2\r\n21\r\n", key="@@{m2}.{k}"),
        counted("", 22),
        shows("@@{m1}.{k}", "10"),
    ),
    case(
        "ma-integer",
        "KV-MA-022",
        stored("{k}", "-1"),
        ma("", NO_NUMBER),
        stored("{k}", "41"),
        counted("", 42),
        ma("N0 J7 v", "VA 1\r\n7\r\n", key="{k2}"),
        shape=NUMBER,
    ),
)


def test_meta_arithmetic(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
