"""`ignore_exc`: errors of the network and the server are results, those of the caller are raised; every call, both clients."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.answering import answering
from helpers.example_packages import example_packages

from kvref.client import CallError, LinkError, ServerError, UnknownMappingError, UnsupportedError

pytestmark = pytest.mark.live
Connect = Callable[..., Any]
NOWHERE = "127.0.0.1:1"
COLUMNS: dict[str, Any] = {"name": str, "price": int, "note": str}
# Each call of a client without columns, and what it returns when it fails.
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("get", ("k",), {}, None), ("get", ("k", "d"), {}, "d"), ("gets", ("k",), {}, (None, None)), ("gets", ("k", 1, 2), {}, (1, 2)), ("gat", ("k", 9), {}, None),
    ("gat", ("k", 9, "d"), {}, "d"), ("gats", ("k", 9), {}, (None, None)), ("gats", ("k", 9, 1, 2), {}, (1, 2)), ("get_many", (["a", "b"],), {}, {}),
    ("gets_many", (["a", "b"],), {}, {}), ("get_range", (), {"ge": "a"}, {}), ("set", ("k", "v"), {}, False), ("set_many", ({"a": 1},), {}, ["a"]),
    ("add", ("k", "v"), {}, False), ("replace", ("k", "v"), {}, False), ("append", ("k", "v"), {}, False), ("prepend", ("k", "v"), {}, False),
    ("cas", ("k", "v", 5), {}, False), ("incr", ("k", 1), {}, None), ("decr", ("k", 1), {}, None), ("delete", ("k",), {}, False),
    ("delete_many", (["a"],), {}, False), ("touch", ("k", 9), {}, False), ("flush_all", (), {}, False), ("stats", (), {}, {}), ("stats_of_each", (), {}, [{}]),
    ("get_multi", (["a"],), {}, {}), ("gets_multi", (["a"],), {}, {}), ("set_multi", ({"a": 1},), {}, ["a"]), ("delete_multi", (["a"],), {}, False),
]  # fmt: skip
RAISED = [("version", ()), ("versions", ()), ("raw_command", ("version",)), ("bind", ("aaa",))]
NOT_SENT = {"at", "close", "disconnect_all", "quit", "update"}


def test_the_table_has_every_call() -> None:
    from kvref.client import MappedClient  # noqa: PLC0415

    known = {name for name in dir(MappedClient) if not name.startswith("_") and callable(getattr(MappedClient, name))}
    assert known - {name for name, *_ in CALLS} - {name for name, _ in RAISED} == NOT_SENT


def test_no_server(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    strict, open_ = connect(NOWHERE), connect(NOWHERE, ignore_exc=True)
    for name, positional, named, result in CALLS:
        with pytest.raises(LinkError):
            getattr(strict, name)(*positional, **named)
        caplog.clear()
        assert getattr(open_, name)(*positional, **named) == result, name
        assert caplog.record_tuples, name
        for logger, level, text in caplog.record_tuples:
            assert (logger, level) == ("kvref.client", logging.WARNING)
            assert NOWHERE in text
    for name, positional in RAISED:
        with pytest.raises(LinkError):
            getattr(open_, name)(*positional)
    assert open_.at("shop", COLUMNS).update("k", {"price": 5}) is False


@pytest.mark.parametrize("reply", [b"SERVER_ERROR out of memory\r\n", b"nonsense\r\n"])
def test_a_server_that_fails(connect: Connect, reply: bytes) -> None:
    # One client after the other: the server answers one connection at a time.
    for ignore in (False, True):
        with answering(lambda: iter([reply])) as address, closing(connect(address, ignore_exc=ignore)) as client:
            for name, positional, named, result in CALLS:
                call = partial(getattr(client, name), *positional, **named)
                if ignore:
                    assert call() == result, name
                else:
                    with pytest.raises(ServerError):
                        call()


@pytest.mark.parametrize(
    ("reply", "error"), [(b"CLIENT_ERROR bad data chunk\r\n", CallError), (b"ERROR\r\n", UnsupportedError)]
)
def test_what_the_server_rejects_is_raised(connect: Connect, reply: bytes, error: type[Exception]) -> None:
    with answering(lambda: iter([reply])) as address, closing(connect(address, ignore_exc=True)) as client:
        for name, positional, named, _ in CALLS:
            if name != "get_range" or error is UnsupportedError:
                with pytest.raises(error):
                    getattr(client, name)(*positional, **named)


def test_a_wrong_call_and_an_unknown_mapping_are_raised(empty: Any, connect: Connect) -> None:
    client = connect(empty.address, ignore_exc=True)
    for call in (
        lambda: client.get(None),
        lambda: client.set("k", {1}),
        lambda: client.set("k", "v", expire=-1),
        lambda: client.get("a b"),
    ):
        with pytest.raises(CallError):
            call()
    with pytest.raises(UnknownMappingError):
        client.at("nope").get("k")
    if not empty.is_plugin:
        with pytest.raises(CallError, match="non-numeric"):
            client.incr("AA")


def test_a_server_that_comes_back(empty: Any, connect: Connect) -> None:
    """Results, misses and a row that cannot be read; no call fails while the server is away."""
    client = connect(empty.address, ignore_exc=True)
    shop = client.at("shop", COLUMNS)
    assert (client.set("k", "v"), client.get("k"), client.get("none", "d")) == (True, b"v", "d")
    assert (shop.set("1", ("pen", 5, "x")), shop.update("1", {"price": 6}), shop.get("1")["price"]) == (True, True, 6)
    empty.execute("UPDATE {test}shop SET name = 'a|b'")
    assert (shop.get("1", "d"), shop.gets("1"), shop.update("1", {"price": 6})) == ("d", (None, None), False)


def test_what_the_servers_that_are_there_have(empty: Any, connect: Connect) -> None:
    client = connect([empty.address, NOWHERE], mapping="bbb", ignore_exc=True)
    keys = [f"k{n}" for n in range(30)]
    lost = client.set_many(dict.fromkeys(keys, "v"))
    assert 0 < len(lost) < len(keys)
    there = [key for key in keys if key not in lost]
    assert client.get_many(keys) == dict.fromkeys(there, b"v")
    assert client.gets_many(keys).keys() == set(there)
    if empty.has_ranges:
        assert client.get_range(ge="k").keys() == set(there)
    assert (client.get(lost[0], "d"), client.get(there[0])) == ("d", b"v")
    assert [bool(each) for each in client.stats_of_each()] == [True, False]
    assert client.delete_many(keys) is False
    assert client.get_many(keys) == {}


DJANGO = """
import logging, sys
from django.conf import settings
backend = "kvref.client.django.KvrefCache"
settings.configure(CACHES={
    "default": {"BACKEND": backend, "LOCATION": "127.0.0.1:1", "OPTIONS": {"ignore_exc": True}},
    "strict": {"BACKEND": backend, "LOCATION": "127.0.0.1:1"},
    "several": {"BACKEND": backend, "LOCATION": ["127.0.0.1:1", "127.0.0.1:2"], "OPTIONS": {"ignore_exc": True}},
    "other": {"BACKEND": backend, "LOCATION": "127.0.0.1:1", "OPTIONS": {"IGNORE_EXCEPTIONS": True}},
})
from django.core.cache import caches
from kvref.client import CallError, LinkError
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
for name in ("default", "several"):
    cache = caches[name]
    assert (cache.get("k"), cache.get("k", "d"), cache.add("k", 1), cache.touch("k"), cache.delete("k")) == (None, "d", False, False, False)
    assert (cache.get_many(["a", "b"]), cache.has_key("k"), "k" in cache, cache.get_or_set("k", 5)) == ({}, False, False, 5)
    assert (cache.set("k", 1), cache.set_many({"a": 1, "b": 2}), cache.delete_many(["a"]), cache.clear()) == (None, ["a", "b"], None, None)
    try:
        cache.incr("k")
    except ValueError as error:
        assert "not found" in str(error), error
for name, kind, call in (
    ("strict", LinkError, lambda cache: cache.get("k")), ("other", CallError, lambda cache: cache.get("k")),
    ("default", CallError, lambda cache: cache.touch("k", 10**12)),
):
    try:
        call(caches[name])
    except kind as error:
        print(type(error).__name__, error)
"""


def test_the_cache_of_django() -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(example_packages()), str(Path(__file__).parents[2])])
    }
    done = subprocess.run(
        [sys.executable, "-c", DJANGO], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    link, option, wrong = done.stdout.splitlines()
    assert (link, option) == (
        "LinkError get: 127.0.0.1:1: Connection refused",
        "CallError option IGNORE_EXCEPTIONS: use ignore_exc",
    )
    assert wrong.startswith("CallError expire=")
    assert "kvref.client WARNING get failed and is ignored: get: 127.0.0.1:1: Connection refused\n" in done.stderr
