"""Gets of keys in several shards: all shards look up theirs at the same time, and the reply is that of the slow path."""

from __future__ import annotations

import asyncio
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from database import database_or_skip, sql, stopped
from server.at_once import WITHOUT_PAUSES, Crowd
from server.in_process import HERE, InProcess
from server.listeners.talk import answers, frame
from server.sharded import KEYS, NAMES, cache, configuration, of_shard, put, shown
from serving import Served, ask, running
from waiting import until_equal

from kvref import profiles
from kvref.engine.counters import Counters
from kvref.protocol.fast_path import PlainLines
from kvref.protocol.replies import ServerError
from kvref.protocol.rules import wire_rules
from kvref.server.executors.base import Wait
from kvref.server.executors.runs import nothing
from kvref.server.executors.sharded import ShardedFastPath
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.several import Placement, SeveralStores, shard_of
from kvref_testbed.targets import SQLServer

TIMEOUT = "timeout=1"  # seconds until a server that does not answer counts as down
COUNTED = (b"cmd_get", b"get_hits", b"get_misses", b"get_expired")
OVER, BIG = KEYS[200:206], KEYS[206:212]  # expired rows, and rows that are too large for one reply of the fast path


@dataclass
class Shards:
    """The stores of a mapping that is sharded over a SQLite file and two databases."""

    path: Path
    servers: tuple[SQLServer, SQLServer]

    @contextmanager
    def serving(self, folder: Path, options: str = TIMEOUT) -> Iterator[Served]:
        """Serve them; no command takes the slow path because of a pause of a busy machine."""
        dsns = [f"sqlite:///{self.path}", *[f"{each.dsn}?{options}" for each in self.servers]]
        folder.mkdir(exist_ok=True)
        file = configuration(folder, dsns)
        words = [sys.executable, "-c", WITHOUT_PAUSES, "serve", "--config", str(file), "--listen", "127.0.0.1:0"]
        words += ["--set", "innodb_lock_wait_timeout=1"]  # a statement may take so much longer
        with running(words, str(file)) as served:
            yield served


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shards]:
    folder = tmp_path_factory.mktemp("shards")
    with database_or_skip("mariadb") as one, database_or_skip("mariadb") as two:
        for each in (one, two):
            subprocess.run(
                [sys.executable, "-m", "kvref", "init", "--store", each.dsn, "--cache", "cache"], check=True, timeout=60
            )
            sql(each, "SET GLOBAL log_output = 'TABLE'")
        shards = Shards(cache(folder / "one"), (one, two))
        with shards.serving(folder) as served, served.connect() as client:
            assert ask(client, put(KEYS[:150])) == b"STORED\r\n" * 150
            for key in OVER:
                assert ask(client, b"set %b 0 -1 1\r\nx\r\n" % key) == b"STORED\r\n"
            for key in BIG:
                assert ask(client, b"set %b 0 0 400000\r\n%b\r\n" % (key, b"x" * 400_000)) == b"STORED\r\n"
        yield shards


@pytest.fixture
def fast(shards: Shards, tmp_path: Path) -> Iterator[Served]:
    with shards.serving(tmp_path / "fast") as served:
        yield served


@pytest.fixture
def slow(shards: Shards, tmp_path: Path) -> Iterator[Served]:
    """Serve the same stores without a fast path."""
    with shards.serving(tmp_path / "slow", f"{TIMEOUT}&coalesce=0") as served:
        yield served


def prepared(served: Served, stack: ExitStack) -> socket.socket:
    """Return a connection whose next plain command takes the fast path, if there is one."""
    client = stack.enter_context(served.connect())
    client.settimeout(60)
    assert ask(client, b"get nothing\r\nget nothing nothing2\r\nstats reset\r\n") == b"END\r\nEND\r\nRESET\r\n"
    return client


def counts(client: socket.socket) -> list[bytes]:
    said = ask(client, b"stats\r\n")
    return [said.split(b"STAT " + name + b" ")[1].split()[0] for name in COUNTED]


def selects(server: SQLServer) -> list[int]:
    """Return the number of keys of each SELECT of the table that was logged, and end the log."""
    sql(server, "SET GLOBAL general_log = OFF")
    logged = sql(
        server,
        "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument LIKE '%% FROM `kvref`.`cache` %%'",
    )
    sql(server, "TRUNCATE TABLE mysql.general_log")
    return [text.count("X'") for (text,) in logged]


