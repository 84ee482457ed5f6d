"""A mapping that is sharded by key over several stores."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from urllib.parse import unquote_to_bytes

import pytest
from database import database_or_skip, sql
from server.sharded import KEYS, NAMES, cache, command, configuration, of_shard, put, rows, serving, shown, statements
from serving import ask, running
from waiting import until_equal

from kvref.storage.several import shard_of


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Give a file for each of four stores."""
    return [cache(tmp_path / name) for name in NAMES]


def test_each_key_is_in_its_shard_and_a_get_has_the_order_of_its_keys(files: list[Path]) -> None:
    with serving(files[:3]) as served, served.connect() as client:
        served.wait_for(
            "mapping cache: kvref.cache key=cache_key value=value flags=flags cas=cas expiry=expires, in store one, two, three"
        )
        assert ask(client, put(KEYS)) == b"STORED\r\n" * len(KEYS)
        assert ask(client, b"get %b\r\n" % b" ".join(KEYS[:30])) == shown(KEYS[:30])
        assert ask(client, b"get nothing %b\r\nget %b\r\n" % (KEYS[7], KEYS[8])) == shown([KEYS[7]]) + shown([KEYS[8]])
    for number, file in enumerate(files[:3]):
        assert rows(file) == of_shard(number, 3)
        assert len(rows(file)) > 60
    with serving(files[:3]) as served, served.connect() as client:
        assert ask(client, b"get %b\r\n" % b" ".join(KEYS)) == shown(KEYS)


def test_every_verb_finds_its_key(files: list[Path]) -> None:
    keys = KEYS[:12]
    with serving(files[:3]) as served, served.connect() as client:
        for key in keys:
            conversation = [
                (b"add %b 0 0 1\r\n5\r\n", b"STORED"), (b"add %b 0 0 1\r\n5\r\n", b"NOT_STORED"), (b"incr %b 4\r\n", b"9"),
                (b"append %b 0 0 1\r\n1\r\n", b"STORED"), (b"prepend %b 0 0 1\r\n2\r\n", b"STORED"), (b"decr %b 1\r\n", b"290"),
                (b"replace %b 0 0 1\r\n7\r\n", b"STORED"), (b"touch %b 1000\r\n", b"TOUCHED"), (b"mg %b v\r\n", b"VA 1\r\n7"),
                (b"ma %b\r\n", b"HD"), (b"ms %b 1\r\n3\r\n", b"HD"), (b"cas %b 0 0 1 1\r\n4\r\n", b"EXISTS"),
                (b"delete %b\r\n", b"DELETED"), (b"delete %b\r\n", b"NOT_FOUND"), (b"md %b\r\n", b"NF"), (b"incr %b 1\r\n", b"NOT_FOUND"),
            ]  # fmt: skip
            assert ask(client, b"".join(request % key for request, _ in conversation)) == b"".join(
                reply + b"\r\n" for _, reply in conversation
            )
        ask(client, put(keys))
        found = re.findall(rb"VALUE (\S+) 3 \d+ (\d+)\r\n", ask(client, b"gets %b\r\n" % b" ".join(keys)))
        assert [key for key, _ in found] == keys
        for key, cas in found:
            assert ask(client, b"cas %b 0 0 1 %b\r\nx\r\n" % (key, cas)) == b"STORED\r\n"
        assert ask(client, b"gat 1000 %b\r\n" % b" ".join(keys)).count(b"VALUE") == len(keys)
        assert all(
            rows(file, "SELECT COUNT(*) FROM cache WHERE expires > 0") == [len(rows(file))] for file in files[:3]
        )
        assert b"STAT curr_items 12\r\n" in ask(client, b"stats\r\n")


def test_workers_find_the_shard_of_a_key(files: list[Path]) -> None:
    with (
        serving(files[:3], "--workers", "2") as served,
        served.connect() as one,
        served.connect() as two,
        closing(sqlite3.connect(files[1], isolation_level=None)) as file,
    ):
        assert ask(one, put(KEYS)) == b"STORED\r\n" * len(KEYS)
        assert ask(two, b"get %b\r\n" % b" ".join(KEYS)) == shown(KEYS)
        (lost, *_), (kept, *_) = of_shard(1, 3), of_shard(2, 3)
        file.execute("ALTER TABLE cache RENAME COLUMN value TO other")
        for client in (one, two):
            assert ask(client, b"get @@cache.%b\r\n" % lost).startswith(b"SERVER_ERROR container 'cache': table cache")
            assert ask(client, b"get %b\r\n" % kept) == shown([kept])
        served.reload()
        served.wait_for("store two: no usable row in containers")
        file.execute("ALTER TABLE cache RENAME COLUMN other TO value")
        served.reload()
        assert ask(two, b"get @@cache.%b\r\n" % lost) == b"VALUE @@cache.%b 3 %d\r\n%b\r\nEND\r\n" % (
            lost,
            len(lost),
            lost,
        )
    assert [rows(file) for file in files[:3]] == [of_shard(number, 3) for number in range(3)]


