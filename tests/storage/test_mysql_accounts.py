"""Logins that fail: whatever a server sends, one line says why and names the fix."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from kvref.errors import StoreError
from kvref.storage.mysql.login import PASSWORD, parse

SECRET = "hidden-from-all"  # never shown
_CAPABILITIES = 0x00FFF7DF  # of MySQL 8.0, without TLS


def packet(payload: bytes, number: int) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def greeting(plugin: str = "mysql_native_password", capabilities: int = _CAPABILITIES) -> bytes:
    head = b"\x0a8.0.99\0" + struct.pack("<I", 7) + b"12345678\0" + struct.pack("<H", capabilities & 0xFFFF)
    more = struct.pack("<BHHB", 45, 2, capabilities >> 16, 21) + bytes(10) + b"123456789012\0" + plugin.encode() + b"\0"
    return packet(head + more, 0)


def error(code: int, text: str, number: int = 0) -> bytes:
    return packet(b"\xff" + struct.pack("<H", code) + b"#HY000" + text.encode(), number)


def switch(plugin: str, data: bytes = b"12345678901234567890\0") -> bytes:
    return packet(b"\xfe" + plugin.encode() + b"\0" + data, 2)


@contextmanager
def scripted(*parts: bytes, path: Path | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """Serve one client: send each part after something was received, the first at once, then close.

    Gives the DSN and what the client sent.
    """
    received: list[bytes] = []

    def serve() -> None:
        client, _ = listening.accept()
        with client:
            for number, part in enumerate(parts):
                if number:
                    received.append(client.recv(65536))
                client.sendall(part)
            client.shutdown(socket.SHUT_WR)
            while more := client.recv(65536):
                received.append(more)

    family = socket.AF_INET if path is None else socket.AF_UNIX
    with socket.socket(family) as listening:
        listening.bind(("127.0.0.1", 0) if path is None else str(path))
        listening.listen()
        thread = Thread(target=serve)
        thread.start()
        try:
            where = f"/?unix_socket={path}" if path else f"127.0.0.1:{listening.getsockname()[1]}/"
            yield f"mysql://kv@{where}", received
        finally:
            thread.join()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        # Other protocols.
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "InternalError: Packet sequence number wrong.*usually 3306"),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "usually 3306"),
        ([b"\x05\x00\x00\x00\x0b\x08\x05\x1a\x00"], "not a login of MySQL's.*usually 3306"),  # MySQL's X protocol
        ([packet(b"\x0a8.0", 0)], "not a login of MySQL's.*usually 3306"),
        ([packet(b"", 0)], "not a login of MySQL's.*usually 3306"),
        ([greeting()[:20]], "2013 .*closed the connection during the login"),
        ([b""], "2013 .*closed the connection during the login"),
        ([greeting(), b""], "2013 .*closed the connection during the login"),
        # Refusals instead of a greeting.
        ([error(1040, "Too many connections")], r"1040 Too many connections: close .* \?connections=N"),
        ([error(1129, "Host 'x' is blocked")], "1129 Host 'x' is blocked: .*FLUSH HOSTS"),
        ([error(1130, "Host 'x' is not allowed")], "1130 Host 'x' is not allowed: create an account for this host"),
        # Refusals of the account.
        ([greeting(), error(1045, "Access denied", 2)], "1045 Access denied: check the user.*if the account requires"),
        ([greeting(), error(1698, "Access denied", 2)], r"1698 Access denied: .*operating system.*\?unix_socket=PATH"),
        ([greeting(), error(1820, "You must", 2)], "1820 You must: give the account a new password: ALTER USER"),
        ([greeting(), error(1862, "Expired.", 2)], "1862 Expired: give the account a new password: ALTER USER"),
        ([greeting(), error(3118, "Locked", 2)], "3118 Locked: unlock it: ALTER USER … ACCOUNT UNLOCK"),
        ([greeting(), error(4151, "Locked", 2)], "4151 Locked: unlock it"),
        ([greeting(), error(3159, "Insecure", 2)], r"3159 Insecure: name the CA .*\?ssl_ca=PATH"),
        ([greeting(), error(1203, "max_user_connections", 2)], r"1203 max_user_connections: .*\?connections=N"),
        ([greeting(), error(1524, "Plugin 'x' is not loaded", 2)], "1524 .*supported method: ALTER USER"),
        ([greeting(), error(1251, "Client does not support", 2)], "1251 .*supported method: ALTER USER"),
        ([greeting(), error(9999, "Something else", 2)], "9999 Something else$"),
        # Methods that are not there.
        ([greeting(), switch("auth_gssapi_client")], "2059 .*auth_gssapi_client.*supported method: ALTER USER"),
        ([greeting(), switch("parsec")], "2059 .*parsec.*supported method: ALTER USER"),
        ([greeting(), switch("mysql_old_password")], "2059 .*mysql_old_password.*supported method: ALTER USER"),
        ([greeting(), switch("no_such_method")], "2059 .*no_such_method.*supported method: ALTER USER"),
        ([greeting(), switch("authentication_webauthn_client")], "supported method: ALTER USER"),
        ([greeting(capabilities=0xF7DF), packet(b"\xfe", 2)], "unknown auth switch.*supported method: ALTER USER"),
        ([greeting(), switch("caching_sha2_password"), packet(b"\x01\x09", 4)], "Unknown result for fast auth"),
        ([greeting(), switch("caching_sha2_password"), packet(b"\x01", 4)], "not a login of MySQL's"),
        ([greeting(), switch("sha256_password"), packet(b"\x01no key", 4)], "not a login of MySQL's"),
    ],
)  # fmt: skip
def test_a_login_that_fails(parts: list[bytes], message: str) -> None:
    with scripted(*parts) as (dsn, received):
        login = parse(dsn, {PASSWORD: SECRET})
        with pytest.raises(StoreError, match=f"^store {dsn}: .*{message}") as raised:
            login.connect(1.0)
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)
    assert all(SECRET.encode() not in each for each in received)


@pytest.mark.parametrize("package", ["nacl", "cryptography"])
def test_a_method_whose_package_is_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "nacl", None)  # an import of it fails
    monkeypatch.setattr("pymysql._auth._nacl_bindings", False)
    monkeypatch.setattr("pymysql._auth._have_cryptography", False)
    asks = {
        "nacl": [switch("client_ed25519", b"1" * 32)],
        "cryptography": [switch("sha256_password"), packet(b"\x01key", 4)],
    }[package]
    with scripted(greeting(), *asks) as (dsn, _), pytest.raises(StoreError, match=r"pip install 'kvref\[mysql\]'$"):
        parse(dsn, {PASSWORD: SECRET}).connect(1.0)


@pytest.mark.parametrize("method", ["mysql_clear_password", "dialog"])
def test_a_password_is_sent_in_clear_to_nobody_who_can_be_overheard(method: str) -> None:
    message = r"in clear, .* not encrypted: .*\?ssl_ca=PATH, or \?unix_socket=PATH"
    with (
        scripted(greeting(), switch(method, b"\x04Password: ")) as (dsn, received),
        pytest.raises(StoreError, match=message),
    ):
        parse(dsn, {PASSWORD: SECRET}).connect(1.0)
    assert all(SECRET.encode() not in each for each in received)


def test_pam_over_a_unix_socket(tmp_path: Path) -> None:
    """The password is the answer to each hidden prompt, whatever its words, and to no other."""
    begin, ok = greeting(), packet(b"\0\0\0\2\0\0\0", 4)
    hidden, shown = (switch("dialog", flag + b"PIN: ") for flag in (b"\4", b"\2"))
    for name, parts, sent in (("hidden", (begin, hidden, ok), True), ("shown", (begin, shown), False)):
        with scripted(*parts, path=tmp_path / name) as (dsn, received), pytest.raises(StoreError) as raised:
            parse(dsn, {PASSWORD: SECRET}).connect(1.0)
        assert ((SECRET.encode() + b"\0") in b"".join(received)) is sent
        assert ("prompt 'PIN: ' of PAM is not supported" in str(raised.value)) is not sent


def test_no_password() -> None:
    message = r"put it into KVREF_MYSQL_PASSWORD, or into a file named by \?password_file=PATH$"
    with (
        scripted(greeting(), error(1045, "Access denied (using password: NO)", 2)) as (dsn, _),
        pytest.raises(StoreError, match=message),
    ):
        parse(dsn, {}).connect(1.0)


def test_a_port_where_the_client_begins() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        dsn = f"mysql://kv@127.0.0.1:{silent.getsockname()[1]}/?timeout=1"
        with pytest.raises(StoreError, match=r"no answer within 1 s: .* not the port of a MySQL or MariaDB server"):
            parse(dsn, {}).connect(1.0)
