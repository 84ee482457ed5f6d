"""get of several keys: order, misses, and `@@` words anywhere among them."""

from __future__ import annotations

from kvref_conformance.case import case, send

# {k} is 1 in {m1}, 2 in {m2}, 3 in {q}; {k2} is a in {m1}, b in {m2}. The connection ends bound to {m1}.
EVERYWHERE = (
    send("set @@{q}.{k} 0 0 1\r\n3\r\n", "STORED\r\n"),
    send("set @@{m2}.{k} 0 0 1\r\n2\r\nset {k2} 0 0 1\r\nb\r\n", "STORED\r\nSTORED\r\n"),
    send("set @@{m1}.{k} 0 0 1\r\n1\r\nset {k2} 0 0 1\r\na\r\n", "STORED\r\nSTORED\r\n"),
)
THREE = send("set {k} 1 0 1\r\na\r\nset {k2} 2 0 2\r\nbb\r\nset {k3} 3 0 0\r\n\r\n", "STORED\r\nSTORED\r\nSTORED\r\n")
BOUND = {n: send("get {k}\r\n", f"VALUE {{k}} 0 1\r\n{n}\r\nEND\r\n") for n in (1, 2, 3)}
TABLE_2 = "VALUE @@{m2} 0 <number>\r\n<text>\r\n"
A_HUNDRED = tuple(f"k{n}" for n in range(10, 110))

PLAIN = (
    case(
        "order",
        "KV-MGET-001",
        THREE,
        send("get {k2} {k3} {k}\r\n", "VALUE {k2} 2 2\r\nbb\r\nVALUE {k3} 3 0\r\n\r\nVALUE {k} 1 1\r\na\r\nEND\r\n"),
    ),
    case(
        "missing",
        "KV-MGET-002",
        THREE,
        send("get {k4} {k} {k5} {k2} {k6}\r\n", "VALUE {k} 1 1\r\na\r\nVALUE {k2} 2 2\r\nbb\r\nEND\r\n"),
        send("get {k4} {k5}\r\n", "END\r\n"),
    ),
    case(
        "repeated",
        "KV-MGET-003",
        THREE,
        send(
            "get {k} {k} {k2} {k}\r\n",
            "VALUE {k} 1 1\r\na\r\n" * 2 + "VALUE {k2} 2 2\r\nbb\r\nVALUE {k} 1 1\r\na\r\nEND\r\n",
        ),
    ),
    case(
        "a-hundred",
        "KV-MGET-004",
        send("".join(f"set {{{k}}} 0 0 1 noreply\r\nx\r\n" for k in A_HUNDRED), ""),
        send(
            "get " + " ".join(f"{{{k}}}" for k in A_HUNDRED) + "\r\n",
            "".join(f"VALUE {{{k}}} 0 1\r\nx\r\n" for k in A_HUNDRED) + "END\r\n",
        ),
    ),
    case(
        "overlong-key",
        "KV-MGET-005",
        THREE,
        send("get {k} {k2:251} {k3}\r\n", ("CLIENT_ERROR <text>\r\n", "VALUE {k} 1 1\r\na\r\nCLIENT_ERROR <text>\r\n")),
    ),
)

