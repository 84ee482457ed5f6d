"""Accounts with other authentication methods than a password of MySQL's, and accounts that change while serving."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, missing_skips
from helpers.serving import ask, serving

from kvref.cli import main
from kvref_testbed import targets
from kvref_testbed.targets import SQLServer, mariadb_plugins

pytestmark = [
    pytest.mark.live,
    # PyMySQL leaves the socket of a refused connection to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SECRET = "s3cret-ü"
NACL = importlib.util.find_spec("nacl") is not None
COMMANDS = (["doctor"], ["init"])


@pytest.fixture(scope="module")
def mariadb() -> Iterator[SQLServer]:
    with missing_skips():
        options = mariadb_plugins.options("mariadb-server", "auth_ed25519", targets.QUIET)
    with database_or_skip("mariadb", options) as server:
        yield server


def end_connections(server: SQLServer, user: str) -> None:
    """End the connections of an account."""
    for (number,) in sql(server, f"SELECT id FROM information_schema.processlist WHERE user = '{user}'"):
        sql(server, f"KILL {number}")


def test_ed25519_and_an_account_that_changes_while_serving(mariadb: SQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVREF_MYSQL_PASSWORD", SECRET)
    dsn = f"mysql://ed@{mariadb.host}:{mariadb.port}/"
    sql(mariadb, f"CREATE USER ed@'%' IDENTIFIED BY '{SECRET}'", "GRANT ALL ON *.* TO ed@'%'")
    with serving(dsn) as served, served.connect() as client:
        for change, code in (
            ("ACCOUNT LOCK", b"4151"),
            ("ACCOUNT UNLOCK", b""),
            ("IDENTIFIED BY 'another'", b"1045"),
            (f"IDENTIFIED VIA ed25519 USING PASSWORD('{SECRET}')", b"" if NACL else b"'pynacl' package is required"),
        ):
            sql(mariadb, f"ALTER USER ed@'%' {change}")
            end_connections(mariadb, "ed")
            answer = ask(client, b"get AA\r\n")
            if not code:
                assert answer.startswith(b"VALUE AA ")
                continue
            assert answer.startswith(b"SERVER_ERROR store mysql://ed@")
            assert code in answer
            assert answer.count(b"\r\n") == 1
    for command in COMMANDS:
        result = CliRunner().invoke(main, [*command, "--store", dsn])
        if NACL:
            assert result.exit_code == 0, result.output
        else:
            assert (result.exit_code, "pip install 'kvref[mysql]'" in result.stderr) == (2, True)


@pytest.mark.parametrize("name", [MYSQL_8, pytest.param("mysql-9.7", marks=pytest.mark.nightly)])
def test_methods_of_mysql_over_tcp_and_a_unix_socket(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with database_or_skip(name) as server:
        monkeypatch.setenv("KVREF_MYSQL_PASSWORD", SECRET)
        for method in ("sha256_password", "caching_sha2_password"):
            sql(server, f"CREATE USER kv@'%' IDENTIFIED WITH {method} BY '{SECRET}'", "GRANT ALL ON *.* TO kv@'%'")
            for dsn in (
                f"mysql://kv@127.0.0.1:{server.port}/",
                f"mysql://kv@/?unix_socket={quote(str(server.socket))}",
            ):
                for command in COMMANDS:
                    result = CliRunner().invoke(main, [*command, "--store", dsn])
                    assert result.exit_code == 0, result.output
            sql(server, "DROP USER kv@'%'")
