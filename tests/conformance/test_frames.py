"""Frames as words and back: hand-written bytes compared with their description."""

from __future__ import annotations

import pytest

from kvref.errors import SuiteError
from kvref_conformance.wire.frames import decode, decode_requests, encode

SET = "80 01 0001 08 00 0000 0000000c 00000007 0000000000000009 00000004 00000002 6b 6f6e65"
ANSWER = "81 01 0000 00 00 0000 00000000 00000007 000000000000000a"
HIT = "81 0c 0001 04 00 0000 00000008 00000000 0000000000000005 00000004 6b 6f6e65"
SUM = "81 05 0000 00 00 0000 00000008 00000000 0000000000000005 0000000000000010"
MISS = "81 00 0000 00 00 0001 00000009 00000000 0000000000000000 4e6f7420666f756e64"
NOOP = "81 0a 0000 00 00 0000 00000000 00000000 0000000000000000"


def raw(*digits: str) -> bytes:
    return bytes.fromhex("".join(digits))


def test_a_request_is_what_its_words_say() -> None:
    assert encode("set key=k flags=4 exp=2 opaque=7 cas=9 value=one") == raw(SET)


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


def test_several_frames_are_sent_as_one() -> None:
    assert encode("noop; noop") == encode("noop") * 2
    assert encode("") == b""


@pytest.mark.parametrize("words", ["set key=k colour=red", "set  key=k", "noop "])
def test_words_of_no_frame_are_a_fault_of_the_suite(words: str) -> None:
    with pytest.raises(SuiteError):
        encode(words)


def test_replies_in_words() -> None:
    received = "set ok opaque=7 cas=10; getk ok cas=5 flags=4 key=k value=one; incr ok cas=5 number=16"
    assert decode(raw(ANSWER, HIT, SUM)) == received
    assert decode(raw(MISS, NOOP)) == 'get 0x01 "Not found"; noop ok'
    assert decode(b"") == ""


def test_bytes_with_a_meaning_here_are_escaped() -> None:
    reply = raw("81 0c 0003 04 00 0000 0000000d 00000000 0000000000000000 00000000 612062 3b20250d0aff")
    assert decode(reply) == "getk ok flags=0 key=a%20b value=%3b %25%0d%0a%ff"


def test_an_empty_value_is_a_value_and_an_empty_body_is_none() -> None:
    assert decode(raw("81 00 0000 04 00 0000 00000004 00000000 0000000000000000 00000000")) == "get ok flags=0 value="
    assert decode(raw("81 1c 0000 00 00 0081 00000000 00000000 0000000000000000")) == "touch 0x81"


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


def test_what_is_no_whole_request_stands_raw() -> None:
    assert decode_requests(encode("noop") + b"\x80\x00") == "noop; raw %80%00"
