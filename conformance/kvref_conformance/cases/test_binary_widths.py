"""Keys and values that do not match their columns: too wide, of another type, in several columns, beyond a limit."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, frames, frames_unanswered, sql
from kvref_conformance.cases.binary_phrases import NOT_FOUND, NOT_STORED, TOO_LARGE, hit, miss, store, try_frames
from kvref_conformance.cases.phrases import OPTIONS

NUMBER = Shape(f"k VARCHAR(32) PRIMARY KEY, v INT, {OPTIONS}")
TWO = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(32), w VARCHAR(32), {OPTIONS}", values="v,w")

WIDTHS = (
    case("bin-value-as-wide-as-its-column", "KV-BINSTORE-027", store("{k}", "{v~1024}"), hit("{k}", "{v~1024}")),
    case(
        "bin-value-wider-than-its-column",
        "KV-BINSTORE-028 KV-BINSTORE-046",
        store("{k}", "old"),
        frames("set key={k} value={v~1025}", f"set {TOO_LARGE}"),
        miss("{k}"),
        store("{k}", "{v~1023}"),
        frames("append key={k} value=12", f"append {TOO_LARGE}"),
        hit("{k}", "{v~1023}"),
    ),
    case("bin-value-wider-than-its-column-cut", "KV-BINSTORE-029", store("{k}", "{v~1025}"), hit("{k}", "{v~1024}")),
    case(
        "bin-key-wider-than-its-column",
        "KV-BINSTORE-030 KV-BINSTORE-047",
        store("{k:32}", "x"),
        frames("set key={k:33} value=y", 'set 0x04 "key too long for column c1 (32)"'),
        miss("{k:33}"),
        frames("delete key={k:33}", f"delete {NOT_FOUND}"),
        hit("{k:32}", "x"),
    ),
    case(
        "bin-key-wider-than-its-column-cut",
        "KV-BINSTORE-031",
        store("{k:33}", "y"),
        hit("{k:32}", "y"),
        hit("{k:40}", "y"),
        frames("delete key={k:35}", "delete ok"),
        miss("{k:32}"),
    ),
    case(
        "bin-no-number-into-an-integer",
        "KV-BINSTORE-032",
        frames("set key={k} value=abc", 'set 0x04 "<value>"'),
        miss("{k}"),
        store("{k}", "17"),
        hit("{k}", "17"),
        shape=NUMBER,
    ),
    case(
        "bin-no-number-into-an-integer-not-stored",
        "KV-BINSTORE-033",
        try_frames("set key={k} value=abc", f"set {NOT_STORED}"),
        try_frames("set key={k} value=", f"set {NOT_STORED}"),
        miss("{k}"),
        store("{k}", "17"),
        hit("{k}", "17"),
        shape=NUMBER,
    ),
    case(
        "bin-append-to-an-integer",
        "KV-BINSTORE-043",
        store("{k}", "17"),
        try_frames("append key={k} value=0", f"append {NOT_STORED}"),
        try_frames("appendq key={k} value=0", f"appendq {NOT_STORED}"),
        hit("{k}", "17"),
        shape=NUMBER,
    ),
    case(
        "bin-two-columns",
        "KV-BINSTORE-034",
        store("{k}", "a|b"),
        sql("SELECT v, w FROM {t} WHERE k = '{k}'", ("a", "b")),
        hit("{k}", "a|b"),
        shape=TWO,
    ),
    case(
        "bin-append-to-two-columns",
        "KV-BINSTORE-035",
        store("{k}", "a|b"),
        store("{k}", "c", "append"),
        hit("{k}", "a|bc"),
        store("{k}", "d", "prepend"),
        hit("{k}", "da|bc"),
        shape=TWO,
    ),
    case(
        "bin-append-to-the-first-of-two-columns",
        "KV-BINSTORE-036",
        store("{k}", "a|b"),
        store("{k}", "c", "append"),
        sql("SELECT v, w FROM {t} WHERE k = '{k}'", ("ac", None)),
        shape=TWO,
    ),
    case("bin-separator-in-one-column", "KV-BINSTORE-037", store("{k}", "a|b|c"), hit("{k}", "a|b|c")),
)

SIZES = (
    case(
        "bin-announced-2-31",
        "KV-BINSTORE-038",
        frames("set key={k} longer=2147483647 value=x", f"set {TOO_LARGE}", quiet=True),
        miss("{k}", on="b"),
    ),
    case(
        "bin-value-of-two-megabytes",
        "KV-BINSTORE-039",
        try_frames("set key={k} value={v~2097152}", f"set {TOO_LARGE}", patience=15.0),
        frames("noop opaque=1", "noop ok opaque=1"),
        miss("{k}"),
    ),
    case(
        "bin-announced-2-31-thrown-away",
        "KV-BINSTORE-042",
        frames("set key={k} longer=2147483000 value=x", 'set 0x03 "<value>"', quiet=True),
        miss("{k}", on="b"),
    ),
    case(
        "bin-announced-100-megabytes-waited-for",
        "KV-BINSTORE-040",
        frames_unanswered("set key={k} longer=100000000 value=x"),
        miss("{k}", on="b"),
    ),
)

CASES = (*WIDTHS, *SIZES)
