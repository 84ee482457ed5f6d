"""What is known of one point when it is over; `runs.folder` writes it down, `runs.gates` judges it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvref_bench.load.recorder import Usage, WorkerResult


@dataclass(frozen=True, slots=True)
class Peer:
    """One server that a run measures.

    name: in the run's tables, given by the user or made from kind and version.
    kind: `plugin`, `memcached`, `kvref`, `mysql`, `mariadb`, `other`; version: as it says itself.
    address: HOST:PORT or None; sql: DSN without its password, or None.
    variables: what it says of its own configuration (`SHOW VARIABLES`, `stats settings`).
    containers, ddl: its mapping and table; empty for one without.
    pid: where it runs on this machine.
    verdict: from the report of `kvref conform`: profile, counts by verdict, SHA-256; None: it was not judged.
    """

    name: str
    kind: str
    version: str
    address: str | None = None
    sql: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    containers: list[dict[str, str]] = field(default_factory=list)
    ddl: str = ""
    pid: int | None = None
    verdict: dict[str, object] | None = None


@dataclass(slots=True)
class ServerSample:
    """What the server used and counted in the measured time of a point.

    usage: None if its process is not on this machine.
    counters: differences of its own counters (`stats`, `SHOW GLOBAL STATUS`), those that changed.
    seconds: duration of the usage; a server under load returns its counters late. None: unknown.
    """

    usage: Usage | None
    counters: dict[str, int] = field(default_factory=dict)
    seconds: float | None = None


@dataclass(slots=True)
class Resource:
    """One reading of a process with its children: CPU seconds since its start, bytes of memory."""

    time: int
    role: str
    pid: int
    user: float
    system: float
    rss: int


@dataclass(slots=True)
class Point:
    """One measurement.

    server: name of the Peer. settings: of the server at this point.
    rate: of the open loop, operations a second; None: closed loop.
    expected_hits: share of gets; None where it is not known.
    ceiling: operations a second of the null responder with the same sessions, depth and sizes; None: not measured.
    load_average: of the machine when it began.
    resources: readings of the server's processes and of the machine, when it began and when it ended.
    """

    series: str
    server: str
    sessions: int
    processes: int
    depth: int
    multiget: int
    repetition: int
    began: int
    ended: int
    results: list[WorkerResult]
    sample: ServerSample
    settings: dict[str, int] = field(default_factory=dict)
    rate: float | None = None
    expected_hits: float | None = None
    ceiling: float | None = None
    load_average: float | None = None
    resources: list[Resource] = field(default_factory=list)
