"""MySQL's statements on SQLite: what they leave behind and what they answer is what MySQL leaves and answers."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from helpers.live import target_or_skip
from helpers.statements import ALL, CASES, ROWS, T

from kvref_conformance.translation.session import Session, connect
from kvref_conformance.translation.translate import Translator, Untranslatable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class World:
    """A file, and the sessions opened on it."""

    file: Path
    translator: Translator = field(default_factory=lambda: Translator("8.0.33"))
    guard: threading.Lock = field(default_factory=threading.Lock)
    sessions: dict[str, Session] = field(default_factory=dict)

    def on(self, name: str) -> Session:
        if name not in self.sessions:
            self.sessions[name] = Session(self.file, self.translator, self.guard)
        return self.sessions[name]

    def run(self, *statements: str) -> Any:
        """Run statements; return the last one's rows or error number."""
        for statement in statements:
            result = self.on("s").execute(statement)
        return result["rows"] if "rows" in result else result["error"][0] if "error" in result else None

    def plain(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQLite's own SQL on a connection that is not a session, as a server's is."""
        with closing(connect(self.file, self.translator)) as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world.sqlite")
    yield made
    for session in made.sessions.values():
        session.close()


def older(tmp_path: Path) -> World:
    return World(tmp_path / "older.sqlite", Translator("5.6.14"))


@pytest.mark.parametrize(("statements", "expected"), CASES.values(), ids=CASES)
def test_statement_answers_as_in_mysql(world: World, statements: list[str], expected: object) -> None:
    assert world.run(*statements) == expected


@pytest.mark.nightly
@pytest.mark.live
def test_mysql_answers_so_itself() -> None:
    """The table above is what MySQL 8.0.33 says, not what we believe."""
    with target_or_skip("mysql-8.0-plugin") as target:
        assert target.sql is not None
        socket = target.sql.partition("unix_socket=")[2]
        answers = {name: _of_mysql(socket, statements) for name, (statements, _) in CASES.items()}
    assert answers == {name: expected for name, (_, expected) in CASES.items()}


def _of_mysql(socket: str, statements: list[str]) -> object:
    connection = pymysql.connect(unix_socket=socket, user="root", autocommit=True)
    with closing(connection), connection.cursor() as cursor:
        for name in ("test", "d2"):
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute("CREATE DATABASE test")
        try:
            for statement in statements:
                cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            return error.args[0]
        shown = [
            [cell if isinstance(cell, int | str | None) else str(cell) for cell in row] for row in cursor.fetchall()
        ]
        return shown if cursor.description is not None else None


@pytest.mark.parametrize(
    ("version", "column", "options", "collation"),
    [
        ("8.0.33", "v varchar(9)", "", "utf8mb4_0900_ai_ci"),
        ("5.6.14", "v varchar(9)", "", "latin1_swedish_ci"),
        ("8.0.33", "v varchar(9) CHARACTER SET utf8", "", "utf8_general_ci"),
        ("8.0.33", "v varchar(9) CHARACTER SET utf8mb4", "CHARSET=latin1", "utf8mb4_0900_ai_ci"),
        ("5.6.14", "v varchar(9) CHARACTER SET utf8mb4", "", "utf8mb4_general_ci"),
        ("8.0.33", "v char(9) COLLATE latin1_bin", "", "latin1_bin"),
        ("8.0.33", "v text", "ENGINE=InnoDB DEFAULT CHARSET=latin1", "latin1_swedish_ci"),
        ("8.0.33", "v text", "DEFAULT CHARACTER SET latin1 COLLATE latin1_general_cs", "latin1_general_cs"),
    ],
)
def test_text_column_has_a_collation(tmp_path: Path, version: str, column: str, options: str, collation: str) -> None:
    (sql,) = Translator(version).translate(f"CREATE TABLE test.t ({column}) {options}")
    assert f"COLLATE {collation}" in sql


def test_unknown_character_set_is_refused() -> None:
    with pytest.raises(Untranslatable, match="gb18030"):
        Translator("8.0.33").translate("CREATE TABLE test.t (v varchar(9) CHARACTER SET gb18030)")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM t WHERE MATCH (v) AGAINST ('x')",
        "SHOW CREATE TABLE t",
        "CREATE PROCEDURE p() SELECT 1",
        "ALTER TABLE test.nowhere ADD x int",
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 'x'",
    ],
)
def test_statement_without_a_form_is_refused_by_name(statement: str) -> None:
    with pytest.raises(Untranslatable, match=r"no form in SQLite for .*"):
        Translator("8.0.33").translate(statement)


@pytest.mark.parametrize("options", ["ENGINE=MyISAM", "ENGINE=InnoDB PARTITION BY KEY (k) PARTITIONS 3"])
def test_table_that_innodb_does_not_know_has_a_name_no_container_gives(world: World, options: str) -> None:
    assert world.run(T.replace("ENGINE=InnoDB", options), ROWS, "SELECT COUNT(*) FROM test.t") == [[2]]
    assert world.plain("SELECT 1 FROM sqlite_master WHERE name = 'test.t'") == []


def test_check_is_read_and_forgotten_in_5_6(tmp_path: Path) -> None:
    world = older(tmp_path)
    assert world.run(T.replace("f int", "f int CHECK (f < 9)"), "INSERT INTO test.t VALUES ('a','v',9)", ALL) == [
        ["a", "v", 9]
    ]
    world.on("s").close()


def test_timestamp_is_not_null_in_5_6_unless_it_says_so(tmp_path: Path, world: World) -> None:
    table = "CREATE TABLE test.t (k int primary key, x timestamp, y timestamp null) ENGINE=InnoDB"
    insert = "INSERT INTO {} (k, x) VALUES (1, NULL)"
    for each, refuses in ((older(tmp_path), True), (world, False)):
        each.run(table, "INSERT INTO test.t VALUES (9, NULL, NULL)")
        assert each.run("SELECT x IS NULL, y IS NULL FROM test.t WHERE k = 9") == [[0 if refuses else 1, 1]]
        try:
            each.plain(insert.format('"test.t"'))
        except sqlite3.IntegrityError:
            assert refuses
        else:
            assert not refuses


def test_locking_read_takes_the_lock(world: World) -> None:
    world.run(T, ROWS, "BEGIN", "SELECT * FROM test.t FOR UPDATE")
    with (
        closing(sqlite3.connect(world.file, timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")
