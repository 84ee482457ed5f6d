"""What a user says of a server that is to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """One server to measure.

    endpoint: HOST:PORT or unix:PATH of the memcached protocol, or the name of a target (`kvref target list`), booted
        for the run and removed after it; None: only a SQL server, that of `sql`.
    name: name in the run's tables; "" derives one from the target or from the server's version.
    sql: DSN of the tables behind it, `mysql://…` or `sqlite:///PATH`; a target has its own.
    reload: shell command that makes the endpoint read its configuration tables again; without it, the plugin is
        reloaded over SQL.
    restart: shell command that starts the endpoint again on the same data with the settings behind it, NAME=VALUE
        words; a target does that itself.
    report: folder of a report of `kvref conform` on this endpoint.
    options: further options of a target's server.
    allow_destructive: whether items and mappings that are not the benchmark's may be deleted. A target's are always.
    """

    endpoint: str | None = None
    name: str = ""
    sql: str | None = None
    reload: str | None = None
    restart: str | None = None
    report: Path | None = None
    options: tuple[str, ...] = ()
    allow_destructive: bool = False
