"""Run one conversation on two servers at once, without waiting for silence.

A `version`, or a noop in the binary protocol, after each command marks the end of its answer. A connection is closed
by closing its sending side and reading to the end: the server has then finished with it.
"""

from __future__ import annotations

import re
import time
from math import inf
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.connection import MAX_ANSWER_BYTES, Reply, beyond
from kvref_conformance.corpus.conversation import Conversation
from kvref_conformance.corpus.templates import CasNames, plain
from kvref_conformance.differential.commands import MARK_OPAQUE
from kvref_conformance.differential.compare import lines
from kvref_conformance.frames import CAS, encode, split
from kvref_conformance.player import Player
from kvref_conformance.steps import AwaitReply, Disconnect, Send, Sql

if TYPE_CHECKING:
    from kvref_conformance.connection import Connection
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.player import ReplayTarget
    from kvref_conformance.differential.generate import Script
    from kvref_conformance.steps import StartRequest, Step
    from kvref_conformance.strategies.world import Table, World

MARK: Final = b"version\r\n"
NOOP: Final = encode(f"noop opaque={int.from_bytes(MARK_OPAQUE, 'big')}")
_MARKED_BY: Final = MARK_OPAQUE + bytes(CAS.stop - CAS.start)
_MARKED: Final = re.compile(rb"VERSION [0-9][0-9A-Za-z.+-]*\r\n\Z")
# flush_all of 8.0 may wait for the plugin's background thread, which wakes every five seconds.
PATIENCE: Final = 8.0
DYING: Final = 1.0
# Between two packets, which are one otherwise.
PACKET_SECONDS: Final = 0.01
# Placeholders for an answer.
SILENCE: Final = b"<silence>"
CLOSED: Final = b"<EOF>"
FLOOD: Final = b"<%s>" % beyond(MAX_ANSWER_BYTES).encode()
OWN: Final = "duel"
# MySQL's client says so when the server is gone.
GONE: Final = (2006, 2013)


class Marks:
    """The `player.Replies` of a run: a reply ends before that to a mark, which is sent behind the command."""

    def __init__(self) -> None:
        self._binary: dict[Connection, bool] = {}

    def send(self, connection: Connection, step: Send | StartRequest, packets: tuple[bytes, ...]) -> Reply:
        """Send packets, the mark with the last one; `receive` returns the reply."""
        self._binary[connection] = step.binary
        for packet in packets[:-1]:
            connection.send(packet)
            time.sleep(PACKET_SECONDS)
        connection.send(packets[-1] + (NOOP if step.binary else MARK))
        return Reply(b"")

    start = send

    def receive(self, connection: Connection, step: AwaitReply) -> Reply:
        """Return the reply to what `send` sent, or a placeholder."""
        return Reply(_read(connection, step.patience, binary=self._binary[connection]))

    def disconnect(self, connection: Connection, _how: str) -> None:
        """Close a connection, and wait until the server has."""
        connection.hang_up(PATIENCE)


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
        self._player = Player(target, self._names, Marks())

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
        self._player = Player(self.target, self._names, Marks())
        self._change(statements)

    def _change(self, statements: tuple[str, ...]) -> None:
        self.target.execute(OWN, "BEGIN")
        for statement in statements:
            if error := self.execute(statement).get("error"):
                raise SuiteError(f"{self.name}: {statement!r} failed: {error}")
        self.target.execute(OWN, "COMMIT")

    def send(self, step: Send) -> None:
        """Send what a step says, and the mark."""
        self._player.take(step)

    def receive(self, step: Send, patience: float) -> bytes:
        """Return the answer to what was sent, without that to the mark."""
        shown = self._player.take(AwaitReply((), step.on, patience))
        assert shown is not None, "what waits has a reply"
        assert shown.reply is not None, "what waits has a reply"
        answer = shown.reply.data
        for line in lines(answer, binary=step.binary):
            for number in line.numbers:
                self._names.learn(number)
        return answer

    def close(self, name: str) -> None:
        """Close a connection, if it is open, and wait until the server has."""
        if name in self._player.connections:
            self._player.take(Disconnect(name, "half"))

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
        rows = result.get("rows")
        assert isinstance(rows, list), f"{self.name}: {result}"
        return [
            [_plain(cell) if hide else cell for cell, hide in zip(_listed(row), hidden, strict=True)] for row in rows
        ]

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


def _read(connection: Connection, patience: float, *, binary: bool) -> bytes:
    """Return the answer without that to the mark, and a placeholder where there is none."""
    find = _end_of_frames if binary else _end_of_lines
    reply = connection.read(lambda data: inf if find(bytes(data)) is None else 0.0, patience)
    if reply.limit:
        return reply.data + FLOOD
    end = find(reply.data)
    return reply.data[:end] if end is not None else reply.data + (CLOSED if reply.closed else SILENCE)


def _end_of_lines(data: bytes) -> int | None:
    """Return where the answer to the mark begins; None while it is not there."""
    marked = _MARKED.search(data, max(0, len(data) - 80))
    return None if marked is None else marked.start()


def _end_of_frames(data: bytes) -> int | None:
    # The reply to the mark is a header alone, and the last that comes.
    if len(data) < len(NOOP) or not data.endswith(_MARKED_BY):
        return None
    found, rest = split(data)
    marked = found and not rest and found[-1].opaque == MARK_OPAQUE
    return len(data) - len(NOOP) if marked else None


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


def _listed(row: Json) -> list[Json]:
    assert isinstance(row, list), "a row is a list of cells"
    return row


def _plain(cell: Json) -> Json:
    return bytes.fromhex(cell).decode("latin-1") if isinstance(cell, str) else None


def _result(side: Side, statement: str) -> bytes:
    # How many rows a statement changed is counted differently; that it failed, and the rows at the end, are compared.
    error = side.execute(statement).get("error")
    if isinstance(error, list) and not error[0]:
        raise SuiteError(f"{side.name}: {statement!r}: {error[1]}")  # not the database said so
    return b"<SQL error>" if error else b"<SQL done>"


def begin(script: Script, sides: tuple[Side, Side]) -> None:
    """Fill the tables of both sides."""
    for side in sides:
        side.begin(script.rows)
