"""Character sets: every byte there and back, and where bytes stop being text."""

from __future__ import annotations

import pytest

from kvref.collations.charsets import CHARSETS, OTHER_CHARSETS

EVERY_BYTE = bytes(range(256))


@pytest.mark.parametrize("name", ["latin1", "ascii"])
def test_one_byte_sets_keep_every_byte(name: str) -> None:
    charset = CHARSETS[name]
    text = charset.decode(EVERY_BYTE)
    assert len(set(text)) == 256
    assert charset.encode(text) == EVERY_BYTE


def test_two_bytes_are_the_same_after_decoding_and_encoding() -> None:
    # `written` relies on it: bytes of a column without padding are the bytes of SQL.
    charset = CHARSETS["ucs2"]
    for number in [*range(0xD800), *range(0xE000, 0x10000)]:
        data = number.to_bytes(2, "big")
        assert charset.encode(charset.decode(data)) == data


def test_ascii_is_text_in_every_set_of_single_bytes() -> None:
    # `values.value_reader` and `key_reader` rely on it.
    singles = [each for each in (*CHARSETS.values(), *OTHER_CHARSETS.values()) if each.unit <= 1]
    assert len(singles) > 30
    for charset in singles:
        assert charset.malformed_at(EVERY_BYTE[:128]) is None, charset.name


def test_latin1_is_the_windows_code_page() -> None:
    assert CHARSETS["latin1"].decode(b"\x80\x81\xe9") == "€\x81é"
    assert CHARSETS["latin1"].encode("€é日") == b"\x80\xe9?"


def test_ucs2() -> None:
    assert CHARSETS["ucs2"].decode(b"\x00a\x65\xe5") == "a日"
    assert CHARSETS["ucs2"].encode("a日") == b"\x00a\x65\xe5"


@pytest.mark.parametrize(
    ("name", "data", "at"),
    [
        ("utf8mb4", "aé日😀".encode(), None), ("utf8mb4", b"ab\xffc", 2), ("utf8mb4", b"a\xed\xa0\x80", 1),
        ("utf8mb4", b"a\xf0\x9f\x98", 1), ("utf8", "aé日".encode(), None), ("utf8", "aé😀b".encode(), 3),
        ("utf8mb3", b"a\xff\xf0", 1), ("utf8", "a😀".encode() + b"\xff", 1), ("latin1", EVERY_BYTE, None),
        ("ascii", b"ab\xe9", 2), ("ascii", b"ab", None), ("ucs2", b"abc", 2), ("ucs2", b"\xd8\x00", None),
    ],
)  # fmt: skip
def test_first_malformed_byte(name: str, data: bytes, at: int | None) -> None:
    assert CHARSETS[name].malformed_at(data) == at
