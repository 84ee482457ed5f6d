"""What readers of sockets see in one turn of the event loop, and how long it holds for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import uvloop
from server.in_process import HERE, InProcess, turns_until

from kvref.server.connection import GREEDY, Connection
from kvref.server.executors.loop_turn import MAX_CONNECTIONS, LoopTurn


class Readers(asyncio.Protocol):
    """Record, for each input, what a function returns."""

    def __init__(self, sees: Callable[[], bool], seen: list[bool], accepted: list[Readers]) -> None:
        self._sees = sees
        self._seen = seen
        self._accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._accepted.append(self)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._seen += [self._sees()] * data.count(b"\n")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_what_a_reader_sees_holds_for_the_readers_of_its_turn(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    async def play() -> None:
        seen, expected, accepted = list[bool](), list[bool](), list[Readers]()
        look = {"holds": False}
        turn, path = LoopTurn(lambda: 1), str(tmp_path / "socket")

        def sees() -> bool:
            before = look["holds"]
            if not before:
                look["holds"] = turn.share(partial(look.update, holds=False))
            return before

        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: Readers(sees, seen, accepted), path)
        clients = [(await asyncio.open_unix_connection(path))[1] for _ in range(8)]
        await turns_until(lambda: len(accepted) == len(clients))
        for _ in range(2):
            expected.extend([False, *[True] * (len(clients) - 1)])
            for each in clients:
                each.write(b"\n")  # all of it has arrived before the loop looks again
            await turns_until(lambda: len(seen) == len(expected) and not look["holds"])
        for each in clients:
            each.close()
        server.close()
        assert seen == expected

    run(play())


def test_many_connections_share_nothing() -> None:
    async def play() -> list[bool]:
        numbers = MAX_CONNECTIONS, MAX_CONNECTIONS + 1
        return [LoopTurn(partial(int, number)).share(Mock()) for number in numbers]

    assert asyncio.run(play()) == [True, False]


def test_input_that_may_have_more_behind_it_ends_the_turn(tmp_path: Path) -> None:
    async def play() -> list[str]:
        process, seen = InProcess(tmp_path / "file"), list[str]()
        server = process.server
        server.open()
        connection = Connection(server, HERE)
        connection.connection_made(Mock(is_closing=lambda: False, get_extra_info=lambda _: None))
        server.loop_turn.share(lambda: seen.append("ended"))
        connection.data_received(b"get a\r\n")
        seen.append("little")
        connection.data_received(b"get a\r\n" * (GREEDY // 7 + 1))
        seen.append("much")
        process.store.close()
        return seen

    assert asyncio.run(play()) == ["little", "ended", "much"]
