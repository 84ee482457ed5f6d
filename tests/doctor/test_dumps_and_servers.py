"""A dump gets the verdicts that a server gets in which it was loaded: scripts of people's, and statements at random."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from click.testing import CliRunner
from doctor.dump_statements import scripts
from doctor.dumps import CONFIGURATION, UNDERSTOOD
from helpers.live import MYSQL_8, missing_skips
from hypothesis import HealthCheck, Phase, given, settings

from kvref.cli import main
from kvref_testbed import targets
from kvref_testbed.targets.servers import SQLServer

pytestmark = pytest.mark.live
SCHEMAS = ("innodb_memcache", "shop")
TABLES = 12
# Names of indexes on columns that the statements use, and tables that they make of one.
MAPPED = (
    ("k", "v", "PRIMARY"),
    ("k", "v", "u"),
    ("k", "w|v", "k"),
    ("v", "k", "v"),
    ("Y", "x", "Y"),
    ("w", "x", "u2"),
    ("x", "w", "c1"),
)
COPIES = ("", "b", "c", "d", "e")


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with ExitStack() as stack:
        with missing_skips():
            started = stack.enter_context(targets.sql_server(request.param))
        yield started


@pytest.fixture(scope="module")
def client(programs: Path) -> Path:
    return programs / "mysql"


def clear(server: SQLServer) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for schema in SCHEMAS:
            cursor.execute(f"DROP DATABASE IF EXISTS {schema}")


def header(server: SQLServer) -> str:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        found: Any = cursor.fetchone()
    return f"-- Server version\t{found[0]}\n"


def verdicts_of(*arguments: str) -> dict[str, tuple[object, ...]]:
    """Return state, rule and findings of each row."""
    result = CliRunner().invoke(main, ["doctor", *arguments, "--profile", "mysql-8.0", "--json", "-"])
    assert result.stdout, result.output
    return {
        row["name"]: (
            row["state"],
            row["rule"],
            sorted((each["feature"], sorted(each["where"])) for each in row["findings"]),
        )
        for row in json.loads(result.stdout)["rows"]
    }


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_scripts(server: SQLServer, client: Path, tmp_path: Path, name: str) -> None:
    dump = UNDERSTOOD[name]
    if server.version.startswith("1") and not dump.mariadb:
        pytest.skip("MariaDB has no such statement")
    clear(server)
    text = f"{header(server)}{dump.text}"
    (tmp_path / "x.sql").write_text(text)
    command = [str(client), "--no-defaults", "--user=root", f"--socket={server.socket}"]
    subprocess.run(command, input=text.encode(), check=True, capture_output=True, timeout=60)
    assert verdicts_of("--store", server.dsn) == verdicts_of(str(tmp_path / "x.sql"))


def rows() -> str:
    """Return rows of containers for each table that the statements may make."""
    found = [
        f"('t{n}{copy}{index}', 'shop', 't{n}{copy}', '{key}', '{value}', '0', 'w', '0', '{index}')"
        for n in range(TABLES)
        for copy in COPIES
        for key, value, index in MAPPED
    ]
    return f"INSERT INTO innodb_memcache.containers VALUES {', '.join(found)}"


@pytest.mark.nightly
def test_statements_at_random(server: SQLServer, tmp_path: Path) -> None:
    usable = 0
    begin = [
        *(each.strip() for each in CONFIGURATION.split(";\n") if each.strip()),
        "DELETE FROM innodb_memcache.containers",
    ]
    begin += [
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        "USE shop",
        "CREATE TABLE parent (k VARCHAR(20) PRIMARY KEY)",
    ]

    @settings(
        max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    @given(scripts(TABLES))
    def check(of_tables: list[list[str]]) -> None:
        nonlocal usable
        clear(server)
        statements = [*begin, *accepted(server, begin, [statement for each in of_tables for statement in each]), rows()]
        (tmp_path / "x.sql").write_text(header(server) + ";\n".join(statements) + ";\n")
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(rows())
            connection.commit()
        here, dump = verdicts_of("--store", server.dsn), verdicts_of(str(tmp_path / "x.sql"))
        judged = {name: verdict for name, verdict in dump.items() if verdict[0] != "cannot tell"}
        assert len(judged) > len(here) / 2
        different = {name: (here[name], verdict) for name, verdict in judged.items() if here[name] != verdict}
        assert not different, statements
        usable += sum(each[0] == "usable" for each in judged.values())

    check()
    assert usable > 50


def accepted(server: SQLServer, begin: Sequence[str], statements: Sequence[str]) -> list[str]:
    """Run statements; return those that the server does not refuse."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in begin:
            cursor.execute(statement)
        done = []
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError:
                continue
            done.append(statement)
        connection.commit()
    return done
