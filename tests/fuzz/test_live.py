"""Fuzz of live servers: a short run of each, in full length where KVREF_FAULT_LENGTH is full."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers.live import missing_skips, nightly
from helpers.serving import ask

from fuzz.live import FaultError, Fuzz
from fuzz.messages import Source, binary, text
from fuzz.other_clients import NAME, TextClient, WrongReplyError
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


def test_the_reader_takes_a_key_with_a_number_of_the_plugin() -> None:
    message = b"VALUE @<=k1@< 2 0 5\r\nEND\r\n\r\nVALUE a 2 3 5\r\nxyz\r\nEND\r\n"
    reader = TextReplies(plugin=True)
    reader.feed(message)
    reader.end()
    assert reader.count == 1
    with pytest.raises(MalformedError):
        TextReplies().feed(message)
    with pytest.raises(MalformedError):
        TextReplies(plugin=True).feed(message.replace(b" 0 5", b" 0 4"))


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


def test_a_client_notices_what_another_does_to_its_row(tmp_path: Path) -> None:
    with over_sqlite(tmp_path) as served, served.connect() as connection, served.connect() as other:
        client = TextClient(connection)
        client.go_on()
        assert ask(other, b"incr @@%b.counter 1\r\n" % NAME) == b"4\r\n"
        with pytest.raises(WrongReplyError, match="incr counter 3"):
            client.go_on()


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


def test_a_seed_gives_the_same_messages_again() -> None:

    for make in (text, binary):
        one, other = (Source(random.Random(3), make) for _ in range(2))
        assert [one.block(64) for _ in range(50)] == [other.block(64) for _ in range(50)]
