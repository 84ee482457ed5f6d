"""The account of the documentation: its privileges are enough for every verb, and each one that is missing is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, MYSQL_9
from helpers.serving import ask, serving

from kvref.cli import main
from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data-sources.md"
USER = "'kvref'@'127.0.0.1'"
PASSWORD = "s3cret-ü"
VERBS = (
    b"set n 1 0 1\r\n1\r\n", b"set n 1 0 1\r\n2\r\n", b"add m 0 0 1\r\nx\r\n", b"replace m 0 0 1\r\ny\r\n",
    b"append m 0 0 1\r\n!\r\n", b"prepend m 0 0 1\r\n!\r\n", b"incr n 5\r\n", b"decr n 2\r\n", b"get n m AA\r\n",
    b"get @>=m\r\n", b"get @@aaa.n\r\n", b"get @@aaa\r\n", b"bind aaa\r\n", b"delete m\r\n",
)  # fmt: skip


def statements() -> list[str]:
    """Return the statements of the documentation that create the account."""
    found = re.findall(r"^((?:CREATE USER|GRANT) .*?);", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == 3, found
    return [each.replace("'...'", f"'{PASSWORD}'") for each in found]


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb", MYSQL_9])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


@pytest.fixture
def dsn(database: SQLServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the DSN of the account of the documentation."""
    sql(database, *statements())
    monkeypatch.setenv("KVREF_MYSQL_PASSWORD", PASSWORD)
    yield f"mysql://kvref@{database.host}:{database.port}/"
    rows = ("DELETE FROM test.demo_test", "INSERT INTO test.demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)")
    sql(database, f"DROP USER {USER}", *rows)


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_they_are_enough_for_every_verb(dsn: str, profile: str) -> None:
    with serving(dsn, "--profile", profile) as served, served.connect() as client:
        answers = [ask(client, verb) for verb in VERBS]
        assert answers[:7] == [b"STORED\r\n"] * 6 + [b"7\r\n"]
        assert not any(b"ERROR" in answer or b"NOT" in answer for answer in answers)
        served.reload()
        with served.connect() as new:
            assert ask(new, b"get n\r\nflush_all\r\nget n\r\n") == b"VALUE n 1 1\r\n5\r\nEND\r\nOK\r\nEND\r\n"


def test_one_on_the_table_is_missing(database: SQLServer, dsn: str) -> None:
    with serving(dsn) as served, served.connect() as client:
        for privilege, command in (
            ("SELECT", b"get AA\r\n"),
            ("INSERT", b"set n 0 0 1\r\n1\r\n"),
            ("UPDATE", b"set AA 0 0 1\r\n1\r\n"),
            ("DELETE", b"delete AA\r\n"),
            ("DELETE", b"flush_all\r\n"),
        ):
            sql(database, f"REVOKE {privilege} ON test.demo_test FROM {USER}")
            answer = ask(client, command).decode()
            assert answer.startswith(f"SERVER_ERROR 1142 {privilege} command denied to user 'kvref'@")
            assert "demo_test" in answer
            sql(database, f"GRANT {privilege} ON test.demo_test TO {USER}")
            assert not ask(client, command).startswith(b"SERVER_ERROR")
        assert PASSWORD not in "".join(served.log)


def test_those_on_the_configuration_or_a_whole_table_are_missing(database: SQLServer, dsn: str) -> None:
    def refused(command: str, code: int = 2) -> str:
        result = CliRunner().invoke(main, [command, "--store", dsn])
        assert (result.exit_code, result.stdout, PASSWORD in result.stderr) == (code, "", False)
        return " ".join(result.stderr.split())

    sql(
        database,
        f"REVOKE SELECT ON innodb_memcache.* FROM {USER}",
        f"GRANT SELECT ON innodb_memcache.cache_policies TO {USER}",
    )
    for granted, lacking in (("config_options", "containers"), ("containers", "config_options")):
        sql(database, f"GRANT SELECT ON innodb_memcache.{granted} TO {USER}")
        for command, code in (("serve", 3), ("doctor", 2)):
            reply = f"configuration table innodb_memcache.{lacking}: 1142 SELECT command denied to user 'kvref'@"
            assert reply in refused(command, code)
        sql(database, f"REVOKE SELECT ON innodb_memcache.{granted} FROM {USER}")
    sql(database, f"GRANT SELECT ON innodb_memcache.* TO {USER}", f"REVOKE ALL ON test.demo_test FROM {USER}")
    assert "the account lacks SELECT on test.demo_test, or it does not exist (1142 SELECT command denied" in refused(
        "serve"
    )
    assert f"GRANT SELECT ON `test`.`demo_test` TO {USER}" in refused("serve")
