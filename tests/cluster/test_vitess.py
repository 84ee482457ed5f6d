"""kvref over Vitess: commands through vtgate, transactions of one shard each, refused rows, a gate that is killed."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest
from cluster.generator import Writer, writing
from helpers.commands import kvref
from helpers.live import missing_skips
from helpers.serving import Served, serving
from helpers.waiting import until

from kvref import profiles
from kvref.engine import operations
from kvref.errors import StoreError
from kvref.storage.mysql.errors import CycleError
from kvref.storage.mysql.login import parse
from kvref.storage.mysql.store import MySQLStore
from kvref_testbed import targets
from kvref_testbed.targets.vitess import Cluster

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(600)]
SHARDS = "-80", "80-"
STORED = b"STORED\r\n"
# Tables of the keyspace: name, definition of the key, statement that gives it a vindex; the fault that refuses it.
REFUSED = {
    "unsharded": ("k VARBINARY(64)", "", "has no vindex, and its keyspace test is sharded"),
    "by_value": ("k VARBINARY(64)", "`xxhash`(v) USING xxhash", "is sharded by vindex xxhash (xxhash) of v"),
    "folds": ("k VARCHAR(32)", "`xxhash`(k) USING xxhash", "compares by utf8mb4_0900_ai_ci, and its vindex xxhash"),
    "latin": (
        "k VARCHAR(32) CHARACTER SET latin1 COLLATE latin1_bin",
        "`xxhash`(k) USING xxhash",
        "has character set latin1",
    ),
}
MAPPED = {
    "bytes": ("k VARBINARY(64)", "`xxhash`(k) USING xxhash"),
    "numbers": ("k BIGINT", "`hash`(k) USING hash"),
    "loose": ("k VARCHAR(32)", "`unicode_loose_xxhash`(k) USING unicode_loose_xxhash"),
}


def sql(cluster: Cluster, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements through vtgate and return what the last one found."""
    with closing(cluster.connect()) as connection, connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        return list(cursor.fetchall())


