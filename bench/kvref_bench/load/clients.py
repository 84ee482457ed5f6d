"""Gets through client libraries: `Work.driver` names one, and `run` measures it for a load worker.

Each driver gets existing keys, one at a time on each session, compares every reply with the expected value, and returns
the latencies of its get calls, and the CPU time of its processes. Drivers use a library in the way that is usual in its
language: threads, coroutines, or a process for each session. With one session all are alike. With more sessions the CPU
time per get is comparable, and the operations a second are those of an application of that kind. Loop and bookkeeping
around a get are in its CPU time: half a microsecond in Python, one in Perl. `sent` and `received` are unknown here: the
libraries hide their sockets.

If a driver needs a package that is not installed, it raises BenchError with its name; its point is not measured.
"""

from __future__ import annotations

import gc
import os
import socket
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from kvref.errors import install
from kvref_bench.errors import BenchError
from kvref_bench.load.drivers import programs
from kvref_bench.load.drivers.meter import Window
from kvref_bench.load.result import WorkerResult
from kvref_bench.workload.keys import draws, key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_bench.load.channel import Channel
    from kvref_bench.load.drivers.meter import Measured, Pair, Pools
    from kvref_bench.load.work import Task, Work

    Run = Callable[[Task, str | None, Pools, Window], Measured]


@dataclass(frozen=True, slots=True)
class Driver:
    """One client library in one style of use.

    summary: description for people. run: measures the sessions of a worker.
    pipelines: it can have several gets in flight on one connection, `Work.depth`.
    binds: it binds its connections to the mapping; others get `@@mapping` first.
    """

    summary: str
    run: Run
    pipelines: bool = False
    binds: bool = False


def _blocking(name: str) -> Run:
    def run(task: Task, word: str | None, pools: Pools, window: Window) -> Measured:
        if find_spec("pymemcache") is None:
            raise BenchError(f"the package pymemcache is missing: {install('bench')}")
        from kvref_bench.load.drivers import blocking  # noqa: PLC0415 - an extra

        return blocking.run(task, word, pools, window, getattr(blocking, name))

    return run


def _coroutines(name: str, *, stock: bool) -> Run:
    def run(task: Task, word: str | None, pools: Pools, window: Window) -> Measured:
        from kvref_bench.load.drivers import coroutines  # noqa: PLC0415 - as above

        return coroutines.run(task, word, pools, window, getattr(coroutines, name), stock=stock)

    return run


def _perl(module: str, package: str) -> Run:
    return partial(programs.run, opening=partial(programs.perl, module, package))


DRIVERS: Final = {
    "pymemcache": Driver("pymemcache Client, a thread for each session", _blocking("pymemcache")),
    "pymemcache-pooled": Driver("pymemcache PooledClient, shared by threads", _blocking("pymemcache_pooled")),
    "pymemcache-hash": Driver("pymemcache HashClient of one server, a thread each", _blocking("pymemcache_hash")),
    "kvref": Driver("kvref.client MappedClient, a thread for each session", _blocking("mapped"), binds=True),
    "kvref-async": Driver(
        "kvref.client AsyncMappedClient on uvloop", _coroutines("mapped", stock=False), pipelines=True, binds=True
    ),
    "kvref-async-stock": Driver(
        "the same on asyncio's own loop",
        _coroutines("mapped", stock=True),
        pipelines=True,
        binds=True,
    ),
    "streams": Driver("asyncio's streams on uvloop", _coroutines("streams", stock=False)),
    "streams-stock": Driver("asyncio's streams on asyncio's loop", _coroutines("streams", stock=True)),
    "perl": Driver("Perl Cache::Memcached", _perl("Cache::Memcached", "libcache-memcached-perl")),
    "perl-fast": Driver("Perl Cache::Memcached::Fast", _perl("Cache::Memcached::Fast", "libcache-memcached-fast-perl")),
    "libmemcached": Driver("libmemcached, from C", partial(programs.run, opening=programs.libmemcached)),
}


def run(task: Task, channel: Channel) -> WorkerResult:
    """Do one worker's part of a point with its driver.

    Raises:
        BenchError: the driver is unknown, lacks a program, or cannot do this work.
    """
    work = task.work
    if work.driver not in DRIVERS:
        raise BenchError(f"driver {work.driver!r}: choose wire, {', '.join(DRIVERS)}")
    driver = DRIVERS[work.driver]
    _check(driver, task)
    mine = range(task.worker, work.sessions, task.workers)
    pools = [_pool(task, session, max(1, work.pool // len(mine))) for session in mine]
    # The pools are no work of the library's.
    gc.collect()
    gc.freeze()
    try:
        measured = driver.run(task, _word(work), pools, Window(task, channel))
    finally:
        gc.unfreeze()
    return WorkerResult(
        worker=task.worker,
        host=socket.gethostname(),
        pid=os.getpid(),
        began=measured.began,
        seconds=measured.seconds,
        histograms=measured.histograms,
        usage=measured.usage,
        distinct=len({key for pool in pools for key, _ in pool}),
        errors=measured.errors,
        unexpected=measured.unexpected,
        stopped=measured.stopped,
    )


def _check(driver: Driver, task: Task) -> None:
    work = task.work
    if set(work.verbs) != {"get"} or work.multiget != 1 or work.protocol != "text":
        raise BenchError(f"driver {work.driver}: only single gets in the text protocol; use the driver wire")
    if task.clock.rate is not None:
        raise BenchError(f"driver {work.driver}: closed loop only; leave out the rate or use the driver wire")
    if work.depth != 1 and not driver.pipelines:
        raise BenchError(f"driver {work.driver}: its gets wait for one another, depth = {work.depth} has no meaning")
    if work.route == "bind" and not driver.binds:
        raise BenchError(f"driver {work.driver}: it has no bind; use the route switch or each")


def _word(work: Work) -> str | None:
    return f"@@{work.mapping}" if work.route in ("switch", "bind") else None


def _pool(task: Task, session: int, size: int) -> list[Pair]:
    work = task.work
    prefix = f"@@{work.mapping}{work.delimiter}" if work.route == "each" else ""
    names = [key(work.keys, number) for number in draws(work.keys, work, task.worker, session, size).tolist()]
    return [(prefix + name.decode(), value(work.values, name)) for name in names]
