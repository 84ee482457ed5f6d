"""Run a conversation on a target and return the observations of each step.

Recording and replaying both use this; they differ in the target and in the use of the replies.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kvref.errors import SuiteError
from kvref_conformance.corpus.conversation import JOIN_SECONDS
from kvref_conformance.corpus.holes import cas_number, cas_spans
from kvref_conformance.corpus.silences import NORMAL, Pace, Silences
from kvref_conformance.corpus.templates import CasNames
from kvref_conformance.judging.player import Player, Target
from kvref_conformance.steps import (
    AwaitReply,
    AwaitSql,
    Crowd,
    Disconnect,
    Eventually,
    Send,
    Sql,
    StartSql,
    Watch,
    innermost,
)

if TYPE_CHECKING:
    from kvref_conformance.corpus.conversation import Conversation, Recorded
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.judging.player import Result, Shown
    from kvref_conformance.wire.connection import Connection

# A server that closed a connection is given so long to be seen dead, since a dying one closes first.
DYING_SECONDS: Final = 0.3


class ReplayTarget(Target, Protocol):
    """A world in which conversations run.

    Cells of results are JSON values: bytes as latin-1 characters, dates and decimals as the text that SQL shows.
    """

    version: str
    """Key of `got`: `8.0.33`, `5.6.14`."""

    def prepare(self, conversation: Conversation) -> str:
        """Set up the world for a conversation; return "", "closed" or "server died", the state of the port."""

    def exit_status(self) -> int | None:
        """Return the exit status of a server that died, negative for a signal; None while it runs."""

    def settle(self) -> None:
        """Wait until what closed connections had pending is committed."""

    def finish(self) -> None:
        """End the conversation: close the SQL connections."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The observation of one step.

    Args:
        got: the reply as in a recording, without holes; None for a step without one.
        began: UNIX seconds.
        ended: UNIX seconds.
    """

    got: Json
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Played:
    """One conversation as it went.

    Args:
        port: "", "closed" or "server died".
        steps: one for each step.
        crash: exit status of a server that died meanwhile.
        late: bytes came behind an answer that was taken for whole: play again at a slower pace.
    """

    port: str
    steps: tuple[Observed, ...]
    crash: int | None
    late: bool


def play(conversation: Conversation, target: ReplayTarget, pace: Pace = NORMAL) -> Played:
    """Prepare the target, run the steps in order, clean up.

    Args:
        conversation: its `got` are ignored.
        target: the target.
        pace: how long to wait for replies.

    Raises:
        SuiteError: a statement that was started still runs at the end.
    """
    port = target.prepare(conversation)
    recorder = _Recorder(target, pace, listening=not port)
    try:
        steps = tuple(map(recorder.take, conversation.steps))
        late = recorder.replies.late()
        crash = target.exit_status()
    finally:
        # What blocks a statement that no step waited for ended with the memcached connections.
        running = recorder.player.close(JOIN_SECONDS)
        target.finish()
    if running:
        raise SuiteError(f"{running[0]!r} still runs after {JOIN_SECONDS:g} s")
    return Played(port, steps, crash, late)


class _Recorder:
    def __init__(self, target: ReplayTarget, pace: Pace, *, listening: bool) -> None:
        self._target = target
        self._listening = listening
        self._names = CasNames()
        self.replies = Silences(pace)
        self.player = Player(target, self._names, self.replies)

    def take(self, recorded: Recorded) -> Observed:
        began = time.time()
        got = self._got(recorded)
        return Observed(got, began, time.time())

    def _got(self, recorded: Recorded) -> Json:
        match recorded.step:
            case Send() | AwaitReply() | Disconnect():
                return self._talk(recorded, recorded.step.on)
            case Watch():
                return self._watch(recorded, recorded.step)
            case Sql() | Eventually() | StartSql() | AwaitSql():
                return self._query(recorded, recorded.step)
            case Crowd():
                return self._crowd(recorded.step)
            case _:
                shown = self.player.take(recorded.step)
                return None if shown is None else str(shown.result)

    def _talk(self, recorded: Recorded, on: str) -> Json:
        try:
            shown = self.player.take(recorded.step)
        except OSError as error:
            return self._ended(f"<{type(error).__name__}>")
        if shown is None:
            return None
        data, hexadecimal = shown.reply.data, recorded.binary
        answer = data.hex() if hexadecimal else data.decode("latin-1")
        for begin, end in cas_spans(answer, hexadecimal=hexadecimal):
            self._names.learn(cas_number(answer[begin:end], hexadecimal=hexadecimal))
        return self._ended(answer + self.replies.ending(self.player.connections[on]))

    def _ended(self, answer: str) -> str:
        """Wait a moment for the end of a server that closed a connection."""
        deadline = time.monotonic() + DYING_SECONDS
        while self._listening and answer.endswith(">") and time.monotonic() < deadline:
            if self._target.exit_status() is not None:
                break
            time.sleep(0.02)
        return answer

    def _query(self, recorded: Recorded, step: Sql | Eventually | StartSql | AwaitSql) -> Json:
        def came(shown: Shown) -> bool:
            inner = innermost(step)
            assert isinstance(inner, Sql), "only a statement is repeated"
            assert inner.rows is not None, "it is repeated until it has rows"
            return bool(_trimmed(recorded, shown.result).get("rows") == list(map(list, inner.rows)))

        shown = self.player.take(step, came)
        if shown is None:
            return None
        if shown.result is None:
            raise SuiteError(f"{shown.sent!r} still runs after {JOIN_SECONDS:g} s")
        return _trimmed(recorded, shown.result)

    def _watch(self, recorded: Recorded, step: Watch) -> Json:
        deadline = time.monotonic() + step.seconds
        seen: list[Json] = []
        while True:
            result = self._query(recorded, Sql(step.statement, on=step.on))
            if not isinstance(result, dict) or "rows" not in result:
                return result
            if not seen or seen[-1] != result["rows"]:
                seen.append(result["rows"])
            if time.monotonic() > deadline:
                return {"seen": seen}
            time.sleep(step.every)

    def _crowd(self, crowd: Crowd) -> Json:
        """Return how often each answer came, its own words of `send` spelt as there; None if the step closes them."""
        names = [f"{crowd.name}{number}" for number in range(crowd.many)]
        if crowd.close:
            for name in names:
                self.player.take(Disconnect(name, "close"))
            return None
        answers: Counter[str] = Counter()
        opened: dict[Connection, int] = {}
        for number, name in enumerate(names):
            try:
                opened[self.player.open(name)] = number
            except OSError as error:
                answers[f"<{type(error).__name__}>"] += 1
        send = crowd.send
        requests = {each: send.replace("{i}", str(number)).encode("latin-1") for each, number in opened.items()}
        for each, reply in self.replies.send_to_all(requests, crowd.patience).items():
            answers[_as_sent(reply.decode("latin-1"), send, opened[each]) + self.replies.ending(each)] += 1
        return dict(answers)


def _as_sent(answer: str, template: str, number: int) -> str:
    """Put the words of a template that hold `{i}` in the place of what was sent for them."""
    for word in {word for word in template.split() if "{i}" in word}:
        sent = re.escape(word.replace("{i}", str(number)))
        answer = re.sub(rf"(?<!\S){sent}(?!\S)", word, answer)
    return answer


def _trimmed(step: Recorded, result: Result) -> Result:
    rows = result.get("rows")
    if not isinstance(rows, list) or (step.cols is None and step.mask is None):
        return result
    return {"rows": [[_masked(step.mask, cell) for cell in _chosen(step.cols, row)] for row in rows]}


def _chosen(columns: tuple[int, ...] | None, row: Json) -> list[Json]:
    assert isinstance(row, list), "a row is a list of cells"
    return row if columns is None else [row[number] for number in columns]


def _masked(mask: str | None, cell: Json) -> Json:
    if mask is None or not isinstance(cell, str):
        return cell
    return re.sub(mask, _without_groups, cell)


def _without_groups(found: re.Match[str]) -> str:
    text, start = found[0], found.start()
    for number in range(len(found.groups()), 0, -1):
        if found[number] is not None:
            begin, end = found.span(number)
            text = f"{text[: begin - start]}#{text[end - start :]}"
    return text
