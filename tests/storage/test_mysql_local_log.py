"""Whether a log was read up to its end, by the size of its newest file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kvref.storage.mysql.binlog.local_log import RESTART, LocalLog, Mark
from kvref.storage.mysql.binlog.positions import LogEnd

HEAD = bytes(range(9))
START = b"\xfebin" + HEAD + b"the rest of the first event"


def end(offset: int, number: int = 1, head: bytes = HEAD) -> LogEnd:
    return LogEnd(f"log.{number:06}", head, offset)


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    (tmp_path / "log.000001").write_bytes(START)
    return LocalLog(str(tmp_path))


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"event")


def test_nothing_is_known_before_the_first_end(log: LocalLog) -> None:
    assert not log.is_read()
    assert log.written() is None
    assert not log.has_read(Mark(0, 0))


def test_a_file_is_read_if_nothing_is_behind_the_end(log: LocalLog, tmp_path: Path) -> None:
    size = len(START)
    log.read_to(end(size))
    assert log.is_read()
    append(tmp_path / "log.000001")
    assert not log.is_read()
    written = log.written()
    assert written is not None
    assert not log.has_read(written)
    log.read_to(end(size + 5))
    assert log.is_read()
    assert log.has_read(written)


def test_a_newer_file_is_not_read_until_an_end_names_it(log: LocalLog, tmp_path: Path) -> None:
    log.read_to(end(len(START)))
    written = log.written()
    assert written is not None
    assert log.is_read()
    (tmp_path / "log.000002").write_bytes(START)
    time.sleep(2 * RESTART)
    assert not log.is_read()
    assert log.written() is None
    log.read_to(end(4, 2))
    assert not log.is_read()
    assert log.has_read(written)  # although the offset is smaller
    log.read_to(end(len(START), 2))
    assert log.is_read()


def test_what_is_written_is_not_known_once_the_server_goes_on_in_the_next_file(log: LocalLog, tmp_path: Path) -> None:
    log.read_to(end(len(START)))
    assert log.is_read()
    append(tmp_path / "log.000001")  # its last event, which names the next file
    (tmp_path / "log.000002").write_bytes(START)
    append(tmp_path / "log.000002")
    assert log.written() is None
    assert not log.is_read()


def test_numbers_of_files_may_grow_longer(tmp_path: Path) -> None:
    log = LocalLog(str(tmp_path))
    (tmp_path / "log.999999").write_bytes(START)
    log.read_to(end(len(START), 999999))
    assert log.is_read()
    (tmp_path / "log.1000000").write_bytes(START)
    time.sleep(2 * RESTART)
    assert not log.is_read()


@pytest.mark.parametrize(
    ("start", "head", "problem"),
    [
        (START, HEAD[::-1], "log.000001 is encrypted or of another server"),
        (b"\xfdbin" + HEAD, HEAD, "log.000001 is encrypted or of another server"),
        (b"", HEAD, "log.000001 is encrypted or of another server"),
        (None, HEAD, "No such file or directory"),
    ],
)
def test_another_file_is_not_used(
    log: LocalLog, tmp_path: Path, start: bytes | None, head: bytes, problem: str
) -> None:
    path = tmp_path / "log.000001"
    if start is None:
        path.unlink()
    else:
        path.write_bytes(start)
    log.read_to(end(len(start or b""), head=head))
    assert problem in log.problem
    assert not log.is_read()
    assert log.written() is None
    (tmp_path / "log.000002").write_bytes(START)
    log.read_to(end(len(START), 2))
    assert log.is_read()
    assert log.problem == ""


def test_a_file_without_a_number_is_not_used(log: LocalLog) -> None:
    log.read_to(LogEnd("log", HEAD, 4))
    assert log.problem == "log has no number"
    assert not log.is_read()


def test_a_closed_log_is_not_read(log: LocalLog) -> None:
    log.read_to(end(len(START)))
    log.close()
    log.close()
    assert not log.is_read()
    assert log.written() is None


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "nothing"):
        with pytest.raises(OSError, match=name):
            LocalLog(str(tmp_path / name))
