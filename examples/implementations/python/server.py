"""memcached's text protocol over tables of a SQLite file; SIGHUP reads the configuration again."""

import argparse
import asyncio
import signal
import sys

from counters import Counters
from database import Busy, Database
from mappings import Registry
from schema import create_missing
from session import Session
from store import Store


class Server:
    """What all connections share."""

    def __init__(self, path: str, port: int) -> None:
        """Open the file and find the default mapping."""
        self.port = port
        self.fd = -1
        self.is_crawling = True
        self.counters = Counters()
        self.database = Database(path)
        create_missing(self.database.connection)
        self.registry = Registry(self.database)
        self.registry.reload()
        self.store = Store(self.database, self.counters)
        self.sessions: set[Session] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        session = Session(self, reader, writer)
        self.sessions.add(session)
        self.counters.add("total_connections")
        self.counters.open = len(self.sessions)
        self.counters.most = max(self.counters.most, self.counters.open + 1)
        try:
            await session.run()
        finally:
            self.sessions.discard(session)
            self.counters.open = len(self.sessions)
            writer.close()

    def reload(self) -> None:
        """Read the configuration again; if the file is locked, a little later."""
        try:
            self.registry.reload()
        except Busy:
            asyncio.get_running_loop().call_later(0.01, self.reload)

    async def serve(self) -> None:
        """Listen until the process ends."""
        self.database.impatient()
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        loop.add_signal_handler(signal.SIGINT, stopped.set)
        listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port, backlog=1024)
        self.fd = listener.sockets[0].fileno()
        await stopped.wait()
        listener.close()


def main() -> int:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True, help="the SQLite file")
    parser.add_argument("--port", required=True, type=int, help="the TCP port on 127.0.0.1")
    options = parser.parse_args()
    server = Server(options.store, options.port)
    if server.registry.default is None:
        for fault in server.registry.faults:
            print(fault, file=sys.stderr)
        return 1
    asyncio.run(server.serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
