"""The commits that replies wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol


class Commits(Protocol):
    """The commits that the replies of a connection wait for."""

    @property
    def unsettled(self) -> int | None:
        """Return which commit replies must wait for, see `when_settled`; None where they need not."""

    def when_settled(self, number: int, settled: Callable[[str], None], *, at_once: bool = False) -> None:
        """Call back when replies of that commit may leave, with an empty text or why its writes are lost.

        Args:
            number: what `unsettled` has just returned.
            settled: called with the text.
            at_once: the commit does not wait for further writes, unless others wait for it already.
        """


class Settled:
    """The commits of an executor whose replies wait for none: it gives them after their commit."""

    unsettled = None

    def when_settled(
        self, number: int, settled: Callable[[str], None], *, at_once: bool = False  # noqa: ARG002 - see `Commits`
    ) -> None:  # fmt: skip
        """Call back at once."""
        settled("")


SETTLED: Final = Settled()
