"""Readers of replies: whole, byte by byte, and with what no server should say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvref_bench.load.records import Exchange
from kvref_bench.workload.binary import GETKQ, REPLY, Binary, frame
from kvref_bench.workload.commands import Fits, Item, Kinds, Reader
from kvref_bench.workload.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.workload.commands import Codec

ONE, TWO, THREE = (Item(name, name.upper() * 3, there=True) for name in (b"one", b"two", b"three"))
VERBS = ("get", "gets", "set", "add", "replace", "append", "incr", "delete", "touch")
NOOP = frame(REPLY, 0x0A, opaque=2)


class ExchangeOf:
    """Commands of an exchange, and the reader of their replies."""

    def __init__(self, codec: Codec, *commands: tuple[str, Sequence[Item]], verbs: Sequence[str] = VERBS) -> None:
        kinds = Kinds(verbs)
        self.kinds = kinds
        self.reader = Reader(codec, kinds, Fits({"get"}, lambda name: name.upper() * 3))
        places = [sum(len(items) for _, items in commands[:place]) for place in range(len(commands))]
        made = [codec.encode(verb, items, place) for (verb, items), place in zip(commands, places, strict=True)]
        numbers = tuple(kinds.number(verb, "error") for verb, items in commands for _ in items)
        self.exchange = Exchange(b"".join(r for r, _ in made), b"".join(r for _, r in made), numbers)

    def read(self, data: bytes) -> tuple[list[str], tuple[bytes, ...]] | None:
        answer = self.reader.read(self.exchange, data)
        return None if answer is None else ([self.kinds.all[each].outcome for each in answer.kinds], answer.unexpected)


BLOCK = {each: b"VALUE %b 0 %d\r\n%b\r\n" % (each.name, len(each.value), each.value) for each in (ONE, TWO, THREE)}


@pytest.mark.parametrize(
    ("reply", "outcomes"),
    [
        (BLOCK[ONE] + BLOCK[TWO] + BLOCK[THREE] + b"END\r\n", ["hit", "hit", "hit"]),
        (BLOCK[TWO] + b"END\r\n", ["miss", "hit", "miss"]),
        (BLOCK[ONE] + BLOCK[THREE] + b"END\r\n", ["hit", "miss", "hit"]),
        (b"END\r\n", ["miss", "miss", "miss"]),
    ],
)
def test_text_values_whole_and_byte_by_byte(reply: bytes, outcomes: list[str]) -> None:
    requests = ExchangeOf(Text(), ("get", [ONE, TWO, THREE]))
    assert requests.read(reply) == (outcomes, ())
    assert [requests.read(reply[:size]) for size in range(len(reply))] == [None] * len(reply)
    assert requests.read(reply + b"more") == (outcomes, (b"more",))


@pytest.mark.parametrize(
    ("verb", "line", "outcome"),
    [
        ("set", b"STORED", "stored"),
        ("set", b"NOT_STORED", "not_stored"),
        ("add", b"NOT_STORED", "not_stored"),
        ("set", b"EXISTS", "exists"),
        ("incr", b"123", "counted"),
        ("incr", b"NOT_FOUND", "not_found"),
        ("delete", b"DELETED", "deleted"),
        ("touch", b"TOUCHED", "touched"),
    ],
)
def test_text_lines_whole_and_byte_by_byte(verb: str, line: bytes, outcome: str) -> None:
    requests = ExchangeOf(Text(), (verb, [ONE]))
    assert requests.read(line + b"\r\n") == ([outcome], ())
    assert requests.read(line + b"\r") is None


@pytest.mark.parametrize(
    ("verb", "reply"),
    [
        ("set", b"SERVER_ERROR out of memory\r\n"),
        ("set", b"DELETED\r\n"),
        ("set", b"12\r\n"),
        ("add", b"EXISTS\r\n"),
        ("incr", b"CLIENT_ERROR no number\r\n"),
        ("get", b"ERROR\r\n"),
        ("get", b"VALUE one 0 9 7\r\nONEONEONE\r\n"),
        ("get", b"VALUE one 0 x\r\n"),
        ("get", b"VALUE one 8 9\r\n"),
        ("get", b"VALUE two 0 9\r\nTWOTWOTWO\r\n"),
    ],
)
def test_text_that_is_no_allowed_answer(verb: str, reply: bytes) -> None:
    outcomes, unexpected = ExchangeOf(Text(), (verb, [ONE])).read(reply) or ([], ())
    assert outcomes == ["error"]
    assert b"".join(unexpected) == reply


def test_text_with_a_wrong_value_among_right_ones() -> None:
    wrong = BLOCK[TWO].replace(b"TWOTWO", b"TWOtwo")
    requests = ExchangeOf(Text(), ("get", [ONE, TWO]), ("set", [THREE]))
    assert requests.read(BLOCK[ONE] + wrong + b"END\r\nSTORED\r\n") == (["hit", "error", "stored"], (wrong,))


def kq(item: Item, place: int, **fields: int) -> bytes:
    return frame(REPLY, GETKQ, item.name, bytes(4), item.value, opaque=place, **fields)


@pytest.mark.parametrize(
    ("reply", "outcomes"),
    [
        (kq(ONE, 0, cas=5) + kq(TWO, 1) + kq(THREE, 2) + NOOP, ["hit", "hit", "hit"]),
        (kq(TWO, 1, cas=9) + NOOP, ["miss", "hit", "miss"]),
        (NOOP, ["miss", "miss", "miss"]),
    ],
)
def test_binary_values_whole_and_byte_by_byte(reply: bytes, outcomes: list[str]) -> None:
    requests = ExchangeOf(Binary(), ("get", [ONE, TWO, THREE]))
    assert requests.read(reply) == (outcomes, ())
    assert [requests.read(reply[:size]) for size in range(len(reply))] == [None] * len(reply)
    assert requests.read(reply + NOOP) == (outcomes, (NOOP,))


@pytest.mark.parametrize(
    ("verb", "opcode", "status", "outcome"),
    [
        ("set", 1, 0, "stored"),
        ("set", 1, 5, "not_stored"),
        ("set", 1, 2, "exists"),
        ("set", 1, 0x82, "error"),
        ("add", 2, 2, "not_stored"),
        ("replace", 3, 1, "not_stored"),
        ("append", 0x0E, 5, "not_stored"),
        ("incr", 5, 1, "not_found"),
        ("incr", 5, 6, "error"),
        ("delete", 4, 0, "deleted"),
        ("touch", 0x1C, 0x81, "error"),
        ("get", 0, 1, "miss"),
        ("get", 0, 0x81, "error"),
        ("get", 1, 0, "error"),
    ],
)
def test_binary_statuses(verb: str, opcode: int, status: int, outcome: str) -> None:
    reply = frame(REPLY, opcode, value=b"whatever it says", status=status, cas=3)
    wrong = (reply,) if outcome == "error" else ()
    # Without gets one frame that differs in its cas number alone is not taken apart.
    for verbs in (VERBS, [verb]):
        assert ExchangeOf(Binary(), (verb, [ONE]), verbs=verbs).read(reply) == ([outcome], wrong)


def test_binary_differing_in_the_cas_number_alone() -> None:
    requests = ExchangeOf(Binary(), ("get", [ONE]), verbs=["get"])
    kind = requests.kinds.number("get", "hit")
    exchange = requests.exchange._replace(kinds=(kind,))
    reply = frame(REPLY, 0, b"", bytes(4), ONE.value, cas=12345)
    answer = requests.reader.read(exchange, reply)
    assert answer == ((kind,), ())
    changed = frame(REPLY, 0, b"", bytes(4), b"oneONEONE", cas=12345)
    assert requests.read(changed) == (["error"], (changed,))


def test_binary_bytes_that_begin_no_frame() -> None:
    assert ExchangeOf(Binary(), ("get", [ONE])).read(b"ERROR\r\n") == (["error"], (b"ERROR\r\n",))
    opaque = frame(REPLY, 0, b"", bytes(4), ONE.value, opaque=9)
    assert ExchangeOf(Binary(), ("get", [ONE])).read(opaque) == (["error"], (opaque,))
