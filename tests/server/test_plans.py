"""Commands that are planned (`KVREF_PATH=plan`): groups, what waits for what, and what is not planned."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from server.in_process import InProcess, turns_until

from kvref import collations
from kvref.errors import ConfigError, StoreError
from kvref.protocol.command_table import TEXT, TEXT_BEYOND_PLUGIN
from kvref.server.planner import NOT_PLANNED, Planner
from kvref.server.server import path_in_force
from kvref.storage.plans import Write
from kvref.storage.sqlite.plans import SQLiteRows

SET = b"set %b 0 0 1\r\n%b\r\n"
SHOWN = b"VALUE %b 0 1\r\n%b\r\nEND\r\n"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    monkeypatch.setenv("KVREF_PATH", "plan")
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


def test_what_is_not_planned_waits_for_the_replies_of_what_is(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            process.disk.clear()
            await client.send(SET % (b"a", b"2") + b"mg a v\r\nget a\r\nversion\r\n")
            await client.nothing()
            process.disk.set()
            release = process.server.shared.rules.release.encode()
            shown = b"VA 1\r\n2\r\n" + SHOWN % (b"a", b"2")
            assert await client.heard(7) == b"STORED\r\n" + shown + b"VERSION " + release + b"\r\n"

    asyncio.run(play())


def test_a_command_that_arrives_in_parts_is_planned_once_it_is_whole(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1") + b"get a\r\n", 4)
            await client.deliver(SET % (b"a", b"2") + b"get")
            await client.deliver(b" a\r\nset a 0 0 1\r\n")
            await client.send(b"3\r\nget a\r\n")
            assert await client.heard(8) == b"STORED\r\n" + SHOWN % (b"a", b"2") + b"STORED\r\n" + SHOWN % (b"a", b"3")

    asyncio.run(play())


def test_a_connection_is_closed_whose_client_has_closed_its_side_before_its_commands_are_planned(
    process: InProcess,
) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            process.disk.clear()
            await client.deliver(SET % (b"n", b"1"))  # the first command of a connection is not planned
            await client.deliver(b"incr n 1\r\nget n\r\n")
            (connection,) = process.server.connections
            connection._await_turn()
            connection.eof_received()
            process.disk.set()
            assert await client.heard(5) == b"STORED\r\n2\r\n" + SHOWN % (b"n", b"2")
            await turns_until(lambda: not process.server.connections)

    asyncio.run(play())


def test_which_verbs_are_planned(process: InProcess) -> None:
    async def play() -> None:
        async with process.clients(1) as (client,):
            await client.ask(SET % (b"a", b"1"))
            await turns_until(lambda: process.server.executor.planners)  # type: ignore[attr-defined]
            planned = planner_of(process).verbs
        assert planned == {
            b"get", b"gets", b"bget", b"set", b"add", b"replace", b"append", b"prepend", b"cas", b"delete", b"incr", b"decr",
            b"touch", b"gat", b"gats",
        }  # fmt: skip
        assert {*TEXT, *TEXT_BEYOND_PLUGIN} - planned == {
            b"flush_all", b"bind", b"stats", b"version", b"verbosity", b"quit", b"cache_memlimit", b"lru_crawler",
            b"refresh_certs", b"shutdown", b"mg", b"ms", b"md", b"ma", b"me", b"mn",
        }  # fmt: skip

    asyncio.run(play())


def test_what_is_not_planned_is_listed() -> None:
    assert [*NOT_PLANNED] == [
        "store", "protocol", "batches", "policies", "prefixes", "verbs", "spelling", "words", "sizes", "limits", "mapping",
        "columns", "rules", "commits",
    ]  # fmt: skip


def test_the_path_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVREF_PATH", raising=False)
    assert path_in_force() == "old"
    monkeypatch.setenv("KVREF_PATH", "new")
    with pytest.raises(ConfigError, match="KVREF_PATH='new': write plan or old"):
        path_in_force()
