"""HandlerSocket's lines: what is said is what is read, and what is no answer is refused."""

from __future__ import annotations

import pytest

from kvref.storage.mysql.handlersocket import (
    RefusedError,
    RefusedNameError,
    done,
    escaped,
    no_row,
    opening,
    plain,
    questions,
    row,
)

ANY = bytes(range(256))


def test_every_byte_comes_back() -> None:
    field = escaped(ANY)
    assert plain(field) == ANY
    assert not set(field) & (set(range(0x10)) - {1})  # no tab, no line end, no NUL
    assert (plain(b""), plain(b"\0"), escaped(b"\0"), plain(b"\x01\x40")) == (b"", None, b"\x01\x40", b"\0")


def test_questions() -> None:
    assert questions(3, [b"a", b"", b"x\ty\n"]) == b"3\t=\t1\ta\n3\t=\t1\t\n3\t=\t1\tx\x01Iy\x01J\n"


def test_rows() -> None:
    head = no_row(3)
    assert row(b"0\t3", head, 3) is None
    assert row(b"0\t3\tk\t\t5", head, 3) == [b"k", b"", b"5"]
    assert row(b"0\t3\tk\t\0\t5", head, 3) == [b"k", None, b"5"]
    assert row(b"0\t3\tk\x01I\t\0\t5", head, 3) == [b"k\t", None, b"5"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"1\t1\t149", "1 149"), (b"3\t1\tunauth", "3 unauth"), (b"0\t2\ta\tb", "another request"), (b"", "another request"),
        (b"0\t3\ta\tb", "another request"), (b"0\t3\ta\tb\tc\td", "another request"), (b"0\t2", "another request"),
    ],
)  # fmt: skip
def test_what_is_no_row_is_refused(reply: bytes, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        row(reply, no_row(3), 3)


def test_a_byte_that_nobody_escapes_is_refused() -> None:
    with pytest.raises(RefusedError, match="is not a field"):
        row(b"0\t1\ta\x01\x05", no_row(1), 1)


def test_done() -> None:
    done(b"0\t1")
    with pytest.raises(RefusedError, match="1 open_table"):
        done(b"1\t1\topen_table")


def test_names() -> None:
    assert opening(2, ("shop", "ä", "PRIMARY"), ["k", "v"]) == "P\t2\tshop\tä\tPRIMARY\tk,v\n".encode()


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (("d", "t", "1st"), ["k"]), (("d", "t", ""), ["k"]), (("d", "t\tu", "PRIMARY"), ["k"]),
        (("d", "t", "PRIMARY"), ["k", "a,b"]), (("d", "t", "PRIMARY"), ["k", "a\n"]),
    ],
)  # fmt: skip
def test_names_that_would_be_taken_for_others(names: tuple[str, str, str], columns: list[str]) -> None:
    with pytest.raises(RefusedNameError, match="no way to name"):
        opening(0, names, columns)
