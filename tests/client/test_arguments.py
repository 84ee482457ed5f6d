"""Arbitrary objects as arguments of every call: an error of the family, before anything is sent."""

from __future__ import annotations

import array
import asyncio
import enum
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvref.client import AsyncMappedClient, CallError, LinkError, MappedClient
from kvref.client.aio.connection import ServerConnection
from kvref.client.bound import BoundClient
from kvref.client.options import AsyncOptions, MappedOptions

COLUMNS: dict[str, Any] = {"name": str, "price": int}


class AttemptError(LinkError):
    """The client tried to connect: it found nothing wrong with the call."""


class Evil:
    """Every special method that a check may use raises."""

    def fail(self, *_: object) -> Any:
        raise RuntimeError("the caller's class fails")

    __repr__ = __str__ = __index__ = __int__ = __len__ = __iter__ = __bytes__ = __bool__ = __eq__ = fail
    __hash__ = None  # type: ignore[assignment]


class Number(enum.IntEnum):
    ONE = 1


class Text(str, enum.Enum):  # noqa: UP042 - its str() is another text
    A = "a"


def released() -> memoryview:
    view = memoryview(b"x")
    view.release()
    return view


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.decimals(), st.fractions(), st.binary(max_size=9),
    st.text(max_size=9), st.text(st.characters(categories=["Cs", "Cc", "Zs"]), max_size=3), st.dates(), st.uuids(),
    st.sampled_from([10**5000, -(10**400), "x" * 251, "@@aaa.k", "@@nope", "@>a", "a b", "\ud800", "", b"", "1", b"1", Number.ONE, Text.A]),
)  # fmt: skip
OBJECTS = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3), st.tuples(SCALARS), st.tuples(SCALARS, SCALARS), st.dictionaries(st.one_of(st.text(), st.integers()), SCALARS, max_size=2),
    st.dictionaries(st.sampled_from(["name", "price", "a"]), SCALARS, max_size=3), st.lists(st.lists(SCALARS, max_size=2), max_size=2),
    st.builds(bytearray, st.binary(max_size=5)), st.builds(memoryview, st.binary(max_size=5)),
    st.sampled_from([object, int, len, ..., NotImplemented, date.today]),
    st.builds(lambda make: make(), st.sampled_from([
        object, Evil, released, lambda: (each for each in "ab"), lambda: range(3), lambda: {1, 2}, lambda: deque([1]), lambda: array.array("i", [1]),
        lambda: memoryview(b"abcd")[::2], lambda: np.int64(7), lambda: np.float32(7), lambda: np.bool_(1), lambda: np.array([1, 2]), lambda: np.array(5),
        lambda: np.array([object()]), lambda: np.datetime64("2026-01-01"), lambda: np.str_("a"), lambda: Exception("x"),
    ])),
)  # fmt: skip
# What each parameter of a call may be.
FITTING: dict[str, Any] = {
    "key": "k", "keys": ["a", "b"], "value": 5, "values": {"a": 1}, "cas": 5, "expire": 9, "noreply": False, "flags": 3, "default": None, "cas_default": None,
    "delay": 0, "changes": {"price": 1}, "name": "aaa", "columns": None, "command": "version", "end_tokens": "\r\n", "arguments": "settings",
    "gt": "a", "ge": None, "lt": "z", "le": None,
}  # fmt: skip
# They need no argument, or end what the test is about.
NOT_CALLED = {"close", "disconnect_all", "quit", "version", "versions"}
SYNC = [
    name
    for name, _ in inspect.getmembers(MappedClient, callable)
    if not name.startswith("_") and name not in NOT_CALLED
]
ITEMS = ["__getitem__", "__setitem__", "__delitem__"]
SPECS = st.sampled_from([None, (), ("price",), {"price": int}, ("name", "price"), COLUMNS])
QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
attempts: list[None] = []


