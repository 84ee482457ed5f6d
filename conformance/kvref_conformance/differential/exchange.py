"""Run one conversation on two servers at once, without waiting for silence, up to the first difference.

The sentinel of a connection is sent with each command (`connection.py`). A connection is closed by closing its sending
side and reading to the end: the server has then finished with it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import SuiteError
from kvref_conformance.corpus.conversation import Conversation
from kvref_conformance.corpus.templates import CasNames, bytes_of, without_placeholders
from kvref_conformance.differential.compare import Counted, differing_rows, explained, lines, same
from kvref_conformance.differential.kinds import kind_of_frames, kind_of_rows, kind_of_text
from kvref_conformance.judging.player import Player
from kvref_conformance.steps import AwaitReply, Disconnect, Send, Sql
from kvref_conformance.wire.connection import MAX_ANSWER_BYTES, beyond
from kvref_conformance.wire.frames import BETWEEN, decode_requests
from kvref_conformance.wire.sentinels import Sentinels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.observe import ReplayTarget
    from kvref_conformance.differential.generate import Script
    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.steps import Step
    from kvref_conformance.strategies.world import Table, World

# flush_all of 8.0 may wait for the plugin's background thread, which wakes every five seconds.
PATIENCE: Final = 8.0
DYING: Final = 1.0
# Placeholders for an answer.
SILENCE: Final = b"<silence>"
CLOSED: Final = b"<EOF>"
FLOOD: Final = b"<%s>" % beyond(MAX_ANSWER_BYTES).encode()
OWN: Final = "duel"
# The kind of a difference where a server could not be reached.
LOST: Final = "connection lost"
# MySQL's client says so when the server is gone.
GONE: Final = (2006, 2013)


class Side:
    """One of the two servers.

    Args:
        name: as the reader knows it.
        target: the server.
        options: of the server, as of a conversation.
    """

    def __init__(self, name: str, target: ReplayTarget, options: tuple[str, ...] = ()) -> None:
        self.name = name
        self.target = target
        self._options = options
        self._begin()

    def prepare(self, world: World) -> str:
        """Make a world; returns "", "closed" or "server died"."""
        self.target.finish()
        return self.target.prepare(Conversation("duel", "duel", "", (), self._options, world.set_up()))

    def renew(self, world: World) -> str:
        """Give a world that is there its mappings again, and have them read; returns as `prepare`."""
        self._change(world.configuration())
        return "" if self.target.server("reload") == "open" else "closed"

    def begin(self, statements: tuple[str, ...]) -> None:
        """Fill the tables for the next conversation."""
        self._begin()
        self._change(statements)

    def _begin(self) -> None:
        self._names = CasNames()
        self.player = Player(self.target, self._names, Sentinels())

    def _change(self, statements: tuple[str, ...]) -> None:
        self.target.execute(OWN, "BEGIN")
        for statement in statements:
            if error := self.execute(statement).get("error"):
                raise SuiteError(f"{self.name}: {statement!r} failed: {error}")
        self.target.execute(OWN, "COMMIT")

    def receive(self, step: Send, patience: float) -> bytes:
        """Return the answer to what `player` was started with."""
        reply = self.player.take(AwaitReply((), step.on, patience)).reply
        answer = reply.data + (FLOOD if reply.limit else SILENCE if reply.hang else CLOSED if reply.closed else b"")
        for line in lines(answer, binary=step.binary):
            for number in line.numbers:
                self._names.learn(number)
        return answer

    def close(self, name: str) -> None:
        """Close a connection, if it is open, and wait until the server has."""
        if name in self.player.connections:
            self.player.connections.pop(name).hang_up(PATIENCE)

    def end(self) -> None:
        """Close all connections, and wait for what they commit."""
        for name in list(self.player.connections):
            self.close(name)
        self.target.settle()

    def rows(self, table: Table) -> list[list[Json]]:
        """Return what SQL sees of a table, texts as bytes in latin-1 characters: a plugin stores malformed ones."""
        hidden = [column.kind != "integer" for column in table.columns]
        cells = ", ".join(f"HEX({c.name})" if hide else c.name for c, hide in zip(table.columns, hidden, strict=True))
        result = self.execute(f"SELECT {cells} FROM test.{table.name}")
        rows: Any = result.get("rows")
        assert isinstance(rows, list), f"{self.name}: {result}"
        return [[_text(cell) if hide else cell for cell, hide in zip(row, hidden, strict=True)] for row in rows]

    def execute(self, statement: str) -> dict[str, Json]:
        """Run a statement; see `ReplayTarget.execute`.

        Raises:
            ConnectionError: the server is gone.
        """
        result = self.target.execute(OWN, statement)
        error = result.get("error")
        if isinstance(error, list) and error[0] in GONE:
            raise ConnectionError(f"{self.name}: {statement[:80]}: {error[1]}")
        return result

    def exit_status(self) -> int | None:
        """Return the exit status of a server that died, waiting a little for its end; None while it runs."""
        deadline = time.monotonic() + DYING
        while (status := self.target.exit_status()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return status


Sides = tuple[Side, Side]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the two sides part.

    Args:
        step: number of the step, from 0; None: the rows afterwards.
        kind: under which it is counted.
        left: what the first side showed.
        right: what the other showed.
    """

    step: int | None
    kind: str
    left: str
    right: str


