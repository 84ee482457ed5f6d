"""The text parser: every conversation whole, byte by byte, and with something behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref import profiles
from kvref.protocol import commands as c
from kvref.protocol.grammar import NO_EXPTIME, NO_SHUTDOWN, NO_TLS, SMALL_LIMIT
from kvref.protocol.replies import ClientError, Item, Items, Number, Release, ServerError, StatRows, Status
from kvref.protocol.rules import WireRules, wire_rules
from kvref.protocol.text import LONG_LINE, TextParser, encode

LIMIT = 1 << 20
RULES = {name: wire_rules(profiles.load(name), LIMIT) for name in ("kvref", "mysql-8.0", "mysql-5.6")}
BAD = b"CLIENT_ERROR bad command line format"
TOO_LARGE = b"SERVER_ERROR object too large for cache"


def whole(data: bytes) -> list[bytes]:
    return [data]


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def parse(rules: WireRules, pieces: list[bytes]) -> list[c.Command]:
    parser = TextParser(rules)
    commands = []
    for piece in pieces:
        parser.feed(piece)
        while (command := parser.next_command()) is not None:
            commands.append(command)
    return commands


def stored(verb: str, data: bytes, **changes: object) -> c.Store:
    return c.Store(verb, **({"word": b"k", "flags": 0, "exptime": 0, "data": data} | changes))  # type: ignore[arg-type]


def too_large(*, noreply: bool = False, removes: bytes = b"") -> c.Refused:
    return c.Refused(TOO_LARGE, noreply, removes, too_large=True)


def refused(*lines: bytes) -> list[c.Command]:
    return [c.Refused(line) for line in lines]


EVERYWHERE: list[tuple[bytes, list[c.Command]]] = [
    (b"get a\r\n", [c.Get([b"a"], with_cas=False)]),
    (b"gets a b a\n", [c.Get([b"a", b"b", b"a"], with_cas=True)]),
    (b"  bget   a  \r\n", [c.Get([b"a"], with_cas=False)]),
    (b"get a\r\r\n", [c.Get([b"a\r"], with_cas=False)]),
    (b"get a " + b"x" * 251 + b" b\r\n", [c.Get([b"a"], with_cas=False, refused=True)]),
    (b"set k 5 0 3\r\nabc\r\n", [stored("set", b"abc", flags=5)]),
    (b"set k 0 0 4\r\n\r\n\r\n\r\n", [stored("set", b"\r\n\r\n")]),
    (b"set k 0 0 0\r\n\r\n", [stored("set", b"")]),
    (b"add k +7 007 1 noreply\r\nx\r\n", [stored("add", b"x", flags=7, exptime=7, noreply=True)]),
    (b"append k 0 0 1 NOREPLY\r\nx\r\n", [stored("append", b"x")]),
    (b"cas k 0 0 1 18446744073709551615\r\nx\r\n", [stored("cas", b"x", cas=2**64 - 1)]),
    (b"incr k 18446744073709551615\r\n", [c.Arithmetic(increment=True, word=b"k", delta=2**64 - 1)]),
    (b"decr k 1 2\r\n", [c.Arithmetic(increment=False, word=b"k", delta=1)]),
    (b"decr k 1 noreply\r\n", [c.Arithmetic(increment=False, word=b"k", delta=1, noreply=True)]),
    (b"incr k -1\r\n", refused(b"CLIENT_ERROR invalid numeric delta argument")),
    (b"delete k\r\n", [c.Delete(b"k")]),
    (b"delete k 0 noreply\r\n", [c.Delete(b"k", noreply=True)]),
    (b"delete k 10\r\n", refused(BAD + b".  Usage: delete <key> [noreply]")),
    (b"delete k 10 noreply\r\n", [c.Refused(BAD + b".  Usage: delete <key> [noreply]", noreply=True)]),
    (b"flush_all\r\n", [c.FlushAll()]),
    (b"flush_all 0 noreply\r\n", [c.FlushAll(noreply=True)]),
    (b"bind m\r\n", [c.Bind(b"m")]),
    (b"bind m noreply\r\n", refused(b"ERROR")),
    (b"bind " + b"m" * 251 + b"\r\n", refused(BAD)),
    (b"stats detail on\r\n", [c.Stats([b"detail", b"on"])]),
    (b"version\r\n", [c.Version()]),
    (b"verbosity 1\r\n", [c.Verbosity(1)]),
    (b"verbosity 2 noreply\r\n", [c.Verbosity(2, noreply=True)]),
    (b"verbosity 1 2\r\nverbosity 1 2 3\r\nverbosity x y noreply\r\n", [c.Verbosity(1), *refused(b"ERROR", b"ERROR")]),
    (b"quit\r\n", [c.Quit()]),
    (b"\r\n \n", refused(b"ERROR", b"ERROR")),
    (b"GET a\r\ntouch a\r\nget\r\n", refused(b"ERROR", b"ERROR", b"ERROR")),
    (b"set k 0 0\r\nx\r\n", refused(b"ERROR", b"ERROR")),
    # The length is invalid: the end of the data is unknown.
    (b"set k 0 0 1x\r\n", refused(BAD)),
    (b"set k 0 0 -1\r\n", refused(BAD)),
]

BY_PROFILE: list[tuple[str, bytes, list[c.Command]]] = [
    ("kvref", b"set " + b"x" * 251 + b" 0 0 3\r\nget\r\n", refused(BAD)),
    ("mysql-8.0", b"set " + b"x" * 251 + b" 0 0 3\r\nget\r\n", refused(BAD, b"ERROR")),
    ("kvref", b"set k 0 -1 1\r\nx\r\n", [stored("set", b"x", exptime=-1)]),
    (
        "mysql-8.0",
        b"set k 0 -1 3 noreply\r\nget\r\n",
        [c.Refused(b"CLIENT_ERROR Invalid expire time", noreply=True), c.Refused(b"ERROR")],
    ),
    ("mysql-8.0", b"set k 0 -1 1\r\nx\r\n", refused(b"CLIENT_ERROR Invalid expire time", b"ERROR")),
    ("mysql-5.6", b"set k 0 -1 1\r\nx\r\n", [stored("set", b"x", exptime=-1)]),
    ("mysql-8.0", b"set k 0 2147483648 1\r\nx\r\n", refused(BAD, b"ERROR")),
    ("mysql-5.6", b"set k 0 4294967301 1\r\nx\r\n", [stored("set", b"x", exptime=5)]),
    ("mysql-8.0", b"set k 0 -4294967291 1\r\nx\r\n", [stored("set", b"x", exptime=5)]),
    ("mysql-8.0", b"set k 0 0 -4294967295\r\nx\r\n", [stored("set", b"x")]),
    ("kvref", b"set k 0 0 -4294967295\r\nversion\r\n", [c.Refused(BAD), c.Version()]),
    ("kvref", b"set k 0 2147483648 1\r\nx\r\n", [stored("set", b"x", exptime=-(2**31))]),
    ("kvref", b"set k 0 4294967301 1\r\nx\r\n", [stored("set", b"x", exptime=5)]),
    ("mysql-8.0", b"set k 4294967297 0 1\r\nx\r\n", [stored("set", b"x", flags=1)]),
    ("kvref", b"set k 4294967297 0 1\r\nx\r\n", refused(BAD)),
    ("kvref", b"set k 0 0 1\r\nabc\r\n", refused(b"CLIENT_ERROR bad data chunk", b"ERROR")),
    ("mysql-8.0", b"set k 0 0 2\r\nabcd\r\n", [stored("set", b"ab"), c.Refused(b"ERROR")]),
    ("mysql-5.6", b"set k 0 0 4294967296\r\nxy", [stored("set", b"")]),
    ("mysql-8.0", b"set k 0 0 4294967296\r\n", refused(BAD)),
    ("kvref", b"set k 0 0 %d\r\n" % (LIMIT + 1), [too_large(removes=b"k")]),
    ("kvref", b"add k 0 0 %d\r\n" % (LIMIT + 1), [too_large()]),
    ("kvref", b"set k 0 0 2147483645\r\nversion\r\n", [too_large(removes=b"k")]),
    ("kvref", b"set k 0 0 2147483646\r\nversion\r\n", [c.Refused(BAD), c.Version()]),
    ("kvref", b"cas k 0 0 2147483647 1 noreply\r\nversion\r\n", [c.Refused(BAD, noreply=True), c.Version()]),
    ("kvref", b"ms k 2147483646\r\nversion\r\n", [c.Refused(BAD), c.Version()]),
    ("mysql-8.0", b"set k 0 0 2147483647\r\nversion", []),
    ("mysql-5.6", b"set k 0 0 2147483646\r\nversion\r\n", [too_large(removes=b"k")]),
    ("kvref", b"add k 0 0 %d noreply\r\nversion\r\n" % (LIMIT + 1), [too_large(noreply=True)]),
    (
        "mysql-5.6",
        b"add k 0 0 1048520 noreply\r\nversion\r\n",
        [too_large(noreply=True), c.Version()],
    ),
    ("mysql-5.6", b"set k 0 0 1048520\r\n", [too_large(removes=b"k")]),
    ("mysql-5.6", b"add k 0 0 1048520\r\n", [too_large()]),
    ("mysql-8.0", b"version x\r\nversion noreply\r\n", refused(b"ERROR", b"ERROR")),
    ("kvref", b"version x\r\nversion foo bar\r\nversion noreply\r\n", [c.Version()] * 3),
    ("mysql-8.0", b"quit noreply\r\nquit foo\r\n", refused(b"ERROR", b"ERROR")),
    ("kvref", b"quit noreply\r\nquit foo bar\r\n", [c.Quit(), c.Quit()]),
    ("kvref", b"cache_memlimit 8\r\ncache_memlimit 4294967304\r\n", [c.CacheMemlimit()] * 2),
    (
        "kvref",
        b"cache_memlimit 8 noreply\r\ncache_memlimit 8 9\r\n",
        [c.CacheMemlimit(noreply=True), c.CacheMemlimit()],
    ),
    ("kvref", b"cache_memlimit 7\r\ncache_memlimit 4294967296\r\n", refused(SMALL_LIMIT, SMALL_LIMIT)),
    ("kvref", b"cache_memlimit\r\ncache_memlimit 8x\r\ncache_memlimit 8 9 10\r\n", refused(*[b"ERROR"] * 3)),
    ("kvref", b"cache_memlimit x noreply\r\n", [c.Refused(b"ERROR", noreply=True)]),
    ("kvref", b"refresh_certs\r\nrefresh_certs noreply\r\n", refused(NO_TLS, NO_TLS)),
    ("kvref", b"shutdown\r\nshutdown graceful\r\nshutdown noreply\r\n", refused(*[NO_SHUTDOWN] * 3)),
    ("mysql-8.0", b"cache_memlimit 8\r\nrefresh_certs\r\nshutdown\r\n", refused(b"ERROR", b"ERROR", b"ERROR")),
    (
        "kvref",
        b"flush_all 0 x\r\nflush_all 7 x\r\nflush_all 0 noreply\r\n",
        [c.FlushAll(), c.FlushAll(7), c.FlushAll(noreply=True)],
    ),
    ("kvref", b"flush_all x\r\nflush_all 1x\r\nflush_all noreply 0\r\n", refused(*[NO_EXPTIME] * 3)),
    ("mysql-5.6", b"verbosity invalid\r\nverbosity -1\r\n", refused(b"ERROR", b"ERROR")),
    ("kvref", b"verbosity invalid\r\nverbosity -1\r\nverbosity 1x\r\n", refused(BAD, BAD, BAD)),
    ("kvref", b"verbosity invalid noreply\r\n", [c.Refused(BAD, noreply=True)]),
    ("mysql-8.0", b"verbosity noreply\r\n", refused(b"ERROR")),
    ("kvref", b"verbosity noreply\r\n", [c.Refused(b"ERROR", noreply=True)]),
    ("mysql-8.0", b"get AA\0BB\r\n", [c.Get([b"AA"], with_cas=False)]),
    ("kvref", b"get AA\0BB\r\n", refused(BAD)),
    ("mysql-8.0", b"flush_all abc\r\n", [c.FlushAll()]),
    ("mysql-8.0", b"flush_all 9223372036854775808\r\n", refused(BAD)),
    ("kvref", b"flush_all abc\r\n", refused(NO_EXPTIME)),
    # Data of a known length never runs as a command.
    ("kvref", b"set a\0b 0 0 9\r\nflush_all\r\n", refused(BAD)),
    ("kvref", b"set a 0 0 5 1 2\r\nget q\r\n", refused(b"ERROR")),
    ("kvref", b"cas a 0 0 5\r\nget q\r\n", refused(b"ERROR")),
    ("kvref", b"flush_all -1\r\nflush_all -5 noreply\r\n", [c.FlushAll(), c.FlushAll(noreply=True)]),
    ("kvref", b"flush_all 0 1\r\n", [c.FlushAll()]),
]
CASES = [(name, data, expected) for name in RULES for data, expected in EVERYWHERE] + BY_PROFILE


@pytest.mark.parametrize("pieces", [whole, bytewise])
@pytest.mark.parametrize(("profile", "data", "expected"), CASES)
def test_commands(profile: str, data: bytes, expected: list[c.Command], pieces: Callable[[bytes], list[bytes]]) -> None:
    assert parse(RULES[profile], pieces(data)) == expected


@pytest.mark.parametrize(("profile", "data", "expected"), CASES)
def test_commands_with_another_behind(profile: str, data: bytes, expected: list[c.Command]) -> None:
    if data.endswith(b"\n") and TOO_LARGE not in [getattr(e, "line", b"") for e in expected]:
        assert parse(RULES[profile], [data + b"version\r\n"]) == [*expected, c.Version()]


def test_refused_data_of_a_value_too_large_is_thrown_away() -> None:
    data = b"set k 0 0 %d\r\n" % (LIMIT + 1) + b"get\r\n" * (LIMIT // 5 + 1) + b"\r\nversion\r\n"
    # LIMIT + 1 bytes and the line end; what is left of the padding is one short line.
    commands = parse(RULES["kvref"], [data])
    assert commands[0] == too_large(removes=b"k")
    assert commands[-1] == c.Version()
    assert len(commands) <= 4


def test_plugin_answers_before_the_line_end_of_the_data() -> None:
    # Recorded as err-012: STORED comes once the announced bytes are there.
    assert parse(RULES["mysql-8.0"], [b"set k 0 0 2\r\nab"]) == [stored("set", b"ab")]
    assert parse(RULES["kvref"], [b"set k 0 0 2\r\nab"]) == []


@pytest.mark.parametrize(
    ("data", "closed"),
    [
        (b"x" * 1024, False), (b"x" * 1025, True), (b"get " + b"a " * 3000, False), (b" " * 101 + b"get " + b"a" * 1000, True),
        (b"get " + b"a" * (9 << 20), True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", RULES)
def test_an_open_line_is_bounded(data: bytes, profile: str, *, closed: bool) -> None:
    parser = TextParser(RULES[profile])
    parser.feed(data)
    if len(data) > 1 << 20:
        assert parser.next_command() == c.Refused(LONG_LINE % (1 << 20))
    assert parser.next_command() is None
    assert parser.closed is closed


@given(st.lists(st.binary(max_size=40)), st.sampled_from(sorted(RULES)))
def test_pieces_do_not_matter(pieces: list[bytes], profile: str) -> None:
    assert parse(RULES[profile], pieces) == parse(RULES[profile], [b"".join(pieces)])


words = st.sampled_from(
    [b"get", b"set", b"cas", b"k", b"0", b"1", b"-1", b"noreply", b"incr", b"delete", b"bind", b"\r\n", b"\n", b"\0"]
)


@given(st.lists(words, max_size=30), st.sampled_from(sorted(RULES)))
def test_any_words_give_commands_or_wait(parts: list[bytes], profile: str) -> None:
    data = b" ".join(parts)
    assert parse(RULES[profile], bytewise(data)) == parse(RULES[profile], [data])


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (Status.SUCCEED, b"SUCCEED\r\n"),
        (Number(2**64 - 1), b"18446744073709551615\r\n"),
        (ClientError("two\nlines"), b"CLIENT_ERROR two lines\r\n"),
        (ServerError("disk\r\nfull"), b"SERVER_ERROR disk full\r\n"),
        (StatRows([("pid", "1")]), b"STAT pid 1\r\nEND\r\n"),
        (Release("1"), b"VERSION 1\r\n"),
        (Items([Item(b"@@m.k", 5, b"a\r\nb", 7)], with_cas=True), b"VALUE @@m.k 5 4 7\r\na\r\nb\r\nEND\r\n"),
        (Items([Item(b"k", 5, b"", 7)], with_cas=False), b"VALUE k 5 0\r\n\r\nEND\r\n"),
    ],
)
def test_replies(reply: Status, line: bytes) -> None:
    assert encode(c.Version(), reply) == line


def test_noreply_silences_every_reply_but_items() -> None:
    assert encode(c.Delete(b"k", noreply=True), Status.NOT_FOUND) == b""
    assert encode(c.Refused(b"ERROR", noreply=True), ClientError("x")) == b""


SET = b"set k 0 0 1\r\nx\r\n"


@pytest.mark.parametrize("cut", [whole, bytewise])
@pytest.mark.parametrize(
    ("line", "protocol"),
    [
        (b"POST / HTTP/1.1", "HTTP"), (b"HTTP/", "HTTP"), (b"PRI * HTTP/2.0", "HTTP"), (b"GET /\0 HTTP/1.0", "HTTP"),
        (b"\x16\x03\x01\n", "TLS"), (b"SSH-2.0-x", "SSH"), (b"*1", "RESP"), (b"PROXY UNKNOWN", "PROXY"),
    ],
)  # fmt: skip
def test_requests_of_other_protocols_end_the_connection(
    line: bytes, protocol: str, cut: Callable[[bytes], list[bytes]]
) -> None:
    parser = TextParser(RULES["kvref"])
    taken = []
    for piece in cut(line + b"\r\n" + SET):
        parser.feed(piece)
        while (command := parser.next_command()) is not None:
            taken.append(command)
    assert taken == [c.Foreign(protocol)]
    assert parser.closed
    assert c.Foreign(protocol) not in parse(RULES["mysql-8.0"], [line + b"\r\n" + SET])


def test_a_binary_proxy_header_ends_the_connection() -> None:
    header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"
    assert parse(RULES["kvref"], [header + b"\r\n" + SET]) == [c.Foreign("PROXY")]


@pytest.mark.parametrize("line", [b"foo HTTP/1.1 x", b"foo http/1.1", b"get HTTP/1.1", b"*", b"*x", b"\x16", b"PROXY"])
def test_lines_that_only_resemble_other_protocols(line: bytes) -> None:
    commands = parse(RULES["kvref"], [line + b"\r\n" + SET])
    assert commands[-1] == c.Store("set", b"k", 0, 0, b"x")


def test_openings_count_at_the_beginning_only() -> None:
    later = parse(RULES["kvref"], [b"version\r\nSSH-2.0-x\r\n*1\r\n" + SET])
    assert later == [c.Version(), c.Refused(b"ERROR"), c.Refused(b"ERROR"), c.Store("set", b"k", 0, 0, b"x")]


@pytest.mark.parametrize("profile", RULES)
def test_the_next_command_starts_after_a_complete_set(profile: str) -> None:
    parser = TextParser(RULES[profile])
    parser.feed(b"set k 0 0 1\r\nx\r\nget k\r\n")
    assert parser.next_command() == stored("set", b"x")
    assert parser.starts_command
    assert parser.next_command() == c.Get([b"k"], with_cas=False)
    parser.feed(b"set k 0 0 1\r\nx\r")
    if RULES[profile].checks_data_end:
        assert parser.next_command() is None
    else:
        assert parser.next_command() == stored("set", b"x")
        assert not parser.between_commands
    parser.feed(b"\n")
    while parser.next_command() is not None:
        pass
    assert parser.between_commands
