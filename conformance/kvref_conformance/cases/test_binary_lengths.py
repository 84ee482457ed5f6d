"""Frames with wrong lengths: keys that are empty or too long, extras and bodies that an opcode does not have.

Each such frame ends its connection, so that each has one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, frames, frames_unanswered
from kvref_conformance.cases.binary_phrases import each_malformed, hit, malformed, miss, store

if TYPE_CHECKING:
    from kvref_conformance.case import Case

SET = store("{k}", "5")
THERE = hit("{k}", "5")
EIGHT = "0" * 16


KEYS = (
    case("bin-get-without-a-key", "KV-BINLEN-001", *each_malformed("get", "getk", "getq", "getkq")),
    case(
        "bin-set-without-a-key",
        "KV-BINLEN-001",
        *each_malformed(
            "set value=x", "setq value=x", "add value=x", "addq value=x", "replace value=x", "replaceq value=x"
        ),
    ),
    case(
        "bin-append-without-a-key",
        "KV-BINLEN-001",
        *each_malformed("append value=x", "prepend value=x", "prependq value=x"),
    ),
    case(
        "bin-delete-without-a-key",
        "KV-BINLEN-001",
        *each_malformed("delete", "deleteq", "incr", "decr", "incrq", "decrq"),
    ),
    case(
        "bin-key-of-250-bytes",
        "KV-BINLEN-002",
        miss("{k:250}"),
        frames("getk key={k:250}", "getk 0x01 key={k:250}"),
        frames("getq key={k:250}", ""),
        frames("delete key={k:250}", 'delete 0x01 "Not found"'),
    ),
    case(
        "bin-key-of-251-bytes",
        "KV-BINLEN-003",
        *each_malformed(
            *(f"{opcode} key={{k:251}}" for opcode in "get getk getq getkq delete deleteq incr decrq stat".split())
        ),
    ),
    case(
        "bin-key-of-251-bytes-and-a-value",
        "KV-BINLEN-003",
        *each_malformed(*(f"{opcode} key={{k:251}} value=x" for opcode in "set addq replace append prependq".split())),
    ),
    case("bin-key-of-1000-bytes", "KV-BINLEN-003", malformed("get key={k:1000}")),
    case(
        "bin-key-announced-only",
        "KV-BINLEN-004",
        *each_malformed("get keylen=65535 longer=65535", "set keylen=251 longer=252", "delete keylen=300 longer=300"),
    ),
)


def short_body_cases(name: str, shorter: str, longer: str, status: str) -> tuple[Case, ...]:
    """Write the cases of a body shorter than key and extras, and of a key longer than the body.

    Args:
        name: what their ids end in.
        shorter: requirement of a shorter body.
        longer: requirement of a longer key.
        status: the reply to both.
    """
    return (
        case(
            f"bin-body-shorter-than-its-key{name}",
            shorter,
            frames("get key={k} longer=-1", f"get {status}", closes=True),
        ),
        case(
            f"bin-body-shorter-than-key-and-extras{name}",
            shorter,
            frames("set key={k} longer=-3", f"set {status}", closes=True),
            miss("{k}", on="b"),
        ),
        case(
            f"bin-key-longer-than-the-body{name}",
            longer,
            frames("get key={k} keylen=100", f"get {status}", closes=True),
            frames("delete keylen=3", f"delete {status}", on="b", closes=True),
        ),
    )


SHORT = (
    *short_body_cases("", "KV-BINLEN-005", "KV-BINLEN-020", '0x81 "Unknown command"'),
    *short_body_cases("-is-invalid", "KV-BINLEN-021", "KV-BINLEN-022", '0x04 "Invalid arguments"'),
)

EXTRAS = (
    case(
        "bin-get-with-extras",
        "KV-BINLEN-006",
        SET,
        *each_malformed(*(f"{opcode} key={{k}} extras=00000000" for opcode in ("get", "getk", "getq", "getkq"))),
    ),
    case("bin-get-with-a-value", "KV-BINLEN-007", SET, *each_malformed("get key={k} value=x", "getkq key={k} value=x")),
    case(
        "bin-get-with-a-longer-body",
        "KV-BINLEN-008",
        SET,
        *each_malformed("get key={k} longer=5", "getkq key={k} longer=1"),
    ),
    case(
        "bin-set-with-other-extras",
        "KV-BINLEN-009",
        *each_malformed(
            *(f"set key={{k}} extras={'00' * length} value=x" for length in (0, 4, 7, 9, 12)),
            *(
                "add key={k} extras=00000000 value=x",
                "replace key={k} extras= value=x",
                "setq key={k} extras=00 value=x",
            ),
        ),
        miss("{k}"),
    ),
    case(
        "bin-append-with-extras",
        "KV-BINLEN-010",
        SET,
        *each_malformed(*(f"{opcode} key={{k}} extras={EIGHT} value=y" for opcode in ("append", "prepend", "appendq"))),
        THERE,
    ),
    case(
        "bin-delete-with-more",
        "KV-BINLEN-011",
        SET,
        *each_malformed("delete key={k} extras=00000000", "delete key={k} value=x", "deleteq key={k} extras=00"),
        THERE,
    ),
    case(
        "bin-incr-with-other-extras",
        "KV-BINLEN-012",
        SET,
        *each_malformed(
            *(f"incr key={{k}} extras={'00' * length}" for length in (0, 8, 16, 24)),
            *("decr key={k} extras=", "incrq key={k} value=x", "decr key={k} value=x"),
        ),
        THERE,
    ),
    *(
        case(
            f"bin-{opcode}-with-more",
            "KV-BINLEN-013",
            *each_malformed(f"{opcode} key={{k}}", f"{opcode} extras=00", f"{opcode} value=x"),
        )
        for opcode in ("noop", "version", "quit", "quitq")
    ),
    case(
        "bin-flush-with-more",
        "KV-BINLEN-014",
        SET,
        *each_malformed(f"flush extras={EIGHT}", "flush key={k}", "flush exp=0 key={k}", "flushq extras=0000"),
        THERE,
    ),
    case(
        "bin-verbosity-with-other-extras",
        "KV-BINLEN-015",
        *each_malformed("verbosity extras=", f"verbosity extras={EIGHT}", "verbosity key={k}"),
    ),
    case(
        "bin-stat-with-extras", "KV-BINLEN-016", *each_malformed("stat extras=00000000", "stat extras=00 key=settings")
    ),
)

BEHIND = (
    case(
        "bin-frames-behind-a-refused-one",
        "KV-BINLEN-018",
        *each_malformed(
            *(f"{frame}; set key={{k}} value=x; noop" for frame in ("get", "setq value=y", "noop value=y"))
        ),
        miss("{k}"),
    ),
    case(
        "bin-value-waited-for",
        "KV-BINLEN-019",
        frames_unanswered("set key={k} longer=100000 value=x"),
        miss("{k}", on="b"),
    ),
)

CASES = (*KEYS, *SHORT, *EXTRAS, *BEHIND)
