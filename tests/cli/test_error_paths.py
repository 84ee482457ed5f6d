"""Errors that a command line reaches: the commands of `error_paths.txt`, each with its exit code, and the form of their texts.

A line of the file is an exit code and a command. Other tests have the texts that matter. Nothing is started and nothing is reached: port 1 refuses each connection, and files are in a temporary folder.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import shlex
import sqlite3
import tempfile
from contextlib import chdir, closing
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from kvref.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
FILE = Path(__file__).with_name("error_paths.txt")
LOG = re.compile(r"\d{4}-\d\d-\d\dT\S+Z kvref: ")  # the beginning of a line of the server's log
MANY = """
profile = "mysql-9"
workers = 0
porfile = "kvref"
[settings]
maxcons = 5
innodb_api_trx_level = 9
[[listener]]
address = "tcp://127.0.0.1:1"
mapings = ["m"]
"""
ROW = "'test', 't', '{key}', '{value}', '0', '0', '0', 'PRIMARY'"


def make_files(folder: Path) -> None:
    """Write what the commands name."""
    (folder / "folder").mkdir()
    (folder / "text.txt").write_text("hello\n")
    (folder / "bad.toml").write_text("a = [\n")
    (folder / "many.toml").write_text(MANY)
    (folder / "empty.sql").write_text("CREATE TABLE t (a INT);\n")
    with closing(sqlite3.connect(folder / "other.sqlite")) as other:
        other.execute("CREATE TABLE t (a INT)")
    for name, definition, key, value in (
        ("good", "TABLE t (k VARCHAR(9) PRIMARY KEY, v TEXT)", "k", "v"),
        ("uuid", "TABLE t (k UUID PRIMARY KEY, v TEXT)", "k", "v"),
        ("untyped", "TABLE t (k VARCHAR(9) PRIMARY KEY, v)", "k", "v"),
        ("view", "VIEW t AS SELECT 1 AS k, 2 AS v", "k", "v"),
        ("column", "TABLE t (k VARCHAR(9) PRIMARY KEY, v TEXT)", "k", "V"),
    ):
        CliRunner().invoke(main, ["init", "--store", f"sqlite:///{folder}/{name}.sqlite"])
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as file:
            file.execute(f"CREATE {definition}")
            file.execute("DELETE FROM containers")
            file.execute(f"INSERT INTO containers VALUES ('m', {ROW.format(key=key, value=value)})")
            file.commit()


def commands() -> dict[str, int]:
    """Return the exit code of each command of the file."""
    lines = (line.split(" ", 1) for line in FILE.read_text().splitlines())
    return {command: int(code) for code, command in lines}


def reply(command: str) -> tuple[int, str]:
    """Return the exit code of a command and its text, without its usage and the server's log."""
    _, *words = shlex.split(command)
    result = CliRunner().invoke(main, words, prog_name="kvref")
    gc.collect()  # PyMySQL leaves the socket of a refused connection to it, which warns
    assert result.exception is None or isinstance(result.exception, SystemExit), (command, result.exception)
    lines = [line for line in result.output.splitlines() if not LOG.match(line)]
    if lines and lines[0].startswith("Usage: "):
        lines = lines[next(at for at, line in enumerate(lines) if line.startswith("Error: ")) :]
    return result.exit_code, "\n".join(lines)


@pytest.fixture(scope="module")
def reached() -> dict[str, tuple[int, str]]:
    """Return the exit code and the text of each command, run in one folder."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KVREF_")}
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, environment, clear=True):
        os.environ["KVREF_STATE"] = f"{folder}/state"
        os.environ["COLUMNS"] = "4000"
        make_files(Path(folder))
        gc.freeze()  # what other tests of this process have left is not looked at again for each command
        try:
            with chdir(folder):
                return {command: reply(command) for command in commands()}
        finally:
            gc.unfreeze()
            logger.handlers[:] = handlers
            logger.setLevel(level)


def test_every_error_has_its_exit_code(reached: dict[str, tuple[int, str]]) -> None:
    assert {command: code for command, (code, _) in reached.items()} == commands()
    assert set(commands().values()) == {2, 3}


def test_every_error_has_a_text_without_the_number_of_an_error_or_a_traceback(
    reached: dict[str, tuple[int, str]],
) -> None:
    for command, (_, text) in reached.items():
        assert text.startswith("Error: "), (command, text)
        assert not re.search(r"\[Errno|Traceback|^Exit: |(?<!there) is no (?!such)\w+", text, re.MULTILINE), command
