"""The option `separator`: each case needs the endpoint to read its configuration again."""

from __future__ import annotations

from kvref_conformance.case import Setup, case, sql
from kvref_conformance.cases.phrases import hit, insert, store
from kvref_conformance.cases.test_columns import ROW, THREE

ONE_CHARACTER = {"comma": ",", "semicolon": ";", "blank": " ", "zero": "0", "tab": "\t"}
BARS, SEMIBAR, LETTERS, LONG = (Setup(separator=text) for text in ("||", ";|", "ab", "-" * 40))
COMMA = Setup(separator=",")
# Options in addition to the usual ones; a separator of None means no row.
CAPITALS = Setup(separator=None, others=(("SEPARATOR", ","),))
NULL = Setup(separator=None, others=(("separator", None),))
WHOLE = insert("{k}", "'one', 'two', 'three', 0, 0, 0")
BY_BARS = (store("{k}", "a|b|c"), sql(ROW, ("a", "b", "c")), hit("{k}", "a|b|c"))

CASES = (
    *(
        case(
            f"separator-{name}",
            "KV-SEP-005",
            store("{k}", f"one{sign}two{sign}three"),
            sql(ROW, ("one", "two", "three")),
            hit("{k}", f"one{sign}two{sign}three"),
            setup=Setup(separator=sign),
            shape=THREE,
        )
        for name, sign in ONE_CHARACTER.items()
    ),
    case(
        "separator-instead-of-the-bar",
        "KV-SEP-005",
        store("{k}", "a|b,c"),
        sql(ROW, ("a|b", "c", None)),
        hit("{k}", "a|b,c,"),
        setup=COMMA,
        shape=THREE,
    ),
    case("separator-of-two-bytes-joins", "KV-SEP-001", WHOLE, hit("{k}", "one||two||three"), setup=BARS, shape=THREE),
    case(
        "separator-in-its-order-joins", "KV-SEP-001", WHOLE, hit("{k}", "one;|two;|three"), setup=SEMIBAR, shape=THREE
    ),
    case(
        "separator-of-two-bytes-cuts",
        "KV-SEP-003",
        store("{k}", "a||b||c"),
        sql(ROW, ("a", "b", "c")),
        setup=BARS,
        shape=THREE,
    ),
    case(
        "half-a-separator", "KV-SEP-003", store("{k}", "a|b||c"), sql(ROW, ("a|b", "c", None)), setup=BARS, shape=THREE
    ),
    case(
        "separator-turned-round",
        "KV-SEP-003",
        store("{k}", "a|;b"),
        sql(ROW, ("a|;b", None, None)),
        setup=SEMIBAR,
        shape=THREE,
    ),
    case(
        "separator-of-letters",
        "KV-SEP-003",
        store("{k}", "xayabz"),
        sql(ROW, ("xay", "z", None)),
        setup=LETTERS,
        shape=THREE,
    ),
    case(
        "separator-as-a-set-of-bars",
        "KV-SEP-002",
        store("{k}", "a|b|c"),
        sql(ROW, ("a", "b", "c")),
        setup=BARS,
        shape=THREE,
    ),
    case(
        "separator-as-a-set-turned-round",
        "KV-SEP-002",
        store("{k}", "a|;b"),
        sql(ROW, ("a", "b", None)),
        setup=SEMIBAR,
        shape=THREE,
    ),
    case(
        "separator-as-a-set-of-letters",
        "KV-SEP-002",
        store("{k}", "xayabz"),
        sql(ROW, ("x", "y", "z")),
        setup=LETTERS,
        shape=THREE,
    ),
    case(
        "separator-in-front", "KV-SEP-004", store("{k}", ";a"), sql(ROW, (None, "a", None)), setup=SEMIBAR, shape=THREE
    ),
    case(
        "separator-byte-in-front",
        "KV-SEP-004",
        store("{k}", "|a"),
        sql(ROW, ("a", None, None)),
        setup=SEMIBAR,
        shape=THREE,
    ),
    case(
        "separator-of-40-bytes",
        "KV-SEP-008",
        WHOLE,
        hit("{k}", f"one{'-' * 32}two{'-' * 32}three"),
        setup=LONG,
        shape=THREE,
    ),
    case("separator-empty", "KV-SEP-006", *BY_BARS, setup=Setup(separator=""), shape=THREE),
    case("separator-without-row", "KV-SEP-007", *BY_BARS, setup=Setup(separator=None), shape=THREE),
    case("separator-in-capitals", "KV-SEP-009", *BY_BARS, setup=CAPITALS, shape=THREE),
    case("separator-null", "KV-SEP-011", *BY_BARS, setup=NULL, shape=THREE),
)
