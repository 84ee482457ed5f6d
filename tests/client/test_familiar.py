"""What code that was written for pymemcache expects of both clients: calls, exceptions, addresses, options, `repr`."""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.serving import serving
from pymemcache import exceptions as theirs  # type: ignore[import-untyped]
from pymemcache.client.base import Client, PooledClient  # type: ignore[import-untyped]
from pymemcache.client.hash import HashClient  # type: ignore[import-untyped]

from kvref.client import (
    AsyncMappedClient,
    CallError,
    InvalidReplyError,
    LinkError,
    MappedClient,
    MappedError,
    ServerError,
    UnknownMappingError,
    UnsupportedError,
)

Connect = Callable[..., Any]
# What makes no sense for tables: the caller cannot move a key to another server, and keys are checked in every call.
NOT_OFFERED = {"check_key", "client_class", "shutdown", "add_server", "remove_server"}


class AsJSON:
    """A serde whose values can be None."""

    def serialize(self, _: object, value: object) -> tuple[bytes, int]:
        return json.dumps(value).encode(), 0

    def deserialize(self, _: object, value: bytes, __: int) -> Any:
        return json.loads(value)


@pytest.mark.parametrize("client", [MappedClient, AsyncMappedClient])
def test_every_call_that_pymemcache_has(client: type) -> None:
    for known in (PooledClient, HashClient):
        names = {name for name, _ in inspect.getmembers(known, callable) if not name.startswith("_")}
        missing = names - NOT_OFFERED - {name for name in dir(client) if callable(getattr(client, name))}
        assert not missing, known


def test_parameters_have_the_names_and_the_order_of_pymemcache() -> None:
    for name in (
        "set",
        "get",
        "gets",
        "cas",
        "incr",
        "decr",
        "touch",
        "delete",
        "delete_many",
        "flush_all",
        "raw_command",
    ):
        ours = list(inspect.signature(getattr(MappedClient, name)).parameters)
        pymemcache = list(inspect.signature(getattr(Client, name)).parameters)
        assert ours[: len(pymemcache)] == pymemcache, name


