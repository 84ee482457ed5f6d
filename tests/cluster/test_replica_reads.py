"""Gets from the secondaries of a replication group: what they may miss, and what happens if a secondary lags or fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from socket import create_connection, socket

import pytest
from cluster.generator import writing
from cluster.rows import ACCOUNT, dsn
from helpers.commands import kvref
from helpers.http_client import AT, metrics
from helpers.serving import Served, ask, running, serving
from helpers.waiting import until, until_equal

from kvref_testbed.targets import Group
from kvref_testbed.targets.group import Member

# A table whose rows do not change if the same value is written again: it has no CAS column.
WITHOUT_CAS = "CREATE TABLE test.no_cas (k VARCHAR(64) PRIMARY KEY, v VARCHAR(64) NOT NULL)"
CONTAINER = (
    "INSERT INTO innodb_memcache.containers VALUES ('no_cas', 'test', 'no_cas', 'k', 'v', '0', '0', '0', 'PRIMARY')"
)
# The same servers twice, by different DSNs.
STORES = """
[[store]]
name = "main"
dsn = "{}"
[[store]]
name = "spread"
dsn = "{}"
[[mapping]]
name = "no_cas"
store = "spread"
"""
LISTENERS = """store = "{}"
[[listener]]
address = "127.0.0.1:0"
[[listener]]
address = "127.0.0.1:0"
reads = "replica"
[[listener]]
address = "127.0.0.1:0"
reads = "primary"
"""
# Sets, gets and commands that are not planned; each reply shows whether the connection sees what it has written.
CONVERSATION = (
    (b"set own 0 0 1\r\n1\r\n", b"STORED\r\n"),
    (b"get own\r\n", b"VALUE own 0 1\r\n1\r\nEND\r\n"),
    (b"set own 0 0 1\r\n2\r\nset other 0 0 1\r\n3\r\n", b"STORED\r\nSTORED\r\n"),
    (b"get own other\r\n", b"VALUE own 0 1\r\n2\r\nVALUE other 0 1\r\n3\r\nEND\r\n"),
    (b"get own\r\nget other\r\n", b"VALUE own 0 1\r\n2\r\nEND\r\nVALUE other 0 1\r\n3\r\nEND\r\n"),
    (b"incr own 5\r\n", b"7\r\n"),
    (b"get own\r\n", b"VALUE own 0 1\r\n7\r\nEND\r\n"),
    (b"append own 0 0 1\r\n0\r\n", b"STORED\r\n"),
    (b"get own\r\n", b"VALUE own 0 2\r\n70\r\nEND\r\n"),
    (b"set own 0 0 2 noreply\r\n71\r\nget own\r\n", b"VALUE own 0 2\r\n71\r\nEND\r\n"),
    (b"delete own\r\n", b"DELETED\r\n"),
    (b"get own\r\n", b"END\r\n"),
    (b"add own 0 0 2\r\n\xc3\xa4\r\n", b"STORED\r\n"),
    (b"get own\r\n", b"VALUE own 0 2\r\n\xc3\xa4\r\nEND\r\n"),
    (b"flush_all\r\n", b"OK\r\n"),
    (b"get own other\r\n", b"END\r\n"),
)

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def empty(group: Group) -> Iterator[None]:
    yield
    on(group.primary(), "DELETE FROM test.demo_test")


@pytest.fixture(scope="module")
def table_without_cas(group: Group) -> None:
    on(group.primary(), WITHOUT_CAS, CONTAINER, "GRANT ALL ON test.no_cas TO kv")


def on(member: Member, *statements: str) -> None:
    with closing(member.connect(60)) as connection:
        for each in statements:
            connection.query(each)


@contextmanager
def reading(group: Group, reads: str, options: str = "", words: Sequence[str] = ()) -> Iterator[tuple[Served, Member]]:
    """Serve from the primary and one secondary; give that, after a get was read from it."""
    secondary = next(each for each in group.members if each is not group.primary())
    store = dsn(group.primary(), secondary, options=f"?timeout=3&reads={reads}{options}")
    with serving(store, *words) as served:
        until_read_from_secondary(served)
        yield served, secondary


@contextmanager
def held_back(member: Member) -> Iterator[None]:
    """Let a member apply nothing; it still receives transactions, and shows what it has."""
    with closing(member.connect(60)) as connection:
        connection.query("FLUSH TABLES WITH READ LOCK")
        yield


def connections(member: Member) -> list[int]:
    """Return the numbers of the connections of kvref to a member."""
    with closing(member.connect(60)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM information_schema.processlist WHERE user = '{ACCOUNT}'")
        return [number for (number,) in cursor.fetchall()]


def counts(client: socket) -> dict[str, int]:
    rows = re.findall(rb"STAT replica_(\w+) (\d+)\r\n", ask(client, b"stats\r\n"))
    return {name.decode(): int(number) for name, number in rows}


def until_read_from_secondary(served: Served, get: bytes = b"get none\r\n") -> None:
    with served.connect() as client:
        before = counts(client)["gets"]

        def risen() -> bool:
            assert ask(client, get) == b"END\r\n"
            return counts(client)["gets"] > before

        until(risen)


def converse(client: socket) -> None:
    for request, reply in CONVERSATION:
        assert (request, ask(client, request)) == (request, reply)


@pytest.mark.parametrize("options", ["", "&coalesce=2"], ids=["together", "few together"])
def test_a_session_sees_its_writes_though_the_secondary_lacks_them(group: Group, options: str) -> None:
    with reading(group, "session", options) as (served, secondary), served.connect() as client:
        with held_back(secondary), served.connect() as other:
            assert ask(client, b"set new 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert ask(other, b"get new\r\n") == b"END\r\n", "it has written nothing, and reads what the secondary has"
            before = counts(client)
            converse(client)
            after = counts(client)
            assert after["behind"] > before["behind"]
            assert (after["gets"], after["unavailable"]) == (before["gets"], before["unavailable"])
        until(lambda: ask(client, b"get new\r\n") and counts(client)["gets"] > after["gets"])
        converse(client)


# What the secondary has before, and what each write makes of it; the write is the first one of its connection.
BEFORE = b"set own 0 0 1\r\n1\r\n"
FIRST_WRITES = {
    b"set own 0 0 1\r\n2\r\n": b"VALUE own 0 1\r\n2\r\nEND\r\n",
    b"set own 0 0 1\r\n2\r\nset none 0 0 1\r\n3\r\n": b"VALUE own 0 1\r\n2\r\nEND\r\n",
    b"set own 0 0 2\r\n\xc3\xa4\r\n": b"VALUE own 0 2\r\n\xc3\xa4\r\nEND\r\n",
    b"incr own 1\r\n": b"VALUE own 0 1\r\n2\r\nEND\r\n",
    b"append own 0 0 1\r\n0\r\n": b"VALUE own 0 2\r\n10\r\nEND\r\n",
    b"delete own\r\n": b"END\r\n",
    b"touch own -1\r\n": b"END\r\n",
    b"ms own 1\r\n2\r\n": b"VALUE own 0 1\r\n2\r\nEND\r\n",
    b"flush_all\r\n": b"END\r\n",
}


def test_a_session_sees_its_first_write_whatever_it_is(group: Group) -> None:
    old = b"VALUE own 0 1\r\n1\r\nEND\r\n"
    with reading(group, "session") as (served, secondary):
        for number, (write, shown) in enumerate(FIRST_WRITES.items()):
            with served.connect() as client, served.connect() as other, served.connect() as third:
                assert ask(other, BEFORE + b"set number 0 0 1\r\n%d\r\n" % number) == b"STORED\r\n" * 2
                number_shown = b"VALUE number 0 1\r\n%d\r\nEND\r\n" % number
                until_equal(partial(ask, client, b"get number\r\n"), number_shown)
                assert ask(client, b"get own\r\n") == old
                with held_back(secondary):
                    assert b"ERROR" not in ask(client, write)
                    assert (write, ask(client, b"get own\r\n")) == (write, shown)
                    assert ask(third, b"get own\r\n") == old, "the secondary is not in use"


def test_a_session_sees_a_write_that_another_secondary_has_executed(group: Group) -> None:
    secondaries = [each for each in group.members if each is not group.primary()]
    with (
        serving(dsn(*group.members, options="?timeout=3&reads=session")) as served,
        served.connect() as client,
        served.connect() as other,
    ):
        until_read_from_secondary(served)
        (used,) = [each for each in secondaries if connections(each)]
        (unused,) = [each for each in secondaries if each is not used]
        with held_back(unused):
            assert ask(client, b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
            until(lambda: ask(other, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n")
            before = counts(client)["gets"]
            assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            assert counts(client)["gets"] == before + 1
            used.kill()
            try:
                until(lambda: ask(other, b"get k\r\n") == b"END\r\n")
                assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            finally:
                used.start()


@pytest.mark.parametrize("workers", [1, 2])
def test_sessions_of_many_connections_see_their_writes_in_common_statements(group: Group, workers: int) -> None:
    with reading(group, "session", words=("--workers", str(workers))) as (served, secondary):
        for _ in range(2):
            with writing(served, "free") as writers:
                for each in writers:
                    each.wait_for_an_acknowledgement()
                with held_back(secondary):
                    for _ in range(5):
                        for each in writers:
                            each.wait_for_an_acknowledgement()
            assert [(each.wrong, each.refusals) for each in writers] == [([], [])] * len(writers)
        with served.connect() as client:
            found = counts(client)
    assert found["gets"] > 0
    assert found["behind"] > 0


def test_a_write_that_changes_nothing_is_seen_though_it_has_no_gtid(group: Group, table_without_cas: None) -> None:
    with reading(group, "session") as (served, secondary), served.connect() as first, served.connect() as second:
        with held_back(secondary):
            assert ask(first, b"set @@no_cas.k 0 0 3\r\nold\r\n") == b"STORED\r\n"
        with held_back(secondary):
            assert ask(first, b"set @@no_cas.k 0 0 3\r\nnew\r\n") == b"STORED\r\n"
            assert ask(second, b"set @@no_cas.k 0 0 3\r\nnew\r\n") == b"STORED\r\n"
            assert ask(second, b"get @@no_cas.k\r\n") == b"VALUE @@no_cas.k 0 3\r\nnew\r\nEND\r\n"


def test_a_mapping_has_the_reads_of_its_store(group: Group, table_without_cas: None, tmp_path: Path) -> None:
    secondary = next(each for each in group.members if each is not group.primary())
    servers = group.primary(), secondary
    file = tmp_path / "kvref.toml"
    file.write_text(
        STORES.format(dsn(*servers, options="?timeout=3"), dsn(*servers, options="?timeout=3&reads=session"))
    )
    words = [sys.executable, "-m", "kvref", "serve", "--config", str(file), "--listen", "127.0.0.1:0"]
    with running(words, str(file)) as served, served.connect() as client, served.connect() as other:
        until_read_from_secondary(served, b"get @@no_cas.none\r\n")
        with held_back(secondary):
            for mapping in (b"aaa", b"no_cas"):
                assert ask(client, b"set @@%b.mine 0 0 1\r\n1\r\n" % mapping) == b"STORED\r\n"
                assert ask(client, b"get @@%b.mine\r\n" % mapping) == b"VALUE @@%b.mine 0 1\r\n1\r\nEND\r\n" % mapping
            assert ask(other, b"get @@aaa.mine\r\n") == b"VALUE @@aaa.mine 0 1\r\n1\r\nEND\r\n"
            assert ask(other, b"get @@no_cas.mine\r\n") == b"END\r\n", "the secondary is not in use"


def test_a_listener_has_its_own_reads(group: Group, tmp_path: Path) -> None:
    secondary = next(each for each in group.members if each is not group.primary())
    file = tmp_path / "kvref.toml"
    file.write_text(LISTENERS.format(dsn(group.primary(), secondary, options="?timeout=3&reads=session")))
    words = [sys.executable, "-m", "kvref", "serve", "--config", str(file)]
    with running(words, str(file)) as served, ExitStack() as stack:
        clients = [
            [stack.enter_context(create_connection(("127.0.0.1", port), timeout=60)) for _ in range(2)]
            for port in served.ports(3)
        ]
        (session, other_session), (replica, _), (primary, other_primary) = clients
        until_read_from_secondary(served)
        shown = b"VALUE k 0 1\r\n1\r\nVALUE \xc3\xa4 0 1\r\n1\r\nEND\r\n"
        with held_back(secondary):
            for writer, reader in ((session, other_session), (replica, replica), (primary, other_primary)):
                assert ask(writer, b"set k 0 0 1\r\n1\r\nset \xc3\xa4 0 0 1\r\n1\r\n") == b"STORED\r\n" * 2
                assert ask(writer, b"get k \xc3\xa4\r\n") == (b"END\r\n" if writer is replica else shown)
                assert ask(reader, b"get k\r\n") == (
                    b"VALUE k 0 1\r\n1\r\nEND\r\n" if reader is other_primary else b"END\r\n"
                )
            before = counts(primary)
            assert ask(primary, b"get k\r\nget \xc3\xa4\r\n").count(b"VALUE") == 2
            assert counts(primary) == before


def test_metrics_count_what_stats_count(group: Group) -> None:
    with reading(group, "session", words=AT) as (served, secondary), served.connect() as client:
        with held_back(secondary):
            assert ask(client, b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert ask(client, b"get k none\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
        secondary.kill()
        try:
            assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            found = counts(client)
            assert all(found.values()), found
            wanted = {f"kvref_replica_{name}_total": number for name, number in found.items()}
            until(lambda: wanted.items() <= metrics(served).items())
        finally:
            secondary.start()


def test_with_replica_a_get_may_miss_a_write_and_a_gets_does_not(group: Group) -> None:
    with reading(group, "replica") as (served, secondary), served.connect() as client:
        with held_back(secondary):
            assert ask(client, b"set late 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert ask(client, b"get late\r\n") == b"END\r\n"
            assert ask(client, b"get late none\r\n") == b"END\r\n"
            number = re.fullmatch(rb"VALUE late 0 1 (\d+)\r\n1\r\nEND\r\n", ask(client, b"gets late\r\n"))
            assert number is not None
            assert ask(client, b"cas late 0 0 1 %b\r\n2\r\n" % number[1]) == b"STORED\r\n"
            assert ask(client, b"incr late 1\r\n") == b"3\r\n"
        until(lambda: ask(client, b"get late\r\n") == b"VALUE late 0 1\r\n3\r\nEND\r\n")


def test_a_secondary_that_lags_behind_ddl_fails_no_command(group: Group, table_without_cas: None) -> None:
    value = b"v" * 100
    shown = b"VALUE @@no_cas.wide 0 100\r\n" + value + b"\r\nEND\r\n"
    with reading(group, "replica") as (served, secondary), served.connect() as client, held_back(secondary):
        on(group.primary(), "ALTER TABLE test.no_cas MODIFY v VARCHAR(200) NOT NULL")
        assert ask(client, b"set @@no_cas.wide 0 0 100\r\n" + value + b"\r\n") == b"STORED\r\n"
        assert ask(client, b"delete @@no_cas.none\r\n") == b"NOT_FOUND\r\n"
        before = counts(client)["gets"]
        on(secondary, *[f"KILL {number}" for number in connections(secondary)])
        until_read_from_secondary(served)
        for _ in range(10):
            assert ask(client, b"get @@no_cas.wide\r\n") == shown, "its columns are not those of the primary"
            assert ask(client, b"append @@no_cas.wide 0 0 0\r\n\r\n") == b"STORED\r\n"
        assert counts(client)["gets"] > before


@pytest.mark.parametrize("reads", ["replica", "session"])
@pytest.mark.parametrize(
    ("begin", "end"), [(Member.kill, Member.start), (Member.pause, Member.resume)], ids=["kill", "sigstop"]
)
def test_a_lost_secondary_fails_no_command(
    group: Group, reads: str, begin: Callable[[Member], None], end: Callable[[Member], None]
) -> None:
    with reading(group, reads) as (served, secondary), ExitStack() as stack:
        client = stack.enter_context(served.connect())
        assert ask(client, b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
        until(lambda: ask(client, b"get k\r\n") != b"END\r\n")
        begin(secondary)
        try:
            assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            assert ask(client, b"get k none\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            assert ask(client, b"set k 0 0 1\r\n2\r\n") == b"STORED\r\n"
            assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n2\r\nEND\r\n"
            assert counts(client)["unavailable"] >= 4
        finally:
            end(secondary)
        if begin is Member.pause and secondary.state()[0] != "ONLINE":
            secondary.join()
        until_read_from_secondary(served)
        assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n2\r\nEND\r\n"


def test_sessions_see_their_writes_across_planned_changes_of_the_primary(group: Group) -> None:
    with (
        serving(dsn(*group.members, options="?timeout=3&reads=session")) as served,
        writing(served, "planned") as writers,
    ):
        for _ in group.members:
            before = group.primary()
            next(each for each in group.members if each is not before).take_over()
            for each in writers:
                each.wait_for_an_acknowledgement()
            until_read_from_secondary(served)
    assert [(each.wrong, each.refusals) for each in writers] == [([], [])] * len(writers)


@pytest.mark.parametrize(
    ("options", "settings", "text"),
    [
        ("&connections=3", (), "reads=session needs connections=4 and coalesce=2 or more"),
        ("", ("daemon_memcached_w_batch_size=8",), "reads=session needs daemon_memcached_r_batch_size=1 and daemon_"),
        ("", ("row_cache_binlog=1",), "the row cache follows the log of one server: name one host"),
    ],
)
def test_what_excludes_reads_from_secondaries(group: Group, options: str, settings: tuple[str, ...], text: str) -> None:
    words = [word for each in settings for word in ("--set", each)]
    store = dsn(*group.members, options=f"?reads=session{options}")
    refused = kvref("serve", "--listen", "127.0.0.1:0", "--store", store, *words)
    assert refused.returncode == 2
    assert text in " ".join(refused.stderr.split())
