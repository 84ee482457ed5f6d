"""Frames of the binary protocol: which connections are binary, headers, packets, pipelines, opcodes that are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Hangup, ask, by, case, say, waits
from kvref_conformance.cases.binary_phrases import in_text, misses, shows, stored, told, unknown
from kvref_conformance.frames import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

NOOP = ask("noop", "noop ok")
FRAMES_OF_200 = "; ".join(f"set key={{k}} opaque={n} value={n}" for n in range(1, 201))
ANSWERS_OF_200 = "; ".join(f"set ok opaque={n} cas=<cas>" for n in range(1, 201))

CONNECTIONS = (
    case("bin-first-byte", "KV-BINFRAME-001", NOOP, in_text("version\r\n", "VERSION {version}\r\n"), NOOP),
    case("bin-text-line", "KV-BINFRAME-002", NOOP, waits("raw version%0d%0a")),
    case("bin-text-of-24-bytes", "KV-BINFRAME-003", NOOP, ask("raw get 0123456789 0123456789%0d%0a", "", closes=True)),
    *(
        case(f"bin-magic-{magic:02x}", "KV-BINFRAME-003", NOOP, ask(f"noop magic={magic}", "", closes=True))
        for magic in (0x00, 0x7F, 0x81, 0x82)
    ),
    case(
        "bin-frame-in-front-of-a-bad-magic",
        "KV-BINFRAME-003 KV-BINFRAME-012",
        ask("set key={k} value=x; noop magic=129; delete key={k}", "set ok cas=<cas>", closes=True),
        shows("{k}", "x", on="b"),
    ),
    *(
        case(
            f"bin-first-byte-{first:02x}",
            "KV-BINFRAME-004",
            say(f"{chr(first)}abc", "", quiet=True, on="b"),
            say("\r\n", "ERROR\r\n", on="b"),
        )
        for first in (0x81, 0x82, 0x7F)
    ),
    case(
        "bin-frame-on-a-text-connection",
        "KV-BINFRAME-005",
        say("version\r\n", "VERSION {version}\r\n", versions=1, on="b"),
        say(encode("noop opaque=1").decode("latin-1").replace("\n", "\x0b"), "", quiet=True, on="b"),
        say("\r\n", "ERROR\r\n", on="b"),
    ),
    case(
        "bin-beside-text",
        "KV-BINFRAME-013",
        ask("set key={k} flags=4294967295 value=one", "set ok cas=<cas a>"),
        in_text("gets {k}\r\n", "VALUE {k} 4294967295 3 {a}\r\none\r\nEND\r\n"),
        in_text("set {k2} 3 0 3\r\ntwo\r\n", "STORED\r\n"),
        in_text("gets {k2}\r\n", "VALUE {k2} 3 3 <cas b>\r\ntwo\r\nEND\r\n"),
        ask("get key={k2}", "get ok cas={b} flags=3 value=two"),
    ),
    case(
        "bin-cas-number-of-text",
        "KV-BINFRAME-013",
        in_text("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
        in_text("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\n1\r\nEND\r\n"),
        ask("set key={k} cas={a} value=2", "set ok cas=<new cas b>"),
        in_text("cas {k} 0 0 1 {a}\r\n3\r\n", "EXISTS\r\n"),
        in_text("cas {k} 0 0 1 {b}\r\n4\r\n", "STORED\r\n"),
        told("set key={k} cas={b} value=5", 'set 0x02 "Data exists for key"'),
        shows("{k}", "4"),
    ),
)

HEADERS = (
    *(
        case(
            f"bin-opaque-{opaque}",
            "KV-BINFRAME-006",
            ask(f"noop opaque={opaque}", f"noop ok opaque={opaque}"),
            ask(f"get key={{k}} opaque={opaque}", f'get 0x01 opaque={opaque} "Not found"'),
            ask(f"set key={{k}} opaque={opaque} value=x", f"set ok opaque={opaque} cas=<cas>"),
        )
        for opaque in (1, 1 << 31, 0xFFFFFFFF)
    ),
    case(
        "bin-opaque-zero", "KV-BINFRAME-006", NOOP, ask("noop opaque=9; noop; noop", "noop ok opaque=9; noop ok; noop ok")
    ),
    case(
        "bin-vbucket",
        "KV-BINFRAME-007",
        ask("set key={k} vbucket=7 value=x", "set ok cas=<cas>"),
        ask("get key={k} vbucket=65535", "get ok cas=<cas> flags=0 value=x"),
        shows("{k}", "x"),
    ),
    case(
        "bin-datatype",
        "KV-BINFRAME-008",
        ask("set key={k} datatype=1 value=x", "set ok cas=<cas>"),
        ask("get key={k} datatype=255", "get ok cas=<cas> flags=0 value=x"),
    ),
)

PACKETS = (
    *(
        case(
            f"bin-pieces-{name}",
            "KV-BINFRAME-009",
            ask("set key={k} flags=5 value=one", "set ok cas=<cas>", cuts=cuts),
            shows("{k}", "one", flags=5),
        )
        for name, cuts in (
            ("in-the-header", (1, 12)),
            ("at-the-body", (24,)),
            ("in-the-body", (28, 33, 36)),
            ("of-one-byte", tuple(range(1, 35))),
        )
    ),
    case(
        "bin-pieces-across-frames",
        "KV-BINFRAME-009",
        ask("noop opaque=1; noop opaque=2", "noop ok opaque=1; noop ok opaque=2", cuts=(30,)),
    ),
    case("bin-header-then-close", "KV-BINFRAME-010", waits("raw %80%01%00%01"), Hangup(), misses("{k}", on="b")),
    case(
        "bin-body-then-close",
        "KV-BINFRAME-010",
        waits("set key={k} longer=1 value=ab"),
        Hangup(),
        misses("{k}", on="b"),
    ),
    case(
        "bin-value-comes-later",
        "KV-BINFRAME-011",
        waits("set key={k} longer=2 value=v"),
        ask("raw zz", "set ok cas=<cas>"),
        shows("{k}", "vzz"),
    ),
    case(
        "bin-pipeline",
        "KV-BINFRAME-012",
        ask(
            "set key={k} opaque=1 value=5; get key={k} opaque=2; incr key={k} opaque=3; getk key={k2} opaque=4; "
            "noop opaque=5; append key={k} opaque=6 value=0; get key={k} opaque=7; delete key={k} opaque=8; "
            "delete key={k} opaque=9; version opaque=10",
            "set ok opaque=1 cas=<cas a>; get ok opaque=2 cas={a} flags=0 value=5; incr ok opaque=3 cas=<new cas b> "
            "number=6; getk 0x01 opaque=4 key={k2}; noop ok opaque=5; append ok opaque=6 cas=<new cas c>; "
            'get ok opaque=7 cas={c} flags=0 value=60; delete ok opaque=8; delete 0x01 opaque=9 "Not found"; '
            "version ok opaque=10 value={version}",
        ),
    ),
    case("bin-two-hundred-sets", "KV-BINFRAME-012", ask(FRAMES_OF_200, ANSWERS_OF_200), shows("{k}", "200")),
    case(
        "bin-delete-add-replace",
        "KV-BINFRAME-012",
        stored("{k}", "x"),
        ask(
            "delete key={k}; add key={k} value=y; replace key={k} value=z; get key={k}",
            "delete ok; add ok cas=<cas a>; replace ok cas=<new cas b>; get ok cas={b} flags=0 value=z",
        ),
    ),
)

OPCODES = (
    *(
        case(f"bin-opcode-{opcode:02x}", "KV-BINFRAME-014", ask(f"{opcode:#04x}", unknown(f"{opcode:#04x}")), NOOP)
        for opcode in (0x1F, 0x25, 0x2F, 0x30, 0x3D, 0x48, 0x7F, 0x80, 0x82, 0x86, 0xEF, 0xF1, 0xFF)
    ),
    *(
        case(f"bin-{name}", "KV-BINFRAME-015", stored("{k}", "x"), ask(frame, unknown(name)), shows("{k}", "x"))
        for name, frame in (
            ("sasl_list", "sasl_list"),
            ("sasl_auth", "sasl_auth key=PLAIN value=%00user%00password"),
            ("sasl_step", "sasl_step key=PLAIN value=x"),
        )
    ),
    case(
        "bin-unknown-opcode-with-a-body",
        "KV-BINFRAME-016",
        ask("0x30 key={k} value=abc; noop opaque=1", by("binary.unknown_opcode", empty="0x30 0x81; noop ok opaque=1",
            text='0x30 0x81 "Unknown command"; noop ok opaque=1')),
        ask("0x25 extras=00000001 key={k} value=abc", unknown("0x25")),
        NOOP,
    ),
    *(
        case(
            f"bin-tap-{opcode:02x}",
            "KV-BINFRAME-017",
            ask(f"{opcode:#04x}", f'{opcode:#04x} 0x83 "Not supported"'),
            ask(f"{opcode:#04x} key={{k}} value=abc", f'{opcode:#04x} 0x83 "Not supported"'),
            NOOP,
        )
        for opcode in (0x40, 0x41, 0x44, 0x47)
    ),
    *(
        case(
            f"bin-engine-{opcode}",
            requirement,
            ask(opcode, f"{opcode} {answer}"),
            ask(f"{opcode} key={{k}}", f"{opcode} {answer}"),
            NOOP,
        )
        for opcode, requirement, answer in (
            ("0xf0", "KV-BINFRAME-018", "ok"),
            ("0x83", "KV-BINFRAME-019", '0x04 "Invalid state."'),
            ("0x84", "KV-BINFRAME-019", '0x04 "Value out of range."'),
            ("0x85", "KV-BINFRAME-019", '0x04 "Value out of range."'),
        )
    ),
)

CASES = (*CONNECTIONS, *HEADERS, *PACKETS, *OPCODES)


def test_binary_frames(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
