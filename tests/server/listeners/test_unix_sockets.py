"""Unix sockets: their mode and owner, what is at the path before, and every client and tool over them."""

from __future__ import annotations

import asyncio
import grp
import os
import socket
import stat
from pathlib import Path

import pytest
from helpers.commands import kvref, refusal
from helpers.serving import ask, serving

from kvref.addresses import connect
from kvref.client import AsyncMappedClient, MappedClient

pytestmark = pytest.mark.live

ROW = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kvref.sock"


@WORKERS
def test_a_unix_socket_is_served_for_its_owner_alone_and_removed_at_the_stop(path: Path, workers: str) -> None:
    with serving(path.with_name("s.sqlite"), "--workers", workers, listen=f"unix:{path}") as served:
        assert mode_of(path) == 0o700
        with connect(str(path), 10) as client:
            assert ask(client, b"get AA\r\n") == ROW
            assert f"STAT domain_socket {path}\r\n".encode() in ask(client, b"stats settings\r\n")
        assert f"listening on unix:{path}" in "".join(served.log)
    assert not path.exists()


def test_mode_and_owner_are_those_of_the_options(path: Path) -> None:
    group = grp.getgrgid(os.getgid())
    options = ["--socket-mode", "0660", "--socket-owner", f"{os.getuid()}:{group.gr_name}"]
    with serving(path.with_name("s.sqlite"), *options, listen=f"unix:{path}"):
        found = path.lstat()
        assert (mode_of(path), found.st_uid, found.st_gid) == (0o660, os.getuid(), group.gr_gid)


def test_a_listener_of_the_file_has_mode_users_and_limits(path: Path) -> None:
    users, config = path.with_name("users"), path.with_name("kvref.toml")
    users.write_text("anna:secret\n")
    users.chmod(0o600)
    config.write_text(
        f'[[listener]]\naddress = "unix:{path}"\nsocket_mode = "666"\nauth_file = "{users}"\nread_only = true\n'
    )
    with serving(path.with_name("s.sqlite"), "--config", str(config), listen=None):
        assert mode_of(path) == 0o666
        with connect(str(path), 10) as client:
            client.sendall(b"get AA\r\nset a 0 0 11\r\nanna secret\r\n")
            refused = b"CLIENT_ERROR unauthenticated\r\nSTORED\r\n"
            assert client.recv(len(refused), socket.MSG_WAITALL) == refused
            assert ask(client, b"get AA\r\n") == ROW
            assert ask(client, b"delete AA\r\n") == b"CLIENT_ERROR this listener is read-only\r\n"


def test_a_socket_that_nobody_listens_on_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with serving(path.with_name("s.sqlite"), listen=f"unix:{path}"), connect(str(path), 10) as client:
        assert ask(client, b"get AA\r\n") == ROW


def test_a_server_that_listens_and_a_file_stay(path: Path) -> None:
    refused = f"cannot listen on unix:{path}: Address already in use"
    with serving(path.with_name("s.sqlite"), listen=f"unix:{path}"):
        second = kvref(
            "serve", "--create", "--listen", f"unix:{path}", "--store", f"sqlite:///{path.with_name('t.sqlite')}"
        )
        assert (second.returncode, refused in second.stderr) == (2, True)
        with connect(str(path), 10) as client:
            assert ask(client, b"get AA\r\n") == ROW
    path.write_text("no socket")
    third = kvref("serve", "--create", "--listen", f"unix:{path}", "--store", f"sqlite:///{path.with_name('t.sqlite')}")
    assert (third.returncode, refused in third.stderr, path.read_text()) == (2, True, "no socket")


def test_the_socket_of_a_server_that_came_later_stays(path: Path) -> None:
    with serving(path.with_name("s.sqlite"), listen=f"unix:{path}"):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as later:
            later.bind(str(path))
    assert path.is_socket()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "unix:"], "write unix:PATH"),
        (["--listen", "unix:/no-such-folder/s"], "cannot listen on unix:/no-such-folder/s: No such file or directory"),
        (["--listen", f"unix:/tmp/{'a' * 200}"], "AF_UNIX path too long"),
        (["--listen", "unix:/tmp/s", "--socket-mode", "9"], "socket_mode '9': write permissions in octal digits"),
        (["--listen", "unix:/tmp/s", "--socket-owner", "no-such-user"], "name an existing user and group"),
        (["--listen", "unix:/tmp/s", "--socket-owner", ":"], "write USER, USER:GROUP or :GROUP"),
        (["--socket-mode", "600"], "they apply only to unix:PATH"),
        (["--metrics", "unix:/tmp/s"], "HTTP is served over TCP: write HOST:PORT"),
    ],
)
def test_refused(tmp_path: Path, options: list[str], message: str) -> None:
    result = refusal("serve", *options, "--create", "--store", f"sqlite:///{tmp_path / 's.sqlite'}")
    assert result.returncode == 2
    assert message in result.stderr


def test_clients_over_a_unix_socket(path: Path) -> None:
    async def value() -> object:
        async with AsyncMappedClient(f"unix:{path}", mapping="aaa") as client:
            await client.set("b", b"2")
            return await client.get("b")

    with serving(path.with_name("s.sqlite"), listen=f"unix:{path}"):
        assert asyncio.run(value()) == b"2"
        with MappedClient(f"unix:{path}", mapping="aaa") as client:
            assert client.get("b") == b"2"


def test_the_asyncio_client_names_the_path_where_nobody_listens(path: Path) -> None:
    async def value() -> None:
        async with AsyncMappedClient(f"unix:{path}") as client:
            await client.get("b")

    with pytest.raises(Exception, match=f"unix:{path}: No such file or directory: is a server running there"):
        asyncio.run(value())


def test_a_probe_over_a_unix_socket(path: Path) -> None:
    with serving(path.with_name("s.sqlite"), listen=f"unix:{path}"):
        reply = kvref("probe", f"unix:{path}", typed="get AA\n")
        assert (reply.returncode, r"< VALUE AA 8 12\r\n" in reply.stdout) == (0, True)


@pytest.mark.nightly
def test_the_suite_judges_over_a_unix_socket(path: Path) -> None:
    with serving(path.with_name("s.sqlite"), listen=f"unix:{path}"):
        report = str(path.with_name("report"))
        judged = kvref("conform", f"unix:{path}", "--only", "KV-CORE-001", "--report", report)
        assert judged.returncode == 0, judged.stdout + judged.stderr
        assert f"unix:{path} as kvref" in judged.stdout
        missing = kvref("conform", f"unix:{path}x", "--only", "KV-CORE-001", "--report", report)
        assert (missing.returncode, f"cannot reach unix:{path}x" in missing.stdout + missing.stderr) == (2, True)
