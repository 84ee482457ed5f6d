"""Quiet opcodes send no reply to a success, a get to a miss; other results have the usual reply, in order."""

from __future__ import annotations

from kvref_conformance.case import case, frames
from kvref_conformance.cases.binary_phrases import (
    EXISTS,
    NOT_FOUND,
    NOT_STORED,
    each_malformed,
    hit,
    miss,
    store,
    try_frames,
)

ANY_CAS = "18446744073709551614"

CASES = (
    case("bin-setq", "KV-BINQUIET-001", frames("setq key={k} flags=3 value=x", ""), hit("{k}", "x", flags=3)),
    case("bin-addq", "KV-BINQUIET-001", frames("addq key={k} value=x", ""), hit("{k}", "x")),
    case("bin-replaceq", "KV-BINQUIET-001", store("{k}", "x"), frames("replaceq key={k} value=y", ""), hit("{k}", "y")),
    *(
        case(
            f"bin-{verb}",
            "KV-BINQUIET-002",
            store("{k}", "x"),
            frames(f"{verb} key={{k}} value=+", ""),
            hit("{k}", value),
        )
        for verb, value in (("appendq", "x+"), ("prependq", "+x"))
    ),
    case(
        "bin-setq-cas",
        "KV-BINQUIET-001",
        frames("set key={k} value=x", "set ok cas=<cas a>"),
        frames("setq key={k} cas={a} value=y", ""),
        frames("get key={k}", "get ok cas=<new cas b> flags=0 value=y"),
    ),
    case(
        "bin-addq-existing",
        "KV-BINQUIET-003",
        store("{k}", "x"),
        try_frames("addq key={k} value=y", f"addq {EXISTS}"),
        hit("{k}", "x"),
    ),
    case(
        "bin-replaceq-missing",
        "KV-BINQUIET-003",
        frames("replaceq key={k} value=y", f"replaceq {NOT_FOUND}"),
        miss("{k}"),
    ),
    *(
        case(f"bin-{verb}-missing", "KV-BINQUIET-003", try_frames(f"{verb} key={{k}} value=y", f"{verb} {NOT_STORED}"))
        for verb in ("appendq", "prependq")
    ),
    case(
        "bin-setq-wrong-cas",
        "KV-BINQUIET-003",
        store("{k}", "x"),
        try_frames(f"setq key={{k}} opaque=3 cas={ANY_CAS} value=y", 'setq 0x02 opaque=3 "Data exists for key"'),
        hit("{k}", "x"),
    ),
    case(
        "bin-setq-cas-missing", "KV-BINQUIET-003", frames(f"setq key={{k}} cas={ANY_CAS} value=y", f"setq {NOT_FOUND}")
    ),
    case(
        "bin-replaceq-wrong-cas",
        "KV-BINQUIET-003",
        store("{k}", "x"),
        try_frames(f"replaceq key={{k}} cas={ANY_CAS} value=y", f"replaceq {EXISTS}"),
        hit("{k}", "x"),
    ),
    *(
        case(
            f"bin-{verb}-wrong-cas-refused",
            "KV-BINQUIET-003 KV-BINSTORE-019",
            store("{k}", "x"),
            try_frames(f"{verb} key={{k}} cas={ANY_CAS} value=y", f"{verb} {EXISTS}"),
            hit("{k}", "x"),
        )
        for verb in ("appendq", "prependq")
    ),
    case(
        "bin-deleteq",
        "KV-BINQUIET-004 KV-BINQUIET-014",
        store("{k}", "x"),
        frames("deleteq key={k}", ""),
        miss("{k}"),
        frames("deleteq key={k} opaque=2", 'deleteq 0x01 opaque=2 "Not found"'),
    ),
    case(
        "bin-incrq",
        "KV-BINQUIET-005",
        store("{k}", "5"),
        frames("incrq key={k} delta=3; decrq key={k} delta=2; incrq key={k}", ""),
        hit("{k}", "7"),
        frames("incrq key={k2} initial=40; decrq key={k3} initial=50", ""),
        hit("{k2}", "40"),
        hit("{k3}", "50"),
    ),
    case(
        "bin-incrq-creates-nothing",
        "KV-BINQUIET-006",
        frames("incrq key={k} exp=4294967295; noop", f"incrq {NOT_FOUND}; noop ok"),
        frames("decrq key={k} exp=4294967295; noop", f"decrq {NOT_FOUND}; noop ok"),
        miss("{k}"),
    ),
    case(
        "bin-incrq-silent",
        "KV-BINQUIET-015",
        frames("incrq key={k} exp=4294967295; decrq key={k} exp=4294967295; noop", "noop ok"),
        miss("{k}"),
    ),
    case("bin-flushq", "KV-BINQUIET-007", store("{k}", "x"), frames("flushq", ""), miss("{k}")),
    case(
        "bin-flushq-with-zero",
        "KV-BINQUIET-007",
        store("{k}", "x"),
        frames("flushq exp=0; noop", "noop ok"),
        miss("{k}"),
    ),
    case(
        "bin-quitq",
        "KV-BINQUIET-008 KV-BINQUIET-013",
        frames("setq key={k} value=x; quitq", "", closes=True),
        hit("{k}", "x", on="b"),
    ),
    case(
        "bin-quiet-in-order",
        "KV-BINQUIET-009",
        try_frames(
            "setq key={k} opaque=1 value=x; addq key={k} opaque=2 value=y; deleteq key={k2} opaque=3; "
            "get key={k} opaque=4; getq key={k2} opaque=5; appendq key={k2} opaque=6 value=z; noop opaque=7",
            'addq 0x02 opaque=2 "Data exists for key"; deleteq 0x01 opaque=3 "Not found"; get ok opaque=4 cas=<cas> '
            'flags=0 value=x; appendq 0x05 opaque=6 "Not stored"; noop ok opaque=7',
        ),
    ),
    case(
        "bin-quiet-then-loud",
        "KV-BINQUIET-009",
        store("{k}", "x"),
        frames(
            "getq key={k} opaque=1; get key={k} opaque=2; getkq key={k} opaque=3; getk key={k2} opaque=4",
            "getq ok opaque=1 cas=<cas> flags=0 value=x; get ok opaque=2 cas=<cas> flags=0 value=x; "
            "getkq ok opaque=3 cas=<cas> flags=0 key={k} value=x; getk 0x01 opaque=4 key={k2}",
        ),
    ),
    case(
        "bin-one-reply-to-four-frames",
        "KV-BINQUIET-010",
        frames("setq key={k} value=1; setq key={k2} value=2; setq key={k3} value=3; noop opaque=9", "noop ok opaque=9"),
        hit("{k2}", "2"),
        hit("{k3}", "3"),
    ),
    case(
        "bin-hundred-quiet-sums",
        "KV-BINQUIET-010",
        frames("set key={k} value=0", "set ok cas=<cas>"),
        frames("; ".join(["incrq key={k}"] * 100 + ["get key={k}"]), "get ok cas=<cas> flags=0 value=100"),
    ),
    case(
        "bin-quiet-and-refused",
        "KV-BINQUIET-011",
        *each_malformed(
            "getq key={k} extras=00000000",
            "setq key={k} extras= value=x",
            "deleteq key={k} value=x",
            "incrq key={k} extras=00000000",
            "appendq key={k} extras=00000000 value=x",
            "flushq key={k}",
            "quitq value=x",
        ),
    ),
)