def add_table(cluster: Cluster, name: str, key: str, vindex: str) -> None:
    """Create a table in the sharded keyspace and its row of `containers`."""
    columns = f"{key} NOT NULL PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT UNSIGNED, e BIGINT, other INT, KEY (e)"
    sql(
        cluster,
        f"CREATE TABLE test.{name} ({columns})",
        *([f"ALTER VSCHEMA ON test.{name} ADD VINDEX {vindex}"] if vindex else []),
        f"INSERT INTO innodb_memcache.containers VALUES ('{name}', 'test', '{name}', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ExitStack() as stack:
        with missing_skips():
            made = stack.enter_context(targets.vitess())
        created = kvref("init", "--demo", "--store", made.dsn)
        assert created.returncode == 0, created.stderr
        for name, (key, vindex) in MAPPED.items():
            add_table(made, name, key, vindex)
        for name, (key, vindex, _) in REFUSED.items():
            add_table(made, name, key, vindex)
        made.database.query("SET GLOBAL log_output = 'TABLE'")
        yield made


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[Served]:
    with serving(cluster.dsn, "--set", "innodb_lock_wait_timeout=5") as running:
        yield running


def response(client: socket.socket, count: int) -> bytes:
    """Return so many replies of a line or a get."""
    found = b""
    while len(re.findall(rb"(?m)^(?!VALUE)(?:[A-Z_]+(?: .*)?|\d+)\r$", found)) < count:
        received = client.recv(1 << 16)
        assert received, found
        found += received
    return found


def put(key: str, value: str = "x", seconds: int = 0) -> bytes:
    return f"set {key} 0 {seconds} {len(value)}\r\n{value}\r\n".encode()


def rows_by_shard(cluster: Cluster, table: str) -> list[int]:
    """Return how many rows of a table each shard has."""
    return [cluster.database.query(f"SELECT COUNT(*) FROM {cluster.shard(each)}.{table}")[0][0] for each in SHARDS]


@pytest.mark.parametrize(
    ("mapping", "key"), [("bytes", "{}"), ("numbers", "{}"), ("numbers", "-{}"), ("loose", "Ab{}")]
)
def test_writes_of_both_shards_are_acknowledged_and_each_transaction_has_rows_of_one(
    cluster: Cluster, served: Served, mapping: str, key: str
) -> None:
    keys = [key.format(number) for number in range(1, 41)]
    with served.connect() as client:
        client.sendall(f"get @@{mapping}\r\n".encode() + b"flush_all\r\n")
        assert response(client, 2).endswith(b"OK\r\n")
        cluster.database.query("SET GLOBAL general_log = ON")
        client.sendall(b"".join(map(put, keys)))
        assert response(client, len(keys)) == STORED * len(keys)
        client.sendall(b"".join(put(each, "y") for each in keys))
        assert response(client, len(keys)) == STORED * len(keys)
        cluster.database.query("SET GLOBAL general_log = OFF")
        client.sendall(f"get {' '.join(keys)}\r\n".encode())
        assert response(client, 1).count(b"VALUE") == len(keys)
        assert min(rows_by_shard(cluster, mapping)) > 0
        client.sendall(b"flush_all\r\n")
        assert response(client, 1) == b"OK\r\n"
        assert rows_by_shard(cluster, mapping) == [0, 0]
    query = "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type = 'Query'"
    texts = [str(text).lower() for (text,) in cluster.database.query(query)]
    cluster.database.query("TRUNCATE mysql.general_log")
    commits = sum(text.startswith("commit") for text in texts)
    # No write is tried in two shards and taken back; those of one shard share a commit where the shard is known.
    assert not any(text.startswith("rollback") for text in texts)
    assert commits <= len(keys) if key != "-{}" else commits > 0


def test_commands_of_all_kinds(served: Served) -> None:
    with served.connect() as client:
        steps = [
            (b"get @@bytes\r\nflush_all\r\n", b"VALUE @@bytes 0 10\r\ntest/bytes\r\nEND\r\nOK\r\n"),
            (b"add a 3 0 1\r\n5\r\nadd a 0 0 1\r\n6\r\n", b"STORED\r\nNOT_STORED\r\n"),
            (b"incr a 3\r\ntouch a 100\r\nappend a 0 0 1\r\n0\r\n", b"8\r\nTOUCHED\r\nSTORED\r\n"),
            (b"get a nothing\r\n", b"VALUE a 3 2\r\n80\r\nEND\r\n"),
            (b"delete a\r\ndelete a\r\n", b"DELETED\r\nNOT_FOUND\r\n"),
            (put("a") + put("b") + put("c") + put("d"), STORED * 4),
            (b"get @>=b\r\n", b"VALUE b 0 1\r\nx\r\nVALUE c 0 1\r\nx\r\nVALUE d 0 1\r\nx\r\nEND\r\n"),
            (b"mn\r\n", b"MN\r\n"),
        ]
        for sent, expected in steps:
            client.sendall(sent)
            got = b""
            while len(got) < len(expected):
                got += client.recv(1 << 16)
            assert got == expected, sent


def test_a_row_that_the_table_refuses_and_a_locked_row_concern_their_command_only(
    cluster: Cluster, served: Served
) -> None:
    with served.connect() as client, closing(cluster.connect()) as holder:
        client.sendall(b"get @@bytes\r\n" + put("locked") + put("free"))
        assert response(client, 3).endswith(STORED * 2)
        client.sendall(put("free") + put("long", "x" * 101) + put("other"))
        replies = response(client, 3).split(b"\r\n")
        assert [replies[0], replies[2]] == [b"STORED"] * 2
        assert replies[1].startswith(b"SERVER_ERROR")
        # vtgate's words of the error have the statement with its values.
        assert b"xxxx" not in replies[1]
        assert b"BindVars" not in replies[1]
        holder.begin()
        with holder.cursor() as cursor:
            cursor.execute("UPDATE test.bytes SET v = 'held' WHERE k = 'locked'")
        with served.connect() as second:
            second.sendall(b"get @@bytes\r\n" + put("free", "z"))
            client.sendall(put("locked", "after"))
            assert response(second, 2).endswith(STORED)
        holder.commit()
        assert response(client, 1) == STORED
    assert sql(cluster, "SELECT v FROM test.bytes WHERE k = 'locked'") == [("after",)]


def test_expired_rows_are_removed_from_all_shards(cluster: Cluster) -> None:
    sql(cluster, "DELETE /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ FROM test.bytes")
    for number in range(20):
        sql(cluster, f"INSERT INTO test.bytes (k, v, f, c, e) VALUES ('old{number}', 'x', 0, 1, 1000)")
    assert min(rows_by_shard(cluster, "bytes")) > 0
    with serving(cluster.dsn, "--set", "expired_rows_purge_interval=1"):
        until(lambda: rows_by_shard(cluster, "bytes") == [0, 0], seconds=60)


def test_a_row_whose_table_is_not_sharded_by_its_key_is_refused_with_the_vindex(cluster: Cluster) -> None:
    with serving(cluster.dsn) as served:
        for name, (_, _, fault) in REFUSED.items():
            assert fault in served.wait_for(f"container '{name}'"), name
        with served.connect() as client:
            for name in REFUSED:
                client.sendall(f"get @@{name}\r\n".encode())
                assert b"VALUE" not in response(client, 1)
    examined = kvref("doctor", "--store", cluster.dsn)
    assert examined.returncode == 1
    for name, (_, _, fault) in REFUSED.items():
        assert fault in examined.stdout, name
    assert "Vitess: a transaction has rows of one shard" in examined.stdout
    assert "Vitess has one for each shard" in examined.stdout


@pytest.mark.parametrize(
    ("setting", "cause"),
    [
        ("daemon_memcached_w_batch_size=10", "a batch may have rows of several shards"),
        ("daemon_memcached_r_batch_size=10", "a batch may have rows of several shards"),
        ("row_cache_binlog=1", "Vitess has one for each shard"),
    ],
)
def test_what_vitess_cannot_do_is_refused(cluster: Cluster, setting: str, cause: str) -> None:
    refused = kvref("serve", "--store", cluster.dsn, "--listen", "127.0.0.1:0", "--set", setting)
    assert refused.returncode == 2
    assert cause in refused.stderr


def test_ddl_and_a_new_vindex_are_noticed(cluster: Cluster, served: Served) -> None:
    add_table(cluster, "later", "k VARBINARY(64)", "")
    with served.connect() as client:
        client.sendall(b"get @@later\r\n")
        assert b"VALUE" not in response(client, 1)
        sql(cluster, "ALTER VSCHEMA ON test.later ADD VINDEX `xxhash`(k) USING xxhash")
        served.reload()
        client.sendall(b"get @@later\r\n" + put("a") + put("b"))
        assert response(client, 3).endswith(STORED * 2)
        sql(cluster, "ALTER TABLE test.later ADD COLUMN more INT")
        client.sendall(put("a", "1") + put("b", "1") + b"get a b\r\n")
        assert response(client, 3).count(b"VALUE") == 2


def test_a_killed_gate_loses_nothing(cluster: Cluster, served: Served) -> None:
    with writing(served, "kill") as writers:
        cluster.gate.kill()
        until(lambda: all(each.refusals for each in writers))
        cluster.gate.start()
        for each in writers:
            each.wait_for_an_acknowledgement()
    assert differences(cluster, writers) == []


def test_a_killed_database_loses_nothing(cluster: Cluster, served: Served) -> None:
    with writing(served, "down") as writers:
        cluster.database.kill()
        until(lambda: all(each.refusals for each in writers))
        cluster.database.start()
        for each in writers:
            each.wait_for_an_acknowledgement()
    assert differences(cluster, writers) == []


def restart_with_stale_connections(cluster: Cluster, statement: str) -> None:
    """Restart the database when the tablets of a statement have connections to it that no client has used since."""

    def run(_: int) -> None:
        sql(cluster, statement)

    cluster.gate.kill()
    cluster.gate.start()
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(run, range(20)))
    cluster.database.kill()
    cluster.database.start()


