"""md: what is deleted, what is marked as stale, and who finds it so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}, other VARCHAR(9)")
NUMBERLESS = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}", cas="0")
LATER = 2000000000
OTHER = 999999999999
X = store("{k}", "x")
DONE = "HD\r\n"
NONE = "NF\r\n"
EITHER = "CLIENT_ERROR invalid or duplicate flag\r\n"
STALE = "VA 1 X W\r\nx\r\n"
TAKEN = "VA 1 Z X\r\nx\r\n"


def md(flags: str, answer: str = DONE, key: str = "{k}") -> Send:
    """Delete {k} with those flags."""
    return send(f"md {key} {flags}\r\n", answer)


def mg(answer: str, on: str = "a") -> Send:
    """Get the value of {k}."""
    return send("mg {k} v\r\n", answer, on=on)


CASES = (
    case("md", "KV-MD-001", X, md(""), miss("{k}")),
    case("md-missing", "KV-MD-002", md("", NONE)),
    case(
        "md-k-O",
        "KV-MD-003",
        X,
        md("k Oq", "HD k{k} Oq\r\n"),
        md("Oq k", "NF Oq k{k}\r\n"),
        X,
        md("C0 k", "EX k{k}\r\n"),
    ),
    case("md-c", "KV-MD-025", X, md("C0 c", "EX\r\n"), md("k c Oq", "HD k{k} Oq\r\n"), md("c", NONE)),
    case("md-q", "KV-MD-004", X, send("md {k} q k\r\nmn\r\n", "MN\r\n"), miss("{k}")),
    case("md-q-not", "KV-MD-024", md("q", NONE), X, md("q C0", "EX\r\n")),
    case("md-C-other", "KV-MD-005", X, md(f"C{OTHER}", "EX\r\n"), md("C0", "EX\r\n"), hit("{k}", "x")),
    case("md-C-same", "KV-MD-006", X, send("mg {k} c\r\n", "HD c<cas a>\r\n"), md("C{a}"), miss("{k}")),
    case("md-C-missing", "KV-MD-007", md("C1", NONE), md("C0", NONE)),
    case("md-I", "KV-MD-008 KV-MD-011", X, md("I"), hit("{k}", "x"), mg(STALE), mg(TAKEN, "b"), mg(TAKEN)),
    case(
        "md-I-number",
        "KV-MD-009",
        send("ms {k} 1 c\r\nx\r\n", "HD c<cas a>\r\n"),
        md("I"),
        send("ms {k} 1 C{a}\r\ny\r\n", "EX\r\n"),
        send("mg {k} c v\r\n", "VA 1 c<new cas b> X W\r\nx\r\n"),
    ),
    case(
        "md-I-cas",
        "KV-MD-009",
        X,
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        md("I"),
        send("cas {k} 0 0 1 {a}\r\ny\r\n", "EXISTS\r\n"),
        send("mg {k} c\r\n", "HD c<new cas b> X W\r\n"),
    ),
    case(
        "md-I-T",
        "KV-MD-010",
        X,
        md("I T100"),
        send("mg {k} t\r\n", ("HD t100 X W\r\n", "HD t99 X W\r\n")),
    ),
    case("md-T-alone", "KV-MD-010", X, md("T100"), miss("{k}")),
    case("md-I-T-below-zero", "KV-MD-022", X, md("I T-1"), miss("{k}"), md("I", NONE)),
    case("md-I-again", "KV-MD-012", X, md("I"), mg(STALE), mg(TAKEN), md("I"), mg(STALE), mg(TAKEN)),
    case("md-I-touched", "KV-MD-013", X, md("I"), send("touch {k} 100\r\n", "TOUCHED\r\n"), mg(STALE)),
    case("md-I-set", "KV-MD-014", X, md("I"), mg(STALE), X, mg("VA 1\r\nx\r\n")),
    case(
        "md-I-C",
        "KV-MD-015 KV-MD-023",
        md("I", NONE),
        X,
        md(f"I C{OTHER}", "EX\r\n"),
        mg("VA 1\r\nx\r\n"),
        send("mg {k} c\r\n", "HD c<cas a>\r\n"),
        md("I C{a}"),
        mg(STALE),
    ),
    case("md-I-q", "KV-MD-004 KV-MD-008", X, send("md {k} I q\r\nmn\r\n", "MN\r\n"), mg(STALE)),
    *(
        case(f"md-flag-{flag.replace(' ', '-')}", "KV-MD-016", X, md(flag, EITHER), hit("{k}", "x"))
        for flag in ("z", "q q", "Cx", "Tx")
    ),
    case(
        "md-switches",
        "KV-MD-018",
        store("@@{m2}.{k}", "2"),
        store("@@{m1}.{k}", "1"),
        md("k", "HD k@@{m2}.{k}\r\n", "@@{m2}.{k}"),
        miss("{k}"),
        hit("@@{m1}.{k}", "1"),
    ),
    case(
        "md-I-no-column",
        "KV-MD-021",
        X,
        md("I", "CLIENT_ERROR <text>\r\n"),
        mg("VA 1\r\nx\r\n"),
        shape=NUMBERLESS,
    ),
    case(
        "md-I-row",
        "KV-MD-019",
        insert("{k}", f"'x', NULL, 7, {LATER}, 'kept'"),
        md("I T0"),
        sql("SELECT v, f, e, other FROM {t} WHERE c <> 7", ("x", None, 0, "kept")),
        shape=ONE,
    ),
)