def of(*numbers: int, count: int = 10) -> list[bytes]:
    """Return so many keys of each of some shards in turn, which have rows."""
    found = [[key for key in KEYS[:150] if key in of_shard(number, 3)][:count] for number in numbers]
    return [key for group in zip(*found, strict=True) for key in group]


@pytest.mark.live
@pytest.mark.timeout(180)
def test_each_shard_gets_one_statement(shards: Shards, fast: Served) -> None:
    keys = of(0, 1, 2)
    with ExitStack() as stack:
        client = prepared(fast, stack)
        for gets in (
            [keys],
            [[*keys[::-1], b"none1", b"none2"]],
            [of(0, 1)],
            [of(1, 2, count=8) * 2],
            [keys[at : at + 3] for at in range(0, 30, 3)],
            [[key] for key in keys],
        ):
            for each in shards.servers:
                sql(each, "SET GLOBAL general_log = ON")
            said = ask(client, b"".join(b"get %b\r\n" % b" ".join(words) for words in gets))
            found = [selects(each) for each in shards.servers]
            assert said == b"".join(shown([word for word in words if word in KEYS]) for words in gets)
            looked_up = [shard_of(NAMES[:3], word) for word in {word for words in gets for word in words}]
            assert found == [[looked_up.count(number)] * (number in looked_up) for number in (1, 2)], gets


A, B, C = of(0, count=3), of(1, count=3), of(2, count=3)
LINES = [
    b"get %b %b %b none %b\r\n" % (A[0], B[0], C[0], A[0]),
    b"gets %b %b none %b %b\r\n" % (C[0], B[0], A[0], B[1]),
    b"gets %b\r\ngets none\r\nget %b\r\n" % (B[0], B[0]),
    b"get %b\r\n" % b" ".join(OVER + A + OVER + B),
    b"gets %b\r\n" % b" ".join(OVER + C),
    b"get none none1 none2 none3\r\n",
    b"get %b\r\n" % b" ".join(KEYS[:300]),
    b"get %b\r\n" % b" ".join(KEYS[:100] * 10),
    b"get %b\r\n" % b" ".join([*KEYS[:100] * 10, A[0]]),
    b"get %b\r\nget %b\r\n" % (b" ".join(BIG[:3]), b" ".join(BIG)),
    b"get %b  %b\r\n" % (A[0], B[0]),
    b"get %b %b\n" % (A[0], B[0]),
    b"get \xc3\xa9 %b \xff %b\r\n" % (B[0], C[0]),
    b"get %b %b %b\r\n" % (A[0], b"k" * 251, B[0]),
    b"get @@cache.%b %b @@cache.%b\r\n" % (A[0], B[0], C[0]),
    b"get %b @>k1 %b\r\n" % (B[0], A[0]),
    b"get %b a@b %b\r\n" % (B[0], A[0]),
    b"".join(b"get %b\r\n" % b" ".join(each) for each in (A, B, C, A + B, B + C, C[:1], A[:1] + C)),
    b"get %b %b\r\nset %b 3 0 2\r\n%b\r\nget %b %b\r\ngets %b\r\n" % (A[0], B[0], KEYS[10], KEYS[10], KEYS[10], C[0], A[0]),
    b"".join(b"get %b %b\r\n" % (KEYS[n], KEYS[n + 20]) for n in range(100)),
    b"".join(b"get %b\r\n" % key for key in [*KEYS[:150], *OVER, b"none"]),
    b"get %b\r\nget @@cache.%b\r\nget %b\r\nset %b 3 0 2\r\n%b\r\nget %b\r\n" % (A[0], B[0], C[0], KEYS[10], KEYS[10], A[0]),
]  # fmt: skip


@pytest.mark.live
@pytest.mark.timeout(180)
def test_replies_and_counters_are_those_of_the_slow_path(fast: Served, slow: Served) -> None:
    for line in LINES:
        found = []
        for each in (slow, fast):
            with ExitStack() as stack:
                client = prepared(each, stack)
                said = ask(client, line)
                found.append((re.sub(rb"(VALUE k10 3 3) \d+", rb"\1", said), counts(client)))
        assert found[0] == found[1], line[:200]


QUIET = b"".join(frame(opcode, key) for opcode, key in zip([0x0D, 0x09, 0x00, 0x0C] * 4, of(0, 1, 2, count=4) + [b"none"] * 4, strict=True))  # fmt: skip


@pytest.mark.live
@pytest.mark.timeout(180)
def test_binary_gets_are_answered_as_before(fast: Served, slow: Served) -> None:
    one, other = (answers(each.port, [QUIET]) for each in (slow, fast))
    assert one == other
    assert one[0].count(b"\x81") >= 12 + 2


