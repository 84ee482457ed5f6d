"""Commands that are planned: groups, what waits for what, and what is not planned."""

from __future__ import annotations

import asyncio
import gc
import re
import sqlite3
import struct
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from server.in_process import InProcess, turns_until

from kvref import collations
from kvref.errors import StoreError
from kvref.server.planner import Planner
from kvref.server.planners.base import Stop
from kvref.server.slots import MAX_BYTES, Replies
from kvref.storage.planned_rows import Write
from kvref.storage.sqlite.planned_rows import SQLiteRows

SET = b"set %b 0 0 1\r\n%b\r\n"
SHOWN = b"VALUE %b 0 1\r\n%b\r\nEND\r\n"


@pytest.fixture
def process(tmp_path: Path) -> InProcess:
    process = InProcess(tmp_path / "file")
    process.server.settings["innodb_lock_wait_timeout"] = 1
    return process


def rows(process: InProcess) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(process.store.path)
    collations.register(connection)
    found = connection.execute("SELECT c1, c2 FROM demo_test WHERE c1 <> 'AA' ORDER BY c1").fetchall()
    connection.close()
    return found


def planner_of(process: InProcess) -> Planner:
    (planner,) = process.server.executor.planners.values()  # type: ignore[attr-defined]
    return planner


def test_a_set_behind_a_delete_of_the_same_group_does_not_use_the_rowid_of_the_row_that_is_gone(
    process: InProcess,
) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1"))
            await client.ask(b"get a\r\n", 3)
            # The new row of b takes the rowid that a had.
            group = b"delete a\r\n" + SET % (b"b", b"2") + SET % (b"a", b"3") + b"get a b\r\n"
            assert await client.ask(group, 8) == b"DELETED\r\nSTORED\r\nSTORED\r\n" + SHOWN[:-5] % (b"a", b"3") + SHOWN % (
                b"b", b"2")  # fmt: skip
            assert await client.ask(SET % (b"a", b"4") + b"get b\r\n", 4) == b"STORED\r\n" + SHOWN % (b"b", b"2")
            assert rows(process) == [("a", "4"), ("b", "2")]

    asyncio.run(play())