@pytest.mark.live
def test_several_keys_under_both_names(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    assert client.set_multi({"a": 1, "b": 2}) == []
    assert client.get_multi(["a", "b", "c"]) == client.get_many(["a", "b", "c"]) == {"a": b"1", "b": b"2"}
    assert client.delete_multi(["a", "b"])
    assert client.gets("a", "none", 7) == ("none", 7)


@pytest.mark.live
def test_gat_and_gats(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    client.set("k", "v")
    if empty.is_plugin:
        with pytest.raises(UnsupportedError, match="does not support 'gat'"):
            client.gat("k", 9)
        return
    assert (client.gat("k", 1000), client.gat("none", 9), client.gat("none", 9, "d")) == (b"v", None, "d")
    value, number = client.gats("k", 2000)
    assert client.cas("k", value, number)
    assert client.gats("none", 9, "d", 5) == ("d", 5)
    client.gat("k", 3000)
    [(expiry,)] = empty.execute("SELECT c5 FROM {test}demo_test WHERE c1 = 'k'")
    assert expiry > 1_700_000_000
    with pytest.raises(CallError, match="expire=-1"):
        client.gat("k", -1)


@pytest.mark.live
def test_stats_version_and_raw_commands(empty: Any, connect: Connect) -> None:
    client = connect(empty.address, mapping="bbb")
    client.set("k", "v")
    rows = client.stats()
    assert int(rows[b"pid"]) > 0
    assert client.stats_of_each("settings")[0].keys() > {b"maxconns"}
    assert [client.version().decode()] == list(client.versions())
    assert client.raw_command("version").startswith(b"VERSION ")
    assert client.raw_command(b"get k", b"END\r\n") == b"VALUE k 0 1\r\nv\r\n"
    with pytest.raises(UnsupportedError, match="'nonsense'"):
        client.raw_command("nonsense with words")
    assert client.get("k") == b"v"
    client.quit()
    assert client.get("k") == b"v"


@pytest.mark.live
def test_noreply_is_not_waited_for(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    client.set("n", 5)
    assert client.cas("n", 5, client.gets("n")[1], noreply=True)
    assert (client.incr("n", 3, noreply=True), client.decr("n", 1, noreply=True)) == (None, None)
    assert client.get("n") == b"7"


@pytest.mark.live
@pytest.mark.parametrize("options", [{}, {"pool_size": 2}])
def test_none_that_a_serde_stores_is_no_miss(empty: Any, another: Any, options: dict[str, Any]) -> None:
    for servers in (empty.address, [empty.address, another.address]):
        with MappedClient(servers, serde=AsJSON(), **options) as client:
            assert client.set("k", None)
            assert (client.get("k", "default"), client.get("none", "default")) == (None, "default")
            assert client.gets("k", "default")[0] is None
            if not empty.is_plugin:
                assert (client.gat("k", 100, "default"), client.gat("none", 100, "default")) == (None, "default")


@pytest.mark.live
def test_items_as_of_a_dict(empty: Any) -> None:
    with MappedClient(empty.address) as client:
        client["k"] = "v"
        assert client["k"] == b"v"
        del client["k"]
        with pytest.raises(KeyError, match="k"):
            client["k"]


@pytest.mark.parametrize(
    ("ours", "pymemcache"),
    [
        (MappedError, theirs.MemcacheError), (CallError, theirs.MemcacheIllegalInputError),
        (CallError, theirs.MemcacheClientError), (UnknownMappingError, theirs.MemcacheClientError),
        (UnsupportedError, theirs.MemcacheUnknownCommandError), (ServerError, theirs.MemcacheServerError),
        (InvalidReplyError, theirs.MemcacheUnknownError), (InvalidReplyError, ServerError),
        (LinkError, theirs.MemcacheUnexpectedCloseError), (LinkError, ConnectionError), (CallError, ValueError),
    ],
)  # fmt: skip
def test_an_except_clause_for_pymemcache_works(ours: type, pymemcache: type) -> None:
    assert issubclass(ours, pymemcache)
    assert issubclass(ours, MappedError)


@pytest.mark.programs
def test_the_asyncio_client_works_without_pymemcache() -> None:
    program = (
        "import sys; sys.modules['pymemcache'] = None\n"
        "from kvref.client import AsyncMappedClient, LinkError\n"
        "print(AsyncMappedClient('h'), [each.__name__ for each in LinkError.__mro__[:5]])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "AsyncMappedClient('h') ['LinkError', 'MappedError', 'KvrefError', 'MemcacheUnexpectedCloseError',"
        " 'MemcacheServerError']\n"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"time_out": 1}, "unknown option 'time_out', did you mean 'timeout'"),
        ({"hasher": object}, "both clients choose"), ({"ignore_exc": 1}, "ignore_exc=1: True or False"),
        ({"max_pool_size": 3}, "use pool_size"), ({"pool_size": 0}, "pool_size=0"), ({"pool_size": True}, "pool_size=True"),
        ({"timeout": 0}, "timeout=0"), ({"connect_timeout": "1"}, "connect_timeout='1'"), ({"delimiter": ""}, "delimiter"),
        ({"max_answer_bytes": 0}, "max_answer_bytes=0"), ({"mapping": "a b"}, "'a b'"),
        ({"credentials": ("a b", "c")}, "credentials of 'a b'"), ({"socket_keepalive": 5}, "socket_keepalive"),
    ],
)  # fmt: skip
def test_options_are_checked_when_the_client_is_made(options: dict[str, Any], text: str) -> None:
    with pytest.raises(CallError, match=text):
        MappedClient("127.0.0.1:1", **options)


@pytest.mark.parametrize("options", [{"timeout": -1}, {"delimiter": "x" * 33}, {"max_answer_bytes": 0}])
def test_options_of_the_asyncio_client_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(CallError, match=next(iter(options))):
        AsyncMappedClient("127.0.0.1:1", **options)


def test_tls_has_one_name_at_a_time() -> None:
    context = ssl.create_default_context()
    with pytest.raises(CallError, match="give one"):
        AsyncMappedClient("h", tls=context, tls_context=context)


@pytest.mark.parametrize("client", [MappedClient, AsyncMappedClient])
def test_repr_names_servers_mapping_and_columns_and_no_password(client: type) -> None:
    name = client.__name__
    made = client([("h", 1), "unix:/s"], mapping="shop", columns=("a", "b"), credentials=("u", "secret"))
    assert repr(made) == f"{name}([('h', 1), 'unix:/s'], mapping='shop', columns=('a', 'b'))"
    assert repr(client("h")) == f"{name}('h')"
    assert repr(made.at("x")) == f"{name.replace('Client', 'View')}([('h', 1), 'unix:/s'], mapping='x')"


@pytest.mark.live
def test_both_clients_take_every_form_of_an_address(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    (tmp_path / "kvref.toml").write_text(
        f'[[listener]]\naddress = "127.0.0.1:0"\n[[listener]]\naddress = "unix:{path}"\n'
    )
    with serving(tmp_path / "x.sqlite", "--config", str(tmp_path / "kvref.toml"), listen=None) as served:
        port = served.ports(1)[0]
        for form in (("127.0.0.1", port), f"127.0.0.1:{port}", f"unix:{path}", str(path), [("127.0.0.1", port)]):
            with MappedClient(form) as client:
                assert client.get("AA") == b"HELLO, HELLO"

            async def get(servers: Any = form) -> Any:
                async with AsyncMappedClient(servers) as client:
                    return await client.get("AA")

            assert asyncio.run(get()) == b"HELLO, HELLO"