@pytest.mark.parametrize("servers", ["{gate}", "127.0.0.1:1,{gate}"], ids=["one-gate", "two-gates"])
@pytest.mark.parametrize("table", ["innodb_memcache.config_options", "test.demo_test"])
def test_a_server_starts_while_tablets_have_stale_connections(cluster: Cluster, servers: str, table: str) -> None:
    dsn = f"mysql://root@{servers.format(gate=f'127.0.0.1:{cluster.gate.port}')}/"
    restart_with_stale_connections(cluster, f"SELECT SLEEP(0.2) FROM {table} LIMIT 1")
    with serving(dsn) as served, served.connect() as client:
        client.sendall(b"get AA\r\n")
        assert response(client, 1) == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def test_one_gate_of_two_is_enough(cluster: Cluster) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        dead = nobody.getsockname()[1]
        with (
            serving(f"mysql://root@127.0.0.1:{dead},127.0.0.1:{cluster.gate.port}/") as served,
            served.connect() as client,
        ):
            client.sendall(put("two") + b"get two\r\n")
            assert response(client, 2) == STORED + b"VALUE two 0 1\r\nx\r\nEND\r\n"


def test_a_transaction_that_vitess_has_ended_is_never_acknowledged() -> None:
    """A tablet ends transactions that take too long; vtgate then accepts further statements and a COMMIT all the same."""
    with ExitStack() as stack:
        with missing_skips():
            cluster = stack.enter_context(targets.vitess(["--queryserver-config-transaction-timeout=5s"]))
        assert kvref("init", "--demo", "--store", cluster.dsn).returncode == 0
        store = MySQLStore(parse(cluster.dsn), profiles.load("kvref"), 1)
        stack.callback(store.close)
        mapping = store.read_directory().default

        def wait_until_ended() -> None:
            shards = [f"SELECT * FROM {cluster.shard(each)}.demo_test WHERE c1 = 'AA' FOR UPDATE" for each in SHARDS]
            cluster.database.query(*shards)  # waits for its lock

        def values() -> list[tuple[Any, ...]]:
            return sql(cluster, "SELECT c2 FROM test.demo_test")

        before = values()
        lookup = operations.Lookup(mapping, "AA", for_update=True)
        with closing(store.connect()) as connection:
            row = connection.execute(lookup)
            wait_until_ended()
            with pytest.raises(
                (CycleError, StoreError), match=r"transaction \d+: (ended at .*exceeded timeout|in use)"
            ):
                connection.execute(
                    operations.Update(mapping, "AA", replace(row, values=("lost",)), clear_unmapped=True)
                )
            assert not connection.in_transaction
            assert connection.lost
        with closing(store.connect()) as connection:
            row = connection.execute(lookup)
            change = operations.Update(mapping, "AA", replace(row, values=("lost",)), clear_unmapped=True)
            assert connection.execute(change) is None
            wait_until_ended()
            try:
                refusal = connection.commit()
            except CycleError as error:
                refusal = str(error)
            # The tablet has ended it, or is about to: then the transaction is still in use.
            assert re.search(r"transaction \d+: (ended at .*exceeded timeout|in use)", refusal or ""), refusal
        assert values() == before


def differences(cluster: Cluster, writers: list[Writer]) -> list[str]:
    """Return acknowledged rows that differ in the shards; no writer got a wrong reply."""
    assert [wrong for each in writers for wrong in each.wrong] == []
    found = [cluster.database.query(f"SELECT c1, c2 FROM {cluster.shard(shard)}.demo_test") for shard in SHARDS]
    assert all(found), "the keys are in both shards"
    rows = dict(row for each in found for row in each)
    return [text for each in writers for text in each.differences(rows)]
