"""Frames with wrong lengths: keys that are empty or too long, extras and bodies that an opcode does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import ask, by, case, waits
from kvref_conformance.cases.binary_phrases import misses, refused, shows, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import By, Case

NONE = "; noop"


def short(opcode: str) -> By:
    """Allow the answer to a body shorter than key and extras."""
    return by(
        "binary.short_body",
        invalid_arguments=f'{opcode} 0x04 "Invalid arguments"',
        unknown_command=f'{opcode} 0x81 "Unknown command"',
    )


KEYS = (
    *(
        case(f"bin-empty-key-{frame.split()[0]}", "KV-BINLEN-001", refused(frame))
        for frame in (
            *("get", "getk", "getq", "getkq", "set value=x", "setq value=x", "add value=x", "addq value=x"),
            *("replace value=x", "append value=x", "prependq value=x", "delete", "deleteq", "incr", "decrq"),
        )
    ),
    case(
        "bin-key-of-250-bytes",
        "KV-BINLEN-002",
        misses("{k:250}"),
        ask("getk key={k:250}", "getk 0x01 key={k:250}"),
        ask("getq key={k:250}", ""),
        ask("delete key={k:250}", 'delete 0x01 "Not found"'),
    ),
    *(
        case(f"bin-key-of-251-bytes-{verb}", "KV-BINLEN-003", refused(f"{verb} key={{k:251}}{rest}"))
        for verb, rest in (
            *(("get", ""), ("getk", ""), ("getq", ""), ("getkq", ""), ("delete", ""), ("deleteq", ""), ("incr", "")),
            *(("set", " value=x"), ("addq", " value=x"), ("append", " value=x"), ("stat", "")),
        )
    ),
    case("bin-key-of-1000-bytes", "KV-BINLEN-003", refused("get key={k:1000}")),
    case(
        "bin-key-announced-only",
        "KV-BINLEN-004",
        ask("get keylen=65535 longer=65535", 'get 0x04 "Invalid arguments"', closes=True),
    ),
    case("bin-key-of-251-announced", "KV-BINLEN-004", refused("set keylen=251 longer=252")),
)

SHORT = (
    case("bin-body-shorter-than-its-key", "KV-BINLEN-005", ask("get key={k} longer=-1", short("get"), closes=True)),
    case("bin-key-longer-than-the-body", "KV-BINLEN-005", ask("get key={k} keylen=100", short("get"), closes=True)),
    case(
        "bin-body-shorter-than-key-and-extras",
        "KV-BINLEN-005",
        ask("set key={k} longer=-3", short("set"), closes=True),
        misses("{k}", on="b"),
    ),
    case("bin-no-body-for-a-key", "KV-BINLEN-005", ask("delete keylen=3", short("delete"), closes=True)),
)

EXTRAS = (
    *(
        case(f"bin-{verb}-with-extras", "KV-BINLEN-006", stored("{k}", "x"), refused(f"{verb} key={{k}} extras=00000000"))
        for verb in ("get", "getk", "getq", "getkq")
    ),
    *(
        case(f"bin-{verb}-with-a-value", "KV-BINLEN-007", stored("{k}", "x"), refused(f"{verb} key={{k}} value=x"))
        for verb in ("get", "getkq")
    ),
    case(
        "bin-get-with-a-longer-body", "KV-BINLEN-008", stored("{k}", "x"), refused("get key={k} longer=5"),
        shows("{k}", "x", on="b"),
    ),
    *(
        case(
            f"bin-{verb}-with-{len(extras) // 2}-bytes-of-extras",
            "KV-BINLEN-009",
            refused(f"{verb} key={{k}} extras={extras} value=x"),
            misses("{k}", on="b"),
        )
        for verb, extras in (
            *(("set", ""), ("set", "0" * 8), ("set", "0" * 24), ("add", "0" * 8), ("replace", ""), ("setq", "0" * 8)),
        )
    ),
    *(
        case(
            f"bin-{verb}-with-extras",
            "KV-BINLEN-010",
            stored("{k}", "x"),
            refused(f"{verb} key={{k}} extras=0000000000000000 value=y"),
            shows("{k}", "x", on="b"),
        )
        for verb in ("append", "prepend", "appendq")
    ),
    *(
        case(
            f"bin-delete-with-{name}",
            "KV-BINLEN-011",
            stored("{k}", "x"),
            refused(f"delete key={{k}} {rest}"),
            shows("{k}", "x", on="b"),
        )
        for name, rest in (("extras", "extras=00000000"), ("a-value", "value=x"))
    ),
    *(
        case(
            f"bin-{verb}-with-{name}",
            "KV-BINLEN-012",
            stored("{k}", "5"),
            refused(f"{verb} key={{k}} {rest}"),
            shows("{k}", "5", on="b"),
        )
        for verb, name, rest in (
            ("incr", "no-extras", "extras="),
            ("incr", "16-bytes-of-extras", f"extras={'0' * 32}"),
            ("decr", "24-bytes-of-extras", f"extras={'0' * 48}"),
            ("incr", "a-value", "delta=1 value=x"),
        )
    ),
    *(
        case(f"bin-{verb}-with-{name}", "KV-BINLEN-013", refused(f"{verb} {rest}"))
        for verb in ("noop", "version", "quit", "quitq")
        for name, rest in (("a-key", "key={k}"), ("extras", "extras=00"), ("a-body", "value=x"))
    ),
    *(
        case(
            f"bin-{frame.split()[0]}-with-{name}",
            "KV-BINLEN-014",
            stored("{k}", "x"),
            refused(frame),
            shows("{k}", "x", on="b"),
        )
        for name, frame in (
            ("8-bytes-of-extras", "flush extras=0000000000000000"),
            ("a-key", "flush key={k}"),
            ("extras-and-a-key", "flush exp=0 key={k}"),
            ("2-bytes-of-extras", "flushq extras=0000"),
        )
    ),
    *(
        case(f"bin-verbosity-with-{name}", "KV-BINLEN-015", refused(f"verbosity {rest}"))
        for name, rest in (("no-extras", "extras="), ("8-bytes-of-extras", f"extras={'0' * 16}"), ("a-key", "key={k}"))
    ),
    case("bin-stat-with-extras", "KV-BINLEN-016", refused("stat extras=00000000")),
    *(
        case(f"bin-frames-behind-a-refused-{name}", "KV-BINLEN-018", refused(f"{frame}; set key={{k}} value=x; noop"),
             misses("{k}", on="b"))
        for name, frame in (("get", "get"), ("setq", "setq value=y"), ("noop", "noop value=y"))
    ),
)

BODIES = (
    case("bin-value-waited-for", "KV-BINLEN-019", waits("set key={k} longer=100000 value=x"), misses("{k}", on="b")),
)

CASES = (*KEYS, *SHORT, *EXTRAS, *BODIES)


def test_binary_lengths(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
