"""Replies that do not wait for the disk, and those that do; failures of a disk or a commit."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from pathlib import Path
from types import SimpleNamespace

from server.in_process import InProcess, turns_until
from server.listeners.talk import frame

from kvref.server.executors.sqlite.group_commit import GroupCommit

SET = b"set %b 0 0 1\r\n%b\r\n"
SHOWN = b"VALUE %b 0 1\r\n%b\r\nEND\r\n"


def test_a_write_is_answered_after_the_disk_and_a_get_of_another_row_before(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(3) as (writer, reader, other):
            for client in (writer, reader, other):
                await client.ask(SET % (b"a", b"v") + SET % (b"b", b"v") + b"get a b\r\n", 7)
            process.disk.clear()
            await writer.send(SET % (b"a", b"w"))
            await writer.nothing()
            assert await reader.ask(b"get b\r\n", 3) == SHOWN % (b"b", b"v")
            assert await other.ask(b"get b b\r\n", 5) == SHOWN[:-5] % (b"b", b"v") + SHOWN % (b"b", b"v")
            await reader.send(b"get a\r\n")  # what it would show is not durable yet
            await other.send(SET % (b"b", b"x") + b"get b\r\n")
            await reader.nothing()
            await other.nothing()
            process.disk.set()
            assert await writer.heard(1) == b"STORED\r\n"
            assert await reader.heard(3) == SHOWN % (b"a", b"w")
            assert await other.heard(4) == b"STORED\r\n" + SHOWN % (b"b", b"x")

    asyncio.run(play())


def test_a_disk_that_fails_is_reported_to_all_that_depend_on_it(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        lost = b"SERVER_ERROR the disk is on fire\r\n"
        async with process.clients(3) as (writer, reader, beside):
            for client in (writer, reader, beside):
                await client.ask(SET % (b"a", b"v") + SET % (b"b", b"v") + b"get a b\r\n", 7)
            process.failure = "the disk is on fire"
            process.disk.clear()
            await writer.send(SET % (b"a", b"w") + b"set c 0 0 1 noreply\r\nw\r\n" + b"get b\r\n")
            await reader.send(b"get a\r\n")
            await reader.nothing()
            assert await beside.ask(b"get b\r\n", 3) == SHOWN % (b"b", b"v")
            process.disk.set()
            assert await writer.heard(2) == lost * 2
            assert await reader.heard(1) == lost
            process.failure = ""
            assert await writer.ask(b"get none\r\n", 1) == b"END\r\n"
            # What the file has now is shown, not what was kept of it.
            with sqlite3.connect(tmp_path / "file") as outside:
                (value,) = outside.execute("SELECT c2 FROM demo_test WHERE c1 = 'a'").fetchone()
            outside.close()
            assert await reader.ask(b"get a\r\n", 3) == SHOWN % (b"a", value.encode())

    asyncio.run(play())


def test_a_commit_that_fails_takes_its_own_replies_along_and_no_others(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(1) as (writer,):
            await writer.ask(SET % (b"a", b"v") + b"get a\r\n", 4)
            process.disk.clear()
            before = process.syncs
            await writer.send(SET % (b"a", b"w"))
            await turns_until(lambda: process.syncs > before)  # what follows is in the next commit
            await writer.deliver(SET % (b"b", b"x"))
            await writer.deliver(SET % (b"c", b"y") + b"get b\r\n")
            await turns_until(lambda: process.server.shared.counters.cmd_set == 4)  # all sets are carried out
            process.store.run("ROLLBACK", [])  # as an error of the file does
            process.disk.set()
            stored, *failed = (await writer.heard(4)).splitlines()
            assert stored == b"STORED"
            assert [line[:13] for line in failed] == [b"SERVER_ERROR "] * 3
            assert await writer.ask(b"get a b c\r\n", 3) == SHOWN % (b"a", b"w")

    asyncio.run(play())


def test_writes_of_the_time_that_the_disk_takes_share_one_commit(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(20) as clients:
            process.disk.clear()
            for number, client in enumerate(clients):
                await client.deliver(SET % (b"%d" % number, b"v"))
                await turns_until(lambda: process.syncs)  # what follows the first one is in the next commit
            process.disk.set()
            assert [await client.heard(1) for client in clients] == [b"STORED\r\n"] * 20
            assert process.syncs == 2

    asyncio.run(play())


def test_a_lone_write_commits_at_once_unless_the_last_commit_had_several_connections() -> None:
    class Store:
        dirty, commits, cache = True, 0, SimpleNamespace(synced=lambda *, lost: None)

        def commit(self) -> None:
            self.dirty = False
            self.commits += 1

        def sync(self) -> None: ...

    async def commits_before_settled(group: GroupCommit, store: Store, *writers: int) -> int:
        """Write for 1 or more connections with each call; return how many commits began in the same turn."""
        settled: list[str] = []
        store.dirty = True
        before = store.commits
        for connections in writers:
            number = group.unsettled
            assert number is not None
            group.when_settled(number, settled.append, at_once=connections == 1)
        begun = store.commits - before
        await turns_until(lambda: len(settled) == len(writers))
        return begun

    async def play() -> None:
        store = Store()
        executor = SimpleNamespace(commands=0, committed=lambda *, lost: 0)
        group = GroupCommit(store, executor)  # type: ignore[arg-type]
        assert await commits_before_settled(group, store, 1) == 1
        assert await commits_before_settled(group, store, 2) == 0
        assert await commits_before_settled(group, store, 1) == 0
        assert await commits_before_settled(group, store, 1) == 1
        assert await commits_before_settled(group, store, 2, 1) == 0
        assert await commits_before_settled(group, store, 1) == 0
        group.close()

    asyncio.run(play())


def test_a_set_of_a_row_that_was_deleted_while_the_disk_was_busy_writes_no_other_row(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(2) as (first, second):
            for client in (first, second):
                await client.ask(SET % (b"a", b"v") + b"get a\r\n", 4)
            process.disk.clear()
            await first.send(SET % (b"a", b"w"))
            await first.nothing()
            # SQLite gives the number of the deleted row to the new one.
            for request in (b"delete a\r\n", SET % (b"b", b"x"), SET % (b"a", b"y"), b"get b\r\nget a\r\n"):
                await second.send(request)
                await second.nothing()  # each of them alone, with the disk busy
            process.disk.set()
            assert await first.heard(1) == b"STORED\r\n"
            received = await second.heard(9)
            assert received == b"DELETED\r\nSTORED\r\nSTORED\r\n" + SHOWN % (b"b", b"x") + SHOWN % (b"a", b"y")
        rows = sqlite3.connect(tmp_path / "file").execute("SELECT c1, c2 FROM demo_test WHERE c1 <> 'AA' ORDER BY c1")
        assert rows.fetchall() == [("a", "y"), ("b", "x")]

    asyncio.run(play())


def test_what_sql_writes_over_a_row_on_its_way_to_the_disk_is_shown(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(2) as (writer, reader):
            for client in (writer, reader):
                await client.ask(SET % (b"a", b"v") + b"get a\r\n", 4)
            process.disk.clear()
            await writer.send(SET % (b"a", b"w"))
            await writer.nothing()
            with sqlite3.connect(tmp_path / "file") as outside:
                outside.execute("UPDATE demo_test SET c2 = 's' WHERE c1 = 'a'")
            outside.close()
            await reader.send(b"get a\r\n")  # takes note of it
            await reader.nothing()
            process.disk.set()
            assert await writer.heard(1) == b"STORED\r\n"
            assert await reader.heard(3) == SHOWN % (b"a", b"s")
            assert await reader.ask(b"get a\r\n", 3) == SHOWN % (b"a", b"s")
            assert await writer.ask(b"get a\r\n", 3) == SHOWN % (b"a", b"s")

    asyncio.run(play())


def test_what_is_written_after_the_end_is_neither_committed_nor_acknowledged(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(2) as (early, late):
            assert await early.ask(SET % (b"a", b"v")) == b"STORED\r\n"
            assert await late.ask(b"get a\r\n", 3) == SHOWN % (b"a", b"v")
            await process.server.executor.close()
            await late.deliver(SET % (b"k", b"x"))
            await late.nothing()
            with sqlite3.connect(tmp_path / "file") as outside:
                rows = outside.execute("SELECT c1 FROM demo_test WHERE c1 <> 'AA'").fetchall()
            outside.close()
            assert rows == [("a",)]
            for each in list(process.server.connections):  # as the end of the process: one would wait for its reply
                if (waited := each.waited_for()) is not None:
                    waited[0].abort()
                process.server.unregister(each)

    asyncio.run(play())


def test_replies_to_binary_sets_show_cas_numbers_behind_the_commit(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(2) as (writer, reader):
            for client in (writer, reader):
                await client.ask(frame(0x00, b"AA"), 0)
                await client.some()
            process.disk.clear()
            sets = b"".join(
                frame(opcode, key, value, bytes(8))
                for opcode, key, value in (
                    (0x01, b"a", b"v"),
                    (0x11, b"b", b"w"),
                    (0x02, b"a", b"x"),
                    (0x03, b"a", b"y"),
                )
            )
            await writer.send(sets + frame(0x00, b"a"))
            await writer.nothing()
            process.disk.set()
            received = await writer.some()
            first, refused, second, shown = _parts(received)
            assert (first[0], refused[0], second[0], shown[0]) == (0, 2, 0, 0)
            assert 0 < first[1] < second[1] == shown[1]
            assert shown[2] == bytes(4) + b"y"
            await reader.send(frame(0x00, b"b"))
            ((status, cas, body),) = _parts(await reader.some())
            assert (status, body) == (0, bytes(4) + b"w")
            assert first[1] < cas < second[1]
            process.failure = "the disk is on fire"
            await writer.send(frame(0x01, b"a", b"lost", bytes(8)))
            ((status, _, text),) = _parts(await writer.some())
            assert status != 0
            assert text == b"the disk is on fire"

    asyncio.run(play())


def test_commands_without_a_reply_are_carried_out(tmp_path: Path) -> None:
    async def play() -> None:
        process = InProcess(tmp_path / "file")
        async with process.clients(1) as (client,):
            quiet = (
                b"incr a 4 noreply\r\nset c 0 0 1 noreply\r\nx\r\nadd c 0 0 1 noreply\r\ny\r\n"
                b"set d 3 100 1 noreply\r\nz\r\ndelete b noreply\r\n"
            )
            for _ in range(2):  # of rows that are not cached, and that are
                await client.ask(b"delete c\r\n" + SET % (b"a", b"1") + SET % (b"b", b"1") + b"get a b\r\n", 8)
                assert await client.ask(quiet + b"get a b c d\r\n", 7) == (
                    b"VALUE a 0 1\r\n5\r\nVALUE c 0 1\r\nx\r\nVALUE d 3 1\r\nz\r\nEND\r\n"
                )

    asyncio.run(play())


def _parts(received: bytes) -> list[tuple[int, int, bytes]]:
    """Return status, cas number and body of each reply of the binary protocol."""
    found = []
    while received:
        status, length, cas = struct.unpack(">6xHI4xQ", received[:24])
        found.append((status, cas, received[24 : 24 + length]))
        received = received[24 + length :]
    return found
