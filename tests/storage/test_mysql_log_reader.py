"""Events of a binary log by themselves: how far the log was read where a file of it ends."""

from __future__ import annotations

from struct import pack
from zlib import crc32

from kvref.storage.mysql.binlog.events import LogReader
from kvref.storage.mysql.binlog.positions import FilePoint, FilePosition, LogEnd

ROTATE, FORMAT, LIST = 4, 15, 163


def event(kind: int, end: int, body: bytes) -> bytes:
    header = pack("<IBIIIH", 7, kind, 1, 19 + len(body) + 4, end, 0)
    return header + body + crc32(header + body).to_bytes(4, "little")


def rotated(end: int, file: bytes) -> bytes:
    return event(ROTATE, end, pack("<Q", 4) + file)


def test_the_end_of_a_file_of_mariadb_is_none_of_the_next_one() -> None:
    """Otherwise all of the next file up to there counts as read."""
    reader = LogReader(mariadb=True, first=rotated(0, b"log.000001"))
    read = FilePosition(FilePoint(1, 4), 1)
    packets = [
        event(FORMAT, 256, bytes(57) + b"\1"),
        rotated(4159, b"log.000002"),
        rotated(0, b"log.000002"),
        event(FORMAT, 256, bytes(57) + b"\1"),
        event(LIST, 285, bytes(8)),
    ]
    seen: list[tuple[FilePoint, LogEnd | None]] = []
    for packet in packets:
        change = reader.read(packet)
        if change is not None and change.point is not None:
            read.add(change.point)
        seen.append((read.point, reader.end))
    head = packets[0][:9]
    assert seen == [
        (FilePoint(1, 256), LogEnd("log.000001", head, 256)),
        (FilePoint(1, 256), None),
        (FilePoint(1, 256), None),
        (FilePoint(2, 256), LogEnd("log.000002", head, 256)),
        (FilePoint(2, 285), LogEnd("log.000002", head, 285)),
    ]
