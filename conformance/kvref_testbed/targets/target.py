"""A running target as callers see it, and the recipe that boots one.

Plain values without behaviour beyond JSON. `lifecycle.py` fills and keeps them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from kvref.errors import TargetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run

State = Literal["running", "crashed", "stopped"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a freshly booted server answers; the part of a Target that only its recipe knows.

    restart: starts its main process again with settings, under the plugin's own names, at the same address and on the
        same data; raises TargetError. None where it has no such settings.
    """

    address: str | None
    version: str
    sql: str | None = None
    socket: Path | None = None
    store: str | None = None
    restart: Callable[[Mapping[str, int]], None] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One running endpoint.

    name: as in `names()`.
    profile: the profile to judge it with (`kvref.profiles`); None if it serves only SQL.
    version: as the server reports it, e.g. `8.0.33`.
    address: memcached protocol, HOST:PORT; None if it serves only SQL.
    sql: `mysql://user@localhost/?unix_socket=PATH`, `mysql://user@host:port/`, or None without a SQL server behind it.
    store: the DSN that kvref serves from; None for every other server.
    pid: the main process.
    log: what that process printed.
    folder: its throw-away folder; gone after `down`.
    socket: the unix socket of its SQL server, if any.
    """

    name: str
    profile: str | None
    version: str
    address: str | None
    sql: str | None
    store: str | None
    pid: int
    log: Path
    folder: Path
    socket: Path | None = None

    def memcached(self) -> str:
        """Return the memcached address. Raises TargetError if it serves only SQL."""
        if self.address is None:
            raise TargetError(f"the target {self.name} answers SQL and no memcached command: use {self.sql}")
        return self.address

    @property
    def host(self) -> str:
        """Return the host part of the memcached address. Raises as `memcached`."""
        return self.memcached().rpartition(":")[0]

    @property
    def port(self) -> int:
        """Return the port part of the memcached address. Raises as `memcached`."""
        return int(self.memcached().rpartition(":")[2])

    def as_json(self) -> dict[str, str | int | None]:
        """Return the fields as JSON values, paths as text."""
        paths = {"log": str(self.log), "folder": str(self.folder), "socket": self.socket and str(self.socket)}
        return {**asdict(self), **paths}


@dataclass(frozen=True, slots=True)
class Status:
    """The state of one known target.

    target: None when stopped.
    reason: how a crashed one ended, in words; None otherwise.
    exit_status: of the process that ended, negative for a signal; None when unknown (its keeper was killed too).
    log_tail: the last lines a crashed one printed.
    """

    name: str
    state: State
    target: Target | None = None
    reason: str | None = None
    exit_status: int | None = None
    log_tail: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the state and the target's own fields, which are null if it is stopped."""
        fields: dict[str, object] = dict.fromkeys(Target.__slots__)
        if self.target is not None:
            fields.update(self.target.as_json())
        return fields | {
            "name": self.name,
            "state": self.state,
            "reason": self.reason,
            "exit_status": self.exit_status,
            "log_tail": list(self.log_tail),
        }


class Recipe(Protocol):
    """How a target boots. Implementations: `plugin.py`, `memcached.py`, `kvref_server.py`, `mysqld.py`, `galera.py`."""

    @property
    def name(self) -> str:
        """Return the name users type."""

    @property
    def profile(self) -> str | None:
        """Return the name of the profile to judge it with; None for a server that serves only SQL."""

    @property
    def summary(self) -> str:
        """Say what it is, in a few words."""

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the servers in the run, the main one last, and wait until memcached commands, or SQL, are answered.

        options: further options of the main server; `{mc_port}` in one is replaced by the memcached port, if any.
        Raises TargetError; the caller stops what was started.
        """
