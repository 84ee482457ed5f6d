"""The task of the load workers for one point: plain values that are sent to other processes and machines.

A point is one measurement: one series of a scenario on one endpoint, with one number of sessions and one set of
factors.
`workload.plan_of` turns its Work into a Plan inside each worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Protocol = Literal["text", "binary", "mysql", "null"]
Route = Literal["none", "each", "switch", "bind"]
Distribution = Literal["uniform", "sequential", "zipf", "file", "trace", "own"]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a point, numbered 0 to count - 1.

    count: how many there are in the table when the point begins.
    shape: `int`: the number itself, from 1 on; `text`: letters and digits made from the number.
    length: bytes of a text key, 8 to 250.
    distribution: how a session draws them; `own`: each session walks keys that no other has, from `count` on, which
        are not there yet.
    parameters: of the distribution, e.g. `{"theta": 0.99}` of zipf.
    file: of the distribution `file`: one key in each line, drawn in order; of the distribution `trace`: a trace,
        whose requests are sent in order, in a format of `workload/trace.py`.
    missing: share of the draws that name a key which is not there, 0 to 1.
    apart: each session draws among keys that no other session names: those whose number modulo the sessions is its own.
        A write batch keeps its rows locked until it ends, so that sessions with common keys wait for each other.
    """

    count: int
    shape: Literal["int", "text"] = "text"
    length: int = 16
    distribution: Distribution = "uniform"
    parameters: dict[str, float] = field(default_factory=dict)
    file: str | None = None
    missing: float = 0.0
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a point: of a key always the same, so that each reply can be verified.

    sizes: bytes, (n, n) fixed, (low, high) uniform.
    form: `number`: decimal digits, at most 18, which incr and decr need.
    trace: a trace, from which the size of the value of each key is.
    columns: value columns of the table; the parts of a text for each have `|` between them, as in a reply.
    """

    sizes: tuple[int, int] = (100, 100)
    form: Literal["text", "number"] = "text"
    trace: str | None = None
    columns: int = 1


@dataclass(frozen=True, slots=True)
class Work:
    """The requests of one point.

    protocol: `mysql`: prepared statements of `statements` instead of memcached commands; `null`: the null responder.
    route: how a session gets to its mapping: `each` key has `@@mapping<delimiter>` before it, `switch`: one
        `get @@mapping` when it is opened, `bind`: one `bind mapping`, `none`: not at all.
    verbs: weight of each verb: get, gets, set, add, replace, append, prepend, incr, decr,
        delete, touch. With a trace: the verbs whose requests are sent; weights do not count.
    statements: of protocol mysql: SQL by verb, with `:key` and, where it writes, `:value` where these go, once each, in
        any order (`UPDATE users SET v = :value WHERE k = :key`); tables are those of the database `kvref_bench`.
    sessions: in all workers together.
    depth: commands that are sent in one write before their replies are read.
    multiget: keys in each get.
    operations: commands of each session, a get of several keys is one; None: until the time is over.
    pool: keys in the exchanges that a worker makes before the clock and repeats.
    seed: of every draw.
    driver: `wire`: the generator's own sockets; or the name of a client library that `load.clients` knows.
    expiry: seconds, which each storage command gives its row; 0: none.
    login: `user:password` of each connection; "": none.
    tls: file of the certificate that the server must have; "": no TLS.
    """

    keys: Keys
    values: Values
    verbs: dict[str, float]
    protocol: Protocol = "text"
    route: Route = "none"
    mapping: str = ""
    delimiter: str = "."
    statements: dict[str, str] = field(default_factory=dict)
    sessions: int = 1
    depth: int = 1
    multiget: int = 1
    operations: int | None = None
    pool: int = 65536
    seed: int = 0
    driver: str = "wire"
    expiry: int = 0
    login: str = ""
    tls: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """When a point measures.

    warmup, measure: seconds; what is answered in the warm-up is not counted. measure is the limit when the
        sessions have a number of operations.
    rate: operations a second of all workers together, sent by schedule (open loop); None: each session sends when
        it was answered (closed loop).
    """

    warmup: float
    measure: float
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What one worker gets.

    address: HOST:PORT or unix:PATH, or the DSN of a SQL server.
    control: HOST:PORT where the coordinator of the point listens; token: proves that the worker is one of its own.
    worker, workers: its number, and how many there are; it has the sessions `worker::workers`.
    cpu: to which it is pinned; None: to none.
    """

    address: str
    work: Work
    clock: Clock
    control: str
    token: str
    worker: int
    workers: int
    cpu: int | None = None
