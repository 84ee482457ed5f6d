"""The conversation itself: noreply, pipelines, packets, unfinished data, version, stats, quit, other protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, quiet, say
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send

SET = say("set {k} 0 0 1\r\nx\r\n", "STORED\r\n")
THERE = say("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n")
GONE = say("get {k}\r\n", "END\r\n")


def shows(value: str) -> Send:
    """Get {k} and want that value."""
    return say("get {k}\r\n", f"VALUE {{k}} 0 {len(value)}\r\n{value}\r\nEND\r\n")


NOREPLY = (
    case("noreply-set", "KV-CONN-001", say("set {k} 0 0 1 noreply\r\nx\r\n", ""), THERE),
    case("noreply-add", "KV-CONN-001", say("add {k} 0 0 1 noreply\r\nx\r\n", ""), THERE),
    case("noreply-replace", "KV-CONN-001", SET, say("replace {k} 0 0 1 noreply\r\ny\r\n", ""), shows("y")),
    case("noreply-append", "KV-CONN-001", SET, say("append {k} 0 0 1 noreply\r\ny\r\n", ""), shows("xy")),
    case("noreply-prepend", "KV-CONN-001", SET, say("prepend {k} 0 0 1 noreply\r\ny\r\n", ""), shows("yx")),
    case(
        "noreply-cas",
        "KV-CONN-001",
        SET,
        say("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        say("cas {k} 0 0 1 {a} noreply\r\ny\r\n", ""),
        shows("y"),
    ),
    case(
        "noreply-incr",
        "KV-CONN-002",
        say("set {k} 0 0 1\r\n5\r\n", "STORED\r\n"),
        say("incr {k} 3 noreply\r\n", ""),
        shows("8"),
    ),
    case(
        "noreply-decr",
        "KV-CONN-002",
        say("set {k} 0 0 1\r\n5\r\n", "STORED\r\n"),
        say("decr {k} 3 noreply\r\n", ""),
        shows("2"),
    ),
    case("noreply-delete", "KV-CONN-002", SET, say("delete {k} noreply\r\n", ""), GONE),
    case("noreply-delete-zero", "KV-CONN-002", SET, say("delete {k} 0 noreply\r\n", ""), GONE),
    case(
        "noreply-refusals",
        "KV-CONN-003",
        SET,
        say("add {k} 0 0 1 noreply\r\ny\r\n", ""),
        say("replace {k2} 0 0 1 noreply\r\ny\r\nappend {k2} 0 0 1 noreply\r\ny\r\n", ""),
        say("cas {k} 0 0 1 18446744073709551615 noreply\r\ny\r\ncas {k2} 0 0 1 1 noreply\r\ny\r\n", ""),
        say("delete {k2} noreply\r\n", ""),
        THERE,
        say("get {k2}\r\n", "END\r\n"),
    ),
    case("noreply-in-capitals", "KV-CONN-004", say("set {k} 0 0 1 NOREPLY\r\nx\r\n", "STORED\r\n"), THERE),
    case("noreply-longer", "KV-CONN-004", say("set {k} 0 0 1 noreply1\r\nx\r\n", "STORED\r\n"), THERE),
    case("noreply-flush", "KV-CONN-005", SET, say("flush_all noreply\r\n", "", patience=15.0), GONE),
)

PACKETS = (
    case(
        "pipeline",
        "KV-CONN-006",
        say(
            "set {k} 0 0 1\r\n1\r\nincr {k} 1\r\nget {k} {k2}\r\nappend {k} 0 0 1\r\n0\r\n"
            "delete {k2}\r\nget {k}\r\ndelete {k}\r\nget {k}\r\n",
            "STORED\r\n2\r\nVALUE {k} 0 1\r\n2\r\nEND\r\nSTORED\r\n"
            "NOT_FOUND\r\nVALUE {k} 0 2\r\n20\r\nEND\r\nDELETED\r\nEND\r\n",
        ),
    ),
    case(
        "pipeline-with-noreply",
        "KV-CONN-006",
        say("set {k} 0 0 1 noreply\r\n1\r\nincr {k} 1 noreply\r\nget {k}\r\n", "VALUE {k} 0 1\r\n2\r\nEND\r\n"),
    ),
    case(
        "pipeline-with-errors",
        "KV-CONN-007",
        SET,
        say(
            "get {k}\r\nfoo\r\nget\r\nincr {k} abc\r\nget {k}\r\n",
            "VALUE {k} 0 1\r\nx\r\nEND\r\nERROR\r\nERROR\r\nCLIENT_ERROR invalid numeric delta argument\r\n"
            "VALUE {k} 0 1\r\nx\r\nEND\r\n",
        ),
    ),
    case(
        "pipeline-of-a-thousand",
        "KV-CONN-016",
        SET,
        say("get {k}\r\n" * 1000, "VALUE {k} 0 1\r\nx\r\nEND\r\n" * 1000, patience=10.0),
    ),
    case("quit", "KV-CONN-008", SET, say("quit\r\n", "", closes=True)),
    case(
        "quit-in-a-pipeline",
        "KV-CONN-008",
        SET,
        say("get {k}\r\nquit\r\nget {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n", closes=True),
    ),
    case("split-line", "KV-CONN-009", SET, say(("ge", "t ", "{k}", "\r", "\n"), "VALUE {k} 0 1\r\nx\r\nEND\r\n")),
    case(
        "split-set",
        "KV-CONN-009",
        say(("set {k} 0", " 0 6\r", "\nab\r", "\ncd", "\r", "\n"), "STORED\r\n"),
        say("get {k}\r\n", "VALUE {k} 0 6\r\nab\r\ncd\r\nEND\r\n"),
    ),
    case("split-bytes", "KV-CONN-009", say(tuple("get kvc-nothing\r\n"), "END\r\n")),
    case(
        "unfinished-data",
        "KV-CONN-010",
        quiet("set {k} 0 0 1\r\nx"),
        say("get {k}\r\n", "END\r\n", on="b"),
        say("\r\n", "STORED\r\n"),
        THERE,
    ),
    case(
        "closed-inside-the-data",
        "KV-CONN-011",
        quiet("set {k} 0 0 5\r\nab"),
        Disconnect(),
        GONE,
    ),
    case(
        "data-over-lines",
        "KV-CONN-012",
        quiet("set {k} 0 0 8\r\nab\r\n"),
        say("get \r\n", "STORED\r\n"),
        say("get {k}\r\n", "VALUE {k} 0 8\r\nab\r\nget \r\nEND\r\n"),
    ),
)

ABOUT = (
    case("version", "KV-CONN-013", say("version\r\n", "VERSION <text>\r\n")),
    case(
        "verbosity",
        "KV-CONN-014 KV-CONN-036",
        say("verbosity 1\r\n", "OK\r\n"),
        say("verbosity 0\r\n", "OK\r\n"),
        say("verbosity\r\n", "ERROR\r\n"),
    ),
    case("verbosity-noreply", "KV-CONN-037", say("verbosity 0 noreply\r\n", "")),
    case("verbosity-noreply-alone", "KV-CONN-023", say("verbosity noreply\r\n", "ERROR\r\n")),
    case(
        "verbosity-noreply-alone-silent",
        "KV-CONN-024",
        quiet("verbosity noreply\r\n"),
        say("verbosity 1\r\n", "OK\r\n"),
    ),
    case("stats", "KV-CONN-015", say("stats\r\n", "<stats>END\r\n")),
    case(
        "version-with-a-word",
        "KV-CONN-017",
        say("version x\r\n", "ERROR\r\n"),
        say("version noreply\r\n", "ERROR\r\n"),
    ),
    case(
        "version-with-words-passed-over",
        "KV-CONN-025",
        say("version foo bar\r\n", "VERSION <text>\r\n"),
        say("version noreply\r\n", "VERSION <text>\r\n"),
    ),
    case("quit-with-a-word", "KV-CONN-026", SET, say("quit x\r\n", "ERROR\r\n"), THERE),
    *(
        case(f"quit-{name}-closes", "KV-CONN-030", SET, say(f"quit {words}\r\nget {{k}}\r\n", "", closes=True))
        for name, words in (("word", "foo"), ("words", "foo bar"), ("noreply", "noreply"))
    ),
    *(
        case(
            f"verbosity-{name}",
            requirement,
            say("verbosity invalid\r\nverbosity -1\r\nverbosity 1x\r\n", answer * 3),
            say("verbosity invalid noreply\r\n", ""),
            say("verbosity 1\r\n", "OK\r\n"),
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
        say(
            "cache_memlimit 7\r\ncache_memlimit 0\r\n", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n" * 2
        ),
        say("cache_memlimit\r\ncache_memlimit x\r\ncache_memlimit -1\r\ncache_memlimit 8 9 10\r\n", "ERROR\r\n" * 4),
        say("cache_memlimit 7 noreply\r\ncache_memlimit x noreply\r\n", ""),
    ),
    case(
        "refresh-certs",
        "KV-CONN-035",
        say("refresh_certs\r\nrefresh_certs x\r\nrefresh_certs noreply\r\n", "Error TLS not enabled\r\n" * 3),
    ),
    case(
        "no-noreply-for-other-verbs",
        "KV-CONN-019 KV-CONN-038",
        say("bind {m1} noreply\r\n", "ERROR\r\n"),
        say("foo noreply\r\n", "ERROR\r\n"),
    ),
    case(
        "noreply-as-a-key",
        "KV-CONN-020",
        say("set noreply 0 0 1\r\nx\r\n", "STORED\r\n"),
        say("get noreply\r\n", "VALUE noreply 0 1\r\nx\r\nEND\r\n"),
        say("delete noreply\r\n", "DELETED\r\n"),
    ),
    case("noreply-with-a-bad-length", "KV-CONN-021", say("set {k} 0 0 -1 noreply\r\n", ""), GONE),
)

HANDSHAKE = "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n"
HTTP = "POST / HTTP/1.1\r\nHost: 127.0.0.1:11211\r\n\r\nset {k} 0 0 1\r\ny\r\n"


def opens_with(opening: str, reply: str = "") -> Send:
    """Send the first bytes of another protocol and a set on a new connection, which must be closed after the reply."""
    return say(f"{opening}set {{k}} 0 0 1\r\ny\r\n", reply, on="b", closes=True)


FOREIGN = (
    case("http-request-closes", "KV-CONN-027", SET, say(HTTP, "", on="b", closes=True), THERE, bind=""),
    case(
        "http-request-in-a-pipeline",
        "KV-CONN-027",
        SET,
        say("get {k}\r\n" + HTTP, "VALUE {k} 0 1\r\nx\r\nEND\r\n", closes=True),
        say("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n", on="b"),
    ),
    case(
        "http-request-in-packets",
        "KV-CONN-027",
        SET,
        say(("GE", "T / HT", "TP/1.0\r", "\nset {k} 0 0 1\r\ny\r\n"), "", on="b", closes=True),
        THERE,
        bind="",
    ),
    case("http-word-alone", "KV-CONN-027", say("HTTP/1.1\r\n", "", closes=True)),
    case(
        "http-word-behind-a-verb",
        "KV-CONN-028",
        SET,
        say("get {k} HTTP/1.1\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n"),
        say("incr {k} HTTP/1.1\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
        THERE,
    ),
    case(
        "http-in-the-middle",
        "KV-CONN-028",
        SET,
        say("foo HTTP/1.1 bar\r\nfoo http/1.1\r\nfoo xHTTP/1.1\r\n", "ERROR\r\n" * 3),
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
        say("SSH-2.0-OpenSSH_9.2\r\n*3\r\nPROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "ERROR\r\n" * 3),
        THERE,
    ),
)

CASES = (*NOREPLY, *PACKETS, *ABOUT, *FOREIGN)


def test_connection(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
