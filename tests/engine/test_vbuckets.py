"""States of vbuckets: the answers of more:bin-211, one by one."""

from __future__ import annotations

import pytest

from kvref.engine.shared_state import VBuckets
from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError, Line, Reply, Status

TOO_LARGE, OUT_OF_RANGE = ClientError("Key is too large."), ClientError("Value out of range.")


def test_a_state_is_set_reported_and_taken_back() -> None:
    states = VBuckets()
    assert states.answer(c.VBucket("get", b"0")) == Line(b"active")
    assert states.answer(c.VBucket("get", b"7")) == Line(b"dead")
    assert states.answer(c.VBucket("set", b"7", b"active")) == Line(b"Configured")
    assert states.rows() == [("vb_0", "active"), ("vb_7", "active")]
    assert states.answer(c.VBucket("delete", b"7")) is Status.OK
    assert states.answer(c.VBucket("set", b"0", b"dead")) == Line(b"Configured")
    assert states.rows() == []


@pytest.mark.parametrize(
    ("verb", "word", "state", "reply"),
    [
        *(("get", word, b"", Line(b"dead")) for word in (b" 7", b"+7", b"7 x", b"7\0x", b"65535")),
        # Seen on both plugin versions: a blank with no digits behind it is 0, as in every other number.
        *(("get", word, b"", Line(b"active")) for word in (b" ", b"\t", b" -", b"-0", b"0 -")),
        *(("get", word, b"", OUT_OF_RANGE) for word in (b"", b"x", b"7x", b"-1", b"65537")),
        ("get", b"4294967303", b"", TOO_LARGE),
        ("delete", b"9" * 32, b"", TOO_LARGE),
        ("set", b"9" * 32, b"x" * 40, TOO_LARGE),
        ("set", b"7", b"x" * 32, ClientError("Value is too large.")),
        ("set", b"x", b"Active", ClientError("Invalid state.")),
        ("set", b"x", b"active", OUT_OF_RANGE),
        ("set", b"7", b"active\0", Line(b"Configured")),
    ],
)
def test_words_are_read_as_the_engine_reads_them(verb: str, word: bytes, state: bytes, reply: Reply) -> None:
    assert VBuckets().answer(c.VBucket(verb, word, state)) == reply
