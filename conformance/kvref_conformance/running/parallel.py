"""Judge the cases of one run on several equal instances of an endpoint at the same time.

Most of a run is waiting: for silence, for locks, for clocks. The process that collected the cases forks once for each
further instance, and all of them take batches of cases from one queue. The parent judges on the first instance, and
counts every verdict, so that report, exit code and progress are those of a single run.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import signal
from argparse import Namespace
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final, cast

from kvref.errors import SuiteError
from kvref_conformance.errors import CannotJudge, CaseFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess
    from multiprocessing.queues import SimpleQueue

    import pytest

    from kvref_conformance.coverage import Exercised
    from kvref_conformance.judging.verdict import Verdict
    from kvref_conformance.running.run import Run

    Batch = Sequence[pytest.Item]

# Seconds in which a forked process must end after its last message.
END_SECONDS: Final = 30
# Holds the verdicts of some hundred cases.
PIPE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Instance:
    """A further instance of the endpoint, with the same version, profile, settings and data.

    Args:
        address: HOST:PORT.
        sql: DSN of its database; None without one.
        reload: command that makes it read its configuration again; None without one.
    """

    address: str
    sql: str | None = None
    reload: str | None = None

    def options(self, options: Namespace) -> Namespace:
        """Return the options of a run on this instance."""
        own = {"endpoint": self.address, "sql": self.sql, "reload": self.reload}
        return Namespace(**(vars(options) | own))


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message of a forked process.

    Args:
        exercised: what its cases exercised; None if the run could not start.
        complaints: what could not be put back, or why it could not judge.
    """

    exercised: Exercised | None
    complaints: tuple[str, ...]


class Parallel:
    """The run of one session on several instances.

    Args:
        run: the parent's, on the first instance.
        instances: the others.
        start: starts a run with the options of an instance.
        judge: tries a batch of cases with a run.
    """

    def __init__(
        self,
        run: Run,
        instances: Sequence[Instance],
        start: Callable[[Instance], Run],
        judge: Callable[[Run, Batch], None],
    ) -> None:
        self._run = run
        self._instances = instances
        self._start = start
        self._judge = judge
        self._children: dict[Connection, ForkProcess] = {}
        self._interrupted = False

    def judge(self, batches: Sequence[Batch]) -> None:
        """Judge every batch on one of the instances, and count all verdicts in the parent's run.

        Args:
            batches: cases that must follow one another on the same instance.

        Raises:
            SuiteError: a forked process ended without its last message.
        """
        context = multiprocessing.get_context("fork")
        work: SimpleQueue[int | None] = context.SimpleQueue()
        for each in (*range(len(batches)), *[None] * (len(self._instances) + 1)):
            work.put(each)
        for instance in self._instances:
            messages, sender = context.Pipe(duplex=False)
            # A process must not wait until the parent has ended a long case and reads.
            fcntl.fcntl(sender.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            child = context.Process(target=self._fork, args=(instance, batches, work, sender), daemon=True)
            child.start()
            # The child has it alone, so that its end is the end of the messages.
            sender.close()
            self._children[messages] = child
        try:
            for number in iter(work.get, None):
                self._judge(self._run, batches[number])
                self._take_what_is_there(0)
                if self._run.judge.budget.spent():
                    return
            while self._children and not self._run.judge.budget.spent():
                if self._run.watch is not None:
                    self._run.watch.wait_for(f"cases on other instances: {len(self._children)}")
                self._take_what_is_there(None)
        except KeyboardInterrupt:
            self._interrupted = True
            self._take_what_is_there(0)
            raise
        finally:
            for child in self._children.values():
                child.terminate()

    def _take_what_is_there(self, seconds: float | None) -> None:
        """Count what the forked processes have sent.

        Args:
            seconds: to wait for a message or the end of a process; None: without limit.
        """
        for messages in wait([*self._children], seconds):
            self._take(cast("Connection", messages))

    def _take(self, messages: Connection) -> None:
        while messages in self._children and messages.poll():
            try:
                message: Verdict | Ended = messages.recv()
            except EOFError as error:
                child = self._children.pop(messages)
                child.join(END_SECONDS)
                if self._interrupted:
                    return
                raise SuiteError(f"a judging process ended early, with exit code {child.exitcode}") from error
            if not isinstance(message, Ended):
                self._run.count(message)
                continue
            self._children.pop(messages).join(END_SECONDS)
            self._run.tally.complaints += message.complaints
            if message.exercised is not None:
                self._run.judge.exercised.add(message.exercised)

    def _fork(
        self, instance: Instance, batches: Sequence[Batch], work: SimpleQueue[int | None], sender: Connection
    ) -> None:
        """Judge on a further instance, in its own process."""
        # The terminal interrupts every process of the run: the parent ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            run = self._start(instance)
        except (CannotJudge, CaseFailed, SuiteError) as error:
            sender.send(Ended(None, (f"{instance.address}: cannot judge: {error}",)))
            return
        run.send = sender.send
        for number in iter(work.get, None):
            self._judge(run, batches[number])
        run.put_back()
        sender.send(Ended(run.judge.exercised, tuple(run.tally.complaints)))


def batches_of(items: Sequence[pytest.Item], group: Callable[[pytest.Item], object]) -> list[list[pytest.Item]]:
    """Return the tests in batches: those that follow one another and are of the same group.

    Args:
        items: in the order of the run.
        group: of a test.
    """
    found: list[list[pytest.Item]] = []
    last: object = None
    for item in items:
        if not found or group(item) != last:
            found.append([])
        last = group(item)
        found[-1].append(item)
    return found
