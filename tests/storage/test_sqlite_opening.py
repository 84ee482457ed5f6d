"""SQLite files that cannot be opened as they are, or that opening changes: the cause and the fix are named."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kvref import profiles
from kvref.errors import StoreError
from kvref.storage.sqlite import file, schema
from kvref.storage.sqlite.errors import of_opening
from kvref.storage.sqlite.file import network_of
from kvref.storage.sqlite.schema import refuse_foreign
from kvref.storage.sqlite.store import SQLiteStore

NOBODY = 65534


def store(path: Path) -> SQLiteStore:
    return SQLiteStore(path, profiles.load("kvref"))


def mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file of an application, in SQLite's default journal mode."""
    made = tmp_path / "app.sqlite"
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)")
    return made


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "OPEN_WAIT", 0.1)
    monkeypatch.setattr(schema, "OPEN_WAIT", 0.1)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user without rights for the block; permissions do not count for root."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def refused(path: Path) -> str:
    with pytest.raises(StoreError, match=f"^store {path}: ") as raised:
        store(path)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_change_of_the_journal_mode_is_logged_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kvref.storage")
    assert mode(path) == "delete"
    store(path).close()
    assert mode(path) == "wal"
    (line,) = caplog.messages
    assert f"store {path}: the journal mode of the file was delete and is WAL from now on" in line
    assert f"sqlite3 {path} 'PRAGMA journal_mode = DELETE'" in line
    caplog.clear()
    store(path).close()
    store(path.with_name("new.sqlite")).close()  # no other program uses a new file
    assert not caplog.messages


def test_a_reader_of_a_file_that_is_not_in_wal_mode(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kvref.storage")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM orders").fetchall()
        reply = refused(path)
        assert "database is locked: the journal mode of the file is delete, and kvref needs WAL" in reply
        assert f"sqlite3 {path} 'PRAGMA journal_mode = WAL'" in reply
        assert any("waiting up to 0.1 s for another program to end" in line for line in caplog.messages)
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        reader.execute("COMMIT")
    store(path).close()


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.programs
def test_another_process_with_a_lock_is_named(path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert f"process {other.pid} (" in refused(path)
        with pytest.raises(StoreError, match=rf"database is locked: process {other.pid} \(.*end its transactions"):
            refuse_foreign(path, missing_is_new=False)
        other.communicate()


def test_paths_and_content(path: Path) -> None:
    folder = path.parent
    assert "it is a directory: name a file" in refused(folder)
    assert f"there is no directory {folder / 'none'}" in refused(folder / "none" / "x.sqlite")
    other = folder / "text.sqlite"
    other.write_text("no database, " * 100)
    assert "file is not a database: it is of another program, or encrypted" in refused(other)
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO orders (what) VALUES (?)", [("x" * 500,)] * 100)
        connection.commit()
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    assert "malformed: restore the file from a backup" in refused(path)


def test_errors_of_the_disk(path: Path) -> None:
    for code, text in ((sqlite3.SQLITE_FULL, "database or disk is full"), (sqlite3.SQLITE_IOERR, "disk I/O error")):
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code
        reply = str(of_opening(path, error))
        assert re.fullmatch(rf"store {path}: {text}: check the disk of {path.parent}, where \d+ bytes are free", reply)


def test_permissions(path: Path) -> None:
    for each in (path.parent, *path.parent.parents):  # pytest's folders are its user's
        if each.stat().st_uid == os.geteuid() and each != Path("/"):
            each.chmod(0o755)
    for file_mode, folder_mode in ((0o444, 0o777), (0o666, 0o555), (0o000, 0o777)):
        path.chmod(file_mode)
        path.parent.chmod(folder_mode)
        with as_nobody():
            reply = refused(path)
            assert f"needs permission to read and write {path} and its folder" in reply
        path.parent.chmod(0o755)
        path.chmod(0o644)
    assert mode(path) == "delete"


@pytest.mark.parametrize(
    ("kind", "found"), [("ext4", ""), ("nfs4", "nfs4"), ("cifs", "cifs"), ("fuse.sshfs", "fuse.sshfs")]
)
def test_a_disk_of_the_network(tmp_path: Path, kind: str, found: str) -> None:
    (tmp_path / "mount").mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        f"22 21 0:40 / {tmp_path} rw - ext4 /dev/sdb1 rw\n"
        f"23 22 0:41 /a {tmp_path}/mount rw shared:7 - {kind} server:/a rw\n"
    )
    assert network_of(tmp_path / "mount" / "x.sqlite", mounts) == found
    assert network_of(tmp_path / "mounted.sqlite", mounts) == ""
    assert network_of(tmp_path / "mount" / "x.sqlite", tmp_path / "none") == ""