def test_the_whole_table_is_listed_flushed_and_purged(files: list[Path]) -> None:
    with serving(files[:3], "--set", "expired_rows_purge_interval=1") as served, served.connect() as client:
        ask(client, put(KEYS))
        listed = re.findall(rb"key=(\S+) ", ask(client, b"lru_crawler metadump all\r\n"))
        assert sorted(listed) == sorted(KEYS)
        with closing(sqlite3.connect(files[1], isolation_level=None, timeout=10)) as file:
            # Rows that are in a shard that does not have their keys, before and behind the others.
            file.execute(
                "INSERT INTO cache SELECT CAST(? || cache_key AS BLOB), value, flags, cas, expires FROM cache", ("a",)
            )
            for prefix in ("a", "z"):
                for number in range(300):
                    if shard_of(NAMES[:3], b"%b%d" % (prefix.encode(), number)) != 1:
                        file.execute(
                            "INSERT INTO cache VALUES (?, x'', 0, 1, 0)", (b"%b%d" % (prefix.encode(), number),)
                        )
        again = re.findall(rb"key=(\S+) ", ask(client, b"lru_crawler metadump all\r\n"))
        assert sorted(each for each in again if not each.startswith(b"ak")) == sorted(KEYS)
        assert ask(client, b"flush_all\r\n") == b"OK\r\n"
        assert [rows(file) for file in files] == [[]] * 4
        for number, path in enumerate(files[:3]):
            with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as file:
                over = [(b"over%d" % each, b"", 0, 1, 5) for each in range(150 * (number + 1))]
                file.executemany("INSERT INTO cache VALUES (?, ?, ?, ?, ?)", [*over, (b"not", b"", 0, 1, 0)])
        until_equal(lambda: [rows(file) for file in files[:3]], [[b"not"]] * 3)
        until_equal(lambda: re.findall(rb"crawler_reclaimed (\d+)", ask(client, b"stats\r\n")), [b"900"])


def test_a_range_is_refused(files: list[Path]) -> None:
    text = b"CLIENT_ERROR mapping cache is sharded over stores one, two, three, which have no common order of keys: get each key by its name\r\n"
    with serving(files[:3]) as served, served.connect() as client:
        ask(client, put(KEYS[:3]))
        for word in (b"@>k1", b"@<k1", b"@>k0@<k2", b"@@cache.@>k0"):
            assert ask(client, b"get %b\r\n" % word) == text
        assert ask(client, b"get k1 @>k1\r\nget k1\r\n") == text + shown([b"k1"])


def test_a_new_shard_takes_over_some_keys_and_the_others_stay(files: list[Path]) -> None:
    with serving(files[:3]) as served, served.connect() as client:
        ask(client, put(KEYS))
    with serving(files) as served, served.connect() as client:
        stay = [key for key in KEYS if shard_of(NAMES, key) != 3]
        assert 40 < len(KEYS) - len(stay) < 110
        assert ask(client, b"get %b\r\n" % b" ".join(KEYS)) == shown(stay)


def test_other_mappings_stay_in_their_store(files: list[Path]) -> None:
    with closing(sqlite3.connect(files[1], isolation_level=None)) as file:
        file.execute("UPDATE containers SET name = 'plain'")
    cache(files[0], "plain")
    with serving(files[:3], shards=("one", "three")) as served, served.connect() as client:
        assert ask(client, b"set @@plain.x 3 0 1\r\nx\r\n" + put(KEYS[:20])) == b"STORED\r\n" * 21
        assert ask(client, put(KEYS[:20]).replace(b"set ", b"set @@cache.")) == b"STORED\r\n" * 20
        assert ask(client, b"get @@plain.x @@cache.k1 @@plain.k1\r\n").count(b"VALUE") == 3
    assert len(rows(files[0], "SELECT cache_key FROM plain")) == 21
    assert rows(files[1]) == []
    assert sorted(rows(files[0]) + rows(files[2])) == sorted(KEYS[:20])


