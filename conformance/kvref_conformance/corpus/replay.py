"""Hold recorded conversations again and say of each whether it went as recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.corpus import listing
from kvref_conformance.corpus.compare import Difference, ServerKind, differences
from kvref_conformance.corpus.observe import play
from kvref_conformance.corpus.silences import NORMAL, PATIENT, Pace
from kvref_conformance.steps import AwaitReply, Pause, Send

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.listing import Row
    from kvref_conformance.corpus.observe import ReplayTarget

SAME: Final = "same"
LISTED: Final = "listed"
DIFFERS: Final = "differs"
UNLISTED: Final = "replays though listed"
WORDS: Final = (SAME, LISTED, DIFFERS, UNLISTED)

# kvref sends a reply at once and in one piece, so short silences mark its end. A difference at this pace is tried again
# at slower paces before it counts, and so is a listed one without a difference: a slow reply looks like a wait.
BRISK: Final = Pace(first=0.2, quiet=0.05, whole=0.003, broken=0.03)

SAMPLE_STEP: Final = 12
LONG_SECONDS: Final = 3.0  # of waiting that a conversation of the sample may prescribe


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation with its citation, `core:map-001`."""

    citation: str
    conversation: Conversation

    @property
    def waits(self) -> float:
        """Return the seconds its steps prescribe to wait."""
        return sum(
            step.seconds if isinstance(step, Pause) else step.patience
            for step in (each.step for each in self.conversation.steps)
            if isinstance(step, Pause | Send | AwaitReply)
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One conversation replayed for one version.

    Args:
        script: what was replayed.
        version: version of the recording it was compared with.
        word: one of WORDS.
        differences: the differences; empty for `same`, and for a conversation that was not tried.
        row: the row that lists it, if there is one.
        seconds: duration.
        failure: why it could not be run, if it could not.
    """

    script: Script
    version: str
    word: str
    differences: tuple[Difference, ...] = ()
    row: Row | None = None
    seconds: float = 0.0
    failure: str = ""

    @property
    def fails(self) -> bool:
        """Return whether it fails the run."""
        return self.word in {DIFFERS, UNLISTED}


def replay(scripts: Iterable[Script], target: ReplayTarget, rows: Sequence[Row], kind: ServerKind) -> Iterator[Outcome]:
    """Run conversations one after another.

    Args:
        scripts: each recorded with the target's version.
        target: the target.
        rows: the list of conversations that do not replay there.
        kind: the kind of server; kvref is replayed at a faster pace.

    Yields:
        One outcome each.
    """
    for script in scripts:
        row = listing.find(rows, script.citation, target.version)
        if row is not None and row.cause == listing.LATER:
            yield Outcome(script, target.version, LISTED, row=row)
        else:
            yield _replay(script, target, row, kind)


def _word(row: Row | None, found: Sequence[Difference], failure: str) -> str:
    if not found and not failure:
        return SAME if row is None else LISTED if row.cause == listing.RACE else UNLISTED
    if row is None or (row.cause == listing.CRASH and (failure or not found[0].is_end)):
        return DIFFERS
    return LISTED


def _replay(script: Script, target: ReplayTarget, row: Row | None, kind: ServerKind) -> Outcome:
    began = time.monotonic()
    found: list[Difference] = []
    failure = word = ""
    for pace in (BRISK, NORMAL, PATIENT) if kind is not ServerKind.PLUGIN else (NORMAL, PATIENT):
        try:
            played = play(script.conversation, target, pace)
            found = differences(script.conversation, played, target.version, kind)
        except SuiteError as error:
            failure = str(error)
        word = _word(row, found, failure)
        if word not in {DIFFERS, UNLISTED} or failure:
            break
    return Outcome(script, target.version, word, tuple(found), row, time.monotonic() - began, failure)


def recorded_with(scripts: Iterable[Script], version: str) -> list[Script]:
    """Return the scripts that a version was recorded with."""
    return [script for script in scripts if version in script.conversation.versions()]


def sample(scripts: Sequence[Script]) -> list[Script]:
    """Return a fixed part, spread over all groups: for live endpoints, where every conversation takes a second."""
    return [script for script in scripts if script.waits <= LONG_SECONDS][::SAMPLE_STEP]
