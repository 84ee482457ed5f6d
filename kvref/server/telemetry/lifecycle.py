"""What a server reports about itself: its lifecycle, its configuration, and the delay of its event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.engine.mapping import Column, Directory, Mapping
from kvref.errors import KvrefError
from kvref.profiles import Profile
from kvref.server.settings import SETTINGS
from kvref.server.telemetry.event_counters import EventCounters, ProcessEventCounters, State
from kvref.storage.base import MappedTables

if TYPE_CHECKING:
    from kvref.server.connection import Connection

_log = logging.getLogger("kvref.server")

VARIABLE: Final = "NOTIFY_SOCKET"


_served_log = logging.getLogger("kvref.served")

Line = tuple[str, dict[str, object]]
MAX_MAPPINGS: Final = 1000  # mappings that are named one by one


@dataclass
class Lifecycle:
    """Report the lifecycle of a server to the log, the metrics and the service manager."""

    tally: EventCounters
    profile: Profile
    store: str
    workers: int = 1

    def ready(self) -> None:
        """Report that connections are accepted."""
        self.tally.state = State.SERVING
        notify("READY=1")

    def reloading(self) -> None:
        """Report that the configuration is read again; `reloaded` or `not_reloaded` must follow."""
        notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self, directory: Directory, problems: Iterable[str], settings: dict[str, int]) -> None:
        """Report that a new configuration is in force, see `configured`."""
        self.configured(directory, problems, settings)
        self.tally.reloaded(taken=True)
        notify("READY=1")
        _served_log.info("configuration reloaded")

    def not_reloaded(self, error: Exception) -> None:
        """Report why the previous configuration stays in force."""
        self.tally.reloaded(taken=False)
        notify("READY=1")
        _served_log.error(
            "configuration not reloaded, the previous one stays active: %s", error, extra={"reason": str(error)}
        )

    def stopping(self) -> None:
        """Report that no more connections are accepted."""
        self.tally.state = State.STOPPING
        notify("STOPPING=1")

    def configured(self, directory: Directory, problems: Iterable[str], settings: dict[str, int]) -> None:
        """Log the configuration that is in force, and what of it cannot be used."""
        for problem in problems:
            _served_log.warning("%s", problem)
        for text, fields in self._lines(directory, settings):
            _served_log.info("%s", text, extra=fields)

    def _lines(self, directory: Directory, settings: dict[str, int]) -> Iterator[Line]:
        default, delimiter = directory.default, directory.delimiter.decode(errors="replace")
        yield (
            f"profile {self.profile.name}, default mapping {default.name} ({default.label.decode()}),"
            f" delimiter {delimiter!r}",
            {"profile": self.profile.name, "mapping": default.name, "delimiter": delimiter},
        )
        processes = f"{self.workers} workers" if self.workers > 1 else "one process"
        yield f"store {self.store}, {processes}", {"store": self.store, "workers": self.workers}
        usable = directory.usable or (default,)
        yield from (_mapping(each) for each in usable[:MAX_MAPPINGS])
        if len(usable) > MAX_MAPPINGS:
            yield f"and {len(usable) - MAX_MAPPINGS} mappings more", {"count": len(usable)}
        other = {name: value for name, value in settings.items() if value != SETTINGS[name].default_in(self.profile)}
        if other:
            yield "settings " + ", ".join(f"{name}={value}" for name, value in other.items()), {"settings": other}


def notify(state: str) -> None:
    """Notify the service manager, if one has started this process (sd_notify(3))."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            # In an abstract name, @ means NUL.
            manager.connect(f"\0{path[1:]}" if path.startswith("@") else path)
            manager.sendall(state.encode())
    except OSError as error:
        _log.warning("cannot notify the service manager at %s %r: %s", VARIABLE, path, error)


def _mapping(mapping: Mapping) -> Line:
    mapped: list[tuple[str, Column | None]] = [("key", mapping.key), *(("value", each) for each in mapping.values)]
    mapped += mapping.options.items()
    columns = " ".join(f"{what}={column.name}" for what, column in mapped if column is not None)
    table = f"{mapping.schema}.{mapping.table}"
    line = f"mapping {mapping.name}: {table} {columns}"
    fields: dict[str, object] = {"mapping": mapping.name, "table": table, "columns": columns}
    if mapping.store:
        return f"{line}, in store {mapping.store}", fields | {"store": mapping.store}
    return line, fields


EVERY: Final = 1.0  # seconds


class LoopMonitor:
    """Measure the event loop and query the store until `stop`.

    A health request then only reads numbers, also while the database hangs.
    """

    def __init__(
        self,
        tally: ProcessEventCounters,
        clients: Callable[[], Iterable[Connection]],
        check: Callable[[], Awaitable[None]],
        store: MappedTables,
    ) -> None:
        self._tally = tally
        self._clients = clients
        self._check = check
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._check_task: asyncio.Task[None] | None = None
        self._due = self._loop.time()
        self._heartbeat()

    def stop(self) -> None:
        self._timer.cancel()

    def _heartbeat(self) -> None:
        now = self._loop.time()
        open_now = sum(client.batch_since is not None for client in self._clients())
        self._tally.heartbeat(now - self._due, open_now)
        self._tally.record(self._store.numbers())
        if self._check_task is None:
            self._tally.queried()
            self._check_task = self._loop.create_task(self._check_store())
        self._due = now + EVERY
        self._timer = self._loop.call_at(self._due, self._heartbeat)

    async def _check_store(self) -> None:
        try:
            await self._check()
        except KvrefError as error:
            self._tally.answered(str(error) or type(error).__name__)
        else:
            self._tally.answered()
        finally:
            self._check_task = None
