"""The least that a server on uvloop can do: a dictionary, no more parsed than memcaslap sends, nothing kept on disk.

What it reaches against memcached is what the loop, the sockets and the kernel leave to any server in Python.
Usage: python -m kvref_bench.pairs.floor DESCRIPTOR, of a socket that listens.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, cast

import uvloop

if TYPE_CHECKING:
    from typing import Any


class Floor(asyncio.Protocol):
    """One connection; one command at a time, each whole. items: of all connections."""

    def __init__(self, items: dict[bytes, bytes]) -> None:
        self._items = items

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._write = cast("Any", transport).write

    def data_received(self, data: bytes) -> None:
        """Answer a get, a set or `version`."""
        if data.startswith(b"get "):
            self._write(self._items.get(data[4:-2], b"END\r\n"))
        elif data.startswith(b"set "):
            head, _, value = data.partition(b"\r\n")
            _, word, flags, _, size = head.split(b" ")
            self._items[word] = b"VALUE %b %b %b\r\n%bEND\r\n" % (word, flags, size, value)
            self._write(b"STORED\r\n")
        else:
            self._write(b"VERSION floor\r\n")


async def _serve(place: socket.socket) -> None:
    items: dict[bytes, bytes] = {}
    server = await asyncio.get_running_loop().create_server(lambda: Floor(items), sock=place)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