MAPPED = (
    case(
        "mapped-first",
        "KV-MGET-006",
        *EVERYWHERE,
        send("get @@{m2}.{k} {k2}\r\n", "VALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE {k2} 0 1\r\nb\r\nEND\r\n"),
    ),
    case(
        "mapped-later",
        "KV-MGET-007",
        *EVERYWHERE,
        send(
            "get {k} @@{m2}.{k} {k2}\r\n",
            "VALUE {k} 0 1\r\n1\r\nVALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE {k2} 0 1\r\nb\r\nEND\r\n",
        ),
    ),
    case(
        "three-mappings",
        "KV-MGET-008",
        *EVERYWHERE,
        send(
            "get @@{m2}.{k} @@{q}.{k} @@{m1}.{k2}\r\n",
            "VALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE @@{q}.{k} 0 1\r\n3\r\nVALUE @@{m1}.{k2} 0 1\r\na\r\nEND\r\n",
        ),
    ),
    case(
        "gets-two-mappings",
        "KV-MGET-008",
        *EVERYWHERE,
        send(
            "gets @@{m2}.{k} @@{q}.{k}\r\n",
            "VALUE @@{m2}.{k} 0 1 <cas a>\r\n2\r\nVALUE @@{q}.{k} 0 1 <new cas b>\r\n3\r\nEND\r\n",
        ),
    ),
    case(
        "last-stays",
        "KV-MGET-009",
        *EVERYWHERE,
        send(
            "get @@{m2}.{k} @@{q}.{k}\r\n", ("VALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE @@{q}.{k} 0 1\r\n<number>\r\nEND\r\n",)
        ),
        BOUND[3],
    ),
    case(
        "unknown-later",
        "KV-MGET-010",
        *EVERYWHERE,
        send("get {k} @@no-such.{k} {k2}\r\n", "VALUE {k} 0 1\r\n1\r\nVALUE {k2} 0 1\r\na\r\nEND\r\n"),
    ),
    case(
        "unknown-first",
        "KV-MGET-011",
        *EVERYWHERE,
        send("get @@no-such.{k} {k2}\r\n", "VALUE {k2} 0 1\r\na\r\nEND\r\n"),
        BOUND[1],
    ),
    case(
        "unknown-then-mapped",
        "KV-MGET-011",
        *EVERYWHERE,
        send("get @@no-such.{k} @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1\r\n2\r\nEND\r\n"),
        BOUND[2],
    ),
    case(
        "switch-word-first",
        "KV-MGET-012",
        *EVERYWHERE,
        send("get @@{m2} {k} {k2}\r\n", TABLE_2 + "VALUE {k} 0 1\r\n2\r\nVALUE {k2} 0 1\r\nb\r\nEND\r\n"),
        BOUND[2],
    ),
    case(
        "switch-word-later",
        "KV-MGET-013",
        *EVERYWHERE,
        send("get {k} @@{m2} {k2}\r\n", ("VALUE {k} 0 1\r\n1\r\n" + TABLE_2 + "VALUE {k2} 0 1\r\nb\r\nEND\r\n",)),
        BOUND[2],
    ),
    case(
        "mapped-behind-a-miss",
        "KV-MGET-014",
        *EVERYWHERE,
        send("get {k30} @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1\r\n2\r\nEND\r\n"),
        BOUND[2],
    ),
    case(
        "two-switch-words",
        "KV-MGET-015",
        *EVERYWHERE,
        send("get @@{m2} @@{q}.\r\n", TABLE_2 + "VALUE @@{q}. 0 <number>\r\n<text>\r\nEND\r\n"),
        BOUND[3],
    ),
    case(
        "missing-mapped-key",
        "KV-MGET-016",
        *EVERYWHERE,
        send("get @@{m2}.{k3} {k}\r\n", "VALUE {k} 0 1\r\n2\r\nEND\r\n"),
        BOUND[2],
    ),
    case(
        "switch-after-a-multiget",
        "KV-MGET-021",
        *EVERYWHERE,
        send("get {k} {k2}\r\n", "VALUE {k} 0 1\r\n1\r\nVALUE {k2} 0 1\r\na\r\nEND\r\n"),
        send("get @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1\r\n2\r\nEND\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\n2\r\nEND\r\n"),
    ),
    case(
        "long-line-in-packets",
        "KV-MGET-022",
        send("set {k} 0 0 1\r\n1\r\nset {k2} 0 0 1\r\na\r\n", "STORED\r\n" * 2),
        send(
            (f"get {'{k} ' * 150}", f"{'{k} ' * 150}", "{k2}\r\n"),
            f"{'VALUE {k} 0 1' + chr(13) + chr(10) + '1' + chr(13) + chr(10)}" * 300 + "VALUE {k2} 0 1\r\na\r\nEND\r\n",
        ),
    ),
    *(
        case(
            f"get-of-{count}-keys",
            "KV-MGET-023",
            send("set {k} 0 0 1\r\nx\r\nset {k2} 0 0 1\r\ny\r\n", "STORED\r\nSTORED\r\n"),
            send(
                f"get {'{k} ' * (count - 1)}{{k2}}\r\n",
                "VALUE {k} 0 1\r\nx\r\n" * (count - 1) + "VALUE {k2} 0 1\r\ny\r\nEND\r\n",
            ),
        )
        for count in (22, 23, 24, 25, 46, 47, 48)
    ),
)

CASES = (*PLAIN, *MAPPED)
