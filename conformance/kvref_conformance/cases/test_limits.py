"""What is refused and how the connection goes on: unknown verbs, malformed lines, lengths, long keys and values."""

from __future__ import annotations

from kvref_conformance.case import case, send, send_unanswered

BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"
# Where the data block of the refused line runs as a command, its ERROR follows; KV-PARSE-012 judges that alone.
REFUSED = (BAD_FORMAT, BAD_FORMAT + "ERROR\r\n")
ERROR = ("ERROR\r\n", "ERROR\r\nERROR\r\n")
TOO_LARGE = "SERVER_ERROR object too large for cache\r\n"
TOO_WIDE = "SERVER_ERROR object too large for cache<text>\r\n"  # KV-LIMIT-015 judges the text alone
SET = send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n")
FOUND = "VALUE {k} 0 1\r\nx\r\nEND\r\n"
THERE = send("get {k}\r\n", FOUND)
GONE = send("get {k}\r\n", "END\r\n")

LINES = (
    case(
        "unknown-verb",
        "KV-PARSE-001",
        SET,
        send("foo {k}\r\n", "ERROR\r\n"),
        send("help\r\nsync {k}\r\n", "ERROR\r\nERROR\r\n"),
        THERE,
    ),
    case(
        "verbs-in-capitals",
        "KV-PARSE-002",
        SET,
        send("GET {k}\r\n", "ERROR\r\n"),
        send("Get {k}\r\nDELETE {k}\r\n", "ERROR\r\nERROR\r\n"),
        THERE,
    ),
    case("empty-lines", "KV-PARSE-003", send("\r\n\r\n", "ERROR\r\nERROR\r\n"), SET, THERE),
    case(
        "few-words",
        "KV-PARSE-004",
        send("set {k} 0 0\r\n", "ERROR\r\n"),
        send("set {k}\r\nset\r\n", "ERROR\r\nERROR\r\n"),
        send("get {k}\r\n", "END\r\n"),
    ),
    case("many-words", "KV-PARSE-005", SET, send("set {k} 0 0 1 a b\r\ny\r\n", (*ERROR, *REFUSED)), THERE),
    case("cas-without-number", "KV-PARSE-004", SET, send("cas {k} 0 0 1\r\ny\r\n", ERROR), THERE),
    *(
        case(f"flags-{name}", "KV-PARSE-006", SET, send(f"set {{k}} {flags} 0 1\r\ny\r\n", REFUSED), THERE)
        for name, flags in (("negative", "-1"), ("text", "abc"), ("tail", "1x"), ("hex", "0x1f"), ("fraction", "1.5"))
    ),
    *(
        case(f"expiry-{name}", "KV-PARSE-007", SET, send(f"set {{k}} 0 {expiry} 1\r\ny\r\n", REFUSED), THERE)
        for name, expiry in (("text", "abc"), ("tail", "1x"), ("fraction", "1.5"))
    ),
    *(
        case(f"length-{name}", "KV-PARSE-008", SET, send(f"set {{k}} 0 0 {length}\r\ny\r\n", REFUSED), THERE)
        for name, length in (("negative", "-1"), ("text", "abc"), ("tail", "1x"), ("hex", "0x1"))
    ),
    *(
        case(f"{verb}-length-{length}", "KV-PARSE-027", SET, send(f"{line}\r\nget {{k}}\r\n", BAD_FORMAT + FOUND))
        for length in (2147483646, 2147483647)
        for verb, line in (
            ("set", f"set {{k}} 0 0 {length}"),
            ("append", f"append {{k}} 0 0 {length}"),
            ("cas", f"cas {{k}} 0 0 {length} 1"),
        )
    ),
    *(
        case(f"ms-length-{length}", "KV-MS-033", SET, send(f"ms {{k}} {length}\r\nget {{k}}\r\n", BAD_FORMAT + FOUND))
        for length in (2147483646, 2147483647)
    ),
    case(
        "noreply-length-2147483646",
        "KV-PARSE-027",
        SET,
        send("set {k} 0 0 2147483646 noreply\r\nget {k}\r\n", FOUND),
    ),
    case("length-2-31", "KV-PARSE-009", SET, send("set {k} 0 0 2147483648\r\n", (BAD_FORMAT, TOO_LARGE)), THERE),
    case("length-2-32", "KV-PARSE-010", SET, send("set {k} 0 0 4294967296\r\n\r\n", (*REFUSED, TOO_LARGE)), THERE),
    *(
        case(f"length-{name}", "KV-PARSE-032", SET, send(f"set {{k}} 0 0 {length}\r\n", BAD_FORMAT), THERE)
        for name, length in (
            ("2-31-refused", 2147483648),
            ("2-31-and-1", 2147483649),
            ("2-32-refused", 4294967296),
            ("2-32-and-1", 4294967297),
            ("below-2-31", -2147483649),
            ("2-64", 18446744073709551616),
        )
    ),
    *(
        case(f"words-of-{line.split()[0]}-{len(line.split())}", "KV-PARSE-033", SET, send(f"{line}\r\n", ERROR), THERE)
        for line in (
            "set {k} 0 noreply",
            "cas {k} 0 0 noreply",
            "incr noreply",
            "incr {k} 1 2 noreply",
            "decr {k} 1 noreply 2",
            "delete {k} 0 0 noreply",
            "verbosity 1 2 noreply",
            "flush_all 0 1 noreply",
        )
    ),
    case("words-behind-set", "KV-PARSE-033", SET, send("set {k} 0 0 1 a b\r\ny\r\n", ERROR), THERE),
    case("flags-modulo", "KV-PARSE-006", SET, send("set {k} -18446744073709551616 0 1\r\ny\r\n", REFUSED), THERE),
    case(
        "cas-number-modulo",
        "KV-PARSE-013",
        SET,
        send("cas {k} 0 0 1 -9223372036854775808\r\ny\r\n", REFUSED),
        send("cas {k} 0 0 1 -9223372036854775809\r\ny\r\n", "EXISTS\r\n"),
        send("cas {k2} 0 0 1 -18446744073709551615\r\ny\r\n", "NOT_FOUND\r\n"),
        THERE,
    ),
    *(
        case(f"cas-number-{name}", "KV-PARSE-013", SET, send(f"cas {{k}} 0 0 1 {number}\r\ny\r\n", REFUSED), THERE)
        for name, number in (("text", "abc"), ("negative", "-1"), ("beyond-64-bits", "18446744073709551616"))
    ),
    *(
        case(f"refused-data-{name}", "KV-PARSE-012", SET, send(f"set {{k}} {words}\r\nversio\r\n", BAD_FORMAT), THERE)
        for name, words in (("flags", "abc 0 6"), ("expiry", "0 abc 6"))
    ),
    case("refused-data-key", "KV-PARSE-012", SET, send("set {k2:251} 0 0 6\r\nversio\r\n", BAD_FORMAT), THERE),
    case("long-line", "KV-PARSE-015", SET, send("y" * 3000 + "\r\n", "ERROR\r\n"), THERE),
    case(
        "blanks",
        "KV-PARSE-016 KV-PARSE-031",
        send("  set   {k}  0 0   1  \r\nx\r\n", "STORED\r\n"),
        send("  get   {k}  \r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case("bare-line-feed", "KV-PARSE-017", SET, send("get {k}\nget {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n" * 2)),
    case("tab", "KV-PARSE-018", SET, send("get\t{k}\r\n", "ERROR\r\n"), send("get {k}\tb\r\n", "END\r\n"), THERE),
    case("nul-in-get", "KV-PARSE-014", SET, send("get {k}\0b\r\n", "CLIENT_ERROR <text>\r\n"), THERE),
    case("nul-in-delete", "KV-PARSE-014", SET, send("delete {k}\0b\r\n", "CLIENT_ERROR <text>\r\n"), THERE),
    case(
        "carriage-return-in-a-line",
        "KV-PARSE-022",
        send_unanswered("get {k}\r"),
        send("\n", "END\r\n"),
        send("set {k}\rx 0 0 1\r\ny\r\n", "STORED\r\n"),
        send("get {k}\rx\r\n", "VALUE {k}\rx 0 1\r\ny\r\nEND\r\n"),
        send("get {k}\r\n", "END\r\n"),
    ),
    case("long-line-without-end", "KV-PARSE-023", send("y" * 1500, "", closes=True)),
    case(
        "long-get-without-end",
        "KV-PARSE-030",
        SET,
        send_unanswered(f"get {'{k2} ' * 300}"),
        send("{k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
    ),
    case(
        "binary-request-in-a-text-connection",
        "KV-PARSE-024",
        SET,
        send("\x80\0\0\0\r\n", ("ERROR\r\n", "CLIENT_ERROR <text>\r\n")),
        THERE,
    ),
    case("http-request", "KV-PARSE-025", SET, send("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "ERROR\r\n" * 3), THERE),
    case(
        "http-request-executed",
        "KV-PARSE-025",
        send("POST / HTTP/1.1\r\n\r\nset {k} 0 0 1\r\nx\r\n", "ERROR\r\nERROR\r\nSTORED\r\n"),
        THERE,
    ),
    case(
        "two-hundred-sets-in-a-packet",
        "KV-PARSE-026",
        send("".join(f"set {{k}} 0 0 {len(str(n))}\r\n{n}\r\n" for n in range(200)), "STORED\r\n" * 200),
        send("get {k}\r\n", "VALUE {k} 0 3\r\n199\r\nEND\r\n"),
    ),
)

DATA = (
    case(
        "data-too-long",
        "KV-PARSE-011",
        SET,
        send("set {k} 0 0 2\r\nabcd\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
        THERE,
    ),
    case(
        "data-too-long-new-key",
        "KV-PARSE-011",
        send("set {k} 0 0 1\r\nabc\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
        send("get {k}\r\n", "END\r\n"),
    ),
    case(
        "value-as-wide-as-the-column",
        "KV-LIMIT-005",
        send("set {k} 0 0 1024\r\n{v~1024}\r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 1024\r\n{v~1024}\r\nEND\r\n"),
    ),
    case("value-wider-than-the-column", "KV-LIMIT-003", SET, send("set {k} 0 0 1025\r\n{v~1025}\r\n", TOO_WIDE), GONE),
    case(
        "reply-to-a-value-wider-than-the-column",
        "KV-LIMIT-015",
        send(
            "set {k} 0 0 1025\r\n{v~1025}\r\n",
            "SERVER_ERROR object too large for cache: column c2 takes 1024 characters\r\n",
        ),
    ),
    *(
        case(
            f"value-wider-than-the-column-{verb}",
            "KV-LIMIT-014",
            SET,
            send(f"{verb} {{k}} 0 0 1025\r\n{{v~1025}}\r\n", TOO_WIDE if verb != "add" else "NOT_STORED\r\n"),
            THERE,
        )
        for verb in ("add", "replace", "append", "prepend")
    ),
    case(
        "value-wider-than-the-column-noreply",
        "KV-LIMIT-014",
        SET,
        send("set {k} 0 0 1025 noreply\r\n{v~1025}\r\nset {k2} 0 0 1025 noreply\r\n{v~1025}\r\n", ""),
        GONE,
    ),
    case(
        "value-no-text-of-the-column",
        "KV-LIMIT-014",
        SET,
        send("set {k} 0 0 2\r\n\xff\xfe\r\n", "SERVER_ERROR <text>\r\n"),
        GONE,
    ),
    case(
        "append-beyond-the-column",
        "KV-LIMIT-004",
        send("set {k} 0 0 1023\r\n{v~1023}\r\n", "STORED\r\n"),
        send("append {k} 0 0 2\r\n12\r\n", TOO_WIDE),
        send("get {k}\r\n", "VALUE {k} 0 1023\r\n{v~1023}\r\nEND\r\n"),
    ),
    case(
        "value-of-two-megabytes",
        "KV-LIMIT-006",
        send("set {k} 0 0 2097152\r\n{v~2097152}\r\n", TOO_LARGE, patience=15.0),
        send("get {k}\r\n", "END\r\n"),
        SET,
        THERE,
    ),
    case(
        "value-of-two-megabytes-over-a-row",
        "KV-LIMIT-013",
        SET,
        send("set {k} 0 0 2097152\r\n{v~2097152}\r\n", TOO_LARGE, patience=15.0),
        GONE,
    ),
    case(
        "ms-of-two-megabytes-over-a-row",
        "KV-MS-034",
        SET,
        send("ms {k} 2097152\r\n{v~2097152}\r\n", TOO_LARGE, patience=15.0),
        GONE,
    ),
    case(
        "noreply-of-two-megabytes",
        "KV-PARSE-029",
        send(
            "set {k} 0 0 2097152 noreply\r\nset {k2:32} 0 0 1\r\nx\r\n{v~2097105}\r\nget {k2:32}\r\n",
            "END\r\n",
            patience=15.0,
        ),
    ),
    *(
        case(
            f"{verb}-of-two-megabytes",
            "KV-LIMIT-013",
            SET,
            send(f"{verb} {{k}} 0 0 2097152\r\n{{v~2097152}}\r\n", TOO_LARGE, patience=15.0),
            THERE,
        )
        for verb in ("add", "replace", "append")
    ),
)

KEYS = (
    case(
        "key-of-250-bytes",
        "KV-LIMIT-001",
        send("get {k:250}\r\n", "END\r\n"),
        send("delete {k:250}\r\n", "NOT_FOUND\r\n"),
    ),
    *(
        case(f"key-of-251-bytes-{verb}", "KV-LIMIT-002", SET, send(f"{verb} {{k2:251}}{rest}\r\n", REFUSED), THERE)
        for verb, rest in (("get", ""), ("gets", ""), ("set", " 0 0 1\r\ny"), ("delete", ""), ("incr", " 1"))
    ),
    case("key-of-1000-bytes", "KV-LIMIT-002", SET, send("get {k2:1000}\r\n", BAD_FORMAT), THERE),
    *(
        case(
            f"key-wider-than-the-column-{verb}",
            "KV-LIMIT-007",
            send("set {k:32} 0 0 1\r\nx\r\n", "STORED\r\n"),
            send(f"{verb} {{k:33}} 0 0 1\r\ny\r\n", "CLIENT_ERROR key too long for column c1 (32)\r\n"),
            send("get {k:32}\r\n", "VALUE {k:32} 0 1\r\nx\r\nEND\r\n"),
        )
        for verb in ("set", "append")
    ),
    *(
        case(
            f"key-wider-than-the-column-{verb}",
            "KV-LIMIT-008",
            send("set {k:32} 0 0 1\r\n5\r\n", "STORED\r\n"),
            send(f"{verb} {{k:33}}{rest}\r\n", answer),
            send("get {k:32}\r\n", "VALUE {k:32} 0 1\r\n5\r\nEND\r\n"),
        )
        for verb, rest, answer in (
            ("get", "", "END\r\n"),
            ("delete", "", "NOT_FOUND\r\n"),
            ("incr", " 1", "NOT_FOUND\r\n"),
        )
    ),
    case(
        "long-key-among-others",
        "KV-LIMIT-011",
        SET,
        send("set {k2} 0 0 1\r\ny\r\n", "STORED\r\n"),
        send(
            "get {k} {k3:40} {k2}\r\n",
            "VALUE {k} 0 1\r\nx\r\nVALUE {k2} 0 1\r\ny\r\nEND\r\n",
        ),
    ),
)

CASES = (*LINES, *DATA, *KEYS)
