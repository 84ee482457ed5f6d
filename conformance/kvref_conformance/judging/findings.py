"""What a generated case finds: thing after thing, each once, and how long a shorter conversation is looked for."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.budget import OverTime
from kvref_conformance.judging.conversation import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvref_conformance.judging.budget import Budget
    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.judging.judge import Judge

# Of one thing: for as long a shorter conversation is looked for that shows it.
SHORTENING_SECONDS: Final = 25.0
# Things that are enough of one case.
MOST: Final = 12
# An endpoint that ends is started again for each conversation that shows it, which takes seconds.
MOST_CRASHES: Final = 80
# Verbs that share their code: what is wrong with one of them is seldom right with another.
ALIKE: Final = {
    "incr": "count",
    "decr": "count",
    **dict.fromkeys(("set", "add", "replace", "append", "prepend", "cas"), "store"),
}

ERROR: Final = re.compile("ERROR|CLIENT_ERROR|SERVER_ERROR")

Signature = tuple[str, ...]
# Before the signature of what ended the endpoint.
ENDED: Final = "ended"


class ShrinkLimitReached(BaseException):
    """No shorter conversation is looked for: it takes too long, or has ended the endpoint too often."""


class ShrinkLimit:
    """The time in which one thing is shortened, and the time limit of the run.

    Args:
        budget: of the run.
        seconds: time in which one thing is shortened.

    over: the time was over: hypothesis, interrupted, may call its examples inconsistent.
    """

    def __init__(self, budget: Budget, seconds: float = SHORTENING_SECONDS) -> None:
        self._budget = budget
        self._seconds = seconds
        self._found: float | None = None
        self.over = False

    def begin(self) -> None:
        """Look for another thing."""
        self._found, self.over = None, False

    def check(self) -> None:
        """Raise ShrinkLimitReached where the thing was found too long ago, OverTime at the time limit of the run."""
        if self._budget.spent():
            raise OverTime
        if self._found is not None and time.monotonic() - self._found > self._seconds:
            self.over = True
            raise ShrinkLimitReached

    def found(self) -> None:
        """Take note of a conversation that shows the thing."""
        self._found = time.monotonic() if self._found is None else self._found


class Search:
    """What one generated case has found.

    Args:
        judge: of the run.
        seconds: time in which one thing is shortened.
        most: how many things are enough.

    Attributes:
        patience: with the thing that is looked for.
        last: the shortest conversation that showed it.
        signature: of it.
    """

    def __init__(self, judge: Judge, seconds: float = SHORTENING_SECONDS, most: int = MOST) -> None:
        self.patience = ShrinkLimit(judge.budget, seconds)
        self.most = most
        self.last: tuple[Exchange, ...] = ()
        self.signature: Signature = ()
        self._known: set[Signature] = set()
        self._crashes = 0
        self._judge = judge

    def begin(self) -> None:
        """Look for another thing."""
        self.patience.begin()
        self.last = ()

    def fail(self, case: str, exchanges: tuple[Exchange, ...], found: Signature) -> None:
        """Take a conversation whose last answer is not allowed; nothing happens where one of before ended so.

        Args:
            case: id of the generated case.
            exchanges: all of it.
            found: its signature.

        Raises:
            CaseFailed: it shows something new; the text is the conversation.
            ShrinkLimitReached: the endpoint has ended for good, or too often.
        """
        liveness = self._judge.liveness
        enough = False
        if liveness.is_lost():
            found = (ENDED, *found)
            self._crashes += 1
            liveness.bring_back(case)
            enough = bool(liveness.ended) or self._crashes > MOST_CRASHES
        if found in self._known and not enough:
            return
        # The time may be over in the midst of longer ones. Nothing can be found after what ended the endpoint for good.
        if liveness.ended or not self.last or _size(exchanges) <= _size(self.last):
            self.last, self.signature = exchanges, found
        if enough:
            raise ShrinkLimitReached
        self.patience.found()
        raise CaseFailed(render(exchanges))

    def take(self) -> bool:
        """Take what was found last for known from now on; return whether the endpoint ended in it."""
        self._known.add(self.signature)
        return self.signature[0] == ENDED


def signature(request: str, allowed: Iterable[str], got: str, keys: Iterable[str]) -> Signature:
    """Return a signature that conversations with the same cause of failure share, as far as it can be determined.

    Args:
        request: request without an allowed reply.
        allowed: its allowed replies.
        got: the actual reply, with the note of how it ended.
        keys: of the conversation.
    """
    verb, *rest = request.split("\r\n", maxsplit=1)[0].split(" ")
    silent = bool(rest) and rest[-1] == "noreply"
    kind = "noreply" if silent else ALIKE.get(verb, verb)
    # An error is one thing, whatever else should have come.
    instead = () if silent or ERROR.match(got) else allowed
    return tuple(_general(text, keys) for text in (kind, got, *instead))


def _size(exchanges: Sequence[Exchange]) -> tuple[int, int]:
    return len(exchanges), sum(len(exchange.sent) for exchange in exchanges)


def _general(text: str, keys: Iterable[str]) -> str:
    text = text.split("\r\n", maxsplit=1)[0]
    for key in keys:
        text = text.replace(key, "k")
    return re.sub(r"\d+", "0", text)
