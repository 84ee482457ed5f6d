"""Keys and values that do not match their columns: too wide, of another type, in several columns, beyond a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, ask, case, sql, waits
from kvref_conformance.cases.binary_phrases import NOT_FOUND, NOT_STORED, TOO_LARGE, answered, misses, shows, stored
from kvref_conformance.cases.phrases import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

NUMBER = Shape(f"k VARCHAR(32) PRIMARY KEY, v INT, {OPTIONS}")
TWO = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(32), w VARCHAR(32), {OPTIONS}", values="v,w")

WIDTHS = (
    case("bin-value-as-wide-as-its-column", "KV-BINSTORE-027", stored("{k}", "{v~1024}"), shows("{k}", "{v~1024}")),
    case(
        "bin-value-wider-than-its-column",
        "KV-BINSTORE-028 KV-BINSTORE-046",
        stored("{k}", "old"),
        ask("set key={k} value={v~1025}", f"set {TOO_LARGE}"),
        misses("{k}"),
        stored("{k}", "{v~1023}"),
        ask("append key={k} value=12", f"append {TOO_LARGE}"),
        shows("{k}", "{v~1023}"),
    ),
    case("bin-value-wider-than-its-column-cut", "KV-BINSTORE-029", stored("{k}", "{v~1025}"), shows("{k}", "{v~1024}")),
    case(
        "bin-key-wider-than-its-column",
        "KV-BINSTORE-030 KV-BINSTORE-047",
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
        answered("set key={k} value=abc", f"set {NOT_STORED}"),
        answered("set key={k} value=", f"set {NOT_STORED}"),
        misses("{k}"),
        stored("{k}", "17"),
        shows("{k}", "17"),
        shape=NUMBER,
    ),
    case(
        "bin-append-to-an-integer",
        "KV-BINSTORE-043",
        stored("{k}", "17"),
        answered("append key={k} value=0", f"append {NOT_STORED}"),
        answered("appendq key={k} value=0", f"appendq {NOT_STORED}"),
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
        answered("set key={k} value={v~2097152}", f"set {TOO_LARGE}", patience=15.0),
        ask("noop opaque=1", "noop ok opaque=1"),
        misses("{k}"),
    ),
    case(
        "bin-announced-2-31-thrown-away",
        "KV-BINSTORE-042",
        ask("set key={k} longer=2147483000 value=x", 'set 0x03 "<value>"', quiet=True),
        misses("{k}", on="b"),
    ),
    case(
        "bin-announced-100-megabytes-waited-for",
        "KV-BINSTORE-040",
        waits("set key={k} longer=100000000 value=x"),
        misses("{k}", on="b"),
    ),
)

CASES = (*WIDTHS, *SIZES)


def test_binary_widths(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
