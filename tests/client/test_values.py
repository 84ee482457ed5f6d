"""Which values are stored as which bytes: pymemcache decides for text and numbers, bytes-like objects are their bytes."""

from __future__ import annotations

import array
import ctypes
import enum
import mmap
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from pymemcache.client.base import Client  # type: ignore[import-untyped]

from kvref.client import CallError, Columns, MappedClient
from kvref.client.options import ClientOptions, Connections, checked
from kvref.client.view import View

Connect = Callable[..., Any]


class Level(enum.IntEnum):
    LOW = 3


class OldLevel(int, enum.Enum):
    LOW = 3


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is another text
    RED = "red"


class Raw(bytes):
    pass


Pair = namedtuple("Pair", "name price")


class Recorder:
    """A connection that records what pymemcache sends."""

    def __init__(self) -> None:
        self.sent = b""

    def sendall(self, data: bytes) -> None:
        self.sent = data

    def recv(self, _: int) -> bytes:
        return b"STORED\r\n"

    def close(self) -> None:
        pass


def stored_by_pymemcache(value: object) -> bytes:
    client = Client(("127.0.0.1", 1))
    client.sock = Recorder()
    client.set("k", value, noreply=False)
    head, _, data = client.sock.sent.partition(b"\r\n")
    assert int(head.split()[4]) == len(data) - 2
    return bytes(data[:-2])


def stored(value: object, columns: Any = None) -> Any:
    """Return what both clients send."""
    return View(Connections(lambda *_: None, [], "h", checked(ClientOptions, {})), None, columns)._written(value)


@pytest.mark.parametrize(
    "value",
    ["text", "", b"\xff\0", b"", Raw(b"x"), np.str_("x"), np.bytes_(b"x"), 0, -7, 10**20, True, False, Level.LOW, 5.5, -0.0, 1e22, float("inf"),
     Decimal("5.50"), Decimal("1E+3"), Fraction(1, 3), np.int64(5), np.uint8(5), np.float32(2.5), np.float64(0.1), 2j],
    ids=repr,
)  # fmt: skip
def test_what_pymemcache_accepts(value: object) -> None:
    assert stored(value) == stored_by_pymemcache(value)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (bytearray(b"hi"), b"hi"), (memoryview(b"hi"), b"hi"), (memoryview(b"abcdef")[::2], b"ace"), (memoryview(b"abcd").cast("B", [2, 2]), b"abcd"),
        (array.array("B", b"hi"), b"hi"), (array.array("H", [1, 2]), array.array("H", [1, 2]).tobytes()), (array.array("B"), b""),
        (np.frombuffer(b"hi", np.uint8), b"hi"), (np.frombuffer(b"abcd", np.uint8)[::2], b"ac"), ((ctypes.c_char * 2)(b"h", b"i"), b"hi"),
        ("ü", b"\xc3\xbc"), (Colour.RED, b"red"), (OldLevel.LOW, b"3"),
    ],
)  # fmt: skip
def test_the_bytes_of_a_value(value: object, data: bytes) -> None:
    assert stored(value) == stored(value, ("one",)) == data
    if b"\0" not in data:  # which the plugins end a column with
        assert (
            stored((value, "x"))
            == stored([value, "x"], ("a", "b"))
            == stored({"a": value, "b": "x"}, {"a": bytes, "b": str})
            == data + b"|x"
        )


def test_a_mapped_file_is_its_bytes() -> None:
    with mmap.mmap(-1, 4) as file:
        file.write(b"abcd")
        assert stored(file) == b"abcd"


def released() -> memoryview:
    view = memoryview(b"x")
    view.release()
    return view


REFUSED = [
    None, {1}, frozenset(), {"a": 1}, {}, range(3), (each for each in "ab"), iter([1]), deque([1]), object(), int, len, ..., Exception("x"), [], (),
    [[1]], [(1, 2)], [{1}], [None, {"a": 1}], [object()], [range(2)], ("a", ["b"]), "\ud800", ["\ud800", "x"], 10**5000, [10**5000],
    np.bool_(1), np.array(5), np.array([object()]), np.datetime64("2026-01-01"), ctypes.c_int(5), released(), {"a": 1}.keys(), {"a": 1}.items(),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(REFUSED)))
@pytest.mark.parametrize("columns", [None, (), ("one",), ("a", "b"), {"a": int, "b": str}])
def test_what_is_not_a_value(place: int, columns: Any) -> None:
    value = REFUSED[place]
    with pytest.raises(CallError):
        stored(value, columns)
    if not isinstance(value, list | tuple | type(None)):
        with pytest.raises(CallError):
            stored([value, "x"], columns)


@pytest.mark.parametrize(
    "row",
    [
        {"a": "x", "b": 1},
        OrderedDict(a="x", b=1),
        UserDict(a="x", b=1),
        MappingProxyType({"b": 1, "a": "x"}),
        ["x", 1],
        ("x", 1),
        Pair("x", 1),
        "x|1",
    ],
)
def test_rows(row: Any) -> None:
    assert stored(row, ("a", "b")) == b"x|1"


