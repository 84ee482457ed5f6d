"""The client on pymemcache gives up an answer that exceeds its limit, before it fills the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from helpers.answering import answering

from kvref.client import MappedClient, ServerError

LIMIT = 1000
BEYOND = 1 << 24


def endless(chunk: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: (chunk for _ in range(BEYOND // len(chunk)))


@pytest.mark.parametrize("pool_size", [None, 2])
@pytest.mark.parametrize(
    "answer",
    [
        endless(b"x" * 4096),
        endless(b"VALUE k 0 1\r\nx\r\n"),
        lambda: iter([b"VALUE k 0 1000000000000\r\n"]),
        lambda: iter([b"VALUE k 0 990\r\n" + b"x" * 990 + b"\r\nEND\r\n"]),
    ],
    ids=["line", "rows", "declared", "one byte more"],
)
def test_an_answer_has_a_limit(answer: Callable[[], Iterator[bytes]], pool_size: int | None) -> None:
    with answering(answer) as address, MappedClient(address, pool_size=pool_size, max_answer_bytes=LIMIT) as client:
        for _ in range(2):  # The connection is opened again.
            with pytest.raises(
                ServerError, match=f"{address}: the answer cannot be read: it has more than {LIMIT} bytes"
            ):
                client.get("k")


def test_other_calls_have_the_limit_too() -> None:
    with answering(endless(b"x" * 4096)) as address, MappedClient(address, max_answer_bytes=LIMIT) as client:
        for call in (
            lambda: client.delete("k"),
            lambda: client.gets("k"),
            lambda: client.set("k", "v"),
            lambda: client.get_many(["k", "l"]),
        ):
            with pytest.raises(ServerError):
                call()


def test_the_limit_is_that_of_one_request() -> None:
    row = b"VALUE k 0 800\r\n" + b"x" * 800 + b"\r\nEND\r\n"
    with answering(lambda: iter([row])) as address, MappedClient(address, max_answer_bytes=LIMIT) as client:
        assert [client.get("k") for _ in range(5)] == [b"x" * 800] * 5


def test_several_servers_have_the_limit() -> None:
    with answering(endless(b"x" * 4096)) as one, answering(endless(b"x" * 4096)) as two:
        for pool_size in (None, 2):
            with MappedClient([one, two], pool_size=pool_size, max_answer_bytes=LIMIT) as client:
                for key in "abcdefgh":
                    with pytest.raises(ServerError, match="more than"):
                        client.get(key)
