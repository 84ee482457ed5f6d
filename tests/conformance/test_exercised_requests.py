"""Bytes taken apart into requests, in both protocols, wherever packets end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref_conformance.wire.frames import encode
from kvref_conformance.wire.requests import Reader, Request


def text(data: bytes, *, meta: bool = True) -> list[tuple[str, ...]]:
    return shapes_of(Reader(binary=False, meta=meta).read(data, more=False))


def shapes_of(requests: list[Request]) -> list[tuple[str, ...]]:
    return [(request.verb.name, *request.key_texts) for request in requests]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"get a b\r\n", [("get", "a", "b")]),
        (b"gat 0 a b\r\ntouch a 0\r\n", [("gat", "a", "b"), ("touch", "a")]),
        (b"set a 0 0 5\r\nget b\r\nget c\n", [("set", "a"), ("get", "c")]),
        (b"cas a 0 0 2 17 noreply\r\nxx\r\ndelete a\r\n", [("cas", "a"), ("delete", "a")]),
        (b"ms a 2 b T0\r\nxx\r\nmn\r\n", [("ms", "a"), ("mn",)]),
        (b"set a 0 0 2\r\nxxx\r\nget b\r\n", [("set", "a"), ("get", "b")]),
        (b"set a 0 0 x\r\nget b\r\n", [("set", "a"), ("get", "b")]),
        (b"set a 0 0 4294967296\r\nget b\r\n", [("set", "a"), ("get", "b")]),
        (b"set a 0 0 " + b"9" * 5000 + b"\r\nget b\r\n", [("set", "a"), ("get", "b")]),
        (b"set a 0 0 \xb2\r\nget b\r\n", [("set", "a"), ("get", "b")]),
        (b"get\r\nget \r\n\r\nget \x1f\xa0\r\n", [("get",), ("get",), ("get", "\x1f\xa0")]),
        (b"GET a\r\nflush_all 10\r\nnonsense b\r\n", [("other",), ("flush_all",), ("other",)]),
        (b"get unfinished", []),
    ],
)
def test_text_is_taken_apart_into_requests(data: bytes, wanted: list[tuple[str, ...]]) -> None:
    assert text(data) == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("set key=a value=one; noop", [("binary set", "a"), ("binary noop",)]),
        ("getkq key=%00%ff", [("binary getkq", "\0\xff")]),
        ("get; 0xf0 key=a", [("binary get",), ("binary other",)]),
        ("get magic=129 key=a", [("binary other",)]),
        ("append key=a longer=1000", [("binary append", "a")]),
        ("raw %80%00", []),
        # A key that is longer than its body ends with it.
        ("get keylen=9 key=a; noop", [("binary get", "a"), ("binary noop",)]),
    ],
)
def test_frames_are_taken_apart_into_requests(words: str, wanted: list[tuple[str, ...]]) -> None:
    assert shapes_of(Reader(binary=True).read(encode(words), more=False)) == wanted


WORDS = st.text("ab@.", min_size=1, max_size=4)
LINES = st.one_of(
    WORDS.map(lambda key: f"get {key}\r\n"),
    st.tuples(WORDS, st.text("\r\nget k", max_size=9)).map(
        lambda two: f"set {two[0]} 0 0 {len(two[1])}\r\n{two[1]}\r\n"
    ),
)
FRAMES = st.tuples(st.sampled_from(("get", "setq", "noop")), WORDS).map(
    lambda two: "noop" if two[0] == "noop" else f"{two[0]} key={two[1]} value={two[1] * 3}"
)


@given(st.data(), st.booleans())
def test_packets_may_end_anywhere(data: st.DataObject, binary: bool) -> None:
    if binary:
        whole = encode("; ".join(data.draw(st.lists(FRAMES, min_size=1, max_size=5))))
    else:
        whole = "".join(data.draw(st.lists(LINES, min_size=1, max_size=5))).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=4)))
    made = [Reader(binary=binary) for _ in range(2)]
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert [each for piece in pieces for each in made[0].read(piece, more=True)] == made[1].read(whole, more=False)
