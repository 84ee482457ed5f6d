"""Decimal numbers as the daemon's safe_strto* functions read them."""

from __future__ import annotations

import pytest

from kvref.protocol.numbers import low_32_signed, signed, unsigned


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (b"0", 0), (b"007", 7), (b"+5", 5), (b"-5", -5), (b"1\r", 1), (b"\t7", 7), (b"7\tx", 7),
        (b"9223372036854775807", 2**63 - 1), (b"-9223372036854775808", -(2**63)),
        (b"9223372036854775808", None), (b"1x", None), (b"1.5", None), (b"0x1", None), (b"abc", None), (b"", None),
        (b"9" * 5000, None),
    ],
)  # fmt: skip
def test_signed(word: bytes, value: int | None) -> None:
    assert signed(word) == value


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (b"18446744073709551615", 2**64 - 1), (b"18446744073709551616", None), (b"-1", None), (b"-0", 0),
        # C negates in 64 bits first: only a result with the top bit set is refused.
        (b"-18446744073709551615", 1), (b"+5", 5), (b"5x", None), (b"0" * 60 + b"9", 9),
    ],
)  # fmt: skip
def test_unsigned(word: bytes, value: int | None) -> None:
    assert unsigned(word) == value


@pytest.mark.parametrize(("value", "low"), [(2**31, -(2**31)), (2**32, 0), (2**32 + 5, 5), (-1, -1), (2**63, 0)])
def test_low_32_signed(value: int, low: int) -> None:
    assert low_32_signed(value) == low
