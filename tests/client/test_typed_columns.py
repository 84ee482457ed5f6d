"""Columns with types, and writes of some columns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kvref.client import CallError, Columns, InvalidReplyError, MappedClient

Connect = Callable[..., Any]
TYPES: dict[str, Any] = {"name": str, "price": int, "note": str | None}


@pytest.mark.parametrize(
    ("kind", "part", "value"),
    [
        (int, b"-7", -7), (int, b"", None), (int | None, b"", None), (int | None, b"5", 5), (str, b"", ""), (str, b"7", "7"),
        (str | None, b"", None), (str | None, b"x", "x"), (bytes, b"\xff", b"\xff"), (bytes, b"", b""), (bytes | None, b"", None),
        (int, b"x", None), (str, b"\xff", None),
    ],
)  # fmt: skip
def test_types(kind: Any, part: bytes, value: object) -> None:
    columns = Columns.typed({"a": kind, "b": int})
    if (kind, part) in ((int, b"x"), (str, b"\xff")):
        with pytest.raises(InvalidReplyError):
            columns.decode(part + b"|1")
    else:
        assert columns.decode(part + b"|1") == {"a": value, "b": 1}


@pytest.mark.parametrize("kind", [float, bool, list, None, int | str, "int", dict[str, int]])
def test_what_is_no_type_of_a_column(kind: Any) -> None:
    with pytest.raises(CallError, match="column 'a'"):
        MappedClient("h", columns={"a": kind})


def test_repr_has_the_types() -> None:
    assert repr(MappedClient("h", columns=TYPES)) == (
        "MappedClient('h', columns={'name': str, 'price': int, 'note': str | None})"
    )


@pytest.mark.live
def test_integers_are_integers_and_null_is_none(empty: Any, connect: Connect) -> None:
    shop = connect(empty.address).at("shop", TYPES)
    assert shop.set("1", {"name": "pen", "price": 120, "note": None})
    assert shop.set("2", ("ink", -7, "blue"))
    assert shop.get("1") == {"name": "pen", "price": 120, "note": None}
    assert shop.get_many(["1", "2"])["2"] == {"name": "ink", "price": -7, "note": "blue"}
    assert shop.gets("1")[0]["price"] == 120
    if empty.has_ranges:
        assert shop.get_range(ge="2") == {"2": {"name": "ink", "price": -7, "note": "blue"}}
    empty.execute("INSERT INTO {test}shop (id, name) VALUES ('3', 'cap')")
    assert shop.get("3") == {"name": "cap", "price": None, "note": None}
    assert empty.execute("SELECT price, note FROM {test}shop WHERE id = '1'") == [(120, None)]


@pytest.mark.live
@pytest.mark.parametrize("part", [{"price": 5}, ("pen",), "pen", {}])
def test_a_partial_write_is_refused(empty: Any, connect: Connect, part: Any) -> None:
    shop = connect(empty.address).at("shop", TYPES)
    shop.set("1", ("pen", 120, "red"))
    number = shop.gets("1")[1]
    for call in (
        lambda: shop.set("1", part),
        lambda: shop.replace("1", part),
        lambda: shop.add("2", part),
        lambda: shop.cas("1", part, number),
        lambda: shop.set_many({"1": part}),
    ):
        with pytest.raises(CallError):
            call()
    assert empty.execute("SELECT id, name, price, note FROM {test}shop") == [("1", "pen", 120, "red")]


@pytest.mark.live
def test_update_keeps_the_other_columns(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    shop = client.at("shop", TYPES)
    shop.set("1", ("pen", 120, "red"))
    assert shop.update("1", {"price": 130})
    assert (shop.update("1", {"note": None, "name": "pencil"}), shop.update("2", {"price": 1})) == (True, False)
    assert empty.execute("SELECT id, name, price, note FROM {test}shop") == [("1", "pencil", 130, None)]
    with pytest.raises(CallError, match="no value column 'colour'"):
        shop.update("1", {"colour": "red"})
    with pytest.raises(CallError, match="names of the columns"):
        client.update("AA", {"a": 1})


@pytest.mark.live
def test_updates_at_the_same_time_lose_nothing(empty: Any) -> None:
    with MappedClient(empty.address, mapping="shop", columns=TYPES, pool_size=3) as client:
        client.set("1", ("0", 0, "0"))
        start = threading.Barrier(3)

        def count(column: str) -> None:
            start.wait(10)
            for number in range(1, 31):
                assert client.update("1", {column: number})

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(count, TYPES))
        assert client.get("1") == {"name": "30", "price": 30, "note": "30"}
