"""get and gets of one key: what they answer, which keys they find."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit

CASES = (
    case(
        "get-existing",
        "KV-CORE-040",
        send("set {k} 9 0 12\r\nHELLO, HELLO\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 9 12\r\nHELLO, HELLO\r\nEND\r\n"),
    ),
    case("get-missing", "KV-CORE-041", send("get {k}\r\n", "END\r\n"), send("gets {k}\r\n", "END\r\n")),
    case(
        "gets-existing",
        "KV-CORE-042",
        send("set {k} 9 0 1\r\nx\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 9 1 <cas>\r\nx\r\nEND\r\n"),
    ),
    case(
        "gets-several",
        "KV-CORE-043",
        send("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
        send("set {k2} 0 0 1\r\n2\r\n", "STORED\r\n"),
        send("gets {k} {k2} {k3}\r\n", "VALUE {k} 0 1 <cas a>\r\n1\r\nVALUE {k2} 0 1 <new cas b>\r\n2\r\nEND\r\n"),
        send("cas {k2} 0 0 1 {a}\r\nx\r\n", "EXISTS\r\n"),
        send("cas {k2} 0 0 1 {b}\r\ny\r\n", "STORED\r\n"),
    ),
    case(
        "get-without-key",
        "KV-CORE-044",
        send("get\r\n", "ERROR\r\n"),
        send("get \r\n", "ERROR\r\n"),
    ),
    case("gets-without-key", "KV-CORE-044", send("gets\r\n", "ERROR\r\n")),
    *(
        case(
            f"key-bytes-{name}",
            "KV-CORE-045",
            send(f"set {{k}}{mark} 0 0 1\r\nx\r\n", "STORED\r\n"),
            send(f"get {{k}}{mark}\r\n", f"VALUE {{k}}{mark} 0 1\r\nx\r\nEND\r\n"),
            send(f"delete {{k}}{mark}\r\n", "DELETED\r\n"),
        )
        for name, mark in (("punctuation", ",'\"%\\/;|_"), ("at", "@@m.x"), ("format", "%s%n"), ("delimiter", ".a.b"))
    ),
    case(
        "key-as-long-as-the-column",
        "KV-CORE-046",
        send("set {k:32} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("get {k:32}\r\n", "VALUE {k:32} 0 1\r\nx\r\nEND\r\n"),
        send("get {k:31}\r\n", "END\r\n"),
        send("delete {k:32}\r\n", "DELETED\r\n"),
    ),
    case(
        "key-in-another-letter-case",
        "KV-CORE-047",
        send("set {k}ab 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("get {k}AB\r\n", "VALUE {k}AB 0 1\r\nx\r\nEND\r\n"),
        send("add {k}aB 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
        send("delete {k}Ab\r\n", "DELETED\r\n"),
        send("get {k}ab\r\n", "END\r\n"),
    ),
    case(
        "get-noreply",
        "KV-CORE-048",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("get {k} noreply\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "get-on-another-connection",
        "KV-CORE-049",
        send("get {k}\r\n", "END\r\n", on="b"),
        send("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n", on="b"),
        send("set {k} 0 0 1\r\n2\r\n", "STORED\r\n", on="b"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\n2\r\nEND\r\n"),
        send("delete {k}\r\n", "DELETED\r\n", on="b"),
        send("get {k}\r\n", "END\r\n"),
    ),
    case(
        "key-among-thousands",
        "KV-CORE-051",
        *(
            sql(
                "INSERT INTO {t} VALUES "  # noqa: S608 - a template
                + ", ".join(f"('key{number}', 'v{number}', 0, 0, 0)" for number in range(start, start + 1000))
            )
            for start in range(0, 10000, 1000)
        ),
        *(hit(f"key{number}", f"v{number}") for number in (0, 1, 999, 5000, 9999)),
        send("get key10000\r\n", "END\r\n"),
        shape=Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"),
    ),
)