@pytest.mark.live
@pytest.mark.timeout(180)
@pytest.mark.parametrize("down", [(0,), (1,), (0, 1)])
def test_a_shard_that_does_not_answer(shards: Shards, fast: Served, slow: Served, down: Sequence[int]) -> None:
    """The reply is the error of the first key without an answer, and the keys in front of it count."""
    for keys in ([*A, OVER[0], *B, *C, b"none"], [*A, b"none", *C, *B]):
        found = []
        for each in (slow, fast):
            with ExitStack() as stack:
                client = prepared(each, stack)
                with ExitStack() as servers:
                    for number in down:
                        servers.enter_context(stopped(shards.servers[number]))
                    said = ask(client, b"get %b\r\n" % b" ".join(keys))
                found.append((re.sub(rb"\?\S*:", b":", said), counts(client)))
                until_equal(lambda: ask(client, b"get %b\r\n" % b" ".join(A + B + C)), shown(A + B + C))  # noqa: B023 - used in this turn
        assert found[0] == found[1]
        assert re.fullmatch(rb"SERVER_ERROR .*no answer .*within \d s\r\n", found[1][0])


@pytest.mark.live
@pytest.mark.timeout(180)
def test_a_lost_connection_and_a_changed_table(shards: Shards, fast: Served) -> None:
    keys = of(0, 1, 2)
    server = shards.servers[1]
    with ExitStack() as stack:
        client = prepared(fast, stack)
        assert ask(client, b"get %b\r\n" % b" ".join(keys)) == shown(keys)
        others = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'"
        for (number,) in sql(server, others):
            sql(server, f"KILL {number}")
        assert ask(client, b"get %b\r\n" % b" ".join(keys)) == shown(keys)
        assert ask(client, b"get %b\r\n" % b" ".join(keys)) == shown(keys)
        sql(server, "ALTER TABLE kvref.cache CHANGE value other LONGBLOB")
        try:
            said = ask(client, b"get %b\r\nget %b\r\n" % (b" ".join(keys), b" ".join(of(0, 1))))
        finally:
            sql(server, "ALTER TABLE kvref.cache CHANGE other value LONGBLOB")
        assert said.startswith(b"SERVER_ERROR container 'cache': table `kvref`.`cache` has no value column 'value'"), (
            said
        )
        assert said.endswith(shown(of(0, 1)))
        assert ask(client, b"get %b\r\n" % b" ".join(keys)) == shown(keys)


@pytest.mark.live
@pytest.mark.timeout(180)
def test_a_row_of_the_file_that_is_not_committed_is_shown_after_its_commit(shards: Shards, fast: Served) -> None:
    first, second = A[0], B[0]
    with Crowd(fast, 2) as crowd:
        crowd.ask([b"get nothing\r\n", b"get nothing nothing2\r\n"])
        for number in range(20):
            value = b"%03d" % number
            replies = crowd.ask([b"set %b 3 0 3\r\n%b\r\n" % (first, value), b"get %b %b\r\n" % (first, second)])
            assert replies[0] == b"STORED\r\n"
            assert replies[1].endswith(shown([second]))
            with closing(sqlite3.connect(shards.path)) as file:
                assert file.execute("SELECT value FROM cache WHERE cache_key = ?", (first,)).fetchone() == (value,)
        crowd.ask([put([first])])


class Part:
    """A part of a get whose answer comes when the test says so, and what looks it up."""

    def __init__(self, shows: Sequence[bytes]) -> None:
        self.waits = Wait.ANSWER
        self.left = False
        self.error: ServerError | None = None
        self.answered: Callable[[], None] = nothing
        self.size = sum(map(len, shows))
        self.shows = shows
        self.asked = self.refuses = False

    def shown(self, count: int) -> list[bytes]:
        assert self.error is None
        return list(self.shows[:count])

    def part_of_get(self, words: list[bytes], *, with_cas: bool) -> Part | None:
        assert not with_cas
        assert len(words) == len(self.shows)
        return None if self.refuses else self

    def look_up(self, part: object) -> None:
        assert part is self
        self.asked = True


@dataclass
class Asked:
    """A get of two keys in each of three shards, in turn."""

    parts: list[Part]
    replies: list[object]
    counters: Counters
    taken: tuple[int, Wait]


GET = b"get a b c d e f\r\n"


def _none(_: object) -> None:
    """Do nothing: there are no commits."""


