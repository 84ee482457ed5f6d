"""Who looks at a point while it runs: the user with Ctrl-C, and what reads the server's numbers."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Self

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from kvref_bench.load.records import Progress
    from kvref_bench.peers.processes import Sampling


class Interrupts:
    """Handles SIGINT for the block; outside the main thread, which receives no signals, it does nothing.

    Ctrl-C ends a run and keeps what was measured; a second one ends it at once.

    requested: the user has requested the end of the run.
    """

    def __init__(self) -> None:
        self.requested = False
        self._waits = False
        self._main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Delay the first Ctrl-C until the block ends; code in the block checks `requested`.

        Raises:
            KeyboardInterrupt: at the end of the block, if there was a Ctrl-C.
        """
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self.requested:
            raise KeyboardInterrupt

    def _take(self, *_: object) -> None:
        again, self.requested = self.requested, True
        if again or not self._waits:
            raise KeyboardInterrupt


@contextmanager
def blocked() -> Iterator[None]:
    """Block SIGINT in this thread until the block ends, and permanently in processes that are started in it.

    Ctrl-C reaches every process of the terminal; only the process that the user started handles it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Watch:
    """Looks at a point, and begins a sample of the server when the warm-up is over.

    interrupts: by which the user ends it; None: no user looks on, and an answer that is not allowed ends it.
    """

    def __init__(self, interrupts: Interrupts | None = None) -> None:
        self._interrupts = interrupts
        self._errors = False
        self._at_start: Callable[[float], None] | None = None

    def going(self, seconds: float) -> None:
        """Take that all workers start in so many seconds."""
        if self._at_start is not None:
            self._at_start(seconds)

    def progress(self, what: Progress) -> None:
        """Take what one worker did in a second."""
        self._errors = self._errors or what.errors > 0

    def stopping(self) -> bool:
        """Return whether the point is to end now."""
        return self._errors if self._interrupts is None else self._interrupts.requested

    @contextmanager
    def sampling(self, sample: Sampling, warmup: float) -> Iterator[None]:
        """Let a sample begin `warmup` seconds after the start of the point in the block, and end with the block.

        Raises:
            BenchError: the server does not tell its counters.
        """
        failed: list[Exception] = []
        with ExitStack() as stack:

            def begin() -> None:
                try:
                    stack.enter_context(sample)
                except (BenchError, OSError) as error:
                    failed.append(error)

            def at_start(seconds: float) -> None:
                if not warmup:
                    begin()
                    return
                timer = Timer(seconds + warmup, begin)
                timer.start()
                stack.callback(timer.join)
                stack.callback(timer.cancel)

            self._at_start = at_start
            try:
                yield
            finally:
                self._at_start = None
        if failed:
            raise failed[0]
