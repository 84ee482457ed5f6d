"""ma: what is counted, from which number on, and what is answered of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send
from kvref_conformance.cases.phrases import OPTIONS, hit, miss, store
from kvref_conformance.steps import Pause

if TYPE_CHECKING:
    from kvref_conformance.steps import Send


NUMBER = Shape(f"k VARCHAR(32) PRIMARY KEY, v BIGINT, {OPTIONS}")
OTHER = 999999999999
TEN = store("{k}", "10")
NONE = "NF\r\n"
EITHER = "CLIENT_ERROR invalid or duplicate flag\r\n"
MODE = "CLIENT_ERROR invalid mode for ma M token\r\n"
NO_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


def ma(flags: str, *allow: str, key: str = "{k}") -> Send:
    """Count {k} with those flags."""
    return send(f"ma {key} {flags}\r\n", allow)


def count_to(flags: str, number: int) -> Send:
    """Count {k} and want that number."""
    return ma(f"{flags} v", f"VA {len(str(number))}\r\n{number}\r\n")


CASES = (
    case("ma", "KV-MA-001", TEN, ma("", "HD\r\n"), hit("{k}", "11")),
    case("ma-v", "KV-MA-002", TEN, count_to("", 11), count_to("", 12)),
    case("ma-D", "KV-MA-003", TEN, count_to("D5", 15), count_to("D0", 15), count_to("D10000000000", 10000000015)),
    case("ma-missing", "KV-MA-004", ma("", NONE), ma("v J5", NONE), miss("{k}")),
    case(
        "ma-modes", "KV-MA-005", TEN, count_to("MI", 11), count_to("M+", 12), count_to("MD", 11), count_to("M- D2", 9)
    ),
    case("ma-below-zero", "KV-MA-006", TEN, count_to("MD D100", 0), count_to("D0", 0)),
    case("ma-round", "KV-MA-007", TEN, count_to("D18446744073709551615", 9), count_to("D0", 9)),
    case(
        "ma-N",
        "KV-MA-008",
        ma("N0 J13 v", "VA 2\r\n13\r\n"),
        hit("{k}", "13"),
        ma("N0 v", "VA 1\r\n0\r\n", key="{k2}"),
    ),
    case(
        "ma-N-time",
        "KV-MA-008",
        ma("N100 t", "HD t100\r\n", "HD t99\r\n"),
        send("mg {k} t v\r\n", ("VA 1 t100\r\n0\r\n", "VA 1 t99\r\n0\r\n")),
    ),
    case("ma-N-below-zero", "KV-MA-023", ma("N-1 J5 v", "VA 1\r\n5\r\n"), miss("{k}"), ma("", NONE)),
    case("ma-T-below-zero", "KV-MA-024", TEN, ma("T-1 v", "VA 2\r\n11\r\n"), miss("{k}"), ma("", NONE)),
    case(
        "ma-N-there", "KV-MA-009", TEN, count_to("N100 J13", 11), count_to("D0", 11), send("mg {k} t\r\n", "HD t-1\r\n")
    ),
    case(
        "ma-T",
        "KV-MA-010",
        TEN,
        ma("T100", "HD\r\n"),
        send("mg {k} t v\r\n", ("VA 2 t100\r\n11\r\n", "VA 2 t99\r\n11\r\n")),
    ),
    case("ma-T-missing", "KV-MA-010", ma("T100", NONE)),
    case("ma-t", "KV-MA-011", TEN, ma("t v", "VA 2 t-1\r\n11\r\n"), ma("T100 t", "HD t100\r\n", "HD t99\r\n")),
    case("ma-t-later", "KV-MA-011", TEN, ma("T100", "HD\r\n"), Pause(2.1), ma("t", "HD t98\r\n", "HD t97\r\n")),
    case("ma-C-other", "KV-MA-012", TEN, ma(f"C{OTHER} v", "EX\r\n"), hit("{k}", "10")),
    case(
        "ma-C-same",
        "KV-MA-012",
        TEN,
        send("mg {k} c\r\n", "HD c<cas a>\r\n"),
        ma("C{a}", "HD\r\n"),
        ma("C{a}", "EX\r\n"),
        hit("{k}", "11"),
    ),
    case("ma-C-missing", "KV-MA-025", ma("C1", NONE)),
    case("ma-C-zero", "KV-MA-013", TEN, count_to("C0", 11), count_to("D0", 11)),
    case("ma-c", "KV-MA-014", TEN, ma("c", "HD c<cas a>\r\n"), send("mg {k} c\r\n", "HD c{a}\r\n")),
    case(
        "ma-k-O",
        "KV-MA-015",
        TEN,
        ma("k Oq v", "VA 2 k{k} Oq\r\n11\r\n"),
        ma("k C1 O", "EX k{k} O\r\n"),
        ma("Oq k", "NF Oq k{k2}\r\n", key="{k2}"),
    ),
    case("ma-q", "KV-MA-016", TEN, send("ma {k} q\r\nma {k} q v\r\nmn\r\n", "MN\r\n"), hit("{k}", "12")),
    case(
        "ma-q-N",
        "KV-MA-028",
        send("ma {k} N0 q\r\nma {k2} N0 J7 q v\r\nmn\r\n", "MN\r\n"),
        hit("{k}", "0"),
        hit("{k2}", "7"),
    ),
    case(
        "ma-q-N-returned",
        "KV-MA-029",
        send("ma {k} N0 q\r\nma {k2} N0 J7 q v\r\nmn\r\n", "HD\r\nVA 1\r\n7\r\nMN\r\n"),
        hit("{k}", "0"),
        hit("{k2}", "7"),
    ),
    case("ma-q-not", "KV-MA-027", ma("q", NONE), store("{k}", "x"), ma("q", NO_NUMBER), ma("q C1", "EX\r\n")),
    case("ma-text", "KV-MA-017", store("{k}", "x"), ma("", NO_NUMBER), ma("N0 J5 v", NO_NUMBER), hit("{k}", "x")),
    *(
        case(f"ma-flag-{flag.replace(' ', '-')}", "KV-MA-018", TEN, ma(flag, EITHER), hit("{k}", "10"))
        for flag in ("z", "v v", "Dx", "D-1", "D18446744073709551616", "Jx", "Nx", "Cx", "M", "MII")
    ),
    *(case(f"ma-mode-{mode}", "KV-MA-026", TEN, ma(f"M{mode}", MODE), hit("{k}", "10")) for mode in "xid"),
    case(
        "ma-keeps",
        "KV-MA-019",
        send("set {k} 7 100 2\r\n10\r\n", "STORED\r\n"),
        ma("", "HD\r\n"),
        send("mg {k} f t v\r\n", ("VA 2 f7 t100\r\n11\r\n", "VA 2 f7 t99\r\n11\r\n")),
    ),
    case(
        "ma-c-not-counted",
        "KV-MA-030",
        ma("c", "NF\r\n"),
        store("{k}", "1"),
        ma("C999999999999 k c", "EX k{k}\r\n"),
    ),
    case(
        "ma-switches",
        "KV-MA-021",
        store("@@{m2}.{k}", "20"),
        store("@@{m1}.{k}", "10"),
        ma("v", "VA 2\r\n21\r\n", key="@@{m2}.{k}"),
        count_to("", 22),
        hit("@@{m1}.{k}", "10"),
    ),
    case(
        "ma-integer",
        "KV-MA-022",
        store("{k}", "-1"),
        ma("", NO_NUMBER),
        store("{k}", "41"),
        count_to("", 42),
        ma("N0 J7 v", "VA 1\r\n7\r\n", key="{k2}"),
        shape=NUMBER,
    ),
)
