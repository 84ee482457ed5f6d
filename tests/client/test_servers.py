"""The forms of a server's address, and the server of a key."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymemcache.client.murmur3 import murmur3_32  # type: ignore[import-untyped]
from pymemcache.client.rendezvous import RendezvousHash  # type: ignore[import-untyped]

from kvref.addresses import Address
from kvref.client import AsyncMappedClient, CallError, LinkError, MappedClient
from kvref.client.options import murmur3, server_addresses, server_of

KEYS = [*[f"k{n}" for n in range(39)], "über"]


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("h", Address("h", 11211)), ("h:1", Address("h", 1)), (("h", 2), Address("h", 2)),
        ("[::1]:3", Address("::1", 3)), ("[::1]", Address("::1", 11211)), ("::1", Address("::1", 11211)),
        ("/s", Address("", 0, "/s")), ("unix:/s", Address("", 0, "/s")),
        ("unix:s", Address("", 0, os.path.join(os.getcwd(), "s"))),  # noqa: PTH109, PTH118 - the rule's other spelling
    ],
)  # fmt: skip
def test_forms_of_an_address(written: Any, address: Address) -> None:
    assert server_addresses(written) == [address]
    assert server_addresses([written]) == [address]


@pytest.mark.parametrize(
    "written",
    [
        "tcp://h:1",
        "memcached://h",
        "h:1:2",
        ("tcp://h", 1),
        "h/x",
        "",
        ":1",
        "h:x",
        "h:0",
        "h:65536",
        "a b:1",
        "unix:",
        ("h",),
        ("h", "1"),
        ("h", True),
        (1, 2),
        5,
        None,
        [],
    ],
)
def test_what_is_no_address(written: Any) -> None:
    for client in (MappedClient, AsyncMappedClient):
        with pytest.raises(CallError, match="server"):
            client(written)


def test_a_server_is_named_once() -> None:
    with pytest.raises(CallError, match="'h:1' is named twice"):
        MappedClient([("h", 1), "h:1"])


@given(st.text(max_size=40))
def test_the_hash_is_pymemcaches(text: str) -> None:
    assert murmur3(text) == murmur3_32(text)


@given(st.one_of(st.text(), st.binary()), st.lists(st.text(), min_size=1, max_size=5, unique=True))
def test_the_server_is_pymemcaches(key: str | bytes, names: list[str]) -> None:
    hasher = RendezvousHash()
    for name in names:
        hasher.add_node(name)
    assert server_of(key, names) == hasher.get_node(key)


def test_a_further_server_takes_keys_over_and_moves_no_others() -> None:
    before = {key: server_of(key, ["a:1", "b:1"]) for key in KEYS}
    after = {key: server_of(key, ["a:1", "b:1", "c:1"]) for key in KEYS}
    assert {after[key] for key in KEYS if after[key] != before[key]} == {"c:1"}


@pytest.mark.live
def test_both_clients_find_a_key_on_the_same_server(empty: Any, another: Any) -> None:
    both = [empty.address, another.address]
    another.execute("DELETE FROM second")

    async def use() -> None:
        async with AsyncMappedClient(both, mapping="bbb") as client:
            assert await client.get_many(KEYS) == {key: key.encode() for key in KEYS}
            assert await client.get("k7") == await client.get("@@bbb.k7") == b"k7"
            if empty.has_ranges:
                assert sorted(await client.get_range(ge="k")) == sorted(KEYS)
            assert len(await client.versions()) == len(await client.stats_of_each()) == 2
            for call in (client.stats, client.version):
                with pytest.raises(CallError, match="there are 2 servers"):
                    await call()
            assert await client.flush_all()

    with MappedClient(both, mapping="bbb") as client:
        assert client.set_many({key: key for key in KEYS}) == []
        assert min(server.execute("SELECT COUNT(*) FROM {test}second")[0][0] for server in (empty, another)) > 5
        asyncio.run(use())
        assert client.get_many(KEYS) == {}
        assert client.gats("k", 9) == (None, None) if not empty.is_plugin else True
        assert len(client.stats_of_each()) == 2
        for call in (client.stats, client.version, lambda: client.raw_command("version")):
            with pytest.raises(CallError, match="there are 2 servers"):
                call()


@pytest.mark.live
def test_a_key_of_the_asyncio_client_does_not_move_when_its_server_is_away(empty: Any) -> None:
    async def use() -> None:
        async with AsyncMappedClient([empty.address, "127.0.0.1:1"], mapping="bbb") as client:
            for _ in range(2):
                answers = await asyncio.gather(*[client.set(key, "v") for key in KEYS], return_exceptions=True)
                expected = [server_of(key, [empty.address, "127.0.0.1:1"]) == empty.address for key in KEYS]
                assert [each is True for each in answers] == expected
                assert {type(each) for each in answers} == {bool, LinkError}

    asyncio.run(use())
