"""The migration guide says which options of the embedded memcached kvref has in another form, and which it lacks."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from helpers.guide import AFTER_THE_PLUGIN, migration
from helpers.serving import serving
from server.listeners.talk import frame

pytestmark = pytest.mark.programs
GUIDE = migration() + AFTER_THE_PLUGIN.read_text()
GET, SASL_AUTH, REFUSED = 0x00, 0x21, 0x20


def test_sasl_is_there(tmp_path: Path) -> None:
    assert re.search(
        r"^\| anyone with SASL \(`-S`\) \| `--auth-file` has SASL PLAIN for binary clients", GUIDE, re.MULTILINE
    )
    users = tmp_path / "auth"
    users.write_text("user:secret\n")
    users.chmod(0o600)
    with serving(tmp_path / "x.sqlite", "--auth-file", str(users)) as served:
        with served.connect() as unknown:
            unknown.sendall(frame(GET, b"AA"))
            assert unknown.recv(1000)[7] == REFUSED
        with served.connect() as binary:
            for request in (frame(SASL_AUTH, b"PLAIN", b"\0user\0secret"), frame(GET, b"AA")):
                binary.sendall(request)
                assert binary.recv(1000)[7] == 0
        with served.connect() as text:
            text.sendall(b"set any 0 0 11\r\nuser secret\r\n")
            assert text.recv(100) == b"STORED\r\n"


def test_connections_have_a_limit(tmp_path: Path) -> None:
    assert "| `--set maxconns=`, and `ulimit -n` / `--auth-file` |" in GUIDE
    with serving(tmp_path / "x.sqlite", "--set", "maxconns=1") as served, served.connect() as first:
        first.sendall(b"version\r\n")
        assert first.recv(100).startswith(b"VERSION ")
        with served.connect() as second, second.makefile("rb") as replies:
            assert replies.read().startswith(b"ERROR ")


def test_there_is_no_udp(tmp_path: Path) -> None:
    assert "| anyone with UDP | kvref has TCP only |" in GUIDE
    with serving(tmp_path / "x.sqlite") as served, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", served.port))


def test_unix_sockets_are_there(tmp_path: Path) -> None:
    assert "`--listen`, with `unix:PATH` for `-s` /" in GUIDE
    path = tmp_path / "s"
    with serving(tmp_path / "x.sqlite", listen=f"unix:{path}"), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(b"version\r\n")
        assert client.recv(100).startswith(b"VERSION ")
