"""Looks at a point while it runs: for the user, and to take the server's numbers when the warm-up is over."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from threading import Timer
from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvref_bench.display import Display
    from kvref_bench.interrupt import Interrupts
    from kvref_bench.load.channel import Progress
    from kvref_bench.peers.sampling import Sampling


class Watch:
    """A `coordinator.Watch`."""

    def __init__(self, interrupts: Interrupts, display: Display) -> None:
        self._interrupts = interrupts
        self._display = display
        self._at_start: Callable[[float], None] | None = None

    def going(self, seconds: float) -> None:
        """Take that all workers start in so many seconds."""
        if self._at_start is not None:
            self._at_start(seconds)

    def progress(self, what: Progress) -> None:
        """Take what one worker did in a second."""
        self._display.progress(what)

    def stopping(self) -> bool:
        """Return whether the user wants it to end now."""
        return self._interrupts.asked

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
                    sample.begin()
                except (BenchError, OSError) as error:
                    failed.append(error)
                else:
                    stack.push(sample)

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
