"""Turns of connections that send more than one turn takes: what comes between them, and that replies stay in order."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from helpers.serving import serving

from kvref.server.turns import Turns

CLIENTS = 5
COMMANDS = 20_000
ITEM = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def test_what_arrives_comes_between_two_turns_of_one_connection() -> None:
    seen: list[str] = []

    async def run() -> None:
        turns, loop, done = Turns(), asyncio.get_running_loop(), asyncio.Event()

        def turn() -> None:
            seen.append("turn")
            assert len(seen) < 20
            if seen.count("turn") == 3:
                done.set()
                return
            loop.call_soon(seen.append, "arrived")
            turns.add(turn)
            assert turns.busy

        turns.add(turn)
        await done.wait()
        assert not turns.busy

    asyncio.run(run())
    assert seen == ["turn", "arrived", "turn", "arrived", "turn"]


def test_a_turn_that_fails_ends_no_other() -> None:
    seen: list[str] = []

    async def run() -> None:
        turns, done = Turns(), asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(str(context["exception"])))

        def fails() -> None:
            raise ValueError("broken")

        turns.add(fails)
        turns.add(done.set)
        await done.wait()

    asyncio.run(run())
    assert seen == ["broken"]


@pytest.mark.live
def test_replies_of_connections_that_take_turns_stay_in_order(tmp_path: Path) -> None:
    commands, replies = [], []
    for number in range(COMMANDS):
        # Most are plain; the others go through the parser, and a value of two lines looks like a command.
        if number % 1000 == 500:
            commands.append(b"gets none\r\nversion\r\nset odd 0 0 10\r\nget AA\r\nxx\r\n")
            replies.append(b"END\r\nVERSION \r\nSTORED\r\n")
        elif number % 100 == 50:
            commands.append(b"set plain 0 0 5\r\nvalue\r\nget plain\r\n")
            replies.append(b"STORED\r\nVALUE plain 0 5\r\nvalue\r\nEND\r\n")
        else:
            commands.append(b"get AA\r\n")
            replies.append(ITEM)
    with serving(tmp_path / "x.sqlite") as served:
        with served.connect() as one:
            one.sendall(b"version\r\n")
            version = one.recv(100)
        wanted = b"".join(replies).replace(b"VERSION \r\n", version)
        got = [b""] * CLIENTS

        def client(number: int) -> None:
            with served.connect() as connection:
                sender = threading.Thread(target=connection.sendall, args=(b"".join(commands) + b"get A",))
                sender.start()
                data = bytearray()
                while len(data) < len(wanted) and (more := connection.recv(1 << 16)):
                    data += more
                sender.join()
                connection.sendall(b"A\r\n")
                while len(data) < len(wanted + ITEM) and (more := connection.recv(1 << 16)):
                    data += more
                got[number] = bytes(data)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(each == wanted + ITEM for each in got)
