"""DSNs of a MySQL server: their parts, and what is said of bad ones, never with the password in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvref.errors import ConfigError
from kvref.storage.mysql_login import PASSWORD, parse


def test_tcp() -> None:
    login = parse("mysql://us%40er@db.example:3307/?connections=4", {PASSWORD: "s3cret"})
    assert (login.user, login.host, login.port, login.socket) == ("us@er", "db.example", 3307, "")
    assert (login.password, login.connections, login.tls) == ("s3cret", 4, {})
    assert "s3cret" not in login.text


def test_socket_and_password_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("päss \n", encoding="utf-8")
    login = parse(f"mysql://root@/?unix_socket=/run/db.sock&password_file={secret}", {PASSWORD: "other"})
    assert (login.host, login.socket, login.password, login.port) == ("", "/run/db.sock", "päss ", 3306)


def test_tls() -> None:
    login = parse("mysql://root@db/?ssl_ca=/ca.pem&ssl_cert=/c.pem&ssl_key=/k.pem", {})
    assert login.tls == {"ca": "/ca.pem", "cert": "/c.pem", "key": "/k.pem"}


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("mysql://root:hidden@db/", r"store 'mysql://root:…@db/': .* KVREF_MYSQL_PASSWORD, or into a file"),
        ("mysql://root:hidden@db/shop", r"store 'mysql://root:…@db/shop': write mysql://USER@HOST"),
        ("mysql://db/", r"store 'mysql://db/': write mysql://USER@HOST"),
        ("mysql://root@/", "write mysql://USER@HOST"),
        ("mysql://root@db:99999/", "Port out of range"),
        ("mysql://root@db/?sslca=x", "unknown sslca"),
        ("mysql://root@db/?connections=0", "connections=0: from 1 to 1000"),
        ("mysql://root@db/?password_file=/no/such/file", "password_file: .*No such file"),
    ],
)
def test_bad_ones(dsn: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        parse(dsn, {})
    assert "hidden" not in str(raised.value)