def test_ddl_in_a_shard_fails_the_commands_of_its_keys(files: list[Path]) -> None:
    with serving(files[:3]) as served, served.connect() as client:
        ask(client, put(KEYS))
        with closing(sqlite3.connect(files[1], isolation_level=None)) as file:
            file.execute("ALTER TABLE cache RENAME COLUMN value TO other")
            (lost, *_), (kept, *_) = of_shard(1, 3), of_shard(2, 3)
            reply = ask(client, b"get %b\r\nget %b\r\nget %b %b\r\n" % (kept, lost, kept, lost))
            text = b"SERVER_ERROR container 'cache': table cache has no value column 'value': its columns are"
            assert reply.startswith(shown([kept]) + text)
            assert reply.count(text) == 2
            file.execute("ALTER TABLE cache RENAME COLUMN other TO value")
        assert ask(client, b"get %b\r\n" % lost) == shown([lost])


def drawn(random: Random, count: int) -> list[bytes]:
    """Return commands on few keys, those of the fast path most often."""
    plain = [b"get %b\r\n"] * 4 + [b"set %b 5 0 2\r\nab\r\n"] * 3
    forms = plain + [each.replace(b"%b", b"@@cache.%b") for each in plain[::2]] + [
        b"gets %b\r\n", b"set %b 0 -1 1\r\n1\r\n", b"set %b 0 0 1\r\n7\r\n", b"incr %b 3\r\n", b"delete %b\r\n", b"append %b 0 0 1\r\n1\r\n",
        b"get %b no-key\r\n", b"mg %b v f\r\n", b"set %b 0 0 1 noreply\r\n2\r\n", b"get %b  \r\n",
    ]  # fmt: skip
    drawn = [random.choice(forms) % random.choice(KEYS[:8]) for _ in range(count)]
    for at in range(random.randrange(3), count, 3):
        words = random.choices([*KEYS[:8], b"no-key"], k=random.choice((2, 2, 3, 12)))
        drawn[at] = random.choice((b"get %b\r\n", b"get %b\r\n", b"gets %b\r\n")) % b" ".join(words)
    return drawn


def without_start(replies: bytes) -> bytes:
    """Return replies whose cas numbers, which start at the time of the server's start, are left out."""
    return re.sub(rb"(VALUE \S+ \d+ \d+) \d{16}\r", rb"\1 CAS\r", replies)


@pytest.mark.parametrize("seed", range(4))
def test_the_fast_path_of_shards_answers_as_the_slow_path(files: list[Path], tmp_path: Path, seed: int) -> None:
    (tmp_path / "slow").mkdir()
    others = [cache(tmp_path / "slow" / each.name) for each in files]
    random = Random(seed)
    with (
        serving(files[:3]) as fast,
        serving(others[:3], "--set", "row_cache_bytes=0") as slow,
        fast.connect() as client,
        slow.connect() as other,
    ):
        for _ in range(150):
            packet = b"".join(drawn(random, random.choice((1, 1, 2, 5, 20)))) + b"mn\r\n"
            assert without_start(ask(client, packet)) == without_start(ask(other, packet)), packet
        counted = [
            re.findall(rb"STAT (?:cmd_|get_|incr_|delete_)\w+ \d+", ask(each, b"stats\r\n")) for each in (client, other)
        ]
        assert counted[0] == counted[1]
        assert len(counted[0]) > 8
    query = "SELECT cache_key || ' ' || value || ' ' || flags FROM cache"
    assert [rows(each, query) for each in files] == [rows(each, query) for each in others]


@pytest.mark.live
def test_commands_on_keys_of_one_shard_are_carried_out_together(tmp_path: Path) -> None:
    with database_or_skip("mariadb") as server:
        subprocess.run(
            [sys.executable, "-m", "kvref", "init", "--store", server.dsn, "--cache", "cache"], check=True, timeout=60
        )
        file = configuration(tmp_path, [f"sqlite:///{cache(tmp_path / 'one')}", server.dsn])
        keys = of_shard(1, 2)[:50]
        with running(command(file), str(file)) as served, served.connect() as client:
            for request, reply, verb in (
                (put(keys), b"STORED\r\n" * len(keys), "insert"),
                (b"".join(b"get %b\r\n" % key for key in keys), b"".join(shown([key]) for key in keys), "select"),
            ):
                before = statements(server, verb)
                assert ask(client, request) == reply
                assert 0 < statements(server, verb) - before < len(keys) / 2