@pytest.fixture(autouse=True)
def unconnected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Record each attempt to connect, and let it fail."""

    def refuse(_: object) -> Any:
        attempts.append(None)
        raise AttemptError("a connection")

    async def refuse_later(_: object) -> Any:
        refuse(_)

    monkeypatch.setattr(BoundClient, "_connect", refuse)
    monkeypatch.setattr(ServerConnection, "_open", refuse_later)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    yield
    attempts.clear()


def arguments_of(draw: Callable[[Any], Any], call: Any) -> tuple[list[Any], dict[str, Any]]:
    """Draw the arguments of a call: all arbitrary, or one of them."""
    parameters = [each for each in inspect.signature(call).parameters.values() if each.name != "self"]
    wrong = draw(st.sampled_from([None, *[each.name for each in parameters]]))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for each in parameters:
        value = draw(OBJECTS) if wrong in (None, each.name) else FITTING[each.name]
        if each.kind is each.KEYWORD_ONLY:
            named[each.name] = value
        else:
            positional.append(value)
    return positional, named


def judge(call: Callable[[], Any], what: str) -> None:
    """Fail for an error of no client's family, and for one that came after an attempt to connect."""
    attempts.clear()
    raised: BaseException | None = None
    try:
        call()
    except AttemptError:
        assert attempts, what
    except Exception as error:  # noqa: BLE001 - each is judged
        raised = error
    if raised is None or (isinstance(raised, KeyError) and what.startswith("__getitem__")):
        return
    if isinstance(raised, LinkError) and "no answer within" in str(raised):
        return  # a timeout that is over before it can connect
    assert isinstance(raised, CallError), f"{what}: {type(raised).__name__}: {raised}"
    assert not attempts, f"{what}: {raised} came after an attempt to send"


def shown(name: str, positional: list[Any], named: dict[str, Any]) -> str:
    try:
        return f"{name}{positional}{named}"
    except Exception:  # noqa: BLE001 - an argument's own
        return name


SERVERS: list[Any] = ["127.0.0.1:1", ["127.0.0.1:1", "127.0.0.1:2"]]


@QUICK
@given(data=st.data())
def test_any_argument_of_the_synchronous_client(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*SYNC, *ITEMS]))
    servers, spec = data.draw(st.sampled_from(SERVERS)), data.draw(SPECS)
    options: dict[str, Any] = data.draw(st.sampled_from([{}, {"pool_size": 2}, {"allow_unicode_keys": False}]))
    client: Any = MappedClient(servers, columns=spec, **options)
    positional, named = arguments_of(data.draw, getattr(MappedClient, name))
    judge(lambda: getattr(client, name)(*positional, **named), shown(name, positional, named))


@QUICK
@given(data=st.data())
def test_any_argument_of_the_asyncio_client(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(SYNC))
    servers, spec = data.draw(st.sampled_from(SERVERS)), data.draw(SPECS)
    positional, named = arguments_of(data.draw, getattr(AsyncMappedClient, name))

    async def call() -> None:
        client: Any = AsyncMappedClient(servers, columns=spec)
        result = getattr(client, name)(*positional, **named)
        if inspect.isawaitable(result):
            await result

    judge(lambda: asyncio.run(call()), shown(name, positional, named))


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


@pytest.mark.parametrize(("client", "names"), [(MappedClient, MappedOptions), (AsyncMappedClient, AsyncOptions)])
@QUICK
@given(data=st.data())
def test_any_option_of_both_clients(client: Any, names: Any, data: st.DataObject) -> None:
    """A client that was made with an option works with it."""
    option = data.draw(st.sampled_from([*names.__annotations__, "columns", "servers", "time_out", "ignore_errors"]))
    value = data.draw(OBJECTS)
    servers = value if option == "servers" else data.draw(st.sampled_from(SERVERS))
    options = {} if option == "servers" else {option: value}

    def call() -> None:
        made = client(servers, **options)
        for each in (lambda: made.get("k"), lambda: made.set("k", "v")):
            result = each()
            if inspect.isawaitable(result):
                asyncio.run(_awaited(result))

    judge(call, shown(option, [value], {}))


