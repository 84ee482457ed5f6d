"""Frames as words and back: hand-written bytes compared with their description."""

from __future__ import annotations

import pytest

from kvref.errors import SuiteError
from kvref_conformance.wire.frames import decode, decode_requests, encode

HIT = "81 0c 0001 04 00 0000 00000008 00000000 0000000000000005 00000004 6b 6f6e65"
NOOP = "81 0a 0000 00 00 0000 00000000 00000000 0000000000000000"


def raw(*digits: str) -> bytes:
    return bytes.fromhex("".join(digits))


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("get key=k", "6b"),
        ("incr key=k delta=2 initial=3 exp=4294967295", "0000000000000002 0000000000000003 ffffffff 6b"),
        ("decr key=k", "0000000000000001 0000000000000000 00000000 6b"),
        ("flush", ""),
        ("flush exp=1", "00000001"),
        ("touch key=k exp=9", "00000009 6b"),
        ("verbosity level=1", "00000001"),
        ("append key=k value=a b=c", "6b 6120623d63"),
        ("get key=a%20b%0a%ff", "6120620aff"),
        ("set key=k extras=", "6b"),
        ("set key=k value=", "00000000 00000000 6b"),
    ],
)
def test_the_body_of_a_request(words: str, body: str) -> None:
    frame = encode(words)
    assert frame[24:] == raw(body)
    assert int.from_bytes(frame[8:12], "big") == len(frame) - 24


def test_frames_that_no_client_sends() -> None:
    assert encode("0x30 magic=129 vbucket=5 datatype=6 keylen=3 extlen=2 longer=-1 value=xyz") == raw(
        "81 30 0003 02 06 0005 00000002 00000000 0000000000000000 78797a"
    )
    assert encode("raw get k%0d%0a") == b"get k\r\n"


@pytest.mark.parametrize("words", ["set key=k colour=red", "set  key=k", "noop "])
def test_words_of_no_frame_are_a_fault_of_the_suite(words: str) -> None:
    with pytest.raises(SuiteError):
        encode(words)


def test_lengths_that_are_not_true_are_reported() -> None:
    assert (
        decode(raw("81 00 0005 00 00 0000 00000002 00000000 0000000000000000 6b6b")) == "get ok keylen=5 key=kk value="
    )


def test_what_is_no_whole_reply_is_left_over() -> None:
    assert decode(raw(NOOP) + b"\x81\x0a") == "noop ok; rest=810a"
    assert decode(raw(HIT)[:-1]) == f"rest={raw(HIT)[:-1].hex()}"
    assert decode(b"ER\r\n") == "rest=45520d0a"


@pytest.mark.parametrize(
    "words",
    [
        "set opaque=7 cas=9 flags=4 exp=2 key=k value=one",
        "incr delta=5 key=k",
        "noop magic=129 opaque=3",
        "get extras=00 key=k",
        "flush exp=7",
        "0x40 datatype=1 vbucket=2 key=a%20b value=x%3b y",
    ],
)
def test_a_request_that_was_recorded_says_what_it_was(words: str) -> None:
    assert decode_requests(encode(words)) == words
