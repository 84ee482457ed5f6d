"""incr and decr with their extras: amount, initial value and expiry; what is not a number; columns of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, frames, sql
from kvref_conformance.cases.binary_phrases import EXISTS, NO_NUMBER, NOT_FOUND, hit, miss, store, try_frames
from kvref_conformance.cases.phrases import OPTIONS
from kvref_conformance.steps import Pause, Tick

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

ANY_CAS = "18446744073709551614"
LARGEST = (1 << 64) - 1
NEVER = 0xFFFFFFFF
NUMBER = Shape(f"k VARCHAR(32) PRIMARY KEY, v BIGINT, {OPTIONS}")
TWO_NUMBERS = Shape(f"k VARCHAR(32) PRIMARY KEY, v BIGINT, w BIGINT, {OPTIONS}", values="v,w")
TWO_TEXTS = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(32), w VARCHAR(32), {OPTIONS}", values="v,w")


def count(frame: str, number: int) -> Send:
    """Send an incr or decr and want that sum."""
    return frames(frame, f"{frame.partition(' ')[0]} ok cas=<cas> number={number}")


SUMS = (
    case(
        "bin-incr",
        "KV-BINARITH-001 KV-BINARITH-003",
        store("{k}", "10", flags=4),
        count("incr key={k} delta=5", 15),
        hit("{k}", "15", flags=4),
    ),
    case(
        "bin-decr",
        "KV-BINARITH-002 KV-BINARITH-003",
        store("{k}", "15", flags=4),
        count("decr key={k} delta=5", 10),
        hit("{k}", "10", flags=4),
    ),
    case(
        "bin-incr-cas-number",
        "KV-BINARITH-004",
        frames("set key={k} value=1", "set ok cas=<cas a>"),
        frames("incr key={k}", "incr ok cas=<new cas b> number=2"),
        frames("get key={k}", "get ok cas={b} flags=0 value=2"),
        frames("decr key={k}", "decr ok cas=<new cas c> number=1"),
        frames("get key={k}", "get ok cas={c} flags=0 value=1"),
    ),
    case("bin-incr-longer", "KV-BINARITH-003", store("{k}", "99"), count("incr key={k}", 100), hit("{k}", "100")),
    *(
        case(
            id_,
            requirements,
            store("{k}", "10"),
            count("decr key={k}", 9),
            hit("{k}", left),
            count("incr key={k}", 10),
        )
        for id_, requirements, left in (
            ("bin-decr-shorter", "KV-BINARITH-005", "9"),
            ("bin-decr-shorter-padded", "KV-BINARITH-029", "9 "),
        )
    ),
    case(
        "bin-decr-below-zero",
        "KV-BINARITH-006",
        store("{k}", "7"),
        count("decr key={k} delta=8", 0),
        count("decr key={k}", 0),
    ),
    *(
        case(f"bin-decr-by-{delta}", "KV-BINARITH-007", store("{k}", "2"), count(f"decr key={{k}} delta={delta}", 0))
        for delta in (1 << 63, LARGEST)
    ),
    case("bin-decr-wraps", "KV-BINARITH-008", store("{k}", "2"), count(f"decr key={{k}} delta={LARGEST}", 3)),
    case(
        "bin-incr-wraps",
        "KV-BINARITH-009",
        store("{k}", str(LARGEST)),
        count("incr key={k}", 0),
        count("incr key={k} delta=7", 7),
    ),
    case(
        "bin-amount-zero",
        "KV-BINARITH-010",
        frames("set key={k} value=5", "set ok cas=<cas a>"),
        frames("incr key={k} delta=0", "incr ok cas=<new cas b> number=5"),
        frames("decr key={k} delta=0", "decr ok cas=<new cas c> number=5"),
    ),
    *(
        case(
            f"bin-amount-{delta}",
            "KV-BINARITH-011",
            store("{k}", "1000"),
            count(f"incr key={{k}} delta={delta}", 1000 + delta),
        )
        for delta in (1 << 31, 1 << 32, 1 << 63)
    ),
    case(
        "bin-incr-and-expiry",
        "KV-BINARITH-012",
        Tick(),
        frames("set key={k} exp=1 value=5", "set ok cas=<cas>"),
        count("incr key={k} exp=0", 6),
        store("{k2}", "5"),
        count("incr key={k2} exp=1", 6),
        Pause(2.1),
        miss("{k}"),
        hit("{k2}", "6"),
    ),
)

MISSING = (
    *(
        case(
            f"bin-{verb}-creates",
            "KV-BINARITH-013",
            count(f"{verb} key={{k}} delta=3 initial=40", 40),
            hit("{k}", "40"),
            count(f"{verb} key={{k}} delta=3 initial=7", after),
        )
        for verb, after in (("incr", 43), ("decr", 37))
    ),
    case("bin-creates-zero", "KV-BINARITH-013", count("incr key={k} delta=5", 0), hit("{k}", "0")),
    case(
        "bin-creates-the-largest",
        "KV-BINARITH-013",
        count(f"incr key={{k}} initial={LARGEST}", LARGEST),
        hit("{k}", str(LARGEST)),
    ),
    case(
        "bin-created-cas-number",
        "KV-BINARITH-014",
        frames("incr key={k} initial=5", "incr ok cas=<cas a> number=5"),
        frames("get key={k}", "get ok cas={a} flags=0 value=5"),
    ),
    *(
        case(
            f"bin-{verb}-creates-nothing",
            "KV-BINARITH-015",
            frames(f"{verb} key={{k}} initial=5 exp={NEVER}", f"{verb} {NOT_FOUND}"),
            miss("{k}"),
        )
        for verb in ("incr", "decr")
    ),
    *(
        case(
            f"bin-{verb}-answers-a-number",
            "KV-BINARITH-030",
            frames(f"{verb} key={{k}} initial=5 exp={NEVER}", f"{verb} ok number=<number>"),
            miss("{k}"),
        )
        for verb in ("incr", "decr")
    ),
    case(
        "bin-incr-never-of-an-existing-key",
        "KV-BINARITH-016",
        store("{k}", "5"),
        count(f"incr key={{k}} exp={NEVER}", 6),
    ),
    case("bin-created-expiry", "KV-BINARITH-017", count("incr key={k} initial=5 exp=2592001", 5), miss("{k}")),
    case(
        "bin-created-expiry-of-each-opcode",
        "KV-BINARITH-017",
        count("decr key={k} initial=5 exp=2592001", 5),
        frames("incrq key={k1} initial=5 exp=2592001; decrq key={k2} initial=5 exp=2592001", ""),
        *map(miss, ("{k}", "{k1}", "{k2}")),
    ),
    case(
        "bin-created-expiry-lost",
        "KV-BINARITH-018",
        count("incr key={k} initial=5 exp=2592001", 5),
        sql("SELECT c5 FROM {t1} WHERE c1 = '{k}'", (0,)),
        hit("{k}", "5"),
    ),
)

TEXTS = (
    *(
        case(
            f"bin-no-number-{name}",
            "KV-BINARITH-019",
            store("{k}", text, flags=3),
            frames("incr key={k}", f"incr {NO_NUMBER}"),
            frames("decr key={k}", f"decr {NO_NUMBER}"),
            hit("{k}", text, flags=3),
        )
        for name, text in (("text", "HELLO"), ("tail", "5x"), ("empty", ""), ("negative", "-5"))
    ),
    case(
        "bin-quiet-no-number", "KV-BINARITH-019", store("{k}", "HELLO"), frames("incrq key={k}", f"incrq {NO_NUMBER}")
    ),
    *(
        case(
            f"bin-text-counts-{name}",
            "KV-BINARITH-020",
            store("{k}", text),
            count("incr key={k}", number),
            hit("{k}", str(number)),
        )
        for name, text, number in (
            *(("as-nothing", "HELLO, HELLO", 1), ("up-to-a-tail", "5x", 6), ("empty", "", 1)),
            ("negative", "-5", LARGEST - 3),
        )
    ),
    case("bin-leading-zeros", "KV-BINARITH-021", store("{k}", "007"), count("incr key={k}", 8)),
    case("bin-leading-blank", "KV-BINARITH-021", store("{k}", " 5"), count("incr key={k}", 6)),
    *(
        case(
            f"bin-{verb}-wrong-cas",
            "KV-BINARITH-022",
            frames("set key={k} value=5", "set ok cas=<cas a>"),
            try_frames(f"{verb} key={{k}} cas={ANY_CAS}", f"{verb} {EXISTS}"),
            frames("get key={k}", "get ok cas={a} flags=0 value=5"),
            frames(f"{verb} key={{k}} cas={{a}}", f"{verb} ok cas=<new cas b> number=<number>"),
        )
        for verb in ("incr", "decr")
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas",
            "KV-BINARITH-022",
            store("{k}", "5"),
            try_frames(f"{verb} key={{k}} cas={ANY_CAS}", f"{verb} {EXISTS}"),
            hit("{k}", "5"),
        )
        for verb in ("incrq", "decrq")
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-ignored",
            "KV-BINARITH-023",
            store("{k}", "5"),
            count(f"{verb} key={{k}} cas={ANY_CAS}", number),
        )
        for verb, number in (("incr", 6), ("decr", 4))
    ),
)

COLUMNS = (
    case(
        "bin-incr-an-integer",
        "KV-BINARITH-024",
        store("{k}", "5"),
        count("incr key={k} delta=10", 15),
        count("decr key={k} delta=4", 11),
        sql("SELECT v FROM {t} WHERE k = '{k}'", (11,)),
        shape=NUMBER,
    ),
    case(
        "bin-create-an-integer",
        "KV-BINARITH-025",
        count("incr key={k} initial=50", 50),
        sql("SELECT v, f, e FROM {t} WHERE k = '{k}'", (50, 0, 0)),
        shape=NUMBER,
    ),
    case(
        "bin-incr-the-first-of-two-integers",
        "KV-BINARITH-026",
        store("{k}", "5|6"),
        count("incr key={k} delta=10", 15),
        sql("SELECT v, w FROM {t} WHERE k = '{k}'", (15, None)),
        shape=TWO_NUMBERS,
    ),
    case(
        "bin-incr-two-texts",
        "KV-BINARITH-027",
        store("{k}", "5|6"),
        count("incr key={k} delta=2", 58),
        sql("SELECT v, w FROM {t} WHERE k = '{k}'", ("58", None)),
        shape=TWO_TEXTS,
    ),
    case(
        "bin-incr-an-integer-from-zero",
        "KV-BINARITH-028",
        store("{k}", "5"),
        count("incr key={k} delta=10", 10),
        count("decr key={k} delta=4", 0),
        shape=NUMBER,
    ),
)

CASES = (*SUMS, *MISSING, *TEXTS, *COLUMNS)
