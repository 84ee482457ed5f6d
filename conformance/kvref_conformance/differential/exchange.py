"""Run one conversation on two servers at once, without waiting for silence.

The sentinel of a connection is sent with each command (`connection.py`). A connection is closed by closing its sending
side and reading to the end: the server has then finished with it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import SuiteError
from kvref_conformance.connection import MAX_ANSWER_BYTES, beyond
from kvref_conformance.corpus.conversation import Conversation
from kvref_conformance.corpus.templates import CasNames, plain
from kvref_conformance.differential.compare import lines
from kvref_conformance.player import Player
from kvref_conformance.sentinels import Sentinels
from kvref_conformance.steps import AwaitReply, Disconnect, Send, Sql

if TYPE_CHECKING:
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.player import ReplayTarget
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
        self._names = CasNames()
        self._player = Player(target, self._names, Sentinels())

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
        self._names = CasNames()
        self._player = Player(self.target, self._names, Sentinels())
        self._change(statements)

    def _change(self, statements: tuple[str, ...]) -> None:
        self.target.execute(OWN, "BEGIN")
        for statement in statements:
            if error := self.execute(statement).get("error"):
                raise SuiteError(f"{self.name}: {statement!r} failed: {error}")
        self.target.execute(OWN, "COMMIT")

    def send(self, step: Send) -> None:
        """Send what a step says, and the sentinel of its connection."""
        self._player.start(step)

    def receive(self, step: Send, patience: float) -> bytes:
        """Return the answer to what was sent."""
        shown = self._player.take(AwaitReply((), step.on, patience))
        assert shown is not None, "what waits has a reply"
        assert shown.reply is not None, "what waits has a reply"
        reply = shown.reply
        answer = reply.data + (FLOOD if reply.limit else SILENCE if reply.hang else CLOSED if reply.closed else b"")
        for line in lines(answer, binary=step.binary):
            for number in line.numbers:
                self._names.learn(number)
        return answer

    def close(self, name: str) -> None:
        """Close a connection, if it is open, and wait until the server has."""
        if name in self._player.connections:
            self._player.connections.pop(name).hang_up(PATIENCE)

    def end(self) -> None:
        """Close all connections, and wait for what they commit."""
        for name in list(self._player.connections):
            self.close(name)
        self.target.settle()

    def rows(self, table: Table) -> list[list[Json]]:
        """Return what SQL sees of a table, texts as bytes in latin-1 characters: a plugin stores malformed ones."""
        hidden = [column.kind != "integer" for column in table.columns]
        cells = ", ".join(f"HEX({c.name})" if hide else c.name for c, hide in zip(table.columns, hidden, strict=True))
        result = self.execute(f"SELECT {cells} FROM test.{table.name}")
        rows: Any = result.get("rows")
        assert isinstance(rows, list), f"{self.name}: {result}"
        return [[_plain(cell) if hide else cell for cell, hide in zip(row, hidden, strict=True)] for row in rows]

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


def take(step: Step, sides: tuple[Side, Side], patience: float) -> tuple[bytes | None, bytes | None]:
    """Take one step on both sides and return what each answered."""
    match step:
        case Disconnect():
            for side in sides:
                side.close(step.on)
        case Send():
            for side in sides:
                side.send(step)
            return sides[0].receive(step, patience), sides[1].receive(step, patience)
        case Sql():
            statement = plain(step.statement)
            return _result(sides[0], statement), _result(sides[1], statement)
        case _:
            pass  # a pause is for players that cannot see the server close
    return None, None


def _plain(cell: Json) -> Json:
    return bytes.fromhex(cell).decode("latin-1") if isinstance(cell, str) else None


def _result(side: Side, statement: str) -> bytes:
    # How many rows a statement changed is counted differently; that it failed, and the rows at the end, are compared.
    error = side.execute(statement).get("error")
    if isinstance(error, list) and not error[0]:
        raise SuiteError(f"{side.name}: {statement!r}: {error[1]}")  # not the database said so
    return b"<SQL error>" if error else b"<SQL done>"
