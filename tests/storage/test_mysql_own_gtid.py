"""The GTID in the OK packet of COMMIT; the messages are those of MySQL 9.7.4."""

from __future__ import annotations

import pytest

from kvref.storage.mysql.login import reported_gtid

GTID = "fe2799a9-9856-4172-8af0-5cc2d03a5a1f:6"
TRANSACTION_STATE = b"\x05\t\x08________"


@pytest.mark.parametrize(
    ("message", "gtid"),
    [
        (b"\x005\x03(\x00&" + GTID.encode() + TRANSACTION_STATE, GTID),
        (b"\x005" + TRANSACTION_STATE + b"\x03(\x00&" + GTID.encode(), GTID),
        (b"\x02OK*\x03(\x00&" + GTID.encode(), GTID),
        (b"\x00\x0b" + TRANSACTION_STATE, ""),
        (b"\x00\x00", ""),
        (b"\x00\x04\x03\x02\x01\x00", ""),  # an encoding that is not text
    ],
    ids=["first", "last", "behind a text", "other states only", "no state", "unknown encoding"],
)
def test_the_reported_gtid(message: bytes, gtid: str) -> None:
    assert reported_gtid(message) == gtid


def test_a_long_message() -> None:
    gtid = f"fe2799a9-9856-4172-8af0-5cc2d03a5a1f:{'t' * 300}:6"
    state = b"\x00\xfc" + len(gtid).to_bytes(2, "little") + gtid.encode()
    states = b"\x03\xfc" + len(state).to_bytes(2, "little") + state
    assert reported_gtid(b"\x00\xfc" + len(states).to_bytes(2, "little") + states) == gtid
