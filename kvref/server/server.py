"""The server: start-up, what it serves, reload on SIGHUP, drain on SIGTERM and SIGINT."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final

from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.semantics.rules import rules
from kvref.semantics.session import Shared
from kvref.semantics.stats import Counters
from kvref.server.connection import Connection
from kvref.server.driver import Driver
from kvref.storage.sqlite import SQLiteStore
from kvref.wire.rules import text_rules

_log = logging.getLogger("kvref.server")

BACKLOG: Final = 1024
UVLOOP: Final = f"uvloop {version('uvloop')}"
DRAIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: host and port, port 0 for any free one."""

    host: str
    port: int


def parse_address(text: str) -> Address:
    """Read HOST:PORT.

    Raises:
        ConfigError: no host, or a port that is no number from 0 to 65535.
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and len(port) < 6 and int(port) <= 65535):
        raise ConfigError(f"address {text!r}: write HOST:PORT, for example 127.0.0.1:11211")
    return Address(host.strip("[]"), int(port))


class Server:
    """Serve mapped tables of one store.

    Args:
        store: an opened store.
        profile: whose answers to give.
        settings: values by name, see `settings.parse`.
        clock_start: UNIX time of the start, for `stats`.

    Raises:
        ConfigError: the configuration has no usable row.
    """

    def __init__(self, store: SQLiteStore, profile: Profile, settings: dict[str, int]) -> None:
        self.store = store
        self.profile = profile
        self.settings = settings
        self.started = time.time()
        self.connections: set[Connection] = set()
        self.text_rules = text_rules(profile, settings["item_size_max"])
        self.shared = Shared(rules(profile), store.read_directory(), store.cas_numbers(), Counters(), self.process_rows)
        self.driver: Driver

    async def run(self, address: Address) -> None:
        """Listen and serve until SIGTERM or SIGINT.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        self.driver = Driver(self.store, self.settings["innodb_lock_wait_timeout"])
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            listener = await loop.create_server(partial(Connection, self), address.host, address.port, backlog=BACKLOG)
        except (OSError, UnicodeError) as error:
            # asyncio wraps a refused bind in words of its own; a name that is not found has only its own text.
            known = isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno
            cause = os.strerror(known) if known else str(error)
            raise ConfigError(
                f"cannot listen on {address.host}:{address.port}: {cause}: choose another --listen"
            ) from error
        host, port = listener.sockets[0].getsockname()[:2]
        self._report()
        _log.info("listening on %s:%d", host, port)
        await stop.wait()
        _log.info("stopping")
        listener.close()
        await self._drain()

    def reload(self) -> None:
        """Read the configuration tables again; where they cannot be used the old mappings stay in force."""
        try:
            self.shared.directory.replace(self.store.read_directory())
        except (ConfigError, StoreError) as error:
            _log.error("configuration not reloaded, the old one stays in force: %s", error)
            return
        self._report()
        _log.info("configuration reloaded")

    def _report(self) -> None:
        directory = self.shared.directory
        for problem in self.store.problems:
            _log.warning("%s", problem)
        _log.info(
            "profile %s, default mapping %s (%s), delimiter %r",
            self.profile.name,
            directory.default.name,
            directory.default.label.decode(),
            directory.delimiter.decode(errors="replace"),
        )

    async def _drain(self) -> None:
        for connection in list(self.connections):
            connection.end()
        self.driver.commit()
        deadline = time.monotonic() + DRAIN_SECONDS
        while self.connections and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    def process_rows(self) -> dict[str, str]:
        """Return the rows of `stats` and `stats settings` that only the process knows."""
        now = time.time()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "pid": str(os.getpid()),
            "uptime": str(int(now - self.started)),
            "time": str(int(now)),
            "version": self.shared.rules.release,
            "libevent": UVLOOP,
            "pointer_size": "64",
            "rusage_user": f"{usage.ru_utime:.6f}",
            "rusage_system": f"{usage.ru_stime:.6f}",
            "curr_connections": str(len(self.connections)),
            "connection_structures": str(len(self.connections)),
            "accepting_conns": "1",
            "threads": "1",
            "num_threads": "1",
            "cas_enabled": "yes",
            "binding_protocol": "ascii",
            "auth_enabled_sasl": "no",
            "item_size_max": str(self.settings["item_size_max"]),
            "tcp_backlog": str(BACKLOG),
        }
