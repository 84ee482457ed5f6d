"""Frames of the binary protocol: which connections are binary, headers, packets, pipelines, unknown opcodes."""

from __future__ import annotations

from kvref_conformance.case import case, frames, frames_unanswered, send
from kvref_conformance.cases.binary_phrases import hit, miss, send_text, store, try_frames, unknown_opcode
from kvref_conformance.steps import Disconnect
from kvref_conformance.wire.frames import encode

UNKNOWN = (0x1F, *range(0x25, 0x40), *range(0x48, 0x83), *range(0x86, 0xF0), *range(0xF1, 0x100))
NOOP = frames("noop", "noop ok")
FRAMES_OF_200 = "; ".join(f"set key={{k}} opaque={n} value={n}" for n in range(1, 201))
ANSWERS_OF_200 = "; ".join(f"set ok opaque={n} cas=<cas>" for n in range(1, 201))

CONNECTIONS = (
    case("bin-first-byte", "KV-BINFRAME-001", NOOP, send_text("version\r\n", "VERSION {version}\r\n"), NOOP),
    case("bin-text-line", "KV-BINFRAME-002", NOOP, frames_unanswered("raw version%0d%0a")),
    case(
        "bin-text-of-24-bytes", "KV-BINFRAME-003", NOOP, frames("raw get 0123456789 0123456789%0d%0a", "", closes=True)
    ),
    case(
        "bin-another-magic",
        "KV-BINFRAME-003",
        *(
            frames(f"noop opaque=1; noop magic={magic}; noop", "noop ok opaque=1", on=f"c{magic}", closes=True)
            for magic in (0x00, 0x7F, 0x82, 0xFF)
        ),
        frames("noop; get magic=129 key={k}", "noop ok", closes=True),
    ),
    case(
        "bin-another-first-byte",
        "KV-BINFRAME-004",
        *(
            step
            for first in (0x81, 0x82)
            for step in (
                send(f"{chr(first)}abc", "", quiet=True, on=f"t{first}"),
                send("\r\n", "ERROR\r\n", on=f"t{first}"),
            )
        ),
    ),
    case(
        "bin-frame-on-a-text-connection",
        "KV-BINFRAME-005",
        send("version\r\n", "VERSION {version}\r\n", on="b"),
        send(encode("noop opaque=1").decode("latin-1").replace("\n", "\x0b"), "", quiet=True, on="b"),
        send("\r\n", ("ERROR\r\n", "CLIENT_ERROR <text>\r\n"), on="b"),
    ),
    case(
        "bin-beside-text",
        "KV-BINFRAME-013",
        frames("set key={k} flags=4294967295 value=one", "set ok cas=<cas a>"),
        send_text("gets {k}\r\n", "VALUE {k} 4294967295 3 {a}\r\none\r\nEND\r\n"),
        send_text("set {k2} 3 0 3\r\ntwo\r\n", "STORED\r\n"),
        send_text("gets {k2}\r\n", "VALUE {k2} 3 3 <cas b>\r\ntwo\r\nEND\r\n"),
        frames("get key={k2}", "get ok cas={b} flags=3 value=two"),
    ),
    case(
        "bin-cas-number-of-text",
        "KV-BINFRAME-013",
        send_text("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
        send_text("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\n1\r\nEND\r\n"),
        frames("set key={k} cas={a} value=2", "set ok cas=<new cas b>"),
        send_text("cas {k} 0 0 1 {a}\r\n3\r\n", "EXISTS\r\n"),
        send_text("cas {k} 0 0 1 {b}\r\n4\r\n", "STORED\r\n"),
        try_frames("set key={k} cas={b} value=5", 'set 0x02 "Data exists for key"'),
        hit("{k}", "4"),
    ),
)

HEADERS = (
    case(
        "bin-opaque",
        "KV-BINFRAME-006",
        *(
            frames(
                f"noop opaque={opaque}; get key={{k}} opaque={opaque}; setq key={{k2}}; stat opaque={opaque} key=x",
                f'noop ok opaque={opaque}; get 0x01 opaque={opaque} "Not found"; stat 0x01 opaque={opaque} "Not found"',
            )
            for opaque in (1, 1 << 31, 0xFFFFFFFF)
        ),
    ),
    case(
        "bin-opaque-zero",
        "KV-BINFRAME-006",
        NOOP,
        frames("noop opaque=9; noop; noop", "noop ok opaque=9; noop ok; noop ok"),
    ),
    case(
        "bin-vbucket",
        "KV-BINFRAME-007",
        frames("set key={k} vbucket=7 value=x", "set ok cas=<cas>"),
        frames("get key={k} vbucket=65535", "get ok cas=<cas> flags=0 value=x"),
        hit("{k}", "x"),
    ),
    case(
        "bin-datatype",
        "KV-BINFRAME-008",
        frames("set key={k} datatype=1 value=x", "set ok cas=<cas>"),
        frames("get key={k} datatype=255", "get ok cas=<cas> flags=0 value=x"),
    ),
)

PACKETS = (
    *(
        case(
            f"bin-pieces-{name}",
            "KV-BINFRAME-009",
            frames("set key={k} flags=5 value=one", "set ok cas=<cas>", cuts=cuts),
            hit("{k}", "one", flags=5),
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
        frames("noop opaque=1; noop opaque=2", "noop ok opaque=1; noop ok opaque=2", cuts=(30,)),
    ),
    case(
        "bin-header-then-close",
        "KV-BINFRAME-010",
        frames_unanswered("raw %80%01%00%01"),
        Disconnect(),
        miss("{k}", on="b"),
    ),
    case(
        "bin-body-then-close",
        "KV-BINFRAME-010",
        frames_unanswered("set key={k} longer=1 value=ab"),
        Disconnect(),
        miss("{k}", on="b"),
    ),
    case(
        "bin-value-comes-later",
        "KV-BINFRAME-011",
        frames_unanswered("set key={k} longer=2 value=v"),
        frames("raw zz", "set ok cas=<cas>"),
        hit("{k}", "vzz"),
    ),
    case(
        "bin-pipeline",
        "KV-BINFRAME-012",
        frames(
            "set key={k} opaque=1 value=5; get key={k} opaque=2; incr key={k} opaque=3; getk key={k2} opaque=4; "
            "noop opaque=5; append key={k} opaque=6 value=0; get key={k} opaque=7; delete key={k} opaque=8; "
            "delete key={k} opaque=9; version opaque=10",
            "set ok opaque=1 cas=<cas a>; get ok opaque=2 cas=<cas a> flags=0 value=5; "
            "incr ok opaque=3 cas=<new cas b> number=6; getk 0x01 opaque=4 key={k2}; noop ok opaque=5; "
            "append ok opaque=6 cas=<new cas c>; "
            'get ok opaque=7 cas=<cas c> flags=0 value=60; delete ok opaque=8; delete 0x01 opaque=9 "Not found"; '
            "version ok opaque=10 value={version}",
        ),
    ),
    case("bin-two-hundred-sets", "KV-BINFRAME-012", frames(FRAMES_OF_200, ANSWERS_OF_200), hit("{k}", "200")),
    case(
        "bin-delete-add-replace",
        "KV-BINFRAME-012",
        store("{k}", "x"),
        frames(
            "delete key={k}; add key={k} value=y; replace key={k} value=z; get key={k}",
            "delete ok; add ok cas=<cas a>; replace ok cas=<new cas b>; get ok cas=<cas b> flags=0 value=z",
        ),
    ),
)

OPCODES = (
    *(
        case(id_, requirements, *(frames(f"{opcode:#04x}", f"{opcode:#04x} {status}") for opcode in UNKNOWN), NOOP)
        for id_, requirements, status in (
            ("bin-unknown-opcodes", "KV-BINFRAME-014", '0x81 "Unknown command"'),
            ("bin-unknown-opcodes-without-a-text", "KV-BINFRAME-021", "0x81"),
        )
    ),
    *(
        case(
            id_,
            requirements,
            store("{k}", "x"),
            frames("add key={k} value=y", f'add 0x02 "Data exists for key{end}"'),
            frames("append key={k2} value=y", f'append 0x05 "Not stored{end}"'),
        )
        for id_, requirements, end in (
            ("bin-texts", "KV-BINFRAME-022", ""),
            ("bin-texts-with-a-full-stop", "KV-BINFRAME-023", "."),
        )
    ),
    case(
        "bin-sasl",
        "KV-BINFRAME-015 KV-BINFRAME-024",
        store("{k}", "x"),
        frames("sasl_list", unknown_opcode("sasl_list")),
        frames("sasl_auth key=PLAIN value=%00user%00password", unknown_opcode("sasl_auth")),
        frames("sasl_step key=PLAIN value=x", unknown_opcode("sasl_step")),
        hit("{k}", "x"),
    ),
    case(
        "bin-unknown-opcode-with-a-body",
        "KV-BINFRAME-016",
        frames("0x25 extras=00000001 key={k} value=abc", unknown_opcode("0x25")),
        frames("0x30 key={k} value=abc", unknown_opcode("0x30")),
        NOOP,
    ),
    case(
        "bin-tap",
        "KV-BINFRAME-017",
        *(frames(f"{opcode:#04x}", f'{opcode:#04x} 0x83 "Not supported"') for opcode in range(0x40, 0x48)),
        frames("0x41 key={k} value=abc", '0x41 0x83 "Not supported"'),
        NOOP,
    ),
    # While a scrub goes on, which takes a moment, another one is busy.
    case(
        "bin-scrub",
        "KV-BINFRAME-018",
        frames("0xf0", "0xf0 ok"),
        frames("0xf0 key={k}", ("0xf0 ok", "0xf0 0x85")),
        NOOP,
    ),
    case(
        "bin-opcodes-of-the-engine",
        "KV-BINFRAME-019 KV-BINFRAME-025",
        frames("0x83", '0x83 0x04 "Invalid state."'),
        frames("0x84", '0x84 0x04 "Value out of range."'),
        frames("0x85", '0x85 0x04 "Value out of range."'),
        NOOP,
    ),
    case("bin-noop-with-the-magic-of-a-reply", "KV-BINFRAME-020", NOOP, frames("noop magic=129", "noop ok"), NOOP),
)

CASES = (*CONNECTIONS, *HEADERS, *PACKETS, *OPCODES)
