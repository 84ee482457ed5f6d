"""Every call of both clients, on kvref and on both plugin versions; what SQL sees decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kvref.client import (
    CallError,
    Columns,
    LinkError,
    MappedClient,
    MappedError,
    ServerError,
    UnknownMappingError,
    UnsupportedError,
)

pytestmark = pytest.mark.live
Connect = Callable[..., Any]


def values(served: Any, table: str) -> dict[str, str]:
    return dict(served.execute(f"SELECT c1, c2 FROM {{test}}{table}"))


def test_the_verbs(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    assert client.get("AA") == b"HELLO, HELLO"
    assert (client.get("k"), client.get("k", "none"), client.gets("k")) == (None, "none", (None, None))
    assert client.set("k", "text", flags=5)
    assert (client.add("k", 1), client.add("new", 1), client.replace("missing", 1), client.replace("k", b"v")) == (
        False, True, False, True,
    )  # fmt: skip
    assert (client.append("k", "!"), client.prepend("k", "<"), client.append("missing", "x")) == (True, True, False)
    value, number = client.gets("k")
    assert value == b"<v!"
    assert (client.cas("k", "c", number), client.cas("k", "late", number), client.cas("none", "x", 1)) == (
        True,
        False,
        None,
    )
    assert (client.set("n", 41), client.incr("n"), client.decr("n", 2), client.decr("n", 99)) == (True, 42, 40, 0)
    assert client.set_many({"a": "1", "b": 2, "c": b"3"}, expire=1000) == []
    assert client.get_many(["c", "zz", "a", b"b"]) == {"a": b"1", b"b": b"2", "c": b"3"}
    assert client.gets_many(["a", "zz"]) == {"a": (b"1", client.gets("a")[1])}
    assert (client.delete("a"), client.delete("a"), client.delete_many(["b", "c", "zz"])) == (True, False, True)
    assert client.get_many([]) == {}
    assert client.set("quiet", "1", noreply=True)
    assert client.delete("new", noreply=True)
    assert client.get("quiet") == b"1"
    assert values(empty, "demo_test") == {"AA": "HELLO, HELLO", "k": "c", "n": "0", "quiet": "1"}


def test_a_value_expires(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    client.set("k", "v", expire=1_000_000_000)  # in 2001
    assert client.get("k") is None


def test_a_view_works_on_its_mapping_and_the_client_on_its_own(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    other = client.at("bbb")
    for calls, text in ((client, "one"), (other, "two")):
        assert calls.set_many({"k": text, "n": 5, "gone": "x", "gone2": "x"}) == []
    assert (client.get("k"), other.get("k"), client.get("k")) == (b"one", b"two", b"one")
    # delete, incr and decr take @@ for a part of the key at the plugins.
    assert (other.incr("n", 2), other.decr("n"), client.incr("n")) == (7, 6, 6)
    assert (other.delete("gone"), other.delete("gone"), other.delete_many(["gone2"])) == (True, False, True)
    assert client.get_many(["gone", "gone2"]) == {"gone": b"x", "gone2": b"x"}
    assert (other.append("k", "!"), other.get_many(["k", "n"])) == (True, {"k": b"two!", "n": b"6"})
    value, number = other.gets("k")
    assert (other.cas("k", value, number), other.cas("k", value, number)) == (True, False)
    assert values(empty, "second") == {"k": "two!", "n": "6"}
    assert values(empty, "demo_test") == {"AA": "HELLO, HELLO", "k": "one", "n": "6", "gone": "x", "gone2": "x"}


def test_a_word_names_its_mapping_in_every_call(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    assert client.set_many({"@@bbb.k": "2", "k": "1", "@@aaa.j": "3"}) == []
    # 8.0.33 answers the second mapping of one get with the first one's row.
    assert client.get_many(["@@bbb.k", "@@aaa.k", "k", "@@bbb.j"]) == {"@@bbb.k": b"2", "@@aaa.k": b"1", "k": b"1"}
    assert (client.incr("@@bbb.k", 5), client.get("k"), client.delete("@@bbb.k"), client.get("k")) == (
        7,
        b"1",
        True,
        b"1",
    )
    client.bind("aaa")
    assert client.get_many(["k", "@@aaa.k", b"k"]) == {"k": b"1", "@@aaa.k": b"1", b"k": b"1"}
    # A whole word of 250 bytes ends 5.6.14: no such word is ever sent.
    assert client.get("@@bbb." + "x" * 244) is None
    assert client.get("@@bbb." + "x" * 250) is None
    assert (values(empty, "second"), client.get_many(["j", "k"])) == ({}, {"j": b"3", "k": b"1"})


def test_bind(empty: Any, connect: Connect) -> None:
    client = connect(empty.address, mapping="aaa")
    client.set("k", "one")
    client.bind("bbb")
    client.set("k", "two")
    with pytest.raises(UnknownMappingError, match="'nope'"):
        client.bind("nope")
    assert (client.get("k"), client.get("@@aaa.k"), client.at("aaa").get("k")) == (b"two", b"one", b"one")
    assert client.flush_all()
    assert (values(empty, "second"), values(empty, "demo_test")["k"]) == ({}, "one")


def test_a_view_flushes_its_own_table(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    client.set_many({"k": 1, "@@bbb.k": 2})
    assert client.at("bbb").flush_all()
    assert (client.get("k"), client.get("@@bbb.k")) == (b"1", None)


def test_ranges(empty: Any, connect: Connect) -> None:
    client = connect(empty.address, mapping="bbb")
    client.set_many({key: key.upper() for key in "abcde"})
    if not empty.has_ranges:
        with pytest.raises(UnsupportedError, match=r"5\.6\.14 has no ranges"):
            client.get_range(gt="b")
        assert client.get("a") == b"A"
        return
    assert list(client.get_range(gt="b").items()) == [("c", b"C"), ("d", b"D"), ("e", b"E")]
    assert list(client.get_range(ge=b"b", lt="d")) == [b"b", b"c"]
    assert (list(client.get_range(le="b")), list(client.get_range(gt=""))) == (["a", "b"], list("abcde"))
    assert (client.get_range(gt="x"), list(client.get_range(lt="b"))) == ({}, ["a"])
    # Behind a mapping's name 8.0.33 answers one row of a range.
    assert list(client.at("aaa").get_range(ge="A", le="B")) == ["AA"]
    assert client.get("c") == b"C"


def test_columns(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    shop = client.at("shop", ("name", "price", "note"))
    assert shop.set("1", {"name": "pen", "price": 120, "note": None})
    assert shop.set("2", ("ink", 700, "blue, ü"))
    assert shop.get("1") == {"name": "pen", "price": "120", "note": ""}
    assert shop.get_many(["1", "2"])["2"] == {"name": "ink", "price": "700", "note": "blue, ü"}
    assert client.at("shop", ()).get("2") == ("ink", "700", "blue, ü")
    assert client.get("@@shop.2") == "ink|700|blue, ü".encode()
    value, number = shop.gets("1")
    assert shop.cas("1", value | {"note": "new"}, number)
    assert empty.execute("SELECT name, price, note FROM {test}shop ORDER BY id") == [
        ("pen", 120, "new"), ("ink", 700, "blue, ü"),
    ]  # fmt: skip
    client.bind("shop", Columns(("name", "price", "note")))
    client.set("3", {"note": "n", "name": "cap", "price": 1})
    if empty.has_ranges:
        assert client.get_range(ge="3") == {"3": {"name": "cap", "price": "1", "note": "n"}}
    with pytest.raises(ServerError, match="3 parts"):
        client.at("shop", ("name", "price")).get("1")
    with pytest.raises(CallError, match="append of several columns"):
        shop.append("1", "x")
    with pytest.raises(CallError, match="no value column 'colour'"):
        shop.set("1", {"colour": "red"})


def test_whose_fault_it_is(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    faults: list[tuple[type[MappedError], str, Callable[[], object]]] = [
        (CallError, "1 to 250", lambda: client.set("k" * 251, 1)),
        (CallError, "must not contain spaces", lambda: client.get("a b")),
        (CallError, "use get_range", lambda: client.get("@>a")),
        (CallError, "no mapping or no key", lambda: client.get("@@bbb")),
        (CallError, "expire=-1", lambda: client.set("k", 1, expire=-1)),
        (CallError, "flags=4294967296", lambda: client.set("k", 1, flags=1 << 32)),
        (CallError, "2\\^64", lambda: client.incr("AA", -1)),
        (CallError, "columns are not named", lambda: client.set("k", {"a": 1})),
        (UnknownMappingError, "no usable mapping 'nope'", lambda: client.at("nope").set("k", 1)),
        (UnknownMappingError, "'nope'", lambda: client.delete("@@nope.k")),
    ]
    if empty.is_plugin:
        faults += [(UnsupportedError, "does not support 'touch'", lambda: client.touch("AA", 9))]
    else:
        faults += [
            (CallError, "non-numeric", lambda: client.incr("AA")),
            (CallError, "key too long", lambda: client.set("k" * 33, 1)),
            (ServerError, "too large", lambda: client.set("k", "x" * 1025)),
        ]
        assert client.touch("AA", 1000)
    for kind, text, call in faults:
        with pytest.raises(kind, match=text):
            call()
        assert client.get("AA") == b"HELLO, HELLO"
    assert values(empty, "demo_test") == {"AA": "HELLO, HELLO"}
    with pytest.raises(LinkError, match=r"127\.0\.0\.1:1"):
        connect("127.0.0.1:1").get("k")


def test_a_restart_keeps_what_was_bound(empty: Any, another: Any, one_of_each: list[Connect]) -> None:
    def again(call: Callable[[], object]) -> object:
        # A closed connection that was not detected yet costs one call at most.
        try:
            return call()
        except LinkError:
            return call()

    both = [empty.address, another.address]
    with MappedClient(both) as hashed, MappedClient(both, pool_size=2) as hashed_pools:
        clients = [*[connect(empty.address) for connect in one_of_each], hashed, hashed_pools]
        for client in clients:
            client.bind("bbb")
            client.set_many({"k": "two", "@@aaa.k": "one"})
        empty.instance.restart({})
        for client in clients:
            assert again(partial(client.get, "k")) == b"two"
            assert again(partial(client.at("aaa").get, "k")) == b"one"
