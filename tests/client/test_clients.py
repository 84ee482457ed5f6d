"""Client libraries people use, against `kvref serve`: their rows are SQL's rows, and SQL's rows are theirs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.serving import Served, serving
from pymemcache.client.base import Client

PERL = r"""
use strict; use warnings; use Cache::Memcached;
my $m = Cache::Memcached->new({servers => [$ARGV[0]], compress_threshold => 0});
die "set" unless $m->set("perl", "camel");
die "get" unless $m->get("perl") eq "camel";
die "add" if $m->add("perl", "x");
die "replace" unless $m->replace("perl", "dromedary");
die "multi" unless join(",", map { "$_" } sort values %{$m->get_multi("perl", "AA", "none")}) eq "HELLO, HELLO,dromedary";
die "incr" unless $m->set("n", 41) && $m->incr("n") == 42 && $m->decr("n", 2) == 40;
die "delete" unless $m->set("d", 1) && $m->delete("d") && !defined $m->get("d");
die "sql" unless $m->get("from_sql") eq "row";
print "ok\n";
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "s.sqlite") as server:
        database = sqlite3.connect(server.store)
        database.execute("INSERT INTO demo_test (c1, c2) VALUES ('from_sql', 'row')")
        database.commit()
        database.close()
        yield server


def rows(served: Served, key: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(served.store)
    try:
        return database.execute("SELECT c2, c3 FROM demo_test WHERE c1 = ?", (key,)).fetchall()
    finally:
        database.close()


def test_pymemcache(served: Served) -> None:
    client = Client(("127.0.0.1", served.port), default_noreply=False, timeout=10)
    assert client.set("k", b"value", flags=5)
    assert rows(served, "k") == [("value", 5)]
    assert client.get("k") == b"value"
    assert client.get_many(["k", "none", "from_sql"]) == {"k": b"value", "from_sql": b"row"}
    _, number = client.gets("k")
    assert client.cas("k", b"newer", number) is True
    assert client.cas("k", b"late", number) is False
    assert client.append("k", b"!")
    assert client.get("k") == b"newer!"
    assert client.set("n", "10")
    assert client.incr("n", 5) == 15
    assert client.decr("n", 20) == 0
    assert client.delete("n")
    assert client.get("n") is None
    assert client.get("@@aaa.k") == b"newer!"
    assert client.set("q", b"quiet", noreply=True)
    assert client.get("q") == b"quiet"
    assert client.version().endswith(b"-kvref")
    client.close()


def test_perl_cache_memcached(served: Served) -> None:
    known = (
        shutil.which("perl")
        and subprocess.run(["perl", "-MCache::Memcached", "-e1"], capture_output=True, check=False).returncode == 0
    )
    if not known:
        lacking = "Perl's Cache::Memcached is missing: apt-get install libcache-memcached-perl"
        pytest.fail(lacking) if os.environ.get("CI") else pytest.skip(lacking)
    result = subprocess.run(
        ["perl", "-e", PERL, f"127.0.0.1:{served.port}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr
    assert rows(served, "perl") == [("dromedary", 0)]
