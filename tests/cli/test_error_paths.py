"""Every error that a command line reaches, in `error_paths.txt`: the command, its exit code and its text.

    python tests/cli/test_error_paths.py    # writes the texts and exit codes of the commands that the file lists

Nothing is started and nothing is reached: port 1 refuses each connection, and files are in a temporary folder.
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


def commands() -> list[str]:
    return [line[2:] for line in FILE.read_text().splitlines() if line.startswith("$ ")]


def said(command: str) -> str:
    """Return the exit code of a command and its text, without its usage and the server's log."""
    _, *words = shlex.split(command)
    result = CliRunner().invoke(main, words, prog_name="kvref")
    gc.collect()  # PyMySQL leaves the socket of a refused connection to it, which warns
    assert result.exception is None or isinstance(result.exception, SystemExit), (command, result.exception)
    lines = [line for line in result.output.splitlines() if not LOG.match(line)]
    if lines and lines[0].startswith("Usage: "):
        lines = lines[next(at for at, line in enumerate(lines) if line.startswith("Error: ")) :]
    return "\n".join([f"exit code {result.exit_code}", *lines])


def reached() -> str:
    """Run all commands in a folder of their own and return the content of the file."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KVREF_")}
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, environment, clear=True):
        os.environ["KVREF_STATE"] = f"{folder}/state"
        os.environ["COLUMNS"] = "4000"
        make_files(Path(folder))
        try:
            with chdir(folder):
                parts = [f"$ {command}\n{said(command)}\n" for command in commands()]
        finally:
            logger.handlers[:] = handlers
            logger.setLevel(level)
        return "\n".join(parts).replace(folder, "DIR")


def test_every_error_has_its_text_and_exit_code() -> None:
    assert reached() == FILE.read_text()


def test_no_text_has_the_number_of_an_error_or_a_traceback() -> None:
    text = FILE.read_text()
    assert not re.findall(r"\[Errno.*|Traceback.*|^Exit: .*|(?<!there) is no (?!such)\w+", text, re.MULTILINE)
    assert not re.findall(r"^exit code [^23]$", text, re.MULTILINE)


if __name__ == "__main__":
    FILE.write_text(reached())