@pytest.mark.parametrize("client", [MappedClient, AsyncMappedClient])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("time_out", 3), ("IGNORE_EXCEPTIONS", True), ("ignore_exc", 1), ("timeout", float("nan")), ("timeout", float("inf")), ("timeout", 1e9),
        ("timeout", True), ("credentials", "ab"), ("credentials", ("a",)), ("credentials", (b"a", b"b")), ("credentials", ("\ud800", "b")),
        ("tls_context", True), ("mapping", b"aaa"), ("mapping", 5), ("delimiter", "\ud800"), ("columns", "hits"), ("columns", b"hits"),
        ("columns", 5), ("columns", ("a", "a")), ("columns", ("a", "")), ("columns", ("a", 5)), ("columns", {1: int}), ("columns", {"a"}),
        ("columns", {"a": 5}), ("columns", int), ("max_answer_bytes", "1"),
    ],
)  # fmt: skip
def test_a_wrong_option(client: Any, option: str, value: Any) -> None:
    with pytest.raises(CallError, match="IGNORE_EXCEPTIONS|" + option):
        client("127.0.0.1:1", **{option: value})


@pytest.mark.parametrize("client", [MappedClient, AsyncMappedClient])
@pytest.mark.parametrize(
    "server",
    ["a..b:1", "x" * 64 + ":1", "unix:/" + "x" * 108, "unix:/\ud800", ("a",), ["h", ["h"]], {"h"}, b"h:1", None],
)
def test_an_address_that_no_connection_can_have(client: Any, server: Any) -> None:
    with pytest.raises(CallError, match="server"):
        client(server)


@pytest.mark.parametrize(
    "key",
    [
        None,
        True,
        5.5,
        bytearray(b"k"),
        memoryview(b"k"),
        ["k"],
        Decimal(1),
        Fraction(1),
        10**300,
        "\ud800",
        "",
        "a b",
    ],
)
def test_what_is_not_a_key(key: Any) -> None:
    client: Any = MappedClient("127.0.0.1:1")
    for call in (
        client.get,
        client.delete,
        client.incr,
        client.touch,
        lambda each: client.get_many(["a", each]),
        lambda each: client.get_range(ge=each),
    ):
        if key == "" and call is not client.get:
            continue
        with pytest.raises(CallError):
            call(key)
    assert not attempts


@pytest.mark.parametrize("keys", ["abc", b"abc", bytearray(b"abc"), 5, None])
def test_one_key_is_not_several(keys: Any) -> None:
    client: Any = MappedClient("127.0.0.1:1")
    for call in (client.get_many, client.gets_many, client.delete_many):
        with pytest.raises(CallError, match="keys"):
            call(keys)


def test_nothing_is_sent_if_one_of_several_is_wrong() -> None:
    """Not to the first server or mapping either."""
    several: dict[str, Any] = {"@@aaa.k": "v", "@@bbb.k": "v", **{f"k{n}": "v" for n in range(20)}, "last": {1}}
    client = MappedClient(["127.0.0.1:1", "127.0.0.1:2"])

    async def later() -> None:
        other: Any = AsyncMappedClient(["127.0.0.1:1", "127.0.0.1:2"])
        with pytest.raises(CallError, match="type set"):
            await other.set_many(several)
        with pytest.raises(CallError, match="key None"):
            await other.delete_many(["a", "b", None])

    with pytest.raises(CallError, match="type set"):
        client.set_many(several)
    with pytest.raises(CallError, match="key None"):
        client.delete_many(["a", "b", None])  # type: ignore[list-item]
    asyncio.run(later())
    assert not attempts


def test_update_checks_its_changes_first() -> None:
    client: Any = MappedClient("127.0.0.1:1", columns=COLUMNS)
    for changes in ({"colour": 1}, {"name": "a|b"}, {"name": {1}}, 5, [("name", "x")], {1: 2}):
        with pytest.raises(CallError):
            client.update("k", changes)
    assert not attempts
    with pytest.raises(AttemptError):
        client.update("k", {"name": "x"})
