"""Several targets at a time that share the scripts of a replay, since most of one is waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kvref_conformance.corpus.replay import replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.corpus.compare import ServerKind
    from kvref_conformance.corpus.listing import Row
    from kvref_conformance.corpus.observe import ReplayTarget
    from kvref_conformance.corpus.replay import Outcome, Script


@dataclass(frozen=True, slots=True)
class Job:
    """The part of one version.

    Args:
        version: version of the recordings to compare with.
        scripts: each recorded with it.
        rows: the list of conversations that do not replay.
        targets: number of concurrent targets.
        open_target: opens one; what it enters in the stack ends with the job.
        kind: as in `replay`.
    """

    version: str
    scripts: Sequence[Script]
    rows: Sequence[Row]
    targets: int
    open_target: Callable[[ExitStack], ReplayTarget]
    kind: ServerKind


def replay_jobs(jobs: Sequence[Job], advance: Callable[[str], None]) -> list[Outcome]:
    """Replay jobs at a time.

    Args:
        jobs: one a version.
        advance: called with the version after each conversation, from any thread.

    Returns:
        The outcomes in the order of jobs and scripts.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(sum(job.targets for job in jobs)) as pool, ExitStack() as stack:
        # An interrupt stops the threads before the pool waits for them.
        stack.callback(stop.set)
        running = []
        for job in jobs:
            shared = _Shared(job, stop, partial(advance, job.version))
            running += [pool.submit(_replay, job, shared) for _ in range(min(job.targets, len(job.scripts)))]
        outcomes = [outcome for each in running for outcome in each.result()]
    order = {(job.version, script.citation): n for job in jobs for n, script in enumerate(job.scripts)}
    first = {job.version: n for n, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda each: (first[each.version], order[each.version, each.script.citation]))


def _replay(job: Job, scripts: Iterable[Script]) -> list[Outcome]:
    with ExitStack() as stack:
        return list(replay(scripts, job.open_target(stack), job.rows, job.kind))


class _Shared:
    """The scripts of a job, each handed out once; what waits longest first, so that no target is left with it."""

    def __init__(self, job: Job, stop: threading.Event, advance: Callable[[], None]) -> None:
        self._scripts = iter(sorted(job.scripts, key=lambda script: -script.waits))
        self._stop = stop
        self._advance = advance
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Script]:
        while not self._stop.is_set():
            with self._lock:
                script = next(self._scripts, None)
            if script is None:
                return
            yield script
            self._advance()
