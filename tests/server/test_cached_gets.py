"""Gets of cached rows, alone and in one packet: with the name of the mapping, with a time, and in binary."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from server.in_process import SECONDS, Client, InProcess

from kvref import collations

GET, GETK = 0x00, 0x0C
EXPIRES_SOON = b"set soon 0 1 1\r\ns\r\n"
SHOWN = b"VALUE %b 0 1\r\n%b\r\nEND\r\n"
NAMED = b"get @@aaa.a\r\n"


@pytest.fixture
def process(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path / "file")


async def filled(client: Client) -> None:
    """Store rows, and get each twice: then they are cached."""
    assert await client.ask(b"set a 0 0 1\r\n1\r\nset b 0 0 1\r\n2\r\n", 2) == b"STORED\r\n" * 2
    for _ in range(2):
        await client.ask(b"get a\r\nget b\r\n", 6)


def frame(opcode: int, key: bytes, opaque: int) -> bytes:
    return struct.pack(">BBHIIIQ", 0x80, opcode, len(key), 0, len(key), opaque, 0) + key


def hit(opcode: int, key: bytes, opaque: int, data: bytes, cas: int) -> bytes:
    size = 4 + len(key) + len(data)
    return struct.pack(">BBHBBHIIQI", 0x81, opcode, len(key), 4, 0, 0, size, opaque, cas, 0) + key + data


def gatq(key: bytes, opaque: int) -> bytes:
    return struct.pack(">BBHBBHIIQI", 0x80, 0x1E, len(key), 4, 0, 0, 4 + len(key), opaque, 0, 0) + key


@contextmanager
def program_writes(process: InProcess) -> Iterator[None]:
    """Hold the write lock for the block, and change a row and add another one at its end."""
    program = sqlite3.connect(process.store.path, isolation_level=None)
    collations.register(program)
    program.execute("BEGIN IMMEDIATE")
    yield
    program.execute("UPDATE demo_test SET c2 = '3' WHERE c1 = 'a'")
    program.execute("INSERT INTO demo_test VALUES ('new', '4', 0, 90000, 0)")
    program.execute("COMMIT")
    program.close()


def cas_of(process: InProcess, key: str) -> int:
    connection = sqlite3.connect(process.store.path)
    collations.register(connection)
    [(number,)] = connection.execute("SELECT c4 FROM demo_test WHERE c1 = ?", (key,)).fetchall()
    connection.close()
    return int(number)


def test_a_row_that_a_batch_deletes_under_another_spelling_is_not_cached(tmp_path: Path) -> None:
    process = InProcess(tmp_path / "file", "kvref", "daemon_memcached_w_batch_size=2")

    async def play() -> None:
        async with process.clients(2) as (writer, reader):
            assert await writer.ask(b"set A 0 0 1\r\n1\r\nset z 0 0 1\r\n1\r\n", 2) == b"STORED\r\n" * 2
            assert await writer.ask(b"delete A\r\n") == b"DELETED\r\n"
            with closing(sqlite3.connect(process.store.path)) as program, program:
                collations.register(program)
                program.execute("UPDATE demo_test SET c1 = 'a' WHERE c1 = 'A'")
            for _ in range(2):
                assert await reader.ask(b"get a\r\n", 3) == SHOWN % (b"a", b"1")
            assert await writer.ask(b"set z 0 0 1\r\n2\r\n") == b"STORED\r\n"
            assert await reader.ask(b"get a\r\n") == b"END\r\n"

    asyncio.run(play())


@pytest.mark.parametrize("delete", [b"delete K\r\n", b"delete k\r\n", b"delete k        \r\n"])
def test_a_deleted_row_whose_key_is_shown_with_spaces_is_not_cached(tmp_path: Path, delete: bytes) -> None:
    # The profile shows CHAR with the spaces that fill it.
    columns = "k CHAR(9) NOT NULL COLLATE NOCASE PRIMARY KEY, v VARCHAR(20)"
    process = InProcess.over(tmp_path / "file", "mysql-5.6", columns)

    async def play() -> None:
        async with process.clients(1) as (client,):
            for _ in range(2):
                assert await client.ask(b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
                assert await client.ask(b"get k\r\n", 3) == SHOWN % (b"k", b"1")
                assert await client.ask(delete) == b"DELETED\r\n"
                assert await client.ask(b"get k\r\n") == b"END\r\n"

    asyncio.run(play())


@pytest.mark.parametrize("sticky", [True, False])
def test_gets_that_name_the_mapping_show_their_words_alone_and_in_one_packet(process: InProcess, sticky: bool) -> None:
    process.server.shared.sticky_mapping = sticky

    async def play() -> None:
        async with process.clients(1) as (client,):
            await filled(client)
            for _ in range(3):
                assert await client.ask(NAMED, 3) == SHOWN % (b"@@aaa.a", b"1")
            assert await client.ask(NAMED + b"get b\r\nget @@aaa.b\r\nget a\r\n" + NAMED, 15) == (
                SHOWN % (b"@@aaa.a", b"1")
                + SHOWN % (b"b", b"2")
                + SHOWN % (b"@@aaa.b", b"2")
                + SHOWN % (b"a", b"1")
                + SHOWN % (b"@@aaa.a", b"1")
            )
            # A write of the row is shown at once, whatever word it is named by.
            shown = SHOWN % (b"@@aaa.a", b"3")
            assert await client.ask(b"set a 0 0 1\r\n3\r\n" + NAMED * 2, 7) == b"STORED\r\n" + shown * 2
            # These gets are accesses of the row's key, which is cached by its set.
            for times in (0, 2):
                assert await client.ask(b"set a 0 0 1\r\n3\r\n") == b"STORED\r\n"
                if times:
                    assert await client.ask(NAMED * times, 3 * times) == shown * times
                assert await client.ask(b"mg a h\r\n") == b"HD h%d\r\n" % (times > 0)

    asyncio.run(play())


def test_a_named_word_longer_than_a_key_may_be_is_rejected_although_its_key_is_cached(tmp_path: Path) -> None:
    key = b"k" * 28
    name = b"@@aaa."
    process = InProcess(tmp_path / "file", "kvref", "key_size_max=32")

    async def play() -> None:
        async with process.clients(1) as (client,):
            assert await client.ask(b"set " + key + b" 0 0 1\r\n1\r\n") == b"STORED\r\n"
            for _ in range(2):
                await client.ask(b"get " + key + b"\r\n", 3)
                await client.ask(b"get " + name + b"k\r\n")
            assert (await client.ask(b"get " + name + key + b"\r\n")).startswith(b"CLIENT_ERROR")
            known = b"get " + name + b"a\r\n"
            await client.ask(b"set a 0 0 1\r\n1\r\n" + known, 4)
            rejected = await client.ask(known + b"get " + name + key + b"\r\n", 4)
            assert rejected.startswith(SHOWN % (b"@@aaa.a", b"1") + b"CLIENT_ERROR")

    asyncio.run(play())


def test_cached_rows_are_shown_until_their_time_is_over_alone_and_in_one_packet(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await filled(client)
            soon = b"get soon\r\n"
            assert await client.ask(EXPIRES_SOON + soon + b"get soon a\r\n", 9) == (
                b"STORED\r\n" + SHOWN % (b"soon", b"s") + (SHOWN % (b"soon", b"s"))[:-5] + SHOWN % (b"a", b"1")
            )
            await client.ask(soon * 2, 6)
            async with asyncio.timeout(SECONDS):
                while (reply := await client.ask(soon)) != b"END\r\n":
                    while not reply.endswith(b"END\r\n"):
                        reply += await client.heard(1)
                    await asyncio.sleep(0.05)
            assert await client.ask(b"get a\r\n" + soon + b"get b\r\n" + soon, 8) == (
                SHOWN % (b"a", b"1") + b"END\r\n" + SHOWN % (b"b", b"2") + b"END\r\n"
            )

    asyncio.run(play())


@pytest.mark.parametrize(
    ("first", "later", "shown"),
    [
        (b"gets a b", b"get a\r\n", b"VALUE a 0 1\r\n3\r\nEND\r\n"),
        (b"gets a new", b"get new a\r\n", b"VALUE new 0 1\r\n4\r\nVALUE a 0 1\r\n3\r\nEND\r\n"),
        (b"gets a new", b"get new\r\n", b"VALUE new 0 1\r\n4\r\nEND\r\n"),
        (b"gets a b", b"mg a v\r\n", b"VA 1\r\n3\r\n"),
        (b"mg a h v", b"mg a v\r\n", b"VA 1\r\n3\r\n"),
        (b"mg a h v", b"get a\r\nget a\r\n", b"VALUE a 0 1\r\n3\r\nEND\r\n" * 2),
    ],
)
@pytest.mark.parametrize("packets", [1, 2])
def test_a_get_of_a_cached_row_shows_no_earlier_state_than_one_before_it_that_waits(
    process: InProcess, first: bytes, later: bytes, shown: bytes, packets: int
) -> None:
    waiting = first + b"\r\nset b 0 0 1\r\n1\r\n"

    async def play() -> None:
        async with process.clients(1) as (client,):
            await filled(client)
            assert await client.ask(b"get new\r\nget new\r\n", 2) == b"END\r\n" * 2
            with program_writes(process):
                if packets == 1:
                    await client.deliver(first + b"\r\n" + later + b"set b 0 0 1\r\n1\r\n")
                else:
                    await client.deliver(waiting)
                    await client.deliver(later)
                await client.nothing()
            replies = b""
            while not replies.endswith(shown if packets == 2 else shown + b"STORED\r\n"):
                replies += await client.heard(1)

    asyncio.run(play())


def test_a_binary_get_of_a_cached_row_shows_no_earlier_state_than_one_before_it_that_waits(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(2) as (text, client):
            await filled(text)
            assert await text.ask(b"get new\r\nget new\r\n", 2) == b"END\r\n" * 2
            number = cas_of(process, "b")
            with program_writes(process):
                await client.deliver(gatq(b"b", 1) + frame(GET, b"other", 2) + frame(GET, b"a", 3))
                await client.deliver(frame(GET, b"new", 4) + frame(GET, b"a", 5))
                await client.nothing()
            absent = struct.pack(">BBHBBHIIQ", 0x81, GET, 0, 0, 0, 1, 9, 2, 0) + b"Not found"
            a, new = cas_of(process, "a"), cas_of(process, "new")
            touched = hit(0x1E, b"", 1, b"2", number)
            expected = (
                touched + absent + hit(GET, b"", 3, b"3", a) + hit(GET, b"", 4, b"4", new) + hit(GET, b"", 5, b"3", a)
            )
            assert await client.get(len(expected)) == expected

    asyncio.run(play())


def test_binary_gets_of_cached_rows_are_answered_alone_in_one_packet_and_in_parts(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(2) as (text, binary):
            await filled(text)
            first, second = cas_of(process, "a"), cas_of(process, "b")
            for _ in range(3):
                await binary.send(frame(GET, b"a", 7))
                assert await binary.get(29) == hit(GET, b"", 7, b"1", first)
            # The last byte of the last frame comes later: until then its key seems to be `a`.
            await text.ask(b"set ab 0 0 1\r\n9\r\n")
            for _ in range(2):
                await text.ask(b"get ab\r\n", 3)
            third = cas_of(process, "ab")
            packet = frame(GET, b"ab", 1) + frame(GETK, b"b", 2) + frame(GET, b"ab", 3)
            await binary.send(packet)
            assert len(await binary.get(88)) == 88
            await binary.send(packet[:-1])
            replies = hit(GET, b"", 1, b"9", third) + hit(GETK, b"b", 2, b"2", second)
            assert await binary.get(len(replies)) == replies
            await binary.send(packet[-1:])
            assert await binary.get(29) == hit(GET, b"", 3, b"9", third)
            miss = struct.pack(">BBHIIIQ", 0x81, GETK, 4, 1, 4, 4, 0) + b"none"
            await binary.send(frame(GET, b"a", 3) + frame(GETK, b"none", 4) + frame(GET, b"b", 5))
            replies = hit(GET, b"", 3, b"1", first) + miss + hit(GET, b"", 5, b"2", second)
            assert await binary.get(len(replies)) == replies

    asyncio.run(play())
