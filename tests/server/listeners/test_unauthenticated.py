"""Requests of unauthenticated clients: none is served, and their number and size are limited."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.serving import serving
from server.listeners.talk import ENDED, answers, frame, held

from kvref import profiles
from kvref.engine.counters import Counters
from kvref.protocol.rules import wire_rules
from kvref.server.client_warnings import ClientWarnings
from kvref.server.listeners.authentication import MAX_ANSWERS, Authenticator, Users

USER = b"set x 0 0 12\r\nalice secret\r\n"
LIST = frame(0x20)
SET = frame(0x01, b"AA", b"taken", bytes(8))


def _gate() -> Authenticator:
    rules = wire_rules(profiles.load("kvref"), 1 << 20)
    return Authenticator(Users({b"alice": b"secret"}), "1.6.0", ClientWarnings(Counters()), rules)


@pytest.mark.parametrize(
    "reply", [SET + SET, LIST + SET + frame(0x00, b"AA"), b"x" * 3000, LIST * 200, b"get a\r\n" * 200]
)
def test_nothing_goes_on_of_who_is_sent_away(reply: bytes) -> None:
    gate = _gate()
    answer, rest = gate.feed(reply)
    assert gate.closes
    assert not gate.passed
    assert rest == b""
    assert len(answer) < 64 * MAX_ANSWERS


def test_the_last_try_may_be_the_right_one() -> None:
    gate = _gate()
    gate.feed(b"\r\n" * (MAX_ANSWERS - 1))
    assert gate.feed(USER + b"get AA\r\n") == (b"STORED\r\n", b"get AA\r\n")
    assert gate.passed
    assert not gate.closes


@pytest.mark.parametrize(
    ("reply", "protocol"),
    [
        (b"POST / HTTP/1.1\r\n", "HTTP"), (b"get a\r\nfoo HTTP/1.0\r\n", "HTTP"), (b"\x16\x03\x01", "TLS"),
        (b"SSH-2.0-x\r\n", "SSH"),
    ],
)  # fmt: skip
def test_other_protocols_cannot_authenticate(reply: bytes, protocol: str) -> None:
    gate = _gate()
    answer, rest = gate.feed(reply + USER)
    assert (gate.closes, gate.passed, gate.foreign, rest) == (True, False, protocol, b"")
    assert answer in {"TLS": (b"ERROR\r\n",)}.get(protocol, (b"", b"CLIENT_ERROR unauthenticated\r\n"))


AUTH, STEP = 0x21, 0x22
RIGHT = b"\0alice\0secret"


@pytest.mark.parametrize(
    ("frames", "statuses", "counted"),
    [
        ([(AUTH, b"FOO", RIGHT)], [0x20], (1, 1)),
        ([(AUTH, b"X" * 33, RIGHT)], [0x04], (0, 0)),
        ([(STEP, b"PLAIN", RIGHT)], [0x20], (1, 1)),
        ([(AUTH, b"PLAIN", b""), (AUTH, b"FOO", b""), (STEP, b"PLAIN", RIGHT)], [0x21, 0x20, 0x20], (2, 2)),
        ([(AUTH, b"PLAIN", b"alice"), (AUTH, b"PLAIN", b"bob" + RIGHT)], [0x20, 0x20], (2, 2)),
        ([(AUTH, b"PLAIN", b""), (STEP, b"PLAIN", RIGHT)], [0x21, 0], (1, 0)),
    ],
)
def test_sasl(frames: list[tuple[int, bytes, bytes]], statuses: list[int], counted: tuple[int, int]) -> None:
    counters = Counters()
    gate = Authenticator(
        Users({b"alice": b"secret"}), "1.6.0", ClientWarnings(counters), wire_rules(profiles.load("kvref"), 1 << 20)
    )
    found = [int.from_bytes(gate.feed(frame(*each))[0][6:8], "big") for each in frames]
    assert found == statuses
    assert gate.passed == (statuses[-1] == 0)
    assert (counters.auth_cmds, counters.auth_errors) == counted


@pytest.mark.live
@pytest.mark.parametrize("workers", ["1", "2"])
def test_requests_of_other_protocols_are_counted_and_logged_once(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path / "x.sqlite", "--workers", workers) as served:
        evil = b"\r\nset AA 0 0 5\r\npwned\r\n"
        for line in (b"POST / HTTP/1.1\r\n", b"SSH-2.0-x", b"*1", b"PROXY UNKNOWN"):
            assert held(served.port, [line + evil]) == [ENDED]
        reply = held(served.port, [b"get AA\r\nstats\r\n"])[0]
        assert reply.startswith(b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n")
        assert b"STAT foreign_protocol_conns 4\r\n" in reply
        log = served.wait_for("HTTP request on a memcached port")
        assert 1 <= log.count("on a memcached port") <= int(workers)


@pytest.mark.live
@pytest.mark.parametrize("words", [[], ["--auth-file", "auth"]])
def test_a_tls_client_reports_that_the_port_has_no_tls(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "auth").write_text("alice:secret\n")
    given = [str(tmp_path / each) if each == "auth" else each for each in words]
    with serving(tmp_path / "x.sqlite", *given) as served, served.connect() as plain:
        context = ssl.create_default_context()
        with pytest.raises(ssl.SSLError, match="WRONG_VERSION_NUMBER"):
            context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.live
def test_other_protocols_do_not_pass_authentication(tmp_path: Path) -> None:
    (tmp_path / "auth").write_text("alice:secret\n")
    with serving(tmp_path / "x.sqlite", "--auth-file", str(tmp_path / "auth")) as served:
        assert held(served.port, [b"POST / HTTP/1.1\r\n\r\n" + USER + b"version\r\n"]) == [ENDED]
        assert b"STAT foreign_protocol_conns 1\r\n" in held(served.port, [USER, b"stats\r\n"])[1]


@pytest.mark.live
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_client_without_login_that_does_not_read(tmp_path: Path, workers: str) -> None:
    """While the client reads nothing its connection is not closed yet: what it has said meanwhile must not count."""
    (tmp_path / "auth").write_text("alice:secret\n")
    options = ["--auth-file", str(tmp_path / "auth"), "--workers", workers]
    with serving(tmp_path / "x.sqlite", *options) as served:
        for requests in (LIST * 100000 + SET, b"\n" * 1000000 + b"set AA 0 0 5\r\ntaken\r\n"):
            assert len(_read_late(served.port, requests)) < 64 * MAX_ANSWERS
        assert held(served.port, [b"\n" * 1000]) == [b"CLIENT_ERROR unauthenticated\r\n" * MAX_ANSWERS + ENDED]
        assert answers(served.port, [USER, b"get AA\r\n"])[1] == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def _read_late(port: int, requests: bytes) -> bytes:
    """Say all that can be said before anything is read; returns what is read then."""
    received = bytearray()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(10)
        client.connect(("127.0.0.1", port))
        sender = threading.Thread(target=_say, args=(client, requests))
        sender.start()
        sender.join(0.5)
        with suppress(ConnectionError):
            while part := client.recv(4096):
                received += part
        sender.join()
    return bytes(received)


def _say(client: socket.socket, requests: bytes) -> None:
    with suppress(ConnectionError):
        client.sendall(requests)
