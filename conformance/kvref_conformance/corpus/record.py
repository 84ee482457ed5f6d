"""Record a conversation: hold it on two servers at a time, and join what they answered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from kvref_conformance.corpus.detect import answers, unexplained
from kvref_conformance.corpus.observe import play
from kvref_conformance.corpus.silences import NORMAL, PATIENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.corpus.conversation import Conversation, Recorded
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.observe import Played, ReplayTarget
    from kvref_conformance.corpus.silences import Pace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recording:
    """What one version answered in one conversation.

    Args:
        version: key of `got`.
        answers: one for each step, with holes; None where a step has none.
        port: "", "closed" or "server died".
        crash: exit status of a server that died meanwhile.
        doubts: what a person should look at: races, uninitialised memory, a port or an end that differs between runs.
    """

    version: str
    answers: tuple[Json, ...]
    port: str
    crash: int | None
    doubts: tuple[str, ...]

    def entered(self, conversation: Conversation) -> Conversation:
        """Return the conversation with these replies in place of earlier ones of this version."""
        rows = zip(conversation.steps, self.answers, strict=True)
        return replace(
            conversation,
            steps=tuple(_with_answer(step, self.version, answer) for step, answer in rows),
            port=_with(conversation.port, self.version, self.port or None),
            crash=_with(conversation.crash, self.version, self.crash),
        )


def record(conversation: Conversation, one: ReplayTarget, other: ReplayTarget) -> Recording:
    """Hold a conversation on two targets of one version and join the answers.

    Where they differ in more than cas numbers, times and counters, or an answer came in pieces, both hold it again,
    listening longer.

    Args:
        conversation: a script, or a conversation to be recorded again.
        one: its answers are recorded.
        other: a target whose cas numbers are further on, so that holes show.
    """
    first = _both(conversation, one, other, NORMAL)
    recording = _joined(conversation, one.version, *first)
    if recording.doubts or any(played.late for played in first):
        recording = _joined(conversation, one.version, *_both(conversation, one, other, PATIENT))
    return recording


def _both(conversation: Conversation, one: ReplayTarget, other: ReplayTarget, pace: Pace) -> tuple[Played, Played]:
    with ThreadPoolExecutor(2) as pool:
        mine = pool.submit(play, conversation, one, pace)
        theirs = pool.submit(play, conversation, other, pace)
        return mine.result(), theirs.result()


def _joined(conversation: Conversation, version: str, one: Played, other: Played) -> Recording:
    joint = answers(conversation, one, other)
    doubts = [f"step {number}: {hole}" for number, answer in enumerate(joint, 1) for hole in unexplained(answer)]
    if one.port != other.port:
        doubts.append(f"port: {one.port or 'open'} and {other.port or 'open'}")
    if one.crash != other.crash:
        doubts.append(f"crash: {one.crash} and {other.crash}")
    return Recording(version, tuple(joint), one.port, one.crash, tuple(doubts))


def _with_answer(step: Recorded, version: str, answer: Json) -> Recorded:
    # memcached has no database to answer a SQL step: {}.
    return replace(step, got=_with(step.got, version, None if answer == {} else answer))


def _with(by_version: Mapping[str, T], version: str, value: T | None) -> dict[str, T]:
    others = {key: each for key, each in by_version.items() if key != version}
    return others if value is None else {**others, version: value}


def script_of(conversation: Conversation) -> Conversation:
    """Return the script of a conversation: without what any version answered."""
    steps = tuple(replace(step, got={}) for step in conversation.steps)
    return replace(conversation, steps=steps, port={}, crash={})
