"""delete, flush, noop, version, verbosity, quit, touch and gat."""

from __future__ import annotations

from kvref_conformance.case import case, frames, sql
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    each_malformed,
    hit,
    miss,
    send_text,
    store,
    try_frames,
)
from kvref_conformance.steps import Pause, Tick

ANY_CAS = "18446744073709551614"
SET = store("{k}", "x", flags=4)
THERE = hit("{k}", "x", flags=4)
TOUCHED = ("touch ok", "touch ok cas=<cas> flags=4 value=")
TOUCHING = ("touch", "gat", "gatq", "gatk", "gatkq")

DELETES = (
    case("bin-delete", "KV-BINCMD-001", SET, frames("delete key={k}", "delete ok"), miss("{k}")),
    case("bin-delete-missing", "KV-BINCMD-002", frames("delete key={k}", f"delete {NOT_FOUND}")),
    case(
        "bin-delete-twice",
        "KV-BINCMD-002",
        SET,
        frames("delete key={k}; delete key={k}", f"delete ok; delete {NOT_FOUND}"),
    ),
    case(
        "bin-delete-right-cas",
        "KV-BINCMD-003",
        frames("set key={k} value=x", "set ok cas=<cas a>"),
        frames("delete key={k} cas={a}", "delete ok"),
        miss("{k}"),
    ),
    case(
        "bin-delete-wrong-cas",
        "KV-BINCMD-004",
        SET,
        try_frames(f"delete key={{k}} cas={ANY_CAS}", f"delete {EXISTS}"),
        THERE,
        try_frames(f"deleteq key={{k}} cas={ANY_CAS}", f"deleteq {EXISTS}"),
        THERE,
    ),
    case(
        "bin-delete-wrong-cas-ignored",
        "KV-BINCMD-005",
        SET,
        frames(f"delete key={{k}} cas={ANY_CAS}", "delete ok"),
        miss("{k}"),
    ),
    case("bin-delete-cas-missing", "KV-BINCMD-002", frames(f"delete key={{k}} cas={ANY_CAS}", f"delete {NOT_FOUND}")),
    case(
        "bin-delete-row-of-sql",
        "KV-BINCMD-001",
        sql("INSERT INTO {t1} VALUES ('{k}', 'x', 0, 0, 0)"),
        frames("delete key={k}", "delete ok"),
        sql("SELECT c1 FROM {t1} WHERE c1 = '{k}'"),
    ),
)

FLUSHES = (
    case(
        "bin-flush",
        "KV-BINCMD-006 KV-BINCMD-024",
        SET,
        store("{k2}", "y"),
        frames("flush", "flush ok"),
        miss("{k}"),
        miss("{k2}"),
    ),
    case(
        "bin-flush-with-zero",
        "KV-BINCMD-006 KV-BINCMD-024",
        SET,
        frames("flush exp=0", "flush ok"),
        miss("{k}"),
        SET,
        THERE,
    ),
    case(
        "bin-flush-delayed-honoured",
        "KV-BINCMD-007",
        Tick(),
        SET,
        frames("flush exp=2", "flush ok"),
        THERE,
        Pause(3.1),
        miss("{k}"),
    ),
    case("bin-flush-delayed-at-once", "KV-BINCMD-008", SET, frames("flush exp=2", "flush ok"), miss("{k}")),
    case("bin-flush-delayed-refused", "KV-BINCMD-009", SET, frames("flush exp=2", 'flush 0x04 "<value>"'), THERE),
)

OTHERS = (
    case("bin-noop", "KV-BINCMD-010", frames("noop", "noop ok"), frames("noop opaque=77", "noop ok opaque=77")),
    case(
        "bin-version",
        "KV-BINCMD-011",
        frames("version", "version ok value={version}"),
        send_text("version\r\n", "VERSION {version}\r\n"),
    ),
    *(
        case(
            f"bin-verbosity-{level}",
            "KV-BINCMD-012",
            frames(f"verbosity level={level}", "verbosity ok"),
            frames("noop", "noop ok"),
        )
        for level in (0, 1)
    ),
    case("bin-quit", "KV-BINCMD-013", frames("quit opaque=3", "quit ok opaque=3", closes=True)),
    case(
        "bin-frames-in-front-of-quit",
        "KV-BINCMD-014",
        frames("set key={k} value=x; quit", "set ok cas=<cas>; quit ok", closes=True),
        hit("{k}", "x", on="b"),
    ),
    case(
        "bin-frames-behind-quit",
        "KV-BINCMD-015",
        frames("quit; set key={k} value=x; noop", "quit ok", closes=True),
        miss("{k}", on="b"),
        frames("quitq; set key={k} value=x; noop", "", on="c", closes=True),
        miss("{k}", on="b"),
    ),
)

TOUCHES = (
    case(
        "bin-touch-and-gat",
        "KV-BINCMD-016 KV-BINCMD-018",
        Tick(),
        SET,
        frames("touch key={k} exp=1", TOUCHED),
        THERE,
        frames("set key={k2} exp=1 flags=4 value=x", "set ok cas=<cas>"),
        frames("touch key={k2} exp=0", TOUCHED),
        *(store(f"{{k{number}}}", "x", flags=4) for number in range(3, 7)),
        frames("gat key={k3} exp=1", "gat ok cas=<cas> flags=4 value=x"),
        frames("gatq key={k4} exp=1", "gatq ok cas=<cas> flags=4 value=x"),
        frames("gatk key={k5} exp=1", "gatk ok cas=<cas> flags=4 key={k5} value=x"),
        frames("gatkq key={k6} exp=1", "gatkq ok cas=<cas> flags=4 key={k6} value=x"),
        Pause(2.1),
        miss("{k}"),
        hit("{k2}", "x", flags=4),
        *(miss(f"{{k{number}}}") for number in range(3, 7)),
    ),
    case(
        "bin-touch-4294967295",
        "KV-BINCMD-023",
        SET,
        frames("touch key={k} exp=4294967295", TOUCHED),
        miss("{k}"),
        SET,
        frames("gat key={k} exp=2147483648", "gat ok cas=<cas> flags=4 value=x"),
        miss("{k}"),
    ),
    case("bin-touch-missing", "KV-BINCMD-017", frames("touch key={k} exp=9", f"touch {NOT_FOUND}")),
    case("bin-gat-missing", "KV-BINCMD-019", frames("gat key={k} exp=9", f"gat {NOT_FOUND}")),
    case("bin-gatk-missing", "KV-BINCMD-019", frames("gatk key={k} exp=9", "gatk 0x01 key={k}")),
    case("bin-gatq-missing", "KV-BINCMD-020", frames("gatq key={k} exp=9; gatkq key={k} exp=9; noop", "noop ok")),
    case(
        "bin-touch-without-extras",
        "KV-BINCMD-021",
        SET,
        *each_malformed("touch key={k} extras=", "gat key={k} extras="),
        THERE,
    ),
    case(
        "bin-touch-unknown",
        "KV-BINCMD-022",
        SET,
        *(frames(f"{verb} key={{k}} exp=1", f"{verb} 0x81") for verb in TOUCHING),
        *(frames(f"{verb} key={{k}} extras=", f"{verb} 0x81") for verb in TOUCHING),
        THERE,
    ),
)

CASES = (*DELETES, *FLUSHES, *OTHERS, *TOUCHES)
