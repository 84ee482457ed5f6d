"""Small tables for every kind of server."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from helpers.live import missing_skips

from kvref_bench import peers
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers import PeerSpec
from kvref_bench.scenario.records import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.peers import OpenPeer

WORDS = Table("words", "words", Keys(300, "text", 24), Values((0, 300)))
NUMBERS = Table("numbers", "default", Keys(300, "int"), Values((32, 32)), extras=False)


class ProgressRecorder:
    """Records the progress of a load."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.done: list[tuple[str, int, int]] = []

    def step(self, text: str) -> None:
        self.steps.append(text)

    def advance(self, what: str, done: int, total: int) -> None:
        self.done.append((what, done, total))


@contextmanager
def opened(spec: PeerSpec, progress: ProgressRecorder | None = None) -> Iterator[OpenPeer]:
    """Open a peer; skip where the machine lacks what its target needs."""
    with ExitStack() as stack:
        with missing_skips():
            peer = stack.enter_context(peers.open(spec, progress or ProgressRecorder()))
        yield peer
