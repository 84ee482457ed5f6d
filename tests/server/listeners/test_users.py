"""Clients that must say who they are: the same bytes go to memcached 1.6 with -Y, or with -S, and to kvref."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faults.processes import children
from helpers.live import target_or_skip
from helpers.serving import Served, ask, serving
from server.listeners.talk import ENDED, answers, frame, held

from kvref.addresses import parse_address

pytestmark = pytest.mark.live

USER = b"set x 0 0 12\r\nalice secret\r\n"
FAILURE = b"CLIENT_ERROR authentication failure\r\n"
WRONG = b"set x 0 0 11\r\nalice wrong\r\n"
TEXT: dict[str, list[bytes]] = {
    "nobody": [b"get a\r\n", b"version\r\n", b"stats\r\n", b"quit\r\n", b"\r\n", b"flush_all\r\n"],
    "right": [USER, b"get own\r\n", b"set own 0 0 1\r\n1\r\n", b"get own\r\n", b"delete own\r\n"],
    "right at the second try": [WRONG, b"get a\r\n", USER, b"get a\r\n"],
    "no such user": [b"set x 0 0 11\r\nmarie secre\r\n", b"get a\r\n"],
    "noreply is answered": [b"set x 0 0 12 noreply\r\nalice secret\r\n", b"get a\r\n"],
    "another verb": [b"add x 0 0 12\r\n", b"get a\r\n"],
    "data that is too long": [b"set x 5 100 12\r\nalice secretX\r\n", b"get a\r\n"],
    "data that is too short": [b"set x 0 0 11\r\nalice secret\r\n", b"get a\r\n"],
    "a token beyond all bounds": [b"set x 0 0 3000\r\n" + b"x" * 3000 + b"\r\n", b"get a\r\n", USER, b"get a\r\n"],
    "no password": [b"set x 0 0 6\r\nnobody\r\n", USER, b"get a\r\n"],
    "no token": [b"set x 0 0 0\r\n\r\n", b"get a\r\n"],
    "a length below zero": [b"set x 0 0 -1\r\n", b"get a\r\n"],
    "no length": [b"set x 0 0 abc\r\n", b"set x\r\n", b"get a\r\n"],
    "a long key": [b"set " + b"k" * 251 + b" 0 0 12\r\nalice secret\r\n", b"get a\r\n"],
    "commands behind": [USER + b"get a\r\nget b\r\n"],
    "in pieces": [b"se", b"t x 0 0 12\r\nali", b"ce secret\r", b"\nget a\r\n"],
    "a set is a set again afterwards": [USER, WRONG, b"get x\r\n", b"delete x\r\n"],
    "a line beyond all bounds": [b"x" * 3000],
    "meta": [b"ms x 12\r\n", b"mn\r\n"],
}
LIST, AUTH, STEP, GET, VERSION = 0x20, 0x21, 0x22, 0x00, 0x0B
PLAIN = frame(AUTH, b"PLAIN", b"\0alice\0secret")
BINARY: dict[str, list[bytes]] = {
    "list": [frame(LIST), PLAIN, frame(GET, b"a")],
    "nobody": [frame(GET, b"a")],
    "noop": [frame(0x0A)],
    "quit": [frame(0x07)],
    "set": [frame(0x01, b"a", b"1", bytes(8))],
    "wrong": [frame(AUTH, b"PLAIN", b"\0alice\0wrong"), frame(GET, b"a")],
    "right at the second try": [frame(AUTH, b"PLAIN", b"\0alice\0wrong"), PLAIN, frame(GET, b"a")],
    "another mechanism": [frame(AUTH, b"CRAM-MD5"), frame(GET, b"a")],
    "no mechanism": [frame(AUTH, b"", b"")],
    "another mechanism, then PLAIN": [frame(AUTH, b"FOO", b"x"), PLAIN, frame(GET, b"a")],
    "the longest name of a mechanism": [frame(AUTH, b"X" * 32, b"x"), PLAIN, frame(GET, b"a")],
    "too long a name of a mechanism": [frame(AUTH, b"X" * 33, b"x"), PLAIN, frame(GET, b"a")],
    "a step from nowhere": [frame(STEP, b"PLAIN", b"\0alice\0wrong"), frame(GET, b"a")],
    "a right step from nowhere": [frame(STEP, b"PLAIN", b"\0alice\0secret"), frame(GET, b"a")],
    "a right step behind a wrong attempt": [
        frame(AUTH, b"PLAIN", b"\0alice\0wrong"), frame(STEP, b"PLAIN", b"\0alice\0secret"), frame(GET, b"a"),
    ],
    "a right step behind another mechanism": [
        frame(AUTH, b"PLAIN"), frame(AUTH, b"FOO"), frame(STEP, b"PLAIN", b"\0alice\0secret"), frame(GET, b"a"),
    ],
    "a step that names another mechanism": [frame(AUTH, b"PLAIN"), frame(STEP, b"FOO", b"\0alice\0secret")],
    "a second step": [
        frame(AUTH, b"PLAIN"), frame(STEP, b"PLAIN", b"\0alice\0wrong"), frame(STEP, b"PLAIN", b"\0alice\0secret"),
    ],
    "as somebody else": [frame(AUTH, b"PLAIN", b"bob\0alice\0secret"), frame(GET, b"a")],
    "as oneself": [frame(AUTH, b"PLAIN", b"alice\0alice\0secret"), frame(GET, b"a")],
    "in a step": [frame(AUTH, b"PLAIN"), frame(STEP, b"PLAIN", b"\0alice\0secret"), frame(GET, b"a")],
    "no password": [frame(AUTH, b"PLAIN", b"alice"), frame(AUTH, b"PLAIN", b"\0alice"), frame(GET, b"a")],
    "more behind": [frame(AUTH, b"PLAIN", b"\0alice\0secret\0"), frame(GET, b"a")],
    "in small letters": [frame(AUTH, b"plain", b"\0alice\0secret"), frame(GET, b"a")],
    "list with a key": [frame(LIST, b"abc")],
    "list with extras": [frame(LIST, extras=b"abcd")],
    "in pieces": [PLAIN[:10], PLAIN[10:40], PLAIN[40:] + frame(GET, b"a")],
    "behind one another": [frame(LIST) + PLAIN + frame(GET, b"a")],
}  # fmt: skip


@pytest.fixture(scope="module")
def auth_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "auth"
    path.write_text("alice:secret\nbob:other word\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module", params=[1, 2])
def asking(
    request: pytest.FixtureRequest, auth_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("served") / "x.sqlite"
    with serving(path, "--auth-file", str(auth_file), "--workers", str(request.param), anew=True) as served:
        yield served


@pytest.fixture(scope="module")
def memcached(auth_file: Path) -> Iterator[int]:
    with target_or_skip("memcached", [f"--auth-file={auth_file}"]) as target:
        assert target.address is not None
        yield parse_address(target.address).port


@pytest.fixture(scope="module")
def memcached_with_sasl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("sasl")
    (folder / "memcached.conf").write_text(
        f"mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {folder}/db\nlog_level: 0\n"
    )
    make = ["saslpasswd2", "-p", "-c", "-f", str(folder / "db"), "-a", "memcached", "-u", socket.gethostname(), "alice"]
    subprocess.run(make, input=b"secret", check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASL_CONF_PATH", str(folder))
        with target_or_skip("memcached", ["--enable-sasl"]) as target:
            assert target.address is not None
            yield parse_address(target.address).port


def all_held(port: int, conversations: dict[str, list[bytes]]) -> dict[str, bytes]:
    """Hold conversations side by side, which are for the most part silence."""
    with ThreadPoolExecutor(len(conversations)) as pool:
        return dict(
            zip(conversations, pool.map(lambda each: b"".join(held(port, each)), conversations.values()), strict=True)
        )


def test_text_as_memcached(memcached: int, asking: Served) -> None:
    assert all_held(asking.port, TEXT) == all_held(memcached, TEXT)


def test_binary_as_memcached(memcached_with_sasl: int, asking: Served) -> None:
    assert all_held(asking.port, BINARY) == all_held(memcached_with_sasl, BINARY)


def test_binary_attempts_are_counted_as_memcached_does(memcached_with_sasl: int, asking: Served) -> None:
    assert attempts_of_all(asking.port) == attempts_of_all(memcached_with_sasl)


def attempts_of_all(port: int) -> dict[bytes, int]:
    """Run the binary conversations; returns by how much auth_cmds and auth_errors grew."""
    before = attempts(port)
    all_held(port, BINARY)
    return {name: value - before[name] for name, value in attempts(port).items()}


def attempts(port: int) -> dict[bytes, int]:
    """Return auth_cmds and auth_errors of `stats`."""
    reply = b"".join(held(port, [PLAIN, frame(0x10)]))
    return {name: int(re.search(name + rb"(\d+)", reply)[1]) for name in (b"auth_cmds", b"auth_errors")}  # type: ignore[index]


def test_everybody_may_ask_for_the_version(asking: Served) -> None:
    (reply,) = held(asking.port, [frame(VERSION)])
    assert reply[24:].startswith(b"1.6.0+")


def test_a_password_with_blanks(asking: Served) -> None:
    # memcached 1.6.18 takes no such password.
    assert answers(asking.port, [b"set x 0 0 14\r\nbob other word\r\n", b"get a\r\n"]) == [b"STORED\r\n", b"END\r\n"]


def test_nothing_is_carried_out_without_a_login(asking: Served) -> None:
    answers(asking.port, [USER, b"set kept 0 0 1\r\n1\r\n"])
    strangers = [
        b"delete kept\r\n",
        b"set kept 0 0 5\r\nlater\r\n",
        b"flush_all\r\n",
        b"bind aaa\r\n",
        b"get @@aaa.AA\r\n",
    ]
    for each in strangers:
        reply = b"".join(held(asking.port, [each, b"delete kept\r\n"]))
        assert reply.splitlines()[1:] == [b"CLIENT_ERROR unauthenticated"]
        assert reply.startswith(b"CLIENT_ERROR ")
    assert held(asking.port, [frame(0x04, b"kept")])[0].endswith(ENDED)
    assert answers(asking.port, [USER, b"get kept\r\n"])[1] == b"VALUE kept 0 1\r\n1\r\nEND\r\n"


def test_attempts_are_counted_and_no_password_is_logged(asking: Served) -> None:
    def counted() -> dict[bytes, int]:
        rows = answers(asking.port, [USER + b"stats\r\n"])[0].split(b"\r\n")
        return {row.split()[1]: int(row.split()[2]) for row in rows if row.startswith(b"STAT auth_")}

    before = counted()
    held(asking.port, [b"set x 0 0 17\r\nal\x1b[2J\xff no-secret\r\n", WRONG, WRONG])
    after = counted()
    assert after == {b"auth_cmds": before[b"auth_cmds"] + 4, b"auth_errors": before[b"auth_errors"] + 3}
    assert "127.0.0.1" in asking.wait_for("authentication failed: user ")
    log = "".join(asking.log)
    assert not [each for each in ("secret", "wrong", "\x1b") if each in log]


def test_who_does_not_say_who_it_is_may_not_stay(auth_file: Path, tmp_path: Path) -> None:
    options = ["--auth-file", str(auth_file), "--set", "command_timeout=1"]
    with serving(tmp_path / "x.sqlite", *options) as served, served.connect() as known, served.connect() as silent:
        assert ask(known, USER) == b"STORED\r\n"
        late = b"CLIENT_ERROR no whole command within 1 s (command_timeout)\r\n"
        assert silent.recv(1000) + silent.recv(1000) == late
        with served.connect() as trying:
            reply = b""
            while b"within" not in reply:
                if select.select([trying], [], [], 0.05)[0]:
                    reply += trying.recv(1000)
                else:
                    trying.sendall(WRONG)  # attempts do not keep it open
        assert reply.endswith(late)
        assert ask(known, b"get AA\r\n").startswith(b"VALUE")


def test_users_change_at_a_reload(tmp_path: Path) -> None:
    path = tmp_path / "auth"
    path.write_text("alice:secret\n")
    with serving(tmp_path / "x.sqlite", "--auth-file", str(path)) as served:
        served.wait_for(f"auth_file {path}: other users of this machine can read it: run chmod 600")
        path.write_text("bob:new\n")
        assert answers(served.port, [USER]) == [b"STORED\r\n"]
        served.reload()
        assert answers(served.port, [USER, b"set x 0 0 7\r\nbob new\r\n"]) == [FAILURE, b"STORED\r\n"]
        path.write_text("bob\n")
        served.reload()
        served.wait_for(f"not reloaded, the previous one stays active: auth_file {path}, line 1: write user:password")
        assert answers(served.port, [b"set x 0 0 7\r\nbob new\r\n"]) == [b"STORED\r\n"]


def test_a_worker_that_is_started_again_knows_the_users_of_now(tmp_path: Path) -> None:
    path = tmp_path / "auth"
    path.write_text("alice:secret\n")
    with serving(tmp_path / "x.sqlite", "--auth-file", str(path), "--workers", "2") as served:
        path.write_text("bob:new\n")
        served.reload()
        before = children(served.process.pid)
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        served.wait_for("worker 1 restarted")
        served.wait_for("worker 2 restarted")
        for _ in range(4):
            assert answers(served.port, [USER, b"set x 0 0 7\r\nbob new\r\n"]) == [FAILURE, b"STORED\r\n"]


def test_no_secret_is_in_the_process_list(asking: Served) -> None:
    shown = (
        Path(f"/proc/{asking.process.pid}/cmdline").read_bytes()
        + Path(f"/proc/{asking.process.pid}/environ").read_bytes()
    )
    assert b"auth" in shown
    assert b"alice:" not in shown
    assert b"other word" not in shown
