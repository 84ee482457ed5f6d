"""A server that answers in pieces, wrongly, not at all, or hangs up: as the test says."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def server(script: Callable[[int, bytes], list[bytes] | None]) -> Iterator[str]:
    """Serve on loopback and give the address.

    script: from the number of the line on its connection and the line to the pieces of its answer, which are sent apart;
        None: hang up.
    """
    ready = threading.Event()
    address: list[str] = []
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        try:
            async for line in reader:
                pieces = script(number, line)
                number += 1
                if pieces is None:
                    break
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.002 if len(pieces) > 1 else 0)  # pieces arrive apart
        finally:
            writer.transport.abort()

    async def serve() -> None:
        listening = await asyncio.start_server(answer, "127.0.0.1", 0)
        address.append("{}:{}".format(*listening.sockets[0].getsockname()))
        ready.set()
        await over.wait()
        listening.close()
        await asyncio.sleep(0)  # a conversation that is cancelled before it begins aborts nothing
        conversations = asyncio.all_tasks() - {asyncio.current_task()}
        for each in conversations:
            each.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)
        await asyncio.sleep(0)  # what is aborted is closed in the next turn

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait(10)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
