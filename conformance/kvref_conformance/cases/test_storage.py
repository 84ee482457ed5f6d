"""Storage verbs: set, add, replace, append, prepend, cas; flags, bytes and expiry of what they store."""

from __future__ import annotations

from kvref_conformance.case import case, send

SET_ONE = send("set {k} 3 0 3\r\none\r\n", "STORED\r\n")
GET_ONE = send("get {k}\r\n", "VALUE {k} 3 3\r\none\r\nEND\r\n")
MISSING = send("get {k}\r\n", "END\r\n")
# In the past for every endpoint: an absolute time that is beyond the longest relative one.
LONG_AGO = "1000000000"

VERBS = (
    case("set-new", "KV-CORE-001", SET_ONE, GET_ONE),
    case(
        "set-again",
        "KV-CORE-001",
        SET_ONE,
        send("set {k} 4 0 5\r\nagain\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 4 5\r\nagain\r\nEND\r\n"),
    ),
    case("add-new", "KV-CORE-002", send("add {k} 3 0 3\r\none\r\n", "STORED\r\n"), GET_ONE),
    case("add-existing", "KV-CORE-003", SET_ONE, send("add {k} 4 0 3\r\ntwo\r\n", "NOT_STORED\r\n"), GET_ONE),
    case(
        "replace-existing",
        "KV-CORE-004",
        SET_ONE,
        send("replace {k} 4 0 3\r\ntwo\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 4 3\r\ntwo\r\nEND\r\n"),
    ),
    case("replace-missing", "KV-CORE-005", send("replace {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"), MISSING),
    case(
        "append-existing",
        "KV-CORE-006",
        send("set {k} 0 0 2\r\nab\r\n", "STORED\r\n"),
        send("append {k} 0 0 2\r\ncd\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 4\r\nabcd\r\nEND\r\n"),
    ),
    case(
        "prepend-existing",
        "KV-CORE-007",
        send("set {k} 0 0 2\r\ncd\r\n", "STORED\r\n"),
        send("prepend {k} 0 0 2\r\nab\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 4\r\nabcd\r\nEND\r\n"),
    ),
    case("append-missing", "KV-CORE-008", send("append {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"), MISSING),
    case("prepend-missing", "KV-CORE-008", send("prepend {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"), MISSING),
    case(
        "append-keeps-flags",
        "KV-CORE-009",
        SET_ONE,
        send("append {k} 7 0 1\r\n!\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 3 4\r\none!\r\nEND\r\n"),
    ),
    case(
        "prepend-keeps-flags",
        "KV-CORE-009",
        SET_ONE,
        send("prepend {k} 7 0 1\r\n!\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 3 4\r\n!one\r\nEND\r\n"),
    ),
    case(
        "words-behind-the-length",
        "KV-CORE-023",
        send("set {k} 3 0 3 foo\r\none\r\n", "STORED\r\n"),
        GET_ONE,
    ),
    case(
        "plus-and-zeros",
        "KV-CORE-022",
        send("set {k} +5 0 +1\r\nx\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 5 1\r\nx\r\nEND\r\n"),
        send("set {k} 007 0 01\r\ny\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 7 1\r\ny\r\nEND\r\n"),
    ),
)

