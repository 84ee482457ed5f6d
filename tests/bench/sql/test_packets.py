"""Packets: replies cut anywhere are not complete, lengths of every size, and statements taken apart again."""

from __future__ import annotations

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.sql.packets import column_value, framed, length, number, packet, reply, row, statements

COLUMN = framed(b"\x03def\x04shop\x01t\x01t\x01v\x01v\x0c\x08\0\xff\xff\0\0\xfd\0\0\0\0\0", 2)


def result(status: int, *values: bytes) -> bytes:
    rows = b"".join(framed(row(each), 4 + place) for place, each in enumerate(values))
    ends = [framed(b"\xfe\0\0" + status.to_bytes(2, "little"), place) for place in (3, 4 + len(values))]
    return framed(b"\x01", 1) + COLUMN + ends[0] + rows + ends[1]


OK = framed(b"\0\x01\0\x02\0\0\0", 1)
ERROR = framed(b"\xff\xbd\x04#40001Deadlock found", 1)


@pytest.mark.parametrize(
    "data",
    [OK, ERROR, result(2), result(2, b"one"), result(2, b"one", b"x" * 70000), result(10, b"one") + OK],
    ids=["ok", "error", "no row", "row", "rows", "procedure"],
)
def test_a_reply_is_complete_with_its_last_byte(data: bytes) -> None:
    cuts = {*range(min(len(data), 400)), len(data) - 1}
    assert all(reply(data[:cut]) is None for cut in cuts)
    received = reply(data + b"more")
    assert received is not None
    assert received.end == len(data)


def test_what_replies_say() -> None:
    received = reply(result(2, b"one", b"two"))
    assert received is not None
    assert [column_value(each) for each in received.rows] == [b"one", b"two"]
    assert (received.affected, received.error) == (-1, None)
    done, failed = reply(OK), reply(ERROR)
    assert done is not None
    assert failed is not None
    assert (done.rows, done.affected) == ((), 1)
    assert failed.error == (1213, "Deadlock found")
    both = reply(result(10, b"one") + OK)
    assert both is not None
    assert (len(both.rows), both.affected) == (1, 1)


@pytest.mark.parametrize("size", [0, 1, 250, 251, 65535, 65536, 1 << 20])
def test_lengths(size: int) -> None:
    assert number(length(size), 0) == (size, len(length(size)))
    assert column_value(row(b"v" * size)) == b"v" * size


@pytest.mark.parametrize("payload", [b"\0\4", b"\0\0\x03ab", b"\0\0\x02abc", b"\0\0", b"\0\0\xfb", b"\0\0\x01\0\0\0"])
def test_rows_without_a_text_have_no_value(payload: bytes) -> None:
    assert column_value(payload) is None


@pytest.mark.parametrize("shape", ["int", "text"])
@pytest.mark.parametrize(
    "sql", ["SELECT v FROM t WHERE k = :key", "UPDATE t SET v = :value, w = :value WHERE k = :key"]
)
def test_the_key_of_a_statement_is_found_again(shape: str, sql: str) -> None:
    keys = Keys(10, "int" if shape == "int" else "text")
    [statement] = statements(Work(keys, Values(), {"set": 1.0}, statements={"set": sql}))
    assert statement.sql == sql.replace(":key", "?").replace(":value", "?")
    request = statement.execute(7, b"1234567890", b"v" * 300)
    whole = packet(request, 0)
    assert whole is not None
    assert whole.end == len(request)
    assert whole.payload[:5] == b"\x17\x07\0\0\0"
    assert statement.key(request) == b"1234567890"


def test_a_statement_without_a_key_is_refused() -> None:
    with pytest.raises(BenchError, match="has no :key"):
        statements(Work(Keys(10), Values(), {"get": 1.0}, statements={"get": "SELECT v FROM t"}))
