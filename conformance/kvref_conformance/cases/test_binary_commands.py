"""delete, flush, noop, version, verbosity, quit, touch and gat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import ask, case, sql
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    answered,
    each_refused,
    in_text,
    misses,
    shows,
    stored,
)
from kvref_conformance.steps import Pause, Tick

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

ANY_CAS = "18446744073709551614"
SET = stored("{k}", "x", flags=4)
THERE = shows("{k}", "x", flags=4)
TOUCHED = ("touch ok", "touch ok cas=<cas> flags=4 value=")
TOUCHING = ("touch", "gat", "gatq", "gatk", "gatkq")

DELETES = (
    case("bin-delete", "KV-BINCMD-001", SET, ask("delete key={k}", "delete ok"), misses("{k}")),
    case("bin-delete-missing", "KV-BINCMD-002", ask("delete key={k}", f"delete {NOT_FOUND}")),
    case(
        "bin-delete-twice",
        "KV-BINCMD-002",
        SET,
        ask("delete key={k}; delete key={k}", f"delete ok; delete {NOT_FOUND}"),
    ),
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
        answered(f"delete key={{k}} cas={ANY_CAS}", f"delete {EXISTS}"),
        THERE,
        answered(f"deleteq key={{k}} cas={ANY_CAS}", f"deleteq {EXISTS}"),
        THERE,
    ),
    case(
        "bin-delete-wrong-cas-ignored",
        "KV-BINCMD-005",
        SET,
        ask(f"delete key={{k}} cas={ANY_CAS}", "delete ok"),
        misses("{k}"),
    ),
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
    case(
        "bin-flush",
        "KV-BINCMD-006 KV-BINCMD-024",
        SET,
        stored("{k2}", "y"),
        ask("flush", "flush ok"),
        misses("{k}"),
        misses("{k2}"),
    ),
    case(
        "bin-flush-with-zero",
        "KV-BINCMD-006 KV-BINCMD-024",
        SET,
        ask("flush exp=0", "flush ok"),
        misses("{k}"),
        SET,
        THERE,
    ),
    case(
        "bin-flush-delayed-honoured",
        "KV-BINCMD-007",
        Tick(),
        SET,
        ask("flush exp=2", "flush ok"),
        THERE,
        Pause(3.1),
        misses("{k}"),
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
        case(
            f"bin-verbosity-{level}",
            "KV-BINCMD-012",
            ask(f"verbosity level={level}", "verbosity ok"),
            ask("noop", "noop ok"),
        )
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
        "bin-touch-and-gat",
        "KV-BINCMD-016 KV-BINCMD-018",
        Tick(),
        SET,
        ask("touch key={k} exp=1", TOUCHED),
        THERE,
        ask("set key={k2} exp=1 flags=4 value=x", "set ok cas=<cas>"),
        ask("touch key={k2} exp=0", TOUCHED),
        *(stored(f"{{k{number}}}", "x", flags=4) for number in range(3, 7)),
        ask("gat key={k3} exp=1", "gat ok cas=<cas> flags=4 value=x"),
        ask("gatq key={k4} exp=1", "gatq ok cas=<cas> flags=4 value=x"),
        ask("gatk key={k5} exp=1", "gatk ok cas=<cas> flags=4 key={k5} value=x"),
        ask("gatkq key={k6} exp=1", "gatkq ok cas=<cas> flags=4 key={k6} value=x"),
        Pause(2.1),
        misses("{k}"),
        shows("{k2}", "x", flags=4),
        *(misses(f"{{k{number}}}") for number in range(3, 7)),
    ),
    case(
        "bin-touch-4294967295",
        "KV-BINCMD-023",
        SET,
        ask("touch key={k} exp=4294967295", TOUCHED),
        misses("{k}"),
        SET,
        ask("gat key={k} exp=2147483648", "gat ok cas=<cas> flags=4 value=x"),
        misses("{k}"),
    ),
    case("bin-touch-missing", "KV-BINCMD-017", ask("touch key={k} exp=9", f"touch {NOT_FOUND}")),
    case("bin-gat-missing", "KV-BINCMD-019", ask("gat key={k} exp=9", f"gat {NOT_FOUND}")),
    case("bin-gatk-missing", "KV-BINCMD-019", ask("gatk key={k} exp=9", "gatk 0x01 key={k}")),
    case("bin-gatq-missing", "KV-BINCMD-020", ask("gatq key={k} exp=9; gatkq key={k} exp=9; noop", "noop ok")),
    case(
        "bin-touch-without-extras",
        "KV-BINCMD-021",
        SET,
        *each_refused("touch key={k} extras=", "gat key={k} extras="),
        THERE,
    ),
    case(
        "bin-touch-unknown",
        "KV-BINCMD-022",
        SET,
        *(ask(f"{verb} key={{k}} exp=1", f"{verb} 0x81") for verb in TOUCHING),
        *(ask(f"{verb} key={{k}} extras=", f"{verb} 0x81") for verb in TOUCHING),
        THERE,
    ),
)

CASES = (*DELETES, *FLUSHES, *OTHERS, *TOUCHES)


def test_binary_commands(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
