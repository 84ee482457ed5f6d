"""delete, flush, noop, version, verbosity, quit, touch and gat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Pause, ask, case, sql
from kvref_conformance.cases.binary_phrases import EXISTS, NOT_FOUND, in_text, misses, refused, shows, stored, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

ANY_CAS = "18446744073709551614"
SET = stored("{k}", "x", flags=4)
THERE = shows("{k}", "x", flags=4)
TOUCHING = ("touch", "gat", "gatq", "gatk", "gatkq")

DELETES = (
    case("bin-delete", "KV-BINCMD-001", SET, ask("delete key={k}", "delete ok"), misses("{k}")),
    case("bin-delete-missing", "KV-BINCMD-002", ask("delete key={k}", f"delete {NOT_FOUND}")),
    case("bin-delete-twice", "KV-BINCMD-002", SET, ask("delete key={k}; delete key={k}", f"delete ok; delete {NOT_FOUND}")),
    case(
        "bin-delete-right-cas",
        "KV-BINCMD-003",
        ask("set key={k} value=x", "set ok cas=<cas a>"),
        ask("delete key={k} cas={a}", "delete ok"),
        misses("{k}"),
    ),
    case(
        "bin-delete-wrong-cas",
        "KV-BINCMD-004",
        SET,
        told(f"delete key={{k}} cas={ANY_CAS}", f"delete {EXISTS}"),
        THERE,
        told(f"deleteq key={{k}} cas={ANY_CAS}", f"deleteq {EXISTS}"),
        THERE,
    ),
    case("bin-delete-wrong-cas-ignored", "KV-BINCMD-005", SET, ask(f"delete key={{k}} cas={ANY_CAS}", "delete ok"), misses("{k}")),
    case("bin-delete-cas-missing", "KV-BINCMD-002", ask(f"delete key={{k}} cas={ANY_CAS}", f"delete {NOT_FOUND}")),
    case(
        "bin-delete-row-of-sql",
        "KV-BINCMD-001",
        sql("INSERT INTO {t1} VALUES ('{k}', 'x', 0, 0, 0)"),
        ask("delete key={k}", "delete ok"),
        sql("SELECT c1 FROM {t1} WHERE c1 = '{k}'"),
    ),
)

FLUSHES = (
    case("bin-flush", "KV-BINCMD-006", SET, stored("{k2}", "y"), ask("flush", "flush ok"), misses("{k}"), misses("{k2}")),
    case("bin-flush-with-zero", "KV-BINCMD-006", SET, ask("flush exp=0", "flush ok"), misses("{k}"), SET, THERE),
    case(
        "bin-flush-delayed-honoured", "KV-BINCMD-007", SET, ask("flush exp=2", "flush ok"), THERE, Pause(3.1), misses("{k}")
    ),
    case("bin-flush-delayed-at-once", "KV-BINCMD-008", SET, ask("flush exp=2", "flush ok"), misses("{k}")),
    case("bin-flush-delayed-refused", "KV-BINCMD-009", SET, ask("flush exp=2", 'flush 0x04 "<value>"'), THERE),
)

OTHERS = (
    case("bin-noop", "KV-BINCMD-010", ask("noop", "noop ok"), ask("noop opaque=77", "noop ok opaque=77")),
    case(
        "bin-version",
        "KV-BINCMD-011",
        ask("version", "version ok value={version}"),
        in_text("version\r\n", "VERSION {version}\r\n"),
    ),
    *(
        case(f"bin-verbosity-{level}", "KV-BINCMD-012", ask(f"verbosity level={level}", "verbosity ok"), ask("noop", "noop ok"))
        for level in (0, 1)
    ),
    case("bin-quit", "KV-BINCMD-013", ask("quit opaque=3", "quit ok opaque=3", closes=True)),
    case(
        "bin-frames-in-front-of-quit",
        "KV-BINCMD-014",
        ask("set key={k} value=x; quit", "set ok cas=<cas>; quit ok", closes=True),
        shows("{k}", "x", on="b"),
    ),
    case(
        "bin-frames-behind-quit",
        "KV-BINCMD-015",
        ask("quit; set key={k} value=x; noop", "quit ok", closes=True),
        misses("{k}", on="b"),
        ask("quitq; set key={k} value=x; noop", "", on="c", closes=True),
        misses("{k}", on="b"),
    ),
)

TOUCHES = (
    case(
        "bin-touch",
        "KV-BINCMD-016",
        SET,
        ask("touch key={k} exp=1", ("touch ok", "touch ok cas=<cas> flags=4 value=")),
        THERE,
        Pause(2.1),
        misses("{k}"),
    ),
    case(
        "bin-touch-for-ever",
        "KV-BINCMD-016",
        ask("set key={k} exp=1 value=x", "set ok cas=<cas>"),
        ask("touch key={k} exp=0", ("touch ok", "touch ok cas=<cas> flags=0 value=")),
        Pause(2.1),
        shows("{k}", "x"),
    ),
    case("bin-touch-missing", "KV-BINCMD-017", ask("touch key={k} exp=9", f"touch {NOT_FOUND}")),
    *(
        case(
            f"bin-{verb}",
            "KV-BINCMD-018",
            SET,
            ask(f"{verb} key={{k}} exp=1", f"{verb} ok cas=<cas> flags=4{key} value=x"),
            THERE,
            Pause(2.1),
            misses("{k}"),
        )
        for verb, key in (("gat", ""), ("gatq", ""), ("gatk", " key={k}"), ("gatkq", " key={k}"))
    ),
    case("bin-gat-missing", "KV-BINCMD-019", ask("gat key={k} exp=9", f"gat {NOT_FOUND}")),
    case("bin-gatk-missing", "KV-BINCMD-019", ask("gatk key={k} exp=9", "gatk 0x01 key={k}")),
    case("bin-gatq-missing", "KV-BINCMD-020", ask("gatq key={k} exp=9; gatkq key={k} exp=9; noop", "noop ok")),
    *(
        case(f"bin-{verb}-without-extras", "KV-BINCMD-021", SET, refused(f"{verb} key={{k}} extras="))
        for verb in ("touch", "gat")
    ),
    case("bin-touch-with-a-value", "KV-BINCMD-021", SET, refused("touch key={k} value=x")),
    *(
        case(f"bin-{verb}-unknown", "KV-BINCMD-022", SET, ask(f"{verb} key={{k}} exp=1", f"{verb} 0x81"), THERE)
        for verb in TOUCHING
    ),
    *(
        case(f"bin-{verb}-unknown-without-extras", "KV-BINCMD-022", ask(f"{verb} key={{k}} extras=", f"{verb} 0x81"))
        for verb in ("touch", "gat")
    ),
)

CASES = (*DELETES, *FLUSHES, *OTHERS, *TOUCHES)


def test_binary_commands(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
