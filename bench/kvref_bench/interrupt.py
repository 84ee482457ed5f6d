"""What Ctrl-C means to a run: once, end it and keep what was measured; twice, end it at once."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


class Interrupts:
    """Handles SIGINT for the block; outside the main thread, which receives no signals, it does nothing.

    asked: the user has requested the end of the run.
    """

    def __init__(self) -> None:
        self.asked = False
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
    def kept(self) -> Iterator[None]:
        """Delay the first Ctrl-C until the block ends; code in the block checks `asked`.

        Raises:
            KeyboardInterrupt: at the end of the block, if there was a Ctrl-C.
        """
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self.asked:
            raise KeyboardInterrupt

    def _take(self, *_: object) -> None:
        again, self.asked = self.asked, True
        if again or not self._waits:
            raise KeyboardInterrupt


@contextmanager
def held_back() -> Iterator[None]:
    """Block SIGINT in this thread until the block ends, and permanently in processes that are started in it.

    Ctrl-C reaches every process of the terminal; only the process that the user started handles it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
