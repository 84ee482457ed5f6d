"""The queue of runs over a database server takes no more keys at once than a statement may have."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from kvref.engine.plans.plan import Plan
from kvref.server.executors.mysql.runs import PlannedLine, Run, RunQueue
from kvref.server.scheduler import Work

WIDTH = 4


def run_of(work: Work[Any], *words: bytes) -> Run:
    return Run(work, cast(PlannedLine, None), cast(Plan, (None, words, None, [], 0)), writes=False)


def taken(queued: list[list[bytes]], put_back: list[list[bytes]]) -> list[list[tuple[bytes, ...]]]:
    """Return the keys of each run by group, if some runs are put back by the first group of those that are queued."""
    work: Work[Any] = Work(cast(Any, None), None)
    groups: list[list[tuple[bytes, ...]]] = []

    async def carry_out(of: Work[Any], runs: list[Run]) -> None:
        groups.append([tuple(run.words) for run in runs])
        if len(groups) == 1:
            queue.put_back(of, [run_of(work, *words) for words in put_back])

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        start = SimpleNamespace(start=lambda coroutine: tasks.append(asyncio.ensure_future(coroutine)))
        nonlocal queue
        queue = RunQueue(carry_out, lambda _work: WIDTH, cast(Any, start))
        for words in queued:
            queue.add(run_of(work, *words))
        await tasks[0]

    queue: RunQueue
    asyncio.run(main())
    return groups


def test_a_group_has_no_more_keys_than_a_statement() -> None:
    assert taken([[b"a"], [b"b", b"c"], [b"d", b"e"], [b"f"]], []) == [
        [(b"a",), (b"b", b"c")],
        [(b"d", b"e"), (b"f",)],
    ]


def test_runs_of_several_keys_that_are_put_back_count_with_all_of_them() -> None:
    assert taken([[b"first"], [b"x"] * WIDTH, [b"last"]], [[b"a", b"b"], [b"c", b"d", b"e"]]) == [
        [(b"first",)],
        [(b"a", b"b")],
        [(b"c", b"d", b"e")],
        [(b"x",) * WIDTH],
        [(b"last",)],
    ]