def asked(change: Callable[[list[Part]], None] = lambda _: None) -> Asked:
    parts = [Part([b"1", b""]), Part([b"2", b"5"]), Part([b"3", b"6"])]
    change(parts)
    shards = SimpleNamespace(of_key=lambda _, key: b"abcdef".index(key) % 3, numbers=(0, 1, 2))
    counters = Counters()
    session = SimpleNamespace(looked_up=lambda _, key: key, shared=SimpleNamespace(counters=counters))
    lines = PlainLines(wire_rules(profiles.load("kvref"), 1 << 20))
    path = ShardedFastPath(
        cast("Any", session), cast("Any", None), cast("Any", shards), cast("Any", parts), lines, _none, _none
    )
    replies: list[object] = []
    taken = path.take(GET, [], lambda ready, left: replies.append((ready, left)))
    return Asked(parts, replies, counters, taken)


def test_all_shards_look_up_their_keys_before_any_has_an_answer() -> None:
    got = asked()
    assert got.taken == (len(GET), Wait.ANSWER)
    assert [part.asked for part in got.parts] == [True] * 3
    for part in got.parts[::-1]:
        assert got.replies == []
        part.answered()
    assert got.replies == [([b"12356END\r\n"], b"")]
    assert (got.counters.get_hits, got.counters.get_misses) == (5, 1)


def refuse(parts: list[Part]) -> None:
    parts[2].refuses = True


def wait_for_a_commit(parts: list[Part]) -> None:
    parts[0].waits = Wait.COMMIT


@pytest.mark.parametrize("change", [refuse, wait_for_a_commit])
def test_nothing_is_looked_up_if_a_shard_refuses_or_its_row_waits_for_a_commit(
    change: Callable[[list[Part]], None],
) -> None:
    """A reply that comes later would not wait for the commit."""
    got = asked(change)
    assert got.taken == (0, Wait.NOTHING)
    assert not any(part.asked for part in got.parts)


def test_the_error_of_the_first_key_is_the_reply_and_the_keys_in_front_of_it_count() -> None:
    got = asked()
    got.parts[2].error, got.parts[1].error = ServerError("of c"), ServerError("of b")
    for part in got.parts[::-1]:
        part.answered()
    assert got.replies == [([ServerError("of b")], b"")]
    assert (got.counters.get_hits, got.counters.get_misses) == (1, 0)


@pytest.mark.parametrize("size", [0, (1 << 20) - 1])
def test_a_get_that_a_shard_leaves_or_that_is_too_large_takes_the_slow_path_whole(size: int) -> None:
    got = asked()
    got.parts[0].left = not size
    got.parts[1].size = size
    for part in got.parts:
        part.answered()
    assert got.replies == [([], GET)]
    assert got.counters.cmd_get == 0


class TwoDisks(InProcess):
    """A server in this process of a mapping in two SQLite files, each with a disk that waits on request."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "1")
        self.second = InProcess(folder / "2")
        profile = self.store.profile
        for each in (self.store, self.second.store):
            each.add_cache("cache")
        placement = Placement(dict.fromkeys(NAMES[:2], ""), {"cache": NAMES[:2]})
        stores = SeveralStores(placement, [self.store, self.second.store], profile)
        self.server = Server(stores, profile, lambda: parse([], None, profile), [HERE])


def test_a_reply_waits_for_the_disks_of_all_shards_whose_rows_it_shows(tmp_path: Path) -> None:
    one, two = (of_shard(number, 2)[:2] for number in (0, 1))

    async def play() -> None:
        process = TwoDisks(tmp_path)
        async with process.clients(3) as (writer, reader, other):
            for client in (writer, reader, other):
                await client.ask(b"get @@cache.none\r\nget none none2\r\n", 2)
            assert await writer.ask(put([one[0], two[0]]), 2) == b"STORED\r\n" * 2
            assert await reader.ask(b"get %b %b\r\n" % (one[0], two[0]), 5) == shown([one[0], two[0]])
            process.second.disk.clear()
            await writer.send(b"set %b 3 0 2\r\nab\r\n" % two[0])
            await writer.nothing()
            await reader.send(b"get %b %b\r\n" % (one[0], two[0]))
            await other.send(b"get %b %b\r\n" % (two[0], one[0]))
            await reader.nothing()
            await other.nothing()
            process.second.disk.set()
            assert await writer.heard(1) == b"STORED\r\n"
            shows = shown([one[0]]).removesuffix(b"END\r\n")
            changed = b"VALUE %b 3 2\r\nab\r\n" % two[0]
            assert await reader.heard(5) == shows + changed + b"END\r\n"
            assert await other.heard(5) == changed + shows + b"END\r\n"
        process.second.store.close()

    asyncio.run(play())