CAS = (
    case(
        "cas-right-number",
        "KV-CORE-010",
        SET_ONE,
        send("gets {k}\r\n", "VALUE {k} 3 3 <cas a>\r\none\r\nEND\r\n"),
        send("cas {k} 4 0 3 {a}\r\ntwo\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 4 3\r\ntwo\r\nEND\r\n"),
    ),
    case(
        "cas-old-number",
        "KV-CORE-011",
        send("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\n1\r\nEND\r\n"),
        SET_ONE,
        send("cas {k} 0 0 1 {a}\r\nx\r\n", "EXISTS\r\n"),
        GET_ONE,
    ),
    case("cas-missing", "KV-CORE-012", send("cas {k} 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"), MISSING),
    case(
        "cas-largest-number",
        "KV-CORE-015",
        SET_ONE,
        send("cas {k} 0 0 1 18446744073709551615\r\nx\r\n", "EXISTS\r\n"),
        GET_ONE,
    ),
    case("cas-zero", "KV-CORE-015", SET_ONE, send("cas {k} 0 0 1 0\r\nx\r\n", "EXISTS\r\n"), GET_ONE),
    *(
        case(
            f"number-after-{verb}",
            "KV-CORE-013",
            send("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
            send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\n1\r\nEND\r\n"),
            send(f"{verb} {{k}} 0 0 1{' {a}' if verb == 'cas' else ''}\r\n2\r\n", "STORED\r\n"),
            send(
                "gets {k}\r\n",
                ("VALUE {k} 0 1 <new cas b>\r\n2\r\nEND\r\n", "VALUE {k} 0 2 <new cas b>\r\n<number>\r\nEND\r\n"),
            ),
            send("cas {k} 0 0 1 {a}\r\nx\r\n", "EXISTS\r\n"),
        )
        for verb in ("set", "replace", "append", "prepend", "cas")
    ),
    case(
        "number-after-delete-and-add",
        "KV-CORE-013",
        send("set {k} 0 0 1\r\n1\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\n1\r\nEND\r\n"),
        send("delete {k}\r\n", "DELETED\r\n"),
        send("add {k} 0 0 1\r\n2\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <new cas b>\r\n2\r\nEND\r\n"),
    ),
    case(
        "number-after-reading",
        "KV-CORE-014",
        SET_ONE,
        send("gets {k}\r\n", "VALUE {k} 3 3 <cas a>\r\none\r\nEND\r\n"),
        GET_ONE,
        send("gets {k}\r\n", "VALUE {k} 3 3 {a}\r\none\r\nEND\r\n"),
    ),
)

BYTES = (
    case(
        "value-empty",
        "KV-CORE-016",
        send("set {k} 0 0 0\r\n\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 0\r\n\r\nEND\r\n"),
    ),
    case(
        "value-line-ends",
        "KV-CORE-017",
        send("set {k} 0 0 6\r\na\r\nb\r\n\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 6\r\na\r\nb\r\n\r\nEND\r\n"),
    ),
    case(
        "value-like-a-reply",
        "KV-CORE-017",
        send("set {k} 0 0 21\r\nEND\r\nVALUE x 0 1\r\ny\r\n\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 21\r\nEND\r\nVALUE x 0 1\r\ny\r\n\r\nEND\r\n"),
    ),
    *(
        case(
            f"flags-{flags}",
            "KV-CORE-018",
            send(f"set {{k}} {flags} 0 1\r\nx\r\n", "STORED\r\n"),
            send("get {k}\r\n", f"VALUE {{k}} {flags} 1\r\nx\r\nEND\r\n"),
        )
        for flags in (0, 255, 65536, 2147483647, 2147483648, 4294967295)
    ),
    case(
        "flags-beyond-32-bits",
        "KV-CORE-019",
        send("set {k} 4294967299 0 1\r\nx\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 3 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "flags-beyond-32-bits-refused",
        "KV-CORE-068",
        *(
            step
            for flags in (4294967296, 4294967299, -18446744069414584320)
            for step in (send(f"set {{k}} {flags} 0 1\r\nx\r\n", "CLIENT_ERROR bad command line format\r\n"), MISSING)
        ),
    ),
    case(
        "value-utf8",
        "KV-CORE-020",
        send("set {k} 0 0 7\r\n\xc3\xa9\xe2\x82\xacab\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 7\r\n\xc3\xa9\xe2\x82\xacab\r\nEND\r\n"),
    ),
    case(
        "value-no-text",
        "KV-CORE-021",
        send("set {k} 0 0 4\r\nab\xff\xfe\r\n", ("STORED\r\n", "SERVER_ERROR <text>\r\n")),
        send("get {k}\r\n", ("VALUE {k} 0 4\r\nab\xff\xfe\r\nEND\r\n", "END\r\n")),
    ),
    case(
        "value-no-text-refused",
        "KV-CORE-069",
        send("set {k} 0 0 4\r\nab\xff\xfe\r\n", "SERVER_ERROR <text>\r\n"),
        MISSING,
    ),
    case(
        "value-no-text-kept",
        "KV-CORE-070",
        send("set {k} 0 0 4\r\nab\xff\xfe\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 4\r\nab\xff\xfe\r\nEND\r\n"),
    ),
)

EXPIRY = (
    case("expiry-relative", "KV-CORE-024", send("set {k} 3 1000 3\r\none\r\n", "STORED\r\n"), GET_ONE),
    case("expiry-absolute", "KV-CORE-024", send("set {k} 3 2000000000 3\r\none\r\n", "STORED\r\n"), GET_ONE),
    case("expiry-past", "KV-CORE-025", send(f"set {{k}} 3 {LONG_AGO} 3\r\none\r\n", "STORED\r\n"), MISSING),
    case(
        "expiry-past-over-a-value",
        "KV-CORE-025",
        SET_ONE,
        GET_ONE,
        send(f"set {{k}} 3 {LONG_AGO} 3\r\ntwo\r\n", "STORED\r\n"),
        MISSING,
    ),
    case("expiry-thirty-days", "KV-CORE-026", send("set {k} 3 2592000 3\r\none\r\n", "STORED\r\n"), GET_ONE),
    case("expiry-beyond-thirty-days", "KV-CORE-025", send("set {k} 3 2592001 3\r\none\r\n", "STORED\r\n"), MISSING),
    case("expiry-negative", "KV-CORE-027", send("set {k} 3 -1 3\r\none\r\n", "STORED\r\n"), MISSING),
    case(
        "expired-add",
        "KV-CORE-028",
        send(f"set {{k}} 3 {LONG_AGO} 3\r\nold\r\n", "STORED\r\n"),
        send("add {k} 3 0 3\r\none\r\n", "STORED\r\n"),
        GET_ONE,
    ),
    *(
        case(
            f"expired-{verb}",
            "KV-CORE-028",
            send(f"set {{k}} 3 {LONG_AGO} 1\r\n5\r\n", "STORED\r\n"),
            send(f"{verb} {words}\r\n", answer),
            MISSING,
        )
        for verb, words, answer in (
            ("replace", "{k} 0 0 1\r\nx", "NOT_STORED\r\n"),
            ("append", "{k} 0 0 1\r\nx", "NOT_STORED\r\n"),
            ("incr", "{k} 1", "NOT_FOUND\r\n"),
            ("delete", "{k}", "NOT_FOUND\r\n"),
        )
    ),
    *(
        case(
            f"key-{name}",
            "KV-CORE-031",
            send(f"set {word} 0 0 1\r\nx\r\n", "STORED\r\n"),
            send(f"get {word}\r\n", f"VALUE {word} 0 1\r\nx\r\nEND\r\n"),
            send(f"delete {word}\r\n", "DELETED\r\n"),
        )
        for name, word in (("like-a-table-of-sdi", "sdi_{k}"), ("like-the-end", "END{k}"), ("like-a-verb", "get{k}"))
    ),
)

CASES = (*VERBS, *CAS, *BYTES, *EXPIRY)
