"""The conversation itself: noreply, pipelines, packets, unfinished data, version, stats, quit, other protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, send, send_unanswered
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

SET = send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n")
THERE = send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n")
GONE = send("get {k}\r\n", "END\r\n")


def hit(value: str) -> Send:
    """Get {k} and want that value."""
    return send("get {k}\r\n", f"VALUE {{k}} 0 {len(value)}\r\n{value}\r\nEND\r\n")


NOREPLY = (
    case("noreply-set", "KV-CONN-001", send("set {k} 0 0 1 noreply\r\nx\r\n", ""), THERE),
    case("noreply-add", "KV-CONN-001", send("add {k} 0 0 1 noreply\r\nx\r\n", ""), THERE),
    case("noreply-replace", "KV-CONN-001", SET, send("replace {k} 0 0 1 noreply\r\ny\r\n", ""), hit("y")),
    case("noreply-append", "KV-CONN-001", SET, send("append {k} 0 0 1 noreply\r\ny\r\n", ""), hit("xy")),
    case("noreply-prepend", "KV-CONN-001", SET, send("prepend {k} 0 0 1 noreply\r\ny\r\n", ""), hit("yx")),
    case(
        "noreply-cas",
        "KV-CONN-001",
        SET,
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        send("cas {k} 0 0 1 {a} noreply\r\ny\r\n", ""),
        hit("y"),
    ),
    case(
        "noreply-incr",
        "KV-CONN-002",
        send("set {k} 0 0 1\r\n5\r\n", "STORED\r\n"),
        send("incr {k} 3 noreply\r\n", ""),
        hit("8"),
    ),
    case(
        "noreply-decr",
        "KV-CONN-002",
        send("set {k} 0 0 1\r\n5\r\n", "STORED\r\n"),
        send("decr {k} 3 noreply\r\n", ""),
        hit("2"),
    ),
    case("noreply-delete", "KV-CONN-002", SET, send("delete {k} noreply\r\n", ""), GONE),
    case("noreply-delete-zero", "KV-CONN-002", SET, send("delete {k} 0 noreply\r\n", ""), GONE),
    case(
        "noreply-refusals",
        "KV-CONN-003",
        SET,
        send("add {k} 0 0 1 noreply\r\ny\r\n", ""),
        send("replace {k2} 0 0 1 noreply\r\ny\r\nappend {k2} 0 0 1 noreply\r\ny\r\n", ""),
        send("cas {k} 0 0 1 18446744073709551615 noreply\r\ny\r\ncas {k2} 0 0 1 1 noreply\r\ny\r\n", ""),
        send("delete {k2} noreply\r\n", ""),
        THERE,
        send("get {k2}\r\n", "END\r\n"),
    ),
    case("noreply-in-capitals", "KV-CONN-004", send("set {k} 0 0 1 NOREPLY\r\nx\r\n", "STORED\r\n"), THERE),
    case("noreply-longer", "KV-CONN-004", send("set {k} 0 0 1 noreply1\r\nx\r\n", "STORED\r\n"), THERE),
    case("noreply-flush", "KV-CONN-005", SET, send("flush_all noreply\r\n", "", patience=15.0), GONE),
)

PACKETS = (
    case(
        "pipeline",
        "KV-CONN-006",
        send(
            "set {k} 0 0 1\r\n1\r\nincr {k} 1\r\nget {k} {k2}\r\nappend {k} 0 0 1\r\n0\r\n"
            "delete {k2}\r\nget {k}\r\ndelete {k}\r\nget {k}\r\n",
            "STORED\r\n2\r\nVALUE {k} 0 1\r\n2\r\nEND\r\nSTORED\r\n"
            "NOT_FOUND\r\nVALUE {k} 0 2\r\n20\r\nEND\r\nDELETED\r\nEND\r\n",
        ),
    ),
    case(
        "pipeline-with-noreply",
        "KV-CONN-006",
        send("set {k} 0 0 1 noreply\r\n1\r\nincr {k} 1 noreply\r\nget {k}\r\n", "VALUE {k} 0 1\r\n2\r\nEND\r\n"),
    ),
    case(
        "pipeline-with-errors",
        "KV-CONN-007",
        SET,
        send(
            "get {k}\r\nfoo\r\nget\r\nincr {k} abc\r\nget {k}\r\n",
            "VALUE {k} 0 1\r\nx\r\nEND\r\nERROR\r\nERROR\r\nCLIENT_ERROR invalid numeric delta argument\r\n"
            "VALUE {k} 0 1\r\nx\r\nEND\r\n",
        ),
    ),
    case(
        "pipeline-of-a-thousand",
        "KV-CONN-016",
        SET,
        send("get {k}\r\n" * 1000, "VALUE {k} 0 1\r\nx\r\nEND\r\n" * 1000, patience=10.0),
    ),
    case("quit", "KV-CONN-008", SET, send("quit\r\n", "", closes=True)),
    case(
        "quit-in-a-pipeline",
        "KV-CONN-008",
        SET,
        send("get {k}\r\nquit\r\nget {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n", closes=True),
    ),
    case("split-line", "KV-CONN-009", SET, send(("ge", "t ", "{k}", "\r", "\n"), "VALUE {k} 0 1\r\nx\r\nEND\r\n")),
    case(
        "split-set",
        "KV-CONN-009",
        send(("set {k} 0", " 0 6\r", "\nab\r", "\ncd", "\r", "\n"), "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 6\r\nab\r\ncd\r\nEND\r\n"),
    ),
    case("split-bytes", "KV-CONN-009", send(tuple("get kvc-nothing\r\n"), "END\r\n")),
    case(
        "unfinished-data",
        "KV-CONN-010",
        send_unanswered("set {k} 0 0 1\r\nx"),
        send("get {k}\r\n", "END\r\n", on="b"),
        send("\r\n", "STORED\r\n"),
        THERE,
    ),
    case(
        "closed-inside-the-data",
        "KV-CONN-011",
        send_unanswered("set {k} 0 0 5\r\nab"),
        Disconnect(),
        GONE,
    ),
    case(
        "data-over-lines",
        "KV-CONN-012",
        send_unanswered("set {k} 0 0 8\r\nab\r\n"),
        send("get \r\n", "STORED\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 8\r\nab\r\nget \r\nEND\r\n"),
    ),
)

ABOUT = (
    case("version", "KV-CONN-013", send("version\r\n", "VERSION <text>\r\n")),
    case(
        "verbosity",
        "KV-CONN-014 KV-CONN-036",
        send("verbosity 1\r\n", "OK\r\n"),
        send("verbosity 0\r\n", "OK\r\n"),
        send("verbosity\r\n", "ERROR\r\n"),
    ),
    case("verbosity-noreply", "KV-CONN-037", send("verbosity 0 noreply\r\n", "")),
    case("verbosity-noreply-alone", "KV-CONN-023", send("verbosity noreply\r\n", "ERROR\r\n")),
    case(
        "verbosity-noreply-alone-silent",
        "KV-CONN-024",
        send_unanswered("verbosity noreply\r\n"),
        send("verbosity 1\r\n", "OK\r\n"),
    ),
    case("stats", "KV-CONN-015", send("stats\r\n", "STAT <text> <text>\r\n<stats>END\r\n")),
    case(
        "version-with-a-word",
        "KV-CONN-017",
        send("version x\r\n", "ERROR\r\n"),
        send("version noreply\r\n", "ERROR\r\n"),
    ),
    case(
        "version-with-words-passed-over",
        "KV-CONN-025",
        send("version foo bar\r\n", "VERSION <text>\r\n"),
        send("version noreply\r\n", "VERSION <text>\r\n"),
    ),
    case("quit-with-a-word", "KV-CONN-026", SET, send("quit x\r\n", "ERROR\r\n"), THERE),
    *(
        case(f"quit-{name}-closes", "KV-CONN-030", SET, send(f"quit {words}\r\nget {{k}}\r\n", "", closes=True))
        for name, words in (("word", "foo"), ("words", "foo bar"), ("noreply", "noreply"))
    ),
    *(
        case(
            f"verbosity-{name}",
            requirement,
            send("verbosity invalid\r\nverbosity -1\r\nverbosity 1x\r\n", answer * 3),
            send("verbosity invalid noreply\r\n", ""),
            send("verbosity 1\r\n", "OK\r\n"),
        )
        for name, requirement, answer in (
            ("bad-level", "KV-CONN-031", "CLIENT_ERROR bad command line format\r\n"),
            ("bad-level-unknown", "KV-CONN-032", "ERROR\r\n"),
        )
    ),
    # A limit that is taken would be that of the endpoint from then on.
    case(
        "cache-memlimit",
        "KV-CONN-034 KV-CONN-039 KV-CONN-040",
        send(
            "cache_memlimit 7\r\ncache_memlimit 0\r\n", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n" * 2
        ),
        send("cache_memlimit\r\ncache_memlimit x\r\ncache_memlimit -1\r\ncache_memlimit 8 9 10\r\n", "ERROR\r\n" * 4),
        send("cache_memlimit 7 noreply\r\ncache_memlimit x noreply\r\n", ""),
    ),
    case(
        "refresh-certs",
        "KV-CONN-035",
        send("refresh_certs\r\nrefresh_certs x\r\nrefresh_certs noreply\r\n", "Error TLS not enabled\r\n" * 3),
    ),
    # Of an unknown mode, so that an endpoint that clients can stop goes on.
    case("shutdown", "KV-CONN-041", send("shutdown x\r\nshutdown noreply\r\n", "ERROR: shutdown not enabled\r\n" * 2)),
    case(
        "no-noreply-for-other-verbs",
        "KV-CONN-019 KV-CONN-038",
        send("bind {m1} noreply\r\n", "ERROR\r\n"),
        send("foo noreply\r\n", "ERROR\r\n"),
    ),
    case(
        "noreply-as-a-key",
        "KV-CONN-020",
        send("set noreply 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("get noreply\r\n", "VALUE noreply 0 1\r\nx\r\nEND\r\n"),
        send("delete noreply\r\n", "DELETED\r\n"),
    ),
    case("noreply-with-a-bad-length", "KV-CONN-021", send("set {k} 0 0 -1 noreply\r\n", ""), GONE),
)

HANDSHAKE = "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n"
HTTP = "POST / HTTP/1.1\r\nHost: 127.0.0.1:11211\r\n\r\nset {k} 0 0 1\r\ny\r\n"


def opens_with(opening: str, reply: str = "") -> Send:
    """Send the first bytes of another protocol and a set on a new connection, which must be closed after the reply."""
    return send(f"{opening}set {{k}} 0 0 1\r\ny\r\n", reply, on="b", closes=True)


FOREIGN = (
    case("http-request-closes", "KV-CONN-027", SET, send(HTTP, "", on="b", closes=True), THERE, bind=""),
    case(
        "http-request-in-a-pipeline",
        "KV-CONN-027",
        SET,
        send("get {k}\r\n" + HTTP, "VALUE {k} 0 1\r\nx\r\nEND\r\n", closes=True),
        send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n", on="b"),
    ),
    case(
        "http-request-in-packets",
        "KV-CONN-027",
        SET,
        send(("GE", "T / HT", "TP/1.0\r", "\nset {k} 0 0 1\r\ny\r\n"), "", on="b", closes=True),
        THERE,
        bind="",
    ),
    case("http-word-alone", "KV-CONN-027", send("HTTP/1.1\r\n", "", closes=True)),
    case(
        "http-word-behind-a-verb",
        "KV-CONN-028",
        SET,
        send("get {k} HTTP/1.1\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
        send("incr {k} HTTP/1.1\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
        THERE,
    ),
    case(
        "http-in-the-middle",
        "KV-CONN-028",
        SET,
        send("foo HTTP/1.1 bar\r\nfoo http/1.1\r\nfoo xHTTP/1.1\r\n", "ERROR\r\n" * 3),
        THERE,
    ),
    *(
        case(f"opening-{name}", "KV-CONN-029", SET, opens_with(opening), THERE, bind="")
        for name, opening in (
            ("ssh", "SSH-2.0-OpenSSH_9.2\r\n"),
            ("resp", "*3\r\n$3\r\nSET\r\n"),
            ("proxy", "PROXY TCP4 192.0.2.1 192.0.2.2 50000 11211\r\n"),
            ("proxy-binary", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00\r\n"),
        )
    ),
    case("opening-tls", "KV-CONN-033", SET, opens_with(HANDSHAKE, "ERROR\r\n"), THERE, bind=""),
    case(
        "openings-later",
        "KV-CONN-029",
        SET,
        send("SSH-2.0-OpenSSH_9.2\r\n*3\r\nPROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "ERROR\r\n" * 3),
        THERE,
    ),
)

CASES = (*NOREPLY, *PACKETS, *ABOUT, *FOREIGN)