@dataclass(slots=True)
class Outcome:
    """One conversation as it went.

    Args:
        answers: of the steps taken, for the reader.
        difference: the first one, None where there is none.
        known: ids of rows of `known_differences.toml` that explained something.
        died: names of the sides whose server ended.
    """

    answers: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    difference: Difference | None = None
    known: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)


def run_script(script: Script, sides: Sides, known: Sequence[Known], patience: float = PATIENCE) -> Outcome:
    """Fill the tables, take the steps, compare, close.

    Args:
        script: the conversation.
        sides: both servers, in the script's world.
        known: rows that explain differences.
        patience: seconds to wait for an answer.
    """
    outcome = Outcome()
    counted = Counted()
    try:
        for side in sides:
            side.begin(script.rows)
        for number, step in enumerate(script.steps):
            left, right = _take(step, sides, patience)
            outcome.answers.append((left, right))
            if left is None or right is None:
                continue
            whole = bytes_of(step) if isinstance(step, Send) else b""
            outcome.difference = _compare(number, step, whole, (left, right), known, counted, outcome)
            if outcome.difference is not None or SILENCE in left:
                break
        else:
            for side in sides:
                side.end()
            outcome.difference = _compare_rows(script, sides, counted)
    except OSError as error:
        outcome.difference = Difference(len(outcome.answers), LOST, str(error), str(error))
    finally:
        for side in sides:
            side.end()
    if outcome.difference is not None:
        _check_alive(outcome, sides)
    return outcome


def _take(step: Step, sides: Sides, patience: float) -> tuple[bytes | None, bytes | None]:
    """Take one step on both sides and return what each answered."""
    match step:
        case Disconnect():
            for side in sides:
                side.close(step.on)
        case Send():
            for side in sides:
                side.player.start(step)
            return sides[0].receive(step, patience), sides[1].receive(step, patience)
        case Sql():
            statement = without_placeholders(step.statement)
            return _result(sides[0], statement), _result(sides[1], statement)
        case _:
            pass  # a pause is for players that cannot see the server close
    return None, None


def _result(side: Side, statement: str) -> bytes:
    # How many rows a statement changed is counted differently; that it failed, and the rows at the end, are compared.
    error = side.execute(statement).get("error")
    if isinstance(error, list) and not error[0]:
        raise SuiteError(f"{side.name}: {statement!r}: {error[1]}")  # not the database said so
    return b"<SQL error>" if error else b"<SQL done>"


def _compare(
    number: int,
    step: Step,
    whole: bytes,
    answers: tuple[bytes, bytes],
    known: Sequence[Known],
    counted: Counted,
    outcome: Outcome,
) -> Difference | None:
    binary = isinstance(step, Send) and step.binary
    left, right = (lines(answer, binary=binary) for answer in answers)
    if same(left, right, counted):
        return None
    sent = decode_requests(whole).replace(BETWEEN, "\n") if binary else whole.decode("latin-1")
    ids = explained(sent, left, right, known, counted)
    if ids is not None:
        outcome.known += ids
        return None
    kind = kind_of_frames(sent, left, right, known, counted) if binary else kind_of_text(whole, *answers)
    return Difference(number, kind, *(repr(answer)[2:-1] for answer in answers))


def _compare_rows(script: Script, sides: Sides, counted: Counted) -> Difference | None:
    for table in script.world.mapped:
        found = differing_rows(script.world, table, sides[0].rows(table), sides[1].rows(table), counted)
        if found is not None:
            left, right = found
            kind = f"rows: {kind_of_rows(table, left, right)}"
            return Difference(None, kind, f"{table.name}: {left}", f"{table.name}: {right}")
    return None


def _check_alive(outcome: Outcome, sides: Sides) -> None:
    difference = outcome.difference
    assert difference is not None, "a server is looked for where something differs"
    if difference.kind != LOST and not any("<EOF>" in text for text in (difference.left, difference.right)):
        return
    for side in sides:
        status = side.exit_status()
        if status is not None:
            outcome.died.append(side.name)
            outcome.difference = Difference(
                difference.step, f"{side.name} died ({status})", difference.left, difference.right
            )


def _text(cell: Json) -> Json:
    return bytes.fromhex(cell).decode("latin-1") if isinstance(cell, str) else None
