"""Fuzz of live servers: a short run of each, in full length where KVREF_FAULT_LENGTH is full."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.live import missing_skips, nightly

from fuzz.live import FaultError, Fuzz
from fuzz.record import FULL
from fuzz.replies import BinaryReplies, MalformedError, TextReplies
from fuzz.runs import RUNS, Run, held
from fuzz.worlds import over_sqlite

MESSAGES = 10_000_000 if FULL else 20_000
FEWEST = 3_000


@pytest.mark.live
@pytest.mark.timeout(3600 if FULL else 120)
@pytest.mark.parametrize(
    "run", [nightly(each) if each.database == "mysql-8.0" else each for each in RUNS], ids=lambda run: run.name
)
def test_any_messages(run: Run) -> None:
    with missing_skips():
        serving = run.serving()
        served = serving.__enter__()
    try:
        messages = max(FEWEST, int(MESSAGES * run.share))
        figures = held(run, served, messages, 20 if FULL else 7, lambda _: None)
    finally:
        serving.__exit__(None, None, None)
    assert figures.messages >= messages
    assert figures.replies > messages / 10
    assert figures.other_replies > 10


WELL = [
    b"STORED\r\nVALUE k 0 6\r\na\r\nb\0\xff\r\nEND\r\nSERVER_ERROR x y\r\n12\r\nSTAT a b\r\nEND\r\n",
    b"VALUE a\r 1 2 3\r\nxy\r\nEND\r\nVA 2 t-1 kx\r\n\r\n\r\nHD Oabc\r\nEN\r\nNF k\xff\r\nME k exp=-1 la=3\r\nMN\r\n",
    b"VALUE k 0 0\r\n\r\nEND\r\nERROR\r\n\r\n",
    b"key=a%20b exp=-1 la=3 cas=1 fetch=no cls=0 size=4\nEND\r\nBADCLASS invalid class id\r\nError TLS not enabled\r\n",
]


@pytest.mark.parametrize("message", WELL)
def test_the_reader_takes_what_is_well_formed_in_any_pieces(message: bytes) -> None:
    for step in (1, 3, len(message)):
        reader = TextReplies()
        for at in range(0, len(message), step):
            reader.feed(message[at : at + step])
        reader.end()


@pytest.mark.parametrize(
    "message",
    [
        b"STORE\r\n", b"VALUE k 0 3\r\nabcd\r\nEND\r\n", b"STORED\r\nxSTORED\r\n", b"VALUE k 0 3\r\nab", b"END\n",
        b"VALUE  0 3\r\nabc\r\n", b"VA 3\r\nab\r\n\r\n", b"STORED", b"-1\r\n",
    ],
)  # fmt: skip
def test_the_reader_refuses_what_is_not(message: bytes) -> None:
    reader = TextReplies()
    with pytest.raises(MalformedError):
        reader.feed(message)
        reader.end()


def test_the_reader_of_frames() -> None:
    frame = b"\x81\x00\x00\x01\x04\x00\x00\x00\x00\x00\x00\x07" + bytes(12) + b"\0\0\0\0kxy"
    for wrong in (b"\x80" + frame[1:], frame[:8] + b"\0\0\0\4" + frame[12:], frame[:5] + b"\1" + frame[6:], frame[:-1]):
        reader = BinaryReplies()
        with pytest.raises(MalformedError):
            reader.feed(wrong)
            reader.end()
    reader = BinaryReplies()
    for byte in frame * 2:
        reader.feed(bytes([byte]))
    reader.end()
    assert reader.count == 2


def test_a_server_that_is_gone_or_says_it_failed_is_a_fault(tmp_path: Path) -> None:
    with over_sqlite(tmp_path) as served:
        fuzz = Fuzz(served, 1)
        assert fuzz.run(1000).messages >= 1000
        served.log.append("kvref: a command failed\n")
        with pytest.raises(FaultError, match="a command failed"):
            Fuzz(served, 1).run(1000)
        served.log.clear()
        fuzz = Fuzz(served, 1)
        served.process.kill()
        with pytest.raises((FaultError, OSError)):
            fuzz.run(100_000)
