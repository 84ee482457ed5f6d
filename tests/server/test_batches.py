"""Batches over SQLite, as clients and readers of the file see them; the plugin's rules are the suite's."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from helpers.clocked import clocked
from helpers.serving import Served, ask, serving
from helpers.waiting import until_equal
from server.in_process import HERE, InProcess

from kvref import collations
from kvref.server.server import Server
from kvref.server.settings import parse

ITEM = b"VALUE AA 8 12\r\nHELLO, HELLO\r\n"
NEVER = ("--set", "innodb_api_bk_commit_interval=100000")


def batches(writes: int, reads: int = 1000, *settings: str) -> list[str]:
    """Return options for `kvref serve`; batches are not committed in the background."""
    sizes = (f"daemon_memcached_w_batch_size={writes}", f"daemon_memcached_r_batch_size={reads}", *settings)
    return [*NEVER, *(word for each in sizes for word in ("--set", each))]


def rows(served: Served | Path) -> list[str]:
    """Return the keys that a reader of the file sees."""
    path = served if isinstance(served, Path) else served.store
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        return sorted(key for (key,) in connection.execute("SELECT c1 FROM demo_test"))


def write(served: Served, statement: str) -> None:
    """Write to the file as another program does."""
    with closing(sqlite3.connect(served.store, timeout=60, isolation_level=None)) as connection:
        connection.execute(statement)


def store(key: str, value: str = "x", verb: str = "set") -> bytes:
    return f"{verb} {key} 0 0 {len(value)}\r\n{value}\r\n".encode()


def with_unique_values(folder: Path) -> Path:
    """Return a file whose demo table takes each value once."""
    file = folder / "s.sqlite"
    with serving(file):
        pass
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE UNIQUE INDEX once ON demo_test (c2)")
    return file


def eventually(served: Served, expected: list[str]) -> None:
    until_equal(lambda: rows(served), expected)


def test_other_programs_read_and_write_during_an_open_batch(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(100)) as served, served.connect() as client:
        assert ask(client, store("k1") + store("AA", "new")) == b"STORED\r\n" * 2
        write(served, "INSERT INTO demo_test VALUES ('sql', 'x', 0, 0, 0)")
        assert rows(served) == ["AA", "sql"]
        client.close()
        eventually(served, ["AA", "k1", "sql"])


def test_a_row_that_sql_deletes_or_makes_meanwhile_is_what_the_batch_says(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(3)) as served, served.connect() as client:
        assert ask(client, store("AA", "new") + store("k1", "batch")) == b"STORED\r\n" * 2
        write(served, "DELETE FROM demo_test")
        write(served, "INSERT INTO demo_test VALUES ('k1', 'sql', 0, 0, 0)")
        assert ask(client, store("k2")) == b"STORED\r\n"
        with closing(sqlite3.connect(served.store)) as connection:
            found = connection.execute("SELECT c1, c2 FROM demo_test ORDER BY c1").fetchall()
        assert found == [("AA", "new"), ("k1", "batch"), ("k2", "x")]


def test_a_drain_commits(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(100)) as served, served.connect() as client:
        assert ask(client, store("k1")) == b"STORED\r\n"
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(timeout=60)
        assert rows(served) == ["AA", "k1"]


def test_a_unique_value_is_refused_at_once_and_harms_nothing(tmp_path: Path) -> None:
    file = with_unique_values(tmp_path)
    with serving(file, *batches(3)) as served, served.connect() as client:
        assert ask(client, store("k1", "one")) == b"STORED\r\n"
        assert b"SERVER_ERROR UNIQUE constraint failed" in ask(client, store("k2", "one"))
        assert b"SERVER_ERROR UNIQUE constraint failed" in ask(client, store("k2", "HELLO, HELLO"))
        assert ask(client, store("k2", "two") + store("k3", "three")) == b"STORED\r\n" * 2
        assert rows(served) == ["AA", "k1", "k2", "k3"]


def test_a_batch_that_sql_makes_impossible_is_reported_to_be_lost(tmp_path: Path) -> None:
    file = with_unique_values(tmp_path)
    with serving(file, *batches(2)) as served, served.connect() as client:
        assert ask(client, store("k1", "one")) == b"STORED\r\n"
        write(served, "INSERT INTO demo_test VALUES ('sql', 'one', 0, 0, 0)")
        answer = ask(client, store("k2", "two"))
        assert answer.startswith(b"SERVER_ERROR UNIQUE constraint failed"), answer
        assert answer.endswith(b": 1 pending writes are lost\r\n"), answer
        assert rows(served) == ["AA", "sql"]
        assert ask(client, store("k3") + store("k4", "y")) == b"STORED\r\n" * 2
        assert rows(served) == ["AA", "k3", "k4", "sql"]


def test_an_idle_commit_that_fails_leaves_no_lock_on_the_file(tmp_path: Path) -> None:
    options = ("--set", "daemon_memcached_w_batch_size=100", "--set", "innodb_api_bk_commit_interval=1")
    with serving(with_unique_values(tmp_path), *options) as served, served.connect() as client:
        assert ask(client, store("k1", "taken")) == b"STORED\r\n"
        write(served, "INSERT INTO demo_test VALUES ('sql', 'taken', 0, 0, 0)")
        served.wait_for("background commit of a batch failed: UNIQUE constraint failed")
        write(served, "DELETE FROM demo_test WHERE c1 = 'sql'")
        assert ask(client, b"get k1\r\n").endswith(b": 1 pending writes are lost\r\n")


def test_a_table_that_is_dropped_takes_the_batch_along(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(2)) as served:
        with served.connect() as client:
            assert ask(client, store("k1")) == b"STORED\r\n"
            write(served, "DROP TABLE demo_test")
        served.wait_for("background commit of a batch failed: no such table: demo_test: 1 pending")
        with served.connect() as client:
            assert ask(client, store("k1")).startswith(b"SERVER_ERROR container 'aaa': there is no table")


def test_pending_keys_compare_as_the_table_made_anew_does(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(2)) as served, served.connect() as client:
        assert ask(client, store("k1") + b"get K1\r\n") == b"STORED\r\nVALUE K1 0 1\r\nx\r\nEND\r\n"
        assert ask(client, store("k2")) == b"STORED\r\n"
        write(served, "DROP TABLE demo_test")
        write(served, "CREATE TABLE demo_test (c1 VARCHAR(32) PRIMARY KEY, c2 TEXT, c3 INT, c4 BIGINT, c5 INT)")
        assert ask(client, store("k1") + b"get K1\r\nget k1\r\n") == b"STORED\r\nEND\r\nVALUE k1 0 1\r\nx\r\nEND\r\n"


def test_waiters_are_served_in_turn_and_others_at_once(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(2)) as served:
        holder, first, second, other = (served.connect() for _ in range(4))
        with holder, first, second, other:
            assert ask(holder, store("k", "0")) == b"STORED\r\n"
            first.sendall(b"incr k 1\r\n")
            served.until_state("conn_io_queue")
            second.sendall(b"incr k 1\r\n")
            served.until_state("conn_io_queue", 2)
            assert ask(other, store("free") + store("free", "y")) == b"STORED\r\n" * 2
            assert ask(holder, store("h")) == b"STORED\r\n"
            assert first.recv(100) == b"1\r\n"
            served.until_state("conn_io_queue")
            assert ask(first, store("f")) == b"STORED\r\n"
            assert second.recv(100) == b"2\r\n"


def with_a_second_mapping(folder: Path) -> Path:
    """Return a file with the demo table and a copy of it, under the mapping `second`."""
    file = folder / "s.sqlite"
    with serving(file):
        pass
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        (made,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'demo_test'").fetchone()
        connection.execute(made.replace("demo_test", "second"))
        columns = "key_columns, value_columns, flags, cas_column, expire_time_column, unique_idx_name_on_key"
        connection.execute(f"INSERT INTO containers SELECT 'second', db_schema, 'second', {columns} FROM containers")
    return file


@pytest.mark.parametrize("level", [0, 2])
def test_what_a_switch_commits_is_seen_while_its_command_waits_for_a_lock(tmp_path: Path, level: int) -> None:
    def second() -> list[str]:
        with closing(sqlite3.connect(file, timeout=60)) as connection:
            return [key for (key,) in connection.execute("SELECT c1 FROM second")]

    file = with_a_second_mapping(tmp_path)
    settings = batches(100, 4, f"innodb_api_trx_level={level}")
    with serving(file, *settings) as served, served.connect() as holder, served.connect() as client:
        assert ask(holder, store("AA", "open")) == b"STORED\r\n"
        assert ask(client, store("@@second.k")) == b"STORED\r\n"
        assert second() == []
        client.sendall(store("@@aaa.AA", "waits"))
        until_equal(second, ["k"])  # no reply to another connection commits it
        holder.close()
        assert client.recv(100) == b"STORED\r\n"


def test_flush_all_waits_for_batches(tmp_path: Path) -> None:
    settings = batches(100, 1000, "innodb_lock_wait_timeout=1")
    with serving(tmp_path / "s.sqlite", *settings) as served, served.connect() as client, served.connect() as other:
        assert ask(client, store("k")) == b"STORED\r\n"
        assert ask(other, b"flush_all\r\n") == b"SERVER_ERROR lock wait timeout\r\n"
        assert rows(served) == ["AA"]
        other.sendall(b"flush_all\r\n")
        served.until_state("conn_io_queue")
        client.close()
        assert other.recv(100) == b"OK\r\n"
        assert rows(served) == []


def test_a_snapshot_stands_still_while_sql_writes(tmp_path: Path) -> None:
    settings = batches(100, 3, "innodb_api_trx_level=2")
    with serving(tmp_path / "s.sqlite", *settings) as served, served.connect() as client:
        assert ask(client, b"get AA\r\n") == ITEM + b"END\r\n"
        write(served, "UPDATE demo_test SET c2 = 'new' WHERE c1 = 'AA'")
        write(served, "INSERT INTO demo_test VALUES ('AB', 'x', 0, 0, 0)")
        assert ask(client, b"get @>A\r\nget AB\r\n") == ITEM + b"END\r\nEND\r\n"
        assert ask(client, b"get AA\r\n") == b"VALUE AA 8 3\r\nnew\r\nEND\r\n"


def test_an_idle_connection_is_committed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    path, sizes = tmp_path / "s.sqlite", ("daemon_memcached_w_batch_size=100", "daemon_memcached_r_batch_size=1000")
    with clocked(path, *sizes, "innodb_api_bk_commit_interval=60") as served, ExitStack() as stack:
        idle, busy = (stack.enter_context(served.connect()) for _ in range(2))
        assert ask(idle, store("idle")) == b"STORED\r\n"
        for _ in range(4):
            assert ask(busy, store("busy")) == b"STORED\r\n"
            served.advance(20)
        assert rows(path) == ["AA", "idle"]
        served.advance(60)
        assert rows(path) == ["AA", "busy", "idle"]


def test_settings_come_from_a_file_and_some_change_at_a_reload(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    sizes = "daemon_memcached_w_batch_size = 2\ndaemon_memcached_r_batch_size = 1000\n"
    file.write_text(f"[settings]\n{sizes}innodb_api_trx_level = 0\n")
    with serving(tmp_path / "s.sqlite", *NEVER, "--config", str(file)) as served:
        with served.connect() as client, served.connect() as other:
            assert ask(client, store("k1")) == b"STORED\r\n"
            assert ask(other, b"get k1\r\n") == b"VALUE k1 0 1\r\nx\r\nEND\r\n"
            file.write_text("[settings]\ninnodb_api_trx_level = 1\ndaemon_memcached_w_batch_size = 9\n")
            served.reload()
            assert ask(other, b"get k1\r\n") == b"END\r\n"
            assert ask(client, store("k2")) == b"STORED\r\n"
            assert rows(served) == ["AA", "k1", "k2"]
        served.wait_for("setting daemon_memcached_w_batch_size stays 2 until the server restarts")
        file.write_text("[settings]\ninnodb_api_trx_level = 7\n")
        served.reload()
        served.wait_for("not reloaded, the previous one stays active: setting innodb_api_trx_level=7: write a number")


def test_many_open_batches_and_snapshots(tmp_path: Path) -> None:
    settings = batches(1000, 1000, "innodb_api_trx_level=2")
    with serving(tmp_path / "s.sqlite", *settings) as served:
        clients = [served.connect() for _ in range(60)]
        replies: list[bytes] = []

        def work(number: int) -> None:
            replies.append(ask(clients[number], b"get AA\r\n" + store(f"k{number}")))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert replies == [ITEM + b"END\r\nSTORED\r\n"] * 60
        assert rows(served) == ["AA"]
        for client in clients:
            client.close()
        eventually(served, sorted(["AA", *(f"k{number}" for number in range(60))]))


def with_a_table_that_rolls_back(folder: Path, event: str = "INSERT") -> Path:
    """Return a file with a second table, whose trigger ends the transaction of each write of the value `no`."""
    file = folder / "s.sqlite"
    with serving(file):
        pass
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE bad (k VARCHAR(32) PRIMARY KEY, v VARCHAR(40))")
        connection.execute("INSERT INTO containers VALUES ('bad', 'test', 'bad', 'k', 'v', '0', '0', '0', 'PRIMARY')")
        connection.execute(
            f"CREATE TRIGGER strict AFTER {event} ON bad WHEN NEW.v = 'no' BEGIN SELECT RAISE(ROLLBACK, 'not this'); END"
        )
    return file


def test_a_trigger_that_rolls_back_fails_only_its_own_write(tmp_path: Path) -> None:
    with serving(with_a_table_that_rolls_back(tmp_path)) as served, served.connect() as one, served.connect() as two:
        assert ask(two, b"bind bad\r\n") == b"SUCCEED\r\n"
        refused = b"SERVER_ERROR not this\r\n"
        for turn in range(20):
            one.sendall(b"".join(store(f"k{turn}-{n}") for n in range(5)))
            two.sendall(b"".join(store(f"b{n}", "no") for n in range(5)) + store(f"good{turn}"))
            assert receive(one, 5 * len(b"STORED\r\n")) == b"STORED\r\n" * 5
            assert receive(two, 5 * len(refused) + len(b"STORED\r\n")) == refused * 5 + b"STORED\r\n"
        assert len(rows(served)) == 1 + 100
        with closing(sqlite3.connect(served.store)) as file:
            assert file.execute("SELECT COUNT(*), COUNT(DISTINCT v) FROM bad").fetchone() == (20, 1)


def test_a_trigger_that_rolls_back_within_a_batch_is_refused_like_others(tmp_path: Path) -> None:
    with serving(with_a_table_that_rolls_back(tmp_path), *batches(3)) as served, served.connect() as one:
        with served.connect() as two:
            assert ask(two, store("pending")) == b"STORED\r\n"
            assert ask(one, b"bind bad\r\n") == b"SUCCEED\r\n"
            assert ask(one, store("a")) == b"STORED\r\n"
            assert ask(one, store("b", "no")) == b"SERVER_ERROR not this\r\n"
            assert ask(one, store("c")) == b"STORED\r\n"
            assert ask(one, store("d")) == b"STORED\r\n"
            assert [ask(two, store(key)) for key in ("second", "third")] == [b"STORED\r\n"] * 2
        assert rows(served) == ["AA", "pending", "second", "third"]
        with closing(sqlite3.connect(served.store)) as file:
            assert file.execute("SELECT k FROM bad ORDER BY k").fetchall() == [("a",), ("c",), ("d",)]


def receive(connection: socket.socket, size: int) -> bytes:
    """Return so many bytes of replies, fewer where the server closes."""
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return data


def test_a_bound_mapping_that_is_read_again_at_a_reload_commits_the_batch(tmp_path: Path) -> None:
    file = tmp_path / "s.sqlite"
    with serving(file):
        pass
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(
            "INSERT INTO containers SELECT 'again', db_schema, db_table, key_columns, value_columns, flags, cas_column,"
            " expire_time_column, unique_idx_name_on_key FROM containers WHERE name = 'aaa'"
        )
    with serving(file, *batches(1000)) as served, served.connect() as client, served.connect() as other:
        for each in (client, other):
            assert ask(each, b"bind again\r\n") == b"SUCCEED\r\n"
        assert ask(client, store("k1")) == b"STORED\r\n"
        served.reload()
        assert rows(served) == ["AA"]
        assert ask(other, b"get @@again.AA\r\n") == ITEM.replace(b"AA", b"@@again.AA") + b"END\r\n"
        assert rows(served) == ["AA"]  # that is another connection
        assert ask(client, b"get AA\r\n") == ITEM + b"END\r\n"
        assert rows(served) == ["AA", "k1"]
        assert ask(client, store("k2")) == b"STORED\r\n"
        assert ask(client, b"get AA\r\n") == ITEM + b"END\r\n"
        assert rows(served) == ["AA", "k1"]


def test_what_is_before_a_waiting_write_is_answered_at_once_and_what_is_behind_it_in_order(tmp_path: Path) -> None:
    options = batches(3, 1000, "innodb_lock_wait_timeout=60")
    with serving(tmp_path / "s.sqlite", *options) as served, served.connect() as holder, served.connect() as waiter:
        assert ask(waiter, b"get none\r\n") == b"END\r\n"
        assert ask(holder, store("k1", "open")) == b"STORED\r\n"
        waiter.sendall(store("k2") + b"get k2\r\n" + store("k1", "waited") + b"get k1\r\n")
        first = b"STORED\r\nVALUE k2 0 1\r\nx\r\nEND\r\n"
        assert receive(waiter, len(first)) == first
        waiter.sendall(b"get k2\r\n" + store("k1", "!", "append") + b"get k1\r\n")
        assert ask(holder, b"get k2\r\n") == b"END\r\n"
        assert ask(holder, store("k3") + store("k4")) == b"STORED\r\n" * 2
        left = (
            b"STORED\r\nVALUE k1 0 6\r\nwaited\r\nEND\r\nVALUE k2 0 1\r\nx\r\nEND\r\n"
            b"STORED\r\nVALUE k1 0 7\r\nwaited!\r\nEND\r\n"
        )
        assert receive(waiter, len(left)) == left
        assert rows(served) == ["AA", "k1", "k2", "k3", "k4"]


def test_a_batch_in_one_packet_is_committed_when_it_is_full(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(3)) as served, served.connect() as client:
        assert ask(client, b"get none\r\n") == b"END\r\n"
        sent = b"".join(store(f"k{number}") for number in range(8)) + b"delete k7\r\nincr none 1\r\n"
        assert ask(client, sent) == b"STORED\r\n" * 8 + b"DELETED\r\nNOT_FOUND\r\n"
        assert rows(served) == ["AA", *(f"k{number}" for number in range(7))]


def test_a_planned_batch_is_carried_out_over_what_sql_has_changed_meanwhile(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(6)) as served, served.connect() as client:
        assert (
            ask(client, store("k1", "old") + store("k2", "old") + b"touch AA 0\r\n" + store("k3") * 3).count(b"\n") == 6
        )
        sent = store("k1", "new") + store("k2", "new") + store("k4", "new") + b"delete k3\r\nappend AA 0 0 1\r\n!\r\n"
        assert ask(client, sent) == b"STORED\r\n" * 3 + b"DELETED\r\nSTORED\r\n"
        write(served, "DELETE FROM demo_test WHERE c1 IN ('k2', 'k3')")
        write(served, "INSERT INTO demo_test VALUES ('k4', 'sql', 0, 0, 0)")
        assert ask(client, b"get k4\r\n") == b"VALUE k4 0 3\r\nnew\r\nEND\r\n"
        assert ask(client, store("k5")) == b"STORED\r\n"
        assert rows(served) == ["AA", "k1", "k2", "k4", "k5"]
        assert ask(client, b"get k4\r\nget AA\r\n") == (
            b"VALUE k4 0 3\r\nnew\r\nEND\r\nVALUE AA 8 13\r\nHELLO, HELLO!\r\nEND\r\n"
        )


def test_a_row_that_sql_changes_before_a_batch_only_touches_it_is_shown_as_sql_has_left_it(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *batches(2)) as served, served.connect() as client:
        assert ask(client, b"get AA\r\n") == ITEM + b"END\r\n"
        assert ask(client, b"touch AA 1000\r\n") == b"TOUCHED\r\n"
        write(served, "UPDATE demo_test SET c2 = 'sql' WHERE c1 = 'AA'")
        assert ask(client, store("k")) == b"STORED\r\n"
        assert ask(client, b"get AA\r\n") == b"VALUE AA 8 3\r\nsql\r\nEND\r\n"


def test_a_row_that_another_batch_writes_before_one_that_only_touches_it_is_shown_as_that_has_left_it(
    tmp_path: Path,
) -> None:
    options = batches(2, 1, "innodb_api_trx_level=1", "innodb_api_disable_rowlock=1")
    with serving(tmp_path / "s.sqlite", *options) as served, served.connect() as client, served.connect() as other:
        for each in (client, other):
            assert ask(each, b"get AA\r\n") == ITEM + b"END\r\n"
        assert ask(client, b"touch AA 1000\r\n") == b"TOUCHED\r\n"
        assert ask(other, store("AA", "other") + store("k1")) == b"STORED\r\n" * 2
        assert ask(client, store("k2")) == b"STORED\r\n"
        assert ask(client, b"get AA\r\n") == b"VALUE AA 0 5\r\nother\r\nEND\r\n"


def test_a_get_after_a_write_that_waited_shows_what_sql_wrote_during_the_wait(tmp_path: Path) -> None:
    options = batches(100, 1000, "innodb_lock_wait_timeout=1")
    with serving(tmp_path / "s.sqlite", *options) as served, served.connect() as holder, served.connect() as waiter:
        assert ask(holder, store("k", "open")) == b"STORED\r\n"
        assert ask(waiter, b"get AA\r\n" * 2) == (ITEM + b"END\r\n") * 2
        waiter.sendall(store("k") + b"get AA\r\n")
        served.until_state("conn_io_queue")
        write(served, "UPDATE demo_test SET c2 = 'sql' WHERE c1 = 'AA'")
        left = b"SERVER_ERROR lock wait timeout\r\nVALUE AA 8 3\r\nsql\r\nEND\r\n"
        assert receive(waiter, len(left)) == left


def test_what_a_command_commits_before_it_waits_is_seen_by_those_of_the_same_turn(tmp_path: Path) -> None:
    process = InProcess(tmp_path / "s.sqlite", "mysql-5.6")
    process.settings = [
        "daemon_memcached_w_batch_size=100",
        "daemon_memcached_r_batch_size=1",
        "innodb_api_trx_level=3",
        "innodb_lock_wait_timeout=20",
        "row_cache_bytes=0",
    ]
    with closing(sqlite3.connect(process.store.path, isolation_level=None)) as connection:
        collations.register(connection)
        connection.execute("CREATE TABLE plain (k VARCHAR(32) PRIMARY KEY, v BLOB)")
        connection.execute("INSERT INTO plain VALUES ('k', '1'), ('other', 'x')")
        connection.execute("DELETE FROM containers")
        connection.execute("INSERT INTO containers VALUES ('p', 'test', 'plain', 'k', 'v', '0', '0', '0', 'PRIMARY')")
    settings = parse(process.settings, None, process.store.profile)
    process.server = Server(process.store, process.store.profile, lambda: settings, [HERE])

    async def play() -> None:
        async with process.clients(4) as (holder, reader, first, second):
            for client in (holder, reader, first, second):
                assert await client.ask(b"get none\r\n") == b"END\r\n"
            assert await holder.ask(store("open")) == b"STORED\r\n"
            assert await first.ask(store("k", "5")) == b"STORED\r\n"
            await reader.send(b"get other\r\n")
            await first.send(b"get k open\r\n")  # the read of k commits
            await second.send(b"incr k 1\r\n")
            assert await reader.heard(3) == b"VALUE other 0 1\r\nx\r\nEND\r\n"
            assert await second.heard(1) == b"6\r\n"
            holder.close()

    asyncio.run(play())
