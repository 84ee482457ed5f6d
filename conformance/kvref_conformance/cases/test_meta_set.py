"""ms: what is stored, on which condition, and what is refused with its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, miss, store
from kvref_conformance.steps import Pause

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
LATER = 2000000000
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"
TOO_LARGE = "SERVER_ERROR object too large for cache\r\n"
OTHER = 999999999999


def ms(flags: str, answer: str, value: str = "x", key: str = "{k}") -> Send:
    """Store a value with those flags."""
    return send(f"ms {key} {len(value)} {flags}\r\n{value}\r\n", answer)


def rejected(line: str, answer: str, mapped: str = "") -> Send:
    """Send a line with one byte of data, which must not be read as a command."""
    return send(f"{line}\r\nx\r\nmn\r\n", f"{answer}{mapped}MN\r\n")


X = ms("", "HD\r\n")
Y = "y"
BAD_FLAGS = (
    ("z", "KV-MS-019", "invalid flag"),
    ("q z", "KV-MS-019", "invalid flag"),
    ("q q", "KV-MS-043", "duplicate flag"),
    ("Tx", "KV-MS-044", "bad token in command line format"),
    ("Cx", "KV-MS-044", "bad token in command line format"),
    ("Fx", "KV-MS-045", "bad command line format"),
    ("M", "KV-MS-046", "incorrect length for M token"),
    ("MSS", "KV-MS-046", "incorrect length for M token"),
    ("MX", "KV-MS-047", "invalid mode for ms M token"),
    ("Ms", "KV-MS-047", "invalid mode for ms M token"),
    ("O{o~32}", "KV-MS-048", "opaque token too long"),
)
STORES = (
    case("ms", "KV-MS-001", X, hit("{k}", "x"), ms("", "HD\r\n", "longer"), hit("{k}", "longer")),
    *(
        case(f"ms-{mode}-T{time}", "KV-MS-032", *first, ms(f"T{time} {mode}", "HD\r\n"), miss("{k}"))
        for mode, first in (("MS", [X]), ("ME", []), ("MR", [X]))
        for time in (-1, 4294967295)
    ),
    case("ms-MA-T-1", "KV-MS-032", X, ms("T-1 MA", "HD\r\n", Y), hit("{k}", "xy")),
    case("ms-binary", "KV-MS-001", ms("", "HD\r\n", "a\r\nb"), hit("{k}", "a\r\nb")),
    case("ms-F", "KV-MS-002", ms("F5", "HD\r\n"), hit("{k}", "x", flags=5), X, hit("{k}", "x")),
    case("ms-F-largest", "KV-MS-002", ms("F4294967295", "HD\r\n"), hit("{k}", "x", flags=4294967295)),
    case(
        "ms-T",
        "KV-MS-003 KV-MS-035",
        ms("T1", "HD\r\n"),
        ms("T1", "HD\r\n", key="{k2}"),
        ms("", "HD\r\n", key="{k2}"),
        Pause(3.1),
        miss("{k}"),
        hit("{k2}", "x"),
    ),
    case("ms-empty", "KV-MS-004", ms("", "HD\r\n", ""), hit("{k}", "")),
    case("ms-ME", "KV-MS-005 KV-MS-036", ms("ME", "HD\r\n"), ms("ME", "NS\r\n", Y), hit("{k}", "x")),
    case("ms-MR", "KV-MS-006 KV-MS-037", ms("MR", "NS\r\n"), miss("{k}"), X, ms("MR", "HD\r\n", Y), hit("{k}", "y")),
    case("ms-MA", "KV-MS-007 KV-MS-039", ms("MA", "NS\r\n"), miss("{k}"), X, ms("MA", "HD\r\n", Y), hit("{k}", "xy")),
    case("ms-MP", "KV-MS-038 KV-MS-039", ms("MP", "NS\r\n"), miss("{k}"), X, ms("MP", "HD\r\n", Y), hit("{k}", "yx")),
    case("ms-MS", "KV-MS-008", ms("MS", "HD\r\n"), ms("MS", "HD\r\n", Y), hit("{k}", "y")),
    case(
        "ms-MA-keeps",
        "KV-MS-009",
        ms("F5 T100", "HD\r\n"),
        ms("F9 T0 MA", "HD\r\n", Y),
        send("mg {k} f t v\r\n", ("VA 2 f5 t100\r\nxy\r\n", "VA 2 f5 t99\r\nxy\r\n")),
    ),
    *(
        case(f"ms-C-other-{mode or 'S'}", "KV-MS-010", X, ms(f"C{OTHER} {mode}", "EX\r\n", Y), hit("{k}", "x"))
        for mode in ("", "MS", "MR", "MA", "MP")
    ),
    case("ms-C-zero", "KV-MS-010", X, ms("C0", "EX\r\n", Y), hit("{k}", "x")),
    *(
        case(f"ms-C-same-{mode or 'S'}", "KV-MS-011", ms("c", "HD c<cas a>\r\n"), ms(f"C{{a}} {mode}", "HD\r\n", Y))
        for mode in ("", "MR", "MA")
    ),
    case("ms-C-missing", "KV-MS-012", ms("C1", "NF\r\n"), ms("C0", "NF\r\n"), ms("C1 MR", "NF\r\n"), miss("{k}")),
    case("ms-C-add", "KV-MS-013", ms(f"C{OTHER} ME", "HD\r\n"), ms(f"C{OTHER} ME", "NS\r\n", Y), hit("{k}", "x")),
    case(
        "ms-c",
        "KV-MS-014",
        ms("c", "HD c<cas a>\r\n"),
        send("mg {k} c\r\n", "HD c{a}\r\n"),
        ms("c", "HD c<new cas b>\r\n"),
    ),
    case(
        "ms-k-O",
        "KV-MS-015",
        ms("k Oq", "HD k{k} Oq\r\n"),
        ms("Oq k ME", "NS Oq k{k}\r\n"),
        ms("k C0 O", "EX k{k} O\r\n"),
    ),
    case("ms-q", "KV-MS-016", send("ms {k} 1 q\r\nx\r\nmn\r\n", "MN\r\n"), hit("{k}", "x")),
    case("ms-q-not", "KV-MS-042", X, ms("q ME", "NS\r\n"), ms("q C0", "EX\r\n"), ms("q C1", "NF\r\n", key="{k2}")),
    case(
        "ms-I",
        "KV-MS-017 KV-MS-040",
        ms("T100 c", "HD c<cas a>\r\n"),
        X,
        ms("T100", "HD\r\n"),
        ms("I C{a} T5", "HD\r\n", Y),
        send("mg {k} t v\r\n", ("VA 1 t100 X W\r\ny\r\n", "VA 1 t99 X W\r\ny\r\n")),
        ms("I C18446744073709551615", "EX\r\n", "z"),
    ),
)
REFUSED = (
    *(
        case(
            f"ms-flag-{number}",
            f"KV-MS-018 {requirement}",
            rejected(f"ms {{k}} 1 {flag}", f"CLIENT_ERROR {cause}\r\n"),
            miss("{k}"),
        )
        for number, (flag, requirement, cause) in enumerate(BAD_FLAGS)
    ),
    case(
        "ms-no-length",
        "KV-MS-020",
        *(send(f"ms {{k}}{tail}\r\n", BAD_FORMAT) for tail in ("", " x", " -1", " 1x", " S1")),
    ),
    case("ms-no-word", "KV-MS-049", send("ms\r\n", "ERROR\r\n")),
    case(
        "ms-data-end",
        "KV-MS-021",
        send("ms {k} 1\r\nxyz\r\nmn\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\nMN\r\n"),
        miss("{k}"),
    ),
    case(
        "ms-data-end-q",
        "KV-MS-021",
        send("ms {k} 1 q\r\nxyz\r\nmn\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\nMN\r\n"),
    ),
    case("ms-too-large", "KV-MS-022", send("ms {k} 1048577 q\r\n{v~1048577}\r\nmn\r\n", f"{TOO_LARGE}MN\r\n")),
    case("ms-too-large-item", "KV-MS-023", X, send("ms {k} 1048577 MR\r\n{v~1048577}\r\n", TOO_LARGE), hit("{k}", "x")),
    case("ms-long-key", "KV-MS-029", rejected("ms {k:251} 1", BAD_FORMAT)),
    case("ms-long-key-memcached", "KV-MS-030", rejected("ms {k:251} 1", BAD_FORMAT, "ERROR\r\n")),
    case(
        "ms-many-flags",
        "KV-MS-041",
        rejected("ms {k} 1 c f h k l s t u v O1 P L T0 N0 R0 D1 J1", "CLIENT_ERROR options flags too long\r\n"),
    ),
)
TABLES = (
    case(
        "ms-switches",
        "KV-MS-025",
        ms("", "HD\r\n", "2", "@@{m2}.{k}"),
        hit("{k}", "2"),
        ms("k", "HD k@@{m1}.{k}\r\n", "1", "@@{m1}.{k}"),
        hit("{k}", "1"),
    ),
    case(
        "ms-columns",
        "KV-MS-026",
        ms(f"F5 T{LATER} c", "HD c<cas a>\r\n"),
        sql("SELECT v, f, e FROM {t} WHERE c = {a}", ("x", 5, LATER)),
        shape=ONE,
    ),
    case(
        "ms-switch-word",
        "KV-MS-027",
        ms("", "NS\r\n", "x", "@@{m2}"),
        send("get @@{m2}\r\n", "VALUE @@{m2} 0 {#w2}\r\n{w2}\r\nEND\r\n"),
    ),
    case(
        "ms-and-set",
        "KV-MS-028",
        ms("F3", "HD\r\n"),
        hit("{k}", "x", flags=3),
        store("{k}", "y", "append", flags=9),
        send("mg {k} v f\r\n", "VA 2 f3\r\nxy\r\n"),
        store("{k}", "z", flags=4),
        send("mg {k} v f\r\n", "VA 1 f4\r\nz\r\n"),
    ),
    case(
        "ms-c-not-stored",
        "KV-MS-050",
        ms("MR c", "NS c0\r\n"),
        ms(f"C{OTHER} c", "NF c0\r\n"),
        X,
        ms("ME k c", "NS k{k} c0\r\n"),
        ms(f"C{OTHER} c Oq", "EX c0 Oq\r\n"),
    ),
    case("ms-unknown-mapping", "KV-MS-031", ms("", "NF\r\n", "x", "@@nope.{k}"), shape=ONE),
)
CASES = (*STORES, *REFUSED, *TABLES)
