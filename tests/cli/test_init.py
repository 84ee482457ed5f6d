"""`kvref init` on files of other programs: what is not kvref's stays as it is, and one text names it and the fix."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvref.cli import main

LACKS = "the table {} is not the plugin's, it lacks "


def run(command: str, path: Path, *options: str) -> Result:
    listen = ["--listen", "127.0.0.1:0"] if command == "serve" else []
    return CliRunner().invoke(main, [command, *listen, "--store", f"sqlite:///{path}", *options])


def made(folder: Path, *statements: str) -> Path:
    path = folder / "app.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.mark.parametrize(
    ("statement", "options", "message"),
    [
        ("CREATE TABLE containers (container_id INTEGER PRIMARY KEY, kind TEXT)", [], LACKS.format("containers")),
        ("CREATE TABLE Containers (name TEXT, db_schema TEXT)", [], LACKS.format("containers")),
        ("CREATE VIEW containers AS SELECT 1 AS name", [], LACKS.format("containers")),
        ("CREATE TABLE config_options (key TEXT, value TEXT)", [], LACKS.format("config_options") + "name: "),
        ("CREATE TABLE cache_policies (id INTEGER)", [], LACKS.format("cache_policies") + "policy_name, get_policy, "),
        ("CREATE TABLE demo_test (c1 TEXT)", ["--demo"], "the table demo_test is not kvref's, it lacks c2, c3, c4, c5"),
        ("CREATE TABLE cache (id INTEGER)", [], "there is a table 'cache' already: give the cache another name, --cache"),
        ("CREATE TABLE Pages (id INTEGER)", ["--cache", "pages"], "there is a table 'pages' already"),
        ("CREATE INDEX cache_expires ON orders (id)", [], "there is an index 'cache_expires' already: give the cache"),
        ("CREATE INDEX containers ON orders (id)", [], LACKS.format("containers")),
    ],
)  # fmt: skip
def test_a_table_of_another_program_is_named_and_nothing_is_written(
    tmp_path: Path, statement: str, options: list[str], message: str
) -> None:
    path = made(tmp_path, "CREATE TABLE orders (id INTEGER)", statement)
    before = path.read_bytes()
    result = run("init", path, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["app.sqlite"]


def test_init_serve_and_doctor_say_the_same_of_a_foreign_table(tmp_path: Path) -> None:
    path = made(tmp_path, "CREATE TABLE containers (container_id INTEGER PRIMARY KEY, kind TEXT)")
    texts = [run(command, path).stderr for command in ("init", "serve", "doctor")]
    ends = {text[text.index("the table") :] for text in texts}
    (end,) = ends
    assert end.startswith(LACKS.format("containers"))
    assert end.endswith(": name another file, or rename the table and run `kvref init`\n")


def test_an_application_gets_the_tables_next_to_its_own(tmp_path: Path) -> None:
    path = made(tmp_path, "CREATE TABLE cache (id INTEGER)", "CREATE TABLE config_options (name TEXT, value TEXT)")
    notes = run("doctor", path)
    assert "create the tables with `kvref init`" in notes.stderr
    assert run("init", path, "--cache", "pages").exit_code == 0
    assert tables(path) == {"cache", "pages", "containers", "config_options", "cache_policies"}
    assert run("doctor", path, "--profile", "kvref").exit_code == 0


def test_doctor_notes_that_the_journal_mode_will_change(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    assert run("init", path).exit_code == 0
    note = "the journal mode of the file is delete"
    assert note not in " ".join(run("doctor", path).stdout.split())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    assert note in " ".join(run("doctor", path).stdout.split())
