"""What is put on a line and taken from a stream, and what is needed to import it."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref.client import CallError, Columns, UnsupportedError
from kvref.client.arguments import Key, range_word, split_word
from kvref.client.protocol import ROWS, STATS, Answer, GarbledError, Item, Replies, Shape, check_ranges


@pytest.mark.parametrize(
    ("word", "delimiter", "name", "key"),
    [
        ("k", ".", None, "k"), (b"k", ".", None, "k"), (b"\xff", ".", None, b"\xff"), ("ü", ".", None, "ü"), ("@k", ".", None, "@k"),
        ("@@m.k", ".", "m", "k"), ("@@m.a.b", ".", "m", "a.b"), ("@@m.n.k", "::", None, None), ("@@m::k", "::", "m", "k"),
        ("@@m.@@n.k", ".", "m", "@@n.k"), ("@@m", ".", None, None), ("@@m.", ".", None, None), ("@@.k", ".", None, None),
        ("", ".", None, None), ("a b", ".", None, None), ("a\n", ".", None, None), ("a\0", ".", None, None),
        ("@>a", ".", None, None), ("@@m.@<a", ".", None, None), ("x" * 251, ".", None, None), ("ü" * 126, ".", None, None),
    ],
)  # fmt: skip
def test_keys(word: Key, delimiter: str, name: str | None, key: Key | None) -> None:
    if key is None:
        with pytest.raises(CallError):
            split_word(word, delimiter)
    else:
        assert split_word(word, delimiter) == (name, key)


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ({"gt": "a"}, b"@>a"), ({"ge": b"a"}, b"@>=a"), ({"lt": "a"}, b"@<a"), ({"le": "ü"}, b"@<=\xc3\xbc"), ({"gt": ""}, b"@>"),
        ({"gt": "a", "le": "b"}, b"@>a@<=b"), ({"ge": "a", "lt": "b"}, b"@>=a@<b"), ({}, None), ({"gt": "a", "ge": "a"}, None),
        ({"lt": "a", "le": "a"}, None), ({"gt": "a@<b"}, None), ({"gt": "=a"}, None), ({"lt": "=a"}, None), ({"lt": ""}, None),
        ({"gt": "a", "lt": "b@>c"}, None), ({"gt": "a b"}, None), ({"gt": "x" * 249}, None),
    ],
)  # fmt: skip
def test_ranges(bounds: dict[str, Key], word: bytes | None) -> None:
    whole = {"gt": None, "ge": None, "lt": None, "le": None} | bounds
    if word is None:
        with pytest.raises(CallError):
            range_word(**whole)
    else:
        assert range_word(**whole) == word


@pytest.mark.parametrize(("version", "has"), [
    ("5.6.14", False), ("5.7.2-m12", False), ("5.7.3", True), ("8.0.33", True), ("1.6.0+0.1.0-kvref", True), ("1.6.18", False),
])  # fmt: skip
def test_which_server_has_ranges(version: str, has: bool) -> None:
    if has:
        check_ranges(version)
    else:
        with pytest.raises(UnsupportedError, match=version):
            check_ranges(version)


@pytest.mark.parametrize(
    ("columns", "value", "data"),
    [
        (Columns(), ("a", 1, b"c"), b"a|1|c"), (Columns(), ["a", None, ""], b"a"), (Columns(), ("", "b"), b"|b"), (Columns(), (), None), (Columns(), [], None),
        (Columns(), "a|b", b"a|b"), (Columns(), 7, b"7"), (Columns(("a", "b")), {"b": 2, "a": 1}, b"1|2"), (Columns(("a", "b")), {}, None),
        (Columns(("a", "b")), {"b": 2, "a": None}, b"|2"), (Columns(("a", "b")), {"b": 2}, None), (Columns(("a", "b")), {"a": 2}, None),
        (Columns(("a", "b")), ("a",), None), (Columns(("a", "b")), "a", None), (Columns(("a", "b")), 7, None), (Columns(("a", "b")), b"a|b", b"a|b"),
        (Columns(("a", "b")), ("a", None), b"a"), (Columns(("a",), "::"), ("x:y",), b"x:y"), (Columns((), "::"), ("x", "y"), b"x::y"),
        (Columns(empty_in_the_middle=True), ("a", "", "c"), b"a||c"), (Columns(), ("a", "", "c"), None), (Columns(), ("", "", "c"), None),
        (Columns(), ("a|b", "c"), None), (Columns(), ("a\0", "c"), None), (Columns(("a",)), ("a", "b"), None), (Columns(("a",)), "a|b", b"a|b"), (Columns(("a",)), ("a|b",), b"a|b"),
        (Columns(("a",)), {"b": 1}, None), (Columns(), {"b": 1}, None),
    ],
)  # fmt: skip
def test_columns(columns: Columns, value: object, data: bytes | None) -> None:
    if data is None:
        with pytest.raises(CallError):
            columns.encode(value)  # type: ignore[arg-type]
    else:
        assert columns.encode(value) == data  # type: ignore[arg-type]


STREAM = (
    b"STORED\r\n"
    b"VALUE k 5 4\r\n\r\n\r\n\r\nVALUE a 0 0 18446744073709551615\r\n\r\nEND\r\n"
    b"VALUE \x80\x00\r\n 1 2\r\nxy\r\nEND\r\n"
    b"END\r\n"
    b"SERVER_ERROR out of memory\r\n"
    b"12 \r\n"
)
ANSWERS = [
    (False, Answer(b"STORED")),
    (True, Answer(b"END", [Item(b"k", 5, b"\r\n\r\n", None), Item(b"a", 0, b"", 2**64 - 1)])),
    # 8.0.33 answers an integer key of a range as it is stored.
    (True, Answer(b"END", [Item(b"\x80\x00\r\n", 1, b"xy", None)])),
    (True, Answer(b"END")),
    (True, Answer(b"SERVER_ERROR out of memory")),
    (False, Answer(b"12 ")),
]


@given(st.lists(st.integers(1, len(STREAM)), max_size=20))
def test_answers_however_they_arrive(cuts: list[int]) -> None:
    replies, wanted, got = Replies(), list(ANSWERS), []
    places = sorted({0, *cuts, len(STREAM)})
    for start, end in pairwise(places):
        replies.feed(STREAM[start:end])
        while wanted and (answer := replies.next_answer(Shape(rows=wanted[0][0]))) is not None:
            got.append(answer)
            wanted.pop(0)
    assert (got, replies.rest) == ([answer for _, answer in ANSWERS], b"")


@pytest.mark.parametrize("data", [b"VALUE k 0 1\r\nxyz", b"x" * 9000, b"VALUE " + b"x" * 9000])
def test_what_is_no_answer(data: bytes) -> None:
    replies = Replies()
    replies.feed(data)
    with pytest.raises(GarbledError):
        replies.next_answer(ROWS)


@pytest.mark.parametrize("rows", [[b"x" * 101], [b"x" * 30] * 3])
def test_an_answer_has_a_limit(rows: list[bytes]) -> None:
    """The limit is that of all rows together, and is found before the bytes of a declared length come."""
    replies = Replies(max_answer=100)
    stream = b"".join(b"VALUE k 0 %d\r\n%s\r\n" % (len(row), row) for row in rows)
    replies.feed(stream[:-20])
    with pytest.raises(GarbledError, match="the answer has more than 100 bytes"):
        replies.next_answer(ROWS)


def test_the_limit_is_that_of_one_answer() -> None:
    replies = Replies(max_answer=100)
    for _ in range(3):
        replies.feed(b"VALUE k 0 60\r\n%s\r\nEND\r\n" % (b"x" * 60))
        assert replies.next_answer(ROWS) == Answer(b"END", [Item(b"k", 0, b"x" * 60, None)])


WITHOUT = "import sys; sys.modules['pymemcache'] = None; "


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


def test_without_pymemcache_the_extra_is_named() -> None:
    refused = python(WITHOUT + "from kvref.client import MappedClient")
    assert refused.returncode == 1
    assert refused.stderr.strip().splitlines()[-1].endswith("needs pymemcache: pip install 'kvref[client]'")
    assert python(WITHOUT + "from kvref.client import AsyncMappedClient, Columns, LinkError").returncode == 0
    assert python(WITHOUT + "import kvref.cli.probe").returncode == 0
    assert "no attribute 'Nothing'" in python("import kvref.client; kvref.client.Nothing").stderr


def test_lines_of_stats_and_replies_up_to_a_token() -> None:
    replies = Replies(max_answer=100)
    replies.feed(b"STAT pid 1\r\nSTAT a b")
    assert replies.next_answer(STATS) is None
    replies.feed(b" c\r\nEND\r\nVALUE k 0 1\r\nx\r\nEND\r\nERROR\r\nRESET\r\n")
    assert replies.next_answer(STATS) == Answer(b"END", [], [b"STAT pid 1", b"STAT a b c"])
    token = Shape(end=b"END\r\n")
    assert replies.next_answer(token) == Answer(b"VALUE k 0 1\r\nx\r\n")
    assert (replies.next_answer(token), replies.next_answer(STATS), replies.rest) == (
        Answer(b"ERROR"),
        Answer(b"RESET"),
        b"",
    )
    replies.feed(b"STAT x " + b"y" * 60 + b"\r\nSTAT x " + b"y" * 60 + b"\r\n")
    with pytest.raises(GarbledError, match="more than 100 bytes"):
        replies.next_answer(STATS)
    replies = Replies(max_answer=10)
    replies.feed(b"x" * 11)
    with pytest.raises(GarbledError, match="no end"):
        replies.next_answer(token)
