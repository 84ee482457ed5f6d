"""Threads over a pool, keys over two servers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kvref.client import CallError, LinkError, MappedClient, UnknownMappingError

pytestmark = pytest.mark.live
KEYS = [*[f"k{n}" for n in range(39)], "über"]


def test_threads_share_a_pool_and_none_leaves_its_mapping_behind(empty: Any) -> None:
    with MappedClient(empty.address, pool_size=6) as client:
        views = {"aaa": client, "bbb": client.at("bbb"), "shop": client.at("shop", ())}
        client.bind("aaa")

        def use(worker: int) -> None:
            name, view = list(views.items())[worker % 3]
            for turn in range(60):
                written = f"{name}{worker}-{turn}"
                value = (written, "", "") if name == "shop" else written
                assert view.set(f"w{worker}", value)
                read = view.get(f"w{worker}")
                assert (read[0] if name == "shop" else read.decode()) == written

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(use, range(6)))
    for table, key in (("demo_test", "c1"), ("second", "c1"), ("shop", "id")):
        assert empty.execute(f"SELECT COUNT(*) FROM {{test}}{table} WHERE {key} LIKE 'w%'") == [(2,)]


def test_more_threads_than_connections(empty: Any) -> None:
    inside, done = threading.Event(), threading.Event()

    def hold(_: object, value: object) -> tuple[bytes, int]:
        inside.set()
        assert done.wait(10)
        return b"v", 0

    class Slow:
        serialize = staticmethod(hold)
        deserialize = staticmethod(lambda _key, value, _flags: value)

    client = MappedClient(empty.address, pool_size=1, serde=Slow())
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.set, "k", "v")
        assert inside.wait(10)
        with pytest.raises(CallError, match="pool_size=1"):
            client.get("k")
        done.set()
        assert first.result()
    client.close()


def test_no_server() -> None:
    for servers in ([], "127.0.0.1:x", 11211):
        with pytest.raises(CallError):
            MappedClient(servers)  # type: ignore[arg-type]
    with pytest.raises(CallError, match="key_prefix"):
        MappedClient("127.0.0.1:1", key_prefix="x")


@pytest.mark.parametrize("pool", [None, 3], ids=["plain", "pooled"])
def test_keys_over_two_servers(empty: Any, another: Any, pool: int | None) -> None:
    for table in ("demo_test", "second"):
        another.execute(f"DELETE FROM {table}")
    with MappedClient([empty.address, another.address], pool_size=pool) as client:
        client.bind("bbb")
        assert client.set_many({key: key for key in KEYS}) == []
        assert client.get_many(KEYS) == {key: key.encode() for key in KEYS}
        counts = [server.execute("SELECT COUNT(*) FROM {test}second")[0][0] for server in (empty, another)]
        assert sum(counts) == len(KEYS)
        assert min(counts) > 5
        # The bare key chooses the server, however its mapping is named.
        assert client.at("bbb").get("k7") == client.get("@@bbb.k7") == b"k7"
        assert (client.at("aaa").get("k7"), client.delete("@@bbb.k7"), client.get("k7")) == (None, True, None)
        if empty.has_ranges:
            assert sorted(client.get_range(ge="k")) == sorted(set(KEYS) - {"k7"})
        assert client.delete_many(KEYS)
        assert [server.execute("SELECT COUNT(*) FROM {test}second") for server in (empty, another)] == [[(0,)]] * 2
        with pytest.raises(UnknownMappingError):
            client.bind("nope")
        assert len(client.versions()) == 2


def test_a_key_does_not_move_when_its_server_is_away(empty: Any, another: Any) -> None:
    another.execute("DELETE FROM second")
    with MappedClient([empty.address, "127.0.0.1:1"], mapping="bbb", connect_timeout=1.0) as client:
        lost = []
        for _ in range(4):  # pymemcache would have given the keys to the other server by now
            lost.append([])
            for key in KEYS:
                try:
                    client.set(key, "v")
                except LinkError:
                    lost[-1].append(key)
        assert lost[1:] == lost[:-1]
        assert 0 < len(lost[0]) < len(KEYS)
        with pytest.raises(LinkError):
            client.get_many(KEYS)