@pytest.mark.live
def test_shards_in_two_databases(tmp_path: Path) -> None:
    with database_or_skip("mariadb") as server:
        subprocess.run(
            [sys.executable, "-m", "kvref", "init", "--store", server.dsn, "--cache", "cache"], check=True, timeout=60
        )
        path = cache(tmp_path / "one")
        file = configuration(tmp_path, [f"sqlite:///{path}", server.dsn])
        with running(command(file), str(file)) as served, served.connect() as client:
            assert ask(client, put(KEYS)) == b"STORED\r\n" * len(KEYS)
            assert ask(client, b"get %b\r\n" % b" ".join(KEYS)) == shown(KEYS)
            assert ask(client, b"".join(b"delete %b\r\n" % key for key in KEYS[:50])) == b"DELETED\r\n" * 50
            assert sorted(re.findall(rb"key=(\S+) ", ask(client, b"lru_crawler metadump all\r\n"))) == sorted(KEYS[50:])
            assert len(sql(server, "SELECT * FROM kvref.cache")) + len(rows(path)) == 250
            assert len(rows(path)) > 80
            assert ask(client, b"flush_all\r\nget %b\r\n" % b" ".join(KEYS)) == b"OK\r\nEND\r\n"


@pytest.mark.programs
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("--set", "daemon_memcached_w_batch_size=2"),
            "[[mapping]] 'cache' is sharded: a batch would need one commit in several stores: set",
        ),
        (
            ("--workers", "2", "--set", "daemon_memcached_w_batch_size=2"),
            "--workers 2 and daemon_memcached_w_batch_size=2: over SQLite, one process keeps",
        ),
    ],
)
def test_what_shards_cannot_do_is_rejected(files: list[Path], options: Sequence[str], text: str) -> None:
    file = configuration(files[0].parent, [f"sqlite:///{each}" for each in files[:3]])
    refused = subprocess.run(command(file, *options), capture_output=True, text=True, timeout=60, check=False)
    assert (refused.returncode, text in refused.stderr) == (2, True), refused.stderr


def test_shards_that_differ_are_not_served(files: list[Path]) -> None:
    with closing(sqlite3.connect(files[1], isolation_level=None)) as file:
        file.execute("UPDATE containers SET flags = '0'")
    file = configuration(files[0].parent, [f"sqlite:///{each}" for each in files[:3]])
    refused = subprocess.run(command(file), capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert (
        "[[mapping]] 'cache': store two maps other columns than store one: give the tables of all shards"
        in refused.stderr
    )


def test_the_guide_adds_a_shard_without_the_loss_of_a_row(files: list[Path], tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "several-stores.md"
    programs = dict(
        zip(
            ("move", "forget"),
            re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.DOTALL | re.MULTILINE),
            strict=True,
        )
    )

    def program(name: str, *arguments: str, lines: str = "") -> str:
        words = [sys.executable, "-c", programs[name], *arguments]
        return subprocess.run(words, input=lines, capture_output=True, text=True, timeout=60, check=True).stdout

    special = [b"\xff%", b"a+b", b"%41"]
    keys = [*KEYS, *special]
    with serving(files[:3]) as served, served.connect() as client:
        ask(client, put(keys) + b"touch k1 5000\r\n")
    moving = [key for key in keys if shard_of(NAMES, key) == 3]
    (tmp_path / "new").mkdir()
    new = configuration(tmp_path / "new", [f"sqlite:///{each}" for each in files])
    with serving(files[:3], "--read-only", "--metadump") as served, running(command(new), str(new)) as grown:
        addresses = [f"127.0.0.1:{each.port}" for each in (served, grown)]
        moved = program("move", *addresses, "cache")
        assert sorted(unquote_to_bytes(line) for line in moved.splitlines()) == sorted(moving)
        assert program("move", *addresses, "cache") == ""
        with grown.connect() as client, served.connect() as old:
            assert (
                ask(client, b"get %b\r\n" % b" ".join(keys)) == shown(keys) == ask(old, b"get %b\r\n" % b" ".join(keys))
            )
            times = re.findall(rb"t(-?[0-9]+)", ask(client, b"mg k1 t\r\nmg k2 t\r\n"))
            assert (4000 < int(times[0]) <= 5000, times[1]) == (True, b"-1")
            assert rows(files[3]) == sorted(moving)
            listed = re.findall(rb"key=(\S+) ", ask(client, b"lru_crawler metadump all\r\n"))
            assert sorted(map(unquote_to_bytes, listed)) == sorted(keys)
    assert sum(len(rows(file)) for file in files) == len(keys) + len(moving)
    with serving(files[:3]) as served:
        program("forget", f"127.0.0.1:{served.port}", "cache", lines=moved)
    assert sum(len(rows(file)) for file in files) == len(keys)
    assert rows(files[3]) == sorted(moving)