def test_a_truth_value_of_a_column_is_a_number() -> None:
    assert stored({"a": True, "b": False}, ("a", "b")) == b"1|0"
    true: Any = True
    assert (stored(true, {"one": int}), stored((true, "x")), stored(true)) == (b"1", b"1|x", b"True")


def test_one_named_column_is_the_whole_value() -> None:
    """A server splits the value of a mapping of several columns alone."""
    one = Columns(("note",))
    assert one.encode({"note": "a|b"}) == one.encode("a|b") == one.encode(("a|b",)) == b"a|b"
    assert one.decode(b"a|b") == {"note": "a|b"}
    assert Columns.typed({"note": int}).decode(b"7") == {"note": 7}


@pytest.mark.live
def test_both_clients_store_the_bytes_that_they_get(empty: Any, connect: Connect) -> None:
    client = connect(empty.address)
    for value in (bytearray(b"hi"), memoryview(b"h-i-")[::2], array.array("B", b"hi"), b"hi", "hi"):
        assert client.set("k", value)
        assert client.get("k") == b"hi"
    assert client.set_many({"a": bytearray(b"x"), "b": 5.5, "c": Decimal("1.50")}) == []
    assert client.get_many(["a", "b", "c"]) == {"a": b"x", "b": b"5.5", "c": b"1.50"}
    for value in ({1, 2}, range(3), (each for each in "ab"), None, object()):
        with pytest.raises(CallError, match="type"):
            client.set("k", value)
    assert client.get("k") == b"hi"
    shop = client.at("shop", ("name", "price", "note"))
    assert shop.set("1", (bytearray(b"pen"), np.int64(120), memoryview(b"n")))
    assert shop.get("1") == {"name": "pen", "price": "120", "note": "n"}


@pytest.mark.live
@pytest.mark.parametrize("columns", [("hits",), {"hits": int}, ["hits"]])
def test_a_counter_in_one_named_column(empty: Any, connect: Connect, columns: Any) -> None:
    client = connect(empty.address, mapping="bbb", columns=columns)
    kind = int if isinstance(columns, dict) else str
    for value in (5, (5,), {"hits": 5}, "5"):
        assert client.set("k", value)
        assert client.get("k") == {"hits": kind(5)}
    assert (client.incr("k", 3), client.decr("k", 2)) == (8, 6)
    assert (client.append("k", "1"), client.prepend("k", {"hits": 2})) == (True, True)
    assert client.get("k") == {"hits": kind(261)}
    assert client.update("k", {"hits": 3})
    assert client.incr("k", 1) == 4
    unnamed = client.at("bbb", ())
    with pytest.raises(CallError, match="several columns"):
        unnamed.incr("k")
    note = client.at("bbb", ("note",))
    assert note.set("n", {"note": "a|b"})
    assert (note.get("n"), empty.execute("SELECT c2 FROM {test}second WHERE c1 = 'n'")) == ({"note": "a|b"}, [("a|b",)])


@pytest.mark.live
def test_whole_numbers_as_keys(empty: Any, connect: Connect) -> None:
    client = connect(empty.address, mapping="bbb")
    assert client.set(7, "seven")
    assert (client.get(7), client.get("7"), client.get(Level.LOW), client.get(np.int64(7))) == (
        b"seven",
        b"seven",
        None,
        b"seven",
    )
    assert client.set_many({1: "one", -2: "minus two"}) == []
    assert client.get_many([1, -2, "1", 3]) == {1: b"one", -2: b"minus two", "1": b"one"}
    assert client.gets_many([1])[1][0] == b"one"
    if empty.has_ranges:
        assert client.get_range(ge=1, le=7) == {1: b"one", 7: b"seven"}
        assert client.get_range(ge="1") == {"1": b"one", "7": b"seven"}
        assert client.get_range(gt=1, le=b"7") == {b"7": b"seven"}
    assert (client.delete(7), client.delete_many([1, -2]), client.get_many([1, -2, 7])) == (True, True, {})


def test_keys_of_a_range_of_numbers() -> None:
    from kvref.client import InvalidReplyError  # noqa: PLC0415
    from kvref.client.arguments import key_of_range  # noqa: PLC0415

    assert [key_of_range(b"12", 1, None), key_of_range(b"12", 1, "5"), key_of_range(b"12", 1, b"5")] == [
        12,
        "12",
        b"12",
    ]
    for raw in (b"\x80\x00\x00\x01", b"01", b"x", b"-0", b"+1"):
        with pytest.raises(InvalidReplyError, match="give its bounds as text"):
            key_of_range(raw, 1)


@pytest.mark.live
def test_a_key_that_was_read_as_text_is_found_again(empty: Any) -> None:
    if empty.is_plugin or not empty.has_ranges:
        pytest.skip("the plugins' tables of this test have UTF-8 keys alone")
    with MappedClient(empty.address, mapping="bbb") as client:
        client.set("ü", "v")
        [key] = client.get_range(ge="\u00fc")
        assert client.get(key) == b"v"
