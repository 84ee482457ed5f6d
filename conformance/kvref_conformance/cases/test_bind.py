"""bind NAME: the switch without a key."""

from __future__ import annotations

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import EVERYWHERE, hit, map_table, unmap
from kvref_conformance.steps import Disconnect

BOUND = {n: hit("{k}", str(n)) for n in (1, 2, 3)}
BIND_2 = send("bind {m2}\r\n", "SUCCEED\r\n")

CASES = (
    case("bind", "KV-BIND-001", *EVERYWHERE, BIND_2, BOUND[2], send("bind {m1}\r\n", "SUCCEED\r\n"), BOUND[1]),
    case(
        "bind-every-verb",
        "KV-BIND-002",
        *EVERYWHERE,
        BIND_2,
        send("incr {k} 3\r\n", "5\r\n"),
        send("append {k} 0 0 1\r\n0\r\n", "STORED\r\n"),
        send("set {k2} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("add {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("50",)),
        send("delete {k}\r\n", "DELETED\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k2}'", ("x",)),
        sql("SELECT COUNT(*) FROM {t1} WHERE c1 = '{k2}'", (0,)),
        sql("SELECT COUNT(*) FROM {t2} WHERE c1 = '{k}'", (0,)),
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}'", ("1",)),
    ),
    case("bind-unknown", "KV-BIND-003", *EVERYWHERE, send("bind no-such\r\n", "NOT_FOUND\r\n"), BOUND[1]),
    case(
        "bind-unknown-after-bind",
        "KV-BIND-003",
        *EVERYWHERE,
        BIND_2,
        send("bind no-such\r\n", "NOT_FOUND\r\n"),
        BOUND[2],
    ),
    case("bind-nothing", "KV-BIND-004", *EVERYWHERE, send("bind\r\n", "ERROR\r\n"), BOUND[1]),
    case("bind-two-names", "KV-BIND-005", *EVERYWHERE, send("bind {m2} {q}\r\n", "ERROR\r\n"), BOUND[1]),
    case("bind-noreply", "KV-BIND-005", *EVERYWHERE, send("bind {m2} noreply\r\n", "ERROR\r\n"), BOUND[1]),
    case("bind-capitals", "KV-BIND-006", *EVERYWHERE, send("BIND {m2}\r\n", "ERROR\r\n"), BOUND[1]),
    case("bind-one-letter", "KV-BIND-007", *EVERYWHERE, send("bind {q}\r\n", "SUCCEED\r\n"), BOUND[3]),
    case("bind-name-in-capitals", "KV-BIND-008", *EVERYWHERE, send("bind {m2up}\r\n", "SUCCEED\r\n"), BOUND[2]),
    *(
        case(f"bind-{name}", "KV-BIND-009", *EVERYWHERE, send(f"bind {word}\r\n", "NOT_FOUND\r\n"), BOUND[1])
        for name, word in (("at-signs", "@@{m2}"), ("delimiter", "{m2}."), ("key", "{m2}.{k}"))
    ),
    case(
        "bind-own-connection",
        "KV-BIND-010",
        *EVERYWHERE,
        send("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n", on="b"),
        BIND_2,
        send("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n", on="b"),
        send("bind {q}\r\n", "SUCCEED\r\n", on="b"),
        BOUND[2],
        send("get {k}\r\n", "VALUE {k} 0 1\r\n3\r\nEND\r\n", on="b"),
    ),
    case("bind-twice", "KV-BIND-011", *EVERYWHERE, BIND_2, BIND_2, BOUND[2]),
    case("bind-overlong", "KV-BIND-012", *EVERYWHERE, send("bind {x~251}\r\n", "CLIENT_ERROR <text>\r\n"), BOUND[1]),
    case("bind-250-bytes", "KV-BIND-003", *EVERYWHERE, send("bind {x~250}\r\n", "NOT_FOUND\r\n"), BOUND[1]),
    case(
        "bind-odd-bytes",
        "KV-BIND-013",
        *EVERYWHERE,
        send("bind \xff\r\n", "NOT_FOUND\r\n"),
        send("bind '%s%n\r\n", "NOT_FOUND\r\n"),
        BOUND[1],
    ),
    case(
        "bind-name-with-delimiter",
        "KV-BIND-014",
        *EVERYWHERE,
        map_table("{k2}.x", "{t2}"),
        send("get @@{k2}.x\r\n", "END\r\n"),
        send("bind {k2}.x\r\n", "SUCCEED\r\n"),
        BOUND[2],
        unmap("{k2}.x"),
    ),
    case(
        "bind-and-word",
        "KV-BIND-015",
        *EVERYWHERE,
        BIND_2,
        send("get @@{q}.{k}\r\n", "VALUE @@{q}.{k} 0 1\r\n3\r\nEND\r\n"),
        BOUND[3],
        BIND_2,
        BOUND[2],
    ),
    case(
        "bind-blanks-and-pipeline",
        "KV-BIND-016 KV-BIND-019",
        *EVERYWHERE,
        send(
            "  bind   {m2}  \r\nget {k}\r\nbind {q}\nget {k}\r\n",
            "SUCCEED\r\nVALUE {k} 0 1\r\n2\r\nEND\r\nSUCCEED\r\nVALUE {k} 0 1\r\n3\r\nEND\r\n",
        ),
    ),
    case(
        "binding-ends-with-the-connection",
        "KV-BIND-017",
        send("get {k}\r\n", "END\r\n"),
        send("bind {m2}\r\nset {k} 0 0 1\r\n2\r\n", "SUCCEED\r\nSTORED\r\n"),
        Disconnect(),
        send("get {k}\r\n", "END\r\n"),
        bind="",
    ),
    case(
        "delete-and-incr-after-bind",
        "KV-BIND-018",
        send("bind {m2}\r\nset {k} 0 0 1\r\n2\r\n", "SUCCEED\r\nSTORED\r\n"),
        send("incr {k} 1\r\n", "3\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("3",)),
        send("delete {k}\r\n", "DELETED\r\n"),
        sql("SELECT COUNT(*) FROM {t2} WHERE c1 = '{k}'", (0,)),
    ),
)
