"""Run a conversation on a target and return the observations of each step.

Recording and replaying both use this; they differ in the target and in the use of the replies.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kvref.errors import SuiteError
from kvref_conformance.corpus.connection import NORMAL, Lines, Pace
from kvref_conformance.corpus.conversation import Crowd, Query, Server, Sleep, Talk

if TYPE_CHECKING:
    from kvref_conformance.connection import Connection
    from kvref_conformance.corpus.conversation import Conversation, Step
    from kvref_conformance.corpus.holes import Json

# A server that closed a connection is given so long to be seen dead, since a dying one closes first.
DYING_SECONDS: Final = 0.3
JOIN_SECONDS: Final = 120.0


class ReplayTarget(Protocol):
    """A world in which conversations run."""

    version: str
    """Key of `got`: `8.0.33`, `5.6.14`."""

    def prepare(self, conversation: Conversation) -> str:
        """Set up the world for a conversation; return "", "closed" or "server died", the state of the port."""

    def connect(self) -> Connection:
        """Open a memcached connection; raises OSError if no server listens."""

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement on the SQL connection of that name, opened at its first use, which commits by itself.

        Called from several threads, one at a time for each name.

        Returns:
            {"rows": …}, {"affected": n} or {"error": [number, text]}; cells are JSON values: bytes as latin-1
            characters, dates and decimals as the text that SQL shows.
        """

    def server(self, action: str) -> str:
        """Do `reload`, `restart` or `kill9`; returns "open", "closed" or "server died", the state of the port."""

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
    """
    port = target.prepare(conversation)
    player = _Player(target, pace, listening=not port)
    try:
        steps = tuple(player.take(step) for step in conversation.steps)
        late = player.lines.late()
        crash = target.exit_status()
    finally:
        player.lines.close()
        player.join_all()
        target.finish()
    return Played(port, steps, crash, late)


class _Player:
    def __init__(self, target: ReplayTarget, pace: Pace, *, listening: bool) -> None:
        self._target = target
        self._listening = listening
        self.lines = Lines(target.connect, pace)
        self._running: dict[str, _Running] = {}

    def take(self, step: Step) -> Observed:
        began = time.time()
        got = self._take(step)
        return Observed(got, began, time.time())

    def _take(self, step: Step) -> Json:
        match step:
            case Talk():
                return self._talk(step)
            case Query():
                return self._query(step)
            case Crowd():
                return self.lines.crowd(step)
            case Server():
                return self._target.server(step.server)
            case Sleep():
                time.sleep(step.sleep)
                return None

    def _talk(self, step: Talk) -> Json:
        answer = self.lines.talk(step)
        if self._listening and answer is not None and answer.endswith(">"):
            self._let_die()
        return answer

    def _let_die(self) -> None:
        deadline = time.monotonic() + DYING_SECONDS
        while self._target.exit_status() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def _query(self, step: Query) -> Json:
        if step.join:
            return _trimmed(step, self._running.pop(step.sql).result())
        assert step.exec is not None, "a SQL step has `exec` or `join`"
        if step.asynchronous:
            self._running[step.sql] = _Running(self._target, step.sql, step.exec)
            return None
        if step.poll is not None:
            return self._poll(step, step.exec, step.poll["until"], step.poll["every"], step.poll["timeout"])
        if step.watch is not None:
            return self._watch(step, step.exec, step.watch["for"], step.watch["every"])
        return _trimmed(step, self._target.execute(step.sql, step.exec))

    def _poll(self, step: Query, statement: str, until: Json, every: float, timeout: float) -> Json:
        deadline = time.monotonic() + timeout
        while True:
            result = _trimmed(step, self._target.execute(step.sql, statement))
            if result.get("rows") == until or time.monotonic() > deadline:
                return result
            time.sleep(every)

    def _watch(self, step: Query, statement: str, seconds: float, every: float) -> Json:
        deadline = time.monotonic() + seconds
        seen: list[Json] = []
        while True:
            result = _trimmed(step, self._target.execute(step.sql, statement))
            if "rows" not in result:
                return result
            if not seen or seen[-1] != result["rows"]:
                seen.append(result["rows"])
            if time.monotonic() > deadline:
                return {"seen": seen}
            time.sleep(every)

    def join_all(self) -> None:
        """Wait for statements that no step waited for; what blocks them ended with the memcached connections."""
        for running in self._running.values():
            running.result()


class _Running:
    """A statement that runs in a thread of its own."""

    def __init__(self, target: ReplayTarget, name: str, statement: str) -> None:
        self._statement = statement
        self._result: dict[str, Json] = {}
        self._thread = threading.Thread(target=self._run, args=(target, name, statement), daemon=True)
        self._thread.start()

    def _run(self, target: ReplayTarget, name: str, statement: str) -> None:
        self._result = target.execute(name, statement)

    def result(self) -> dict[str, Json]:
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            raise SuiteError(f"{self._statement!r} still runs after {JOIN_SECONDS:g} s")
        return self._result


def _trimmed(step: Query, result: dict[str, Json]) -> dict[str, Json]:
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
