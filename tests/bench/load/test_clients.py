"""Every driver sends, verifies and counts, on real servers."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pymemcache
import pytest
from helpers.live import target_or_skip
from helpers.waiting import until_risen

from kvref_bench.errors import BenchError
from kvref_bench.load import clients, coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.records import Kind
from kvref_bench.load.work import Clock, Keys, Task, Values, Work
from kvref_bench.peers import wire
from kvref_bench.workload.keys import table_keys
from kvref_bench.workload.values import value

from .pieces import server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.records import Progress, WorkerResult

pytestmark = [pytest.mark.live, pytest.mark.nightly]

KEYS = Keys(100, length=12)
VALUES = Values((20, 40))
WORK = Work(KEYS, VALUES, {"get": 1.0}, sessions=3, operations=100, pool=90)
MAPPED = replace(WORK, mapping="aaa", operations=20)
HIT, MISS, ERROR = Kind("get", "hit"), Kind("get", "miss"), Kind("get", "error")


class Observer:
    """Keeps the progress reports."""

    def __init__(self) -> None:
        self.reports: list[Progress] = []

    def going(self, seconds: float) -> None:
        pass

    def progress(self, what: Progress) -> None:
        self.reports.append(what)

    def stopping(self) -> bool:
        return False


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with local(2) as engine:
        yield engine


@contextmanager
def filled(name: str) -> Iterator[tuple[str, int]]:
    """Yield address and process of a server where the keys are."""
    with target_or_skip(name) as target:
        client = pymemcache.Client(target.address, default_noreply=False)
        for each in table_keys(KEYS):
            client.set(each, value(VALUES, each))
        client.close()
        yield target.address, target.pid


@pytest.fixture(scope="module")
def memcached() -> Iterator[str]:
    with filled("memcached") as (address, _):
        yield address


@pytest.fixture(scope="module")
def tables() -> Iterator[str]:
    with filled("kvref-sqlite") as (address, _):
        yield address


def measure(
    address: str, work: Work, engine: Engine, clock: Clock | None = None
) -> tuple[list[WorkerResult], Observer]:
    observer = Observer()
    return coordinator.measure(address, work, clock or Clock(0.0, 20.0), engine, observer), observer


def counts(results: list[WorkerResult]) -> dict[Kind, int]:
    found: dict[Kind, int] = {}
    for result in results:
        for cell, bins in result.histograms.items():
            found[cell.kind] = found.get(cell.kind, 0) + sum(bins.values())
    return found


@pytest.mark.parametrize("driver", clients.DRIVERS)
def test_gets_are_counted_and_verified(memcached: str, engine: Engine, driver: str) -> None:
    results, observer = measure(memcached, replace(WORK, driver=driver), engine)
    assert counts(results) == {HIT: 300}
    assert [result.worker for result in results] == [0, 1]  # two sessions and one
    assert sum(each.operations for each in observer.reports) == 300
    for result in results:
        assert result.stopped is None
        assert result.errors == 0
        assert result.usage.user + result.usage.system > 0
        assert result.usage.rss > 0
        assert result.seconds > 0


@pytest.mark.parametrize("opening", [clients.streams, clients.async_mapped])
def test_a_value_may_end_as_an_answer_does(memcached: str, opening: Any) -> None:
    client = pymemcache.Client(memcached, default_noreply=False)
    client.set("k", b"one END")
    client.close()

    async def twice() -> list[bytes | None]:
        async with AsyncExitStack() as stack:
            get = await opening(Task(memcached, WORK, Clock(0, 1), "", "", 0, 1), None, stack)
            return [await get("k"), await get("none"), await get("k")]

    assert asyncio.run(twice()) == [b"one END", None, b"one END"]


def test_an_error_is_no_missing_key() -> None:
    async def once(address: str) -> bytes | None:
        async with AsyncExitStack() as stack:
            get = await clients.streams(Task(address, WORK, Clock(0, 1), "", "", 0, 1), None, stack)
            return await get("k")

    with (
        server(lambda _, line: [b"SERVER_ERROR out of memory\r\n"]) as address,
        pytest.raises(BenchError, match=r"get k was answered b'SERVER_ERROR out of memory"),
    ):
        asyncio.run(once(address))


@pytest.mark.parametrize("driver", clients.DRIVERS)
def test_a_session_switches_to_its_mapping(tables: str, engine: Engine, driver: str) -> None:
    results, _ = measure(tables, replace(MAPPED, route="switch", driver=driver), engine)
    assert counts(results) == {HIT: 60}
    assert [result.stopped for result in results] == [None, None]


@pytest.mark.parametrize("driver", ["pymemcache", "streams"])
def test_a_server_that_ends_ends_the_sessions(engine: Engine, driver: str) -> None:
    with filled("memcached") as (address, pid), ThreadPoolExecutor(1) as pool:
        work = replace(WORK, driver=driver, operations=None)
        measuring = pool.submit(measure, address, work, engine, Clock(0.0, 30.0))
        until_risen(lambda: [int(wire.stats(address)["get_hits"])], 100)
        os.kill(pid, signal.SIGKILL)
        results, _ = measuring.result()
    for result in results:
        assert result.stopped is not None
        assert result.stopped.startswith("a session ended")
    # The server has answered a hundred; one process may have had them all.
    assert counts(results)[HIT] > 0


@pytest.mark.parametrize("driver", ["pymemcache", "kvref-async"])
def test_what_is_missing_or_differs_is_reported(memcached: str, engine: Engine, driver: str) -> None:
    results, _ = measure(memcached, replace(WORK, driver=driver, keys=replace(KEYS, missing=0.5)), engine)
    found = counts(results)
    assert found.keys() == {HIT, MISS}
    assert sum(found.values()) == 300
    other = replace(WORK, driver=driver, values=Values((10, 10)))  # not what is stored
    results, _ = measure(memcached, other, engine)
    assert counts(results) == {ERROR: 300}
    assert sum(result.errors for result in results) == 300
    key, answer = results[0].unexpected[0]
    assert answer == value(VALUES, key)
    assert len(results[0].unexpected) == 100


@pytest.mark.parametrize("driver", ["pymemcache", "kvref-async-stock"])
def test_seconds_after_the_warm_up(memcached: str, engine: Engine, driver: str) -> None:
    results, observer = measure(memcached, replace(WORK, driver=driver, operations=None), engine, Clock(0.1, 1.1))
    assert {each.second for each in observer.reports} == {0, 1}
    for result in results:
        assert {cell.second for cell in result.histograms} == {0, 1}
        assert result.seconds >= 1.1
    assert sum(each.operations for each in observer.reports) == sum(counts(results).values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"driver": "telnet"}, "choose wire, pymemcache"),
        ({"driver": "kvref", "verbs": {"get": 0.5, "set": 0.5}}, "only gets one by one"),
        ({"driver": "kvref", "depth": 4}, "only gets one by one"),
        ({"driver": "pymemcache", "route": "bind", "mapping": "aaa"}, "only gets one by one"),
        ({"driver": "pymemcache", "route": "switch", "mapping": "nowhere"}, "no such mapping"),
        ({"driver": "streams", "route": "switch", "mapping": "nowhere"}, "no such mapping"),
    ],
)
def test_what_a_driver_cannot_do_is_refused(memcached: str, engine: Engine, change: dict[str, Any], words: str) -> None:
    with pytest.raises(BenchError, match=words):
        measure(memcached, replace(WORK, **change), engine)
