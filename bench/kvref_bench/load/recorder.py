"""The histograms of one worker: filled by its sessions, put away each second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_bench.load.histogram import BINS, add, index
from kvref_bench.load.result import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.plan import Kind
    from kvref_bench.load.result import Timing

TIMINGS: Final[tuple[Timing, ...]] = ("service", "intended", "lag")
UNEXPECTED: Final = 100  # exchanges kept verbatim


class Recorder:
    """Counts of operations by kind, second and duration.

    kinds: all that can happen. timings: those that are counted, `TIMINGS` in the open loop.
    bins: by timing a list of counts for each kind, in the order of kinds; sessions count in them directly, since a call
        for each operation would cost as much as all else they do.
    cells: what was put away.
    errors, unexpected: of answers that are not allowed, how many and the first hundred.
    """

    def __init__(self, kinds: Sequence[Kind], timings: Sequence[Timing] = ("service",)) -> None:
        self.kinds = tuple(kinds)
        self.bins: dict[Timing, list[list[int]]] = {each: [[0] * BINS for _ in kinds] for each in timings}
        self.cells: dict[Cell, dict[int, int]] = {}
        self.errors = 0
        self.unexpected: list[tuple[bytes, bytes]] = []

    def add(self, kind: int, nanoseconds: int, timing: Timing = "service") -> None:
        """Count one operation.

        Args:
            kind: its number in kinds.
            nanoseconds: how long it took.
            timing: see `load.result.Cell`.
        """
        self.bins[timing][kind][index(nanoseconds)] += 1

    def refuse(self, request: bytes, reply: bytes) -> None:
        """Keep an answer that is not allowed; its operations are counted with `add`."""
        self.errors += 1
        if len(self.unexpected) < UNEXPECTED:
            self.unexpected.append((request, reply))

    def clear(self) -> None:
        """Forget all that was counted: the warm-up is over."""
        for lists in self.bins.values():
            for bins in lists:
                bins[:] = [0] * BINS
        self.cells.clear()
        self.errors = 0
        self.unexpected.clear()

    def put_away(self, second: int) -> dict[int, int]:
        """Move what was counted since the last call to a second of the measured time.

        Returns:
            The service histogram of that time, all kinds together.
        """
        together: dict[int, int] = {}
        for timing, lists in self.bins.items():
            for kind, bins in zip(self.kinds, lists, strict=True):
                # `sum` is quicker than a look at each of 5,120 bins, most kinds being rare.
                if not sum(bins):
                    continue
                counts = {place: count for place, count in enumerate(bins) if count}
                bins[:] = [0] * BINS
                add(self.cells.setdefault(Cell(second, kind, timing), {}), counts)
                if timing == "service":
                    add(together, counts)
        return together