def test_a_key_that_is_deleted_and_written_in_one_group(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            for last, (group, replies) in enumerate((
                (b"delete a\r\n" + SET % (b"a", b"2"), b"DELETED\r\nSTORED\r\n"),
                (SET % (b"a", b"3") + b"delete a\r\nadd a 0 0 1\r\n2\r\n", b"STORED\r\nDELETED\r\nSTORED\r\n"),
                (b"delete a\r\nincr a 1\r\n" + SET % (b"a", b"1") + b"incr a 1\r\n", b"DELETED\r\nNOT_FOUND\r\nSTORED\r\n2\r\n"),
                (b"delete a\r\ndelete a\r\n" + SET % (b"a", b"1") + SET % (b"a", b"2"), b"DELETED\r\nNOT_FOUND\r\n" + b"STORED\r\n" * 2),
            )):  # fmt: skip
                await client.ask(SET % (b"a", b"1"))
                await client.ask(b"get a\r\n", 3)
                other = b"b%d" % last  # takes the rowid of the row that is gone, if it is free
                assert await client.ask(group + b"get a\r\n", replies.count(b"\r\n") + 3) == replies + SHOWN % (
                    b"a",
                    b"2",
                )
                assert await client.ask(SET % (other, b"x") + b"get a\r\n", 4) == b"STORED\r\n" + SHOWN % (b"a", b"2")
                assert rows(process)[0] == ("a", "2")
                assert await client.ask(SET % (b"a", b"4") + b"get a\r\n", 4) == b"STORED\r\n" + SHOWN % (b"a", b"4")
                assert rows(process) == [("a", "4"), *[(f"b{number}", "x") for number in range(last + 1)]]

    asyncio.run(play())


def test_a_pipelined_command_reads_the_rows_that_earlier_triggers_wrote(process: InProcess) -> None:
    with sqlite3.connect(process.store.path) as connection:
        collations.register(connection)
        connection.executescript("""
            CREATE TRIGGER other AFTER UPDATE ON demo_test WHEN new.c1 = 'a'
                BEGIN UPDATE demo_test SET c2 = new.c2 || '!' WHERE c1 = 'b'; END;
            CREATE TRIGGER refused BEFORE UPDATE ON demo_test WHEN new.c2 = '9' BEGIN SELECT RAISE(ABORT, 'no 9'); END;
            CREATE TRIGGER ignored BEFORE DELETE ON demo_test BEGIN SELECT RAISE(IGNORE); END;
        """)

    async def play() -> None:
        async with process.clients(2) as (client, reader):
            await client.ask(SET % (b"a", b"1") + SET % (b"b", b"1"), 2)
            assert await client.ask(b"get b\r\n", 3) == SHOWN % (b"b", b"1")
            assert await client.ask(SET % (b"a", b"2") + b"get b\r\n", 4) == b"STORED\r\nVALUE b 0 2\r\n2!\r\nEND\r\n"
            packet = (
                SET % (b"a", b"3") + SET % (b"a", b"9") + b"append b 0 0 1\r\n?\r\ndelete a\r\n" + SET % (b"c", b"4")
            )
            replies = b"STORED\r\nSERVER_ERROR no 9\r\nSTORED\r\nSERVER_ERROR the table ignored the write (a trigger or"
            assert (await client.ask(packet, 5)).startswith(replies)
            assert await reader.ask(b"get b\r\n", 3) == b"VALUE b 0 3\r\n3!?\r\nEND\r\n"
            assert rows(process) == [("a", "3"), ("b", "3!?"), ("c", "4")]
            planned = planner_of(process)
            assert planned.verbs >= {b"set", b"append", b"delete"}

    asyncio.run(play())


def test_a_row_whose_key_begins_with_nul_is_written_by_an_equal_word(tmp_path: Path) -> None:
    process = InProcess.over(
        tmp_path / "file", "kvref", "k VARCHAR(9) NOT NULL COLLATE utf8_german2_ci PRIMARY KEY, v TEXT CHECK (v <> '9')"
    )
    with sqlite3.connect(process.store.path) as connection:
        collations.register(connection)
        connection.execute("INSERT INTO mapped VALUES (char(0) || 'a', '1')")

    async def play() -> None:
        async with process.clients(1) as (client,):
            assert await client.ask(b"get a\r\n", 3) == SHOWN % (b"a", b"1")
            assert (
                await client.ask(b"append a 0 0 1\r\n2\r\n" + b"get a\r\n", 4)
                == b"STORED\r\nVALUE a 0 2\r\n12\r\nEND\r\n"
            )
            assert await client.ask(b"delete a\r\nget a\r\n", 2) == b"DELETED\r\nEND\r\n"

    asyncio.run(play())


class Turnstile(threading.Event):
    """A disk that takes its time for each sync by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._passes = threading.Semaphore(0)

    def let_one(self) -> None:
        """Let one sync end."""
        self._passes.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for `let_one` or `set`."""
        while not self.is_set():
            if self._passes.acquire(timeout=0.01):
                return True
        return super().wait(timeout)


def test_a_key_that_is_written_again_while_its_first_commit_is_at_the_disk(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(4) as clients:
            first, second, early, late = clients
            for client in clients:
                await client.ask(SET % (b"a", b"0") + b"get a\r\n", 4)
            disk = process.disk = Turnstile()
            syncs = process.syncs
            await first.send(SET % (b"a", b"1"))
            await turns_until(lambda: process.syncs > syncs)
            await second.deliver(SET % (b"a", b"2"))
            await turns_until(lambda: process.store.dirty)
            await early.deliver(b"get a\r\n")
            disk.let_one()
            assert await first.heard(1) == b"STORED\r\n"
            await turns_until(lambda: process.syncs > syncs + 1)
            # The row of the first commit is on the disk, and another one is written: neither is shown.
            await late.deliver(b"get a\r\n")
            await early.nothing()
            await late.nothing()
            disk.set()
            assert await second.heard(1) == b"STORED\r\n"
            assert await early.heard(3) == SHOWN % (b"a", b"2")
            assert await late.heard(3) == SHOWN % (b"a", b"2")
            assert await first.ask(b"get a\r\n", 3) == SHOWN % (b"a", b"2")  # what the row cache keeps of both commits
            assert rows(process) == [("a", "2")]

    asyncio.run(play())


def test_a_group_that_fails_is_carried_out_in_smaller_ones(process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    apply, sizes = SQLiteRows.apply_many, []

    def refuse(self: SQLiteRows, writes: Sequence[Write]) -> None:
        sizes.append(len(writes))
        if any(word == b"bad" for _, _, word, *_ in writes):
            raise StoreError("no room")
        apply(self, writes)

    monkeypatch.setattr(SQLiteRows, "apply_many", refuse)

    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            sets = SET % (b"n", b"1") + b"incr n 1\r\nincr n 1\r\n" + SET % (b"bad", b"x") + SET % (b"b", b"2")
            replies = b"STORED\r\n2\r\n3\r\nSERVER_ERROR no room\r\nSTORED\r\n"
            assert await client.ask(sets, 5) == replies
            assert sizes[-1] == 1
            assert max(sizes) == 5
            assert rows(process) == [("a", "1"), ("b", "2"), ("n", "3")]
            counters = process.server.shared.counters
            assert (counters.cmd_set, counters.incr_hits, counters.total_items) == (4, 2, 3)

    asyncio.run(play())


def test_commands_are_planned_while_prefixes_of_keys_are_counted(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"p:a", b"1") + b"stats detail on\r\nget p:a\r\n", 5)
            await turns_until(lambda: process.server.executor.planners)  # type: ignore[attr-defined]
            process.disk.clear()
            await client.send(SET % (b"p:a", b"2") + b"get p:a q:b\r\ndelete p:c\r\nmg q:b\r\ngat 0 p:a p:b\r\n")
            await client.nothing()
            counts = process.server.shared.counters.prefixes
            assert planner_of(process)._counter is not None
            process.disk.set()
            await client.heard(9)
            assert counts.lines() == [b"PREFIX p get 4 hit 3 set 1 del 1", b"PREFIX q get 2 hit 0 set 0 del 0"]

    asyncio.run(play())


def test_a_gat_of_several_words_has_one_reply_also_if_a_word_fails(
    process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = SQLiteRows.apply_many

    def refuse(self: SQLiteRows, writes: Sequence[Write]) -> None:
        if any(write[2] == b"bad" for write in writes):
            raise StoreError("no room")
        apply(self, writes)

    async def play() -> None:
        async with process.clients(1) as (client,):
            sets = SET % (b"a", b"1") + SET % (b"bad", b"2") + SET % (b"c", b"3")
            await client.ask(sets, 3)
            several = b"VALUE a 0 1\r\n1\r\nVALUE c 0 1\r\n3\r\nVALUE a 0 1\r\n1\r\nEND\r\n"
            assert await client.ask(b"gat 50 a c none a\r\n", 7) == several
            monkeypatch.setattr(SQLiteRows, "apply_many", refuse)
            group = b"get a\r\ngat 90 a bad c\r\ngat 90 a c a\r\nversion\r\n"
            replies = SHOWN % (b"a", b"1") + b"SERVER_ERROR no room\r\n" + several + b"VERSION"
            assert (await client.ask(group, 12)).startswith(replies)

    asyncio.run(play())


def test_meta_commands_of_one_group_see_what_those_before_them_have_done(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            group = b"md a I\r\nmg a s\r\nmg a s\r\nmg a h\r\nget a\r\nms a 2 c I C1\r\n22\r\nmg a v\r\nmg n N0 h\r\nma n N0 J5 v\r\nmn\r\n"
            replies = b"HD\r\nHD s1 X W\r\nHD s1 Z X\r\nHD h1 Z X\r\n" + SHOWN % (b"a", b"1")
            await client.send(group)
            heard = await client.heard(13)
            assert re.sub(rb" c\d+", b" c#", heard) == (
                replies
                + b"HD c#\r\nVA 2 Z X\r\n22\r\nHD h0 W\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nMN\r\n"
            )

    asyncio.run(play())


def test_a_client_that_is_to_recache_an_item_is_the_same_after_a_group_has_failed(
    process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = SQLiteRows.apply_many

    def refuse(self: SQLiteRows, writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            raise StoreError("no room")
        apply(self, writes)

    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"md a I\r\n", 2)
            monkeypatch.setattr(SQLiteRows, "apply_many", refuse)
            group = b"mg a h\r\nmg a h\r\n" + SET % (b"b", b"1") + SET % (b"c", b"1")
            assert await client.ask(group, 4) == b"HD h0 X W\r\nHD h1 Z X\r\nSTORED\r\nSTORED\r\n"

    asyncio.run(play())


def test_a_write_waits_for_the_lock_of_another_program_and_a_get_does_not(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(2) as (writer, reader):
            for client in (writer, reader):
                await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            program = sqlite3.connect(process.store.path, isolation_level=None)
            program.execute("BEGIN IMMEDIATE")
            await writer.deliver(SET % (b"a", b"2") + b"get a\r\n")
            assert await reader.ask(b"get AA\r\n", 3) == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
            await writer.nothing()
            program.execute("COMMIT")
            assert await writer.heard(4) == b"STORED\r\n" + SHOWN % (b"a", b"2")
            program.execute("BEGIN IMMEDIATE")
            await writer.send(SET % (b"a", b"3") + b"get a\r\n")  # `lock_wait` is a second
            assert await writer.heard(4) == b"SERVER_ERROR lock wait timeout\r\n" + SHOWN % (b"a", b"2")
            program.close()

    asyncio.run(play())


def test_no_more_is_planned_than_may_wait_for_the_lock_of_another_program(process: InProcess) -> None:
    process.server.settings |= {"innodb_lock_wait_timeout": 60, "pipelined_size_max": 4096}
    write = b"set a 0 0 1000 noreply\r\n%b\r\n" % bytes(1000)

    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            program = sqlite3.connect(process.store.path, isolation_level=None)
            program.execute("BEGIN IMMEDIATE")
            (connection,) = process.server.connections
            waited = connection.waited_for()
            assert waited is not None
            transport: Any = waited[0]
            counters = process.server.shared.counters
            before, sent = counters.bytes_read, 0
            for _ in range(64):
                await client.send(write)
                sent += len(write)
                await turns_until(partial(arrived, counters, before + sent, transport))
            assert counters.bytes_read - before <= 2 * (4096 + len(write))
            program.execute("COMMIT")
            program.close()
            assert await client.ask(b"append a 0 0 1\r\n!\r\n") == b"STORED\r\n"

    def arrived(counters: Any, size: int, transport: Any) -> bool:
        return counters.bytes_read >= size or not transport.is_reading()

    asyncio.run(play())


def test_few_bytes_of_replies_wait_for_a_commit(process: InProcess) -> None:
    write = b"set a 0 0 1000\r\n%b\r\n" % bytes(1000)
    item = b"VALUE a 0 1000\r\n%b\r\n" % bytes(1000)

    async def play() -> None:
        async with process.clients(2) as (writer, reader):
            for client in (writer, reader):
                await client.ask(write)
                await client.ask(b"get AA\r\n", 3)
            process.disk.clear()
            syncs = process.syncs
            await writer.send(write)
            await turns_until(lambda: process.syncs > syncs)
            for _ in range(40):
                await reader.deliver(b"get" + b" a" * 50 + b"\r\n")
            waiting = sum(sum(map(len, each)) for each in gc.get_objects() if isinstance(each, Replies))
            assert waiting <= MAX_BYTES + 50 * len(item)
            process.disk.set()
            assert await reader.heard(40 * 101) == (item * 50 + b"END\r\n") * 40

    asyncio.run(play())


def test_what_is_not_planned_waits_for_the_replies_of_what_is(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            process.disk.clear()
            await client.send(SET % (b"a", b"2") + b"stats detail off\r\nget a\r\nversion\r\n")
            await client.nothing()
            process.disk.set()
            release = process.server.shared.rules.release.encode()
            shown = b"OK\r\n" + SHOWN % (b"a", b"2")
            assert await client.heard(6) == b"STORED\r\n" + shown + b"VERSION " + release + b"\r\n"

    asyncio.run(play())


def test_a_line_that_ends_without_carriage_return_is_answered_at_once(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            for end in (b"\r\n", b"\n", b"\r\n", b"\n"):
                assert await client.ask(b"get a" + end, 1) == b"END\r\n"

    asyncio.run(play())


@pytest.mark.parametrize("first", [b"get a\r\n", b"get a\r\nget b\r\n"])
def test_the_opening_of_another_protocol_after_a_planned_command_is_a_command(process: InProcess, first: bytes) -> None:
    """KV-CONN-029 is about the first bytes of a connection, also if the first command was planned."""

    async def play() -> None:
        async with process.clients(2) as (other, client):
            await other.ask(b"get a\r\n", 1)  # the first command of a server is not planned
            assert await client.ask(first, first.count(b"get")) == b"END\r\n" * first.count(b"get")
            assert await client.ask(b"SSH-2.0-x\r\n", 1) == b"ERROR\r\n"
            assert await client.ask(b"get a\r\n", 1) == b"END\r\n"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("begun", "setting", "reply"),
    [
        (b"set " + b"k" * 251 + b" 0 0 9\r\n", "key_size_max=250", b"CLIENT_ERROR bad command line format\r\n"),
        (b"set kkkk 0 0 9\r\n", "key_size_max=3", b"CLIENT_ERROR bad command line format\r\n"),
        (b"set k 0 0 2000\r\n", "item_size_max=1024", b"SERVER_ERROR object too large for cache\r\n"),
    ],
)
def test_what_the_line_of_a_set_decides_is_replied_before_its_data_arrives(
    tmp_path: Path, begun: bytes, setting: str, reply: bytes
) -> None:
    process = InProcess(tmp_path / "file", "kvref", setting)

    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(b"get a\r\n", 1)  # commands behind the first one of a server are planned
            assert await client.ask(begun, 1) == reply

    asyncio.run(play())


def test_a_connection_is_closed_whose_client_has_closed_its_side_before_its_commands_are_planned(
    process: InProcess,
) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            process.disk.clear()
            await client.deliver(SET % (b"n", b"1"))
            await client.deliver(b"incr n 1\r\nget n\r\n")
            (connection,) = process.server.connections
            connection._await_turn()
            connection.eof_received()
            process.disk.set()
            assert await client.heard(5) == b"STORED\r\n2\r\n" + SHOWN % (b"n", b"2")
            await turns_until(lambda: not process.server.connections)

    asyncio.run(play())


@pytest.mark.parametrize("rolls_back", [False, True])
def test_writes_of_a_table_are_planned_unless_it_can_roll_back_those_of_others(
    process: InProcess, rolls_back: bool
) -> None:
    more = "SELECT RAISE(ROLLBACK, 'no 9') WHERE new.c2 = '9';" if rolls_back else ""
    with sqlite3.connect(process.store.path) as outside:
        collations.register(outside)
        outside.execute(
            f"CREATE TRIGGER noted AFTER UPDATE ON demo_test BEGIN {more} DELETE FROM demo_test WHERE c1 = 'b'; END"
        )
    outside.close()

    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + SET % (b"b", b"1"), 2)
            await client.ask(b"get a b none\r\nget a\r\n", 8)
            gets = {b"get", b"gets", b"bget", b"mg", b"mn"}
            assert (planner_of(process).verbs == gets) is rolls_back
            assert planner_of(process).verbs >= gets
            assert planner_of(process).hit(b"get b\r\n") == SHOWN % (b"b", b"1")
            assert await client.ask(SET % (b"a", b"2") + b"get b\r\n", 2) == b"STORED\r\nEND\r\n"
            assert await client.ask(b"get a b\r\n", 3) == SHOWN % (b"a", b"2")
            assert rows(process) == [("a", "2")]

    asyncio.run(play())


def frame(opcode: int, key: bytes = b"", value: bytes = b"", extras: bytes = b"", cas: int = 0) -> bytes:
    body = extras + key + value
    return struct.pack(">BBHBxHI4sQ", 0x80, opcode, len(key), len(extras), 0, len(body), b"opaq", cas) + body


def frames(data: bytes) -> list[tuple[int, int, bytes]]:
    """Return opcode, status and body of each reply."""
    found = []
    while data:
        _, opcode, _, _, status, length = struct.unpack_from(">BBHBxHI", data)
        found.append((opcode, status, data[24 : 24 + length]))
        data = data[24 + length :]
    return found


def test_binary_commands_are_planned_in_order_and_quiet_ones_have_no_reply(
    process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.send(frame(0x01, b"a", b"1", bytes(8)))
            await turns_until(lambda: process.server.executor.planners)  # type: ignore[attr-defined]
            await client.get(24)
            planned: list[int] = []
            take = planner_of(process).frames.take

            def noted(data: bytes, *others: Any) -> tuple[int, Stop]:
                taken, stop = take(data, *others)
                planned.append(taken)
                return taken, stop

            monkeypatch.setattr(planner_of(process).frames, "take", noted)
            process.disk.clear()
            sent = (
                frame(0x11, b"a", b"5", bytes(8)) + frame(0x09, b"none") + frame(0x05, b"a", b"", struct.pack(">QQI", 2, 0, 0))
                + frame(0x0C, b"a") + frame(0x19, b"a", b"x") + frame(0x14, b"none") + frame(0x0A)
            )  # fmt: skip
            await client.send(sent)
            await client.nothing()
            process.disk.set()
            assert frames(await client.get(4 * 24 + 8 + 6 + 9)) == [
                (0x05, 0, struct.pack(">Q", 7)), (0x0C, 0, bytes(4) + b"a7"), (0x14, 1, b"Not found"), (0x0A, 0, b""),
            ]  # fmt: skip
            assert rows(process) == [("a", "7x")]
            assert planned == [len(sent)]

    asyncio.run(play())
