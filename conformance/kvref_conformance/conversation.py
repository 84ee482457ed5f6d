"""Hold the conversation of a case with the endpoint, keep every byte, and say what failed."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_conformance.case import By, Hangup, Pause, Reload, Say, Sql, Tick
from kvref_conformance.errors import CaseFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case, Step
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.link import Link, Reply
    from kvref_conformance.sql.base import Database
    from kvref_conformance.sql.world import World
    from kvref_conformance.template import Names

ESCAPES: Final = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\\": r"\\"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One step as it happened; bytes are latin-1 characters.

    Args:
        on: connection, or `sql`.
        sent: what was sent.
        allowed: what was allowed.
        got: what came.
        note: how it ended, where not by an answer: `hang after 5 s`, `closed`.
    """

    on: str
    sent: str
    allowed: tuple[str, ...]
    got: str
    note: str = ""


class Conversation:
    """One case on fresh connections.

    Args:
        endpoint: whom to talk to.
        names: what the names in the templates stand for.
        world: the tables behind, where the run has them.
    """

    def __init__(self, endpoint: Endpoint, names: Names, world: World | None) -> None:
        self.exchanges: list[Exchange] = []
        self.failed: Exchange | None = None
        self._endpoint = endpoint
        self.names = names
        self._world = world
        self._links: dict[str, Link] = {}

    def hold(self, case: Case) -> None:
        """Take the steps in order.

        Raises:
            CaseFailed: at the first answer that is not allowed; its text shows the conversation.
        """
        try:
            for step in case.steps:
                self._take(case, step)
        finally:
            self._hang_up()

    def _take(self, case: Case, step: Step) -> None:
        if isinstance(step, Hangup):
            self._links.pop(step.on).hang_up()
        elif isinstance(step, Sql):
            self._look_behind(step)
        elif isinstance(step, Reload):
            self._reload()
        elif isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, Tick):
            time.sleep(1 - time.time() % 1)
        else:
            if step.on not in self._links:
                self._links[step.on] = self._endpoint.link()
                if case.bind in self.names.texts:
                    self._say(Say((f"bind {{{case.bind}}}\r\n",), ("SUCCEED\r\n",), step.on))
            self._say(step)

    def _hang_up(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    def _reload(self) -> None:
        assert self._world is not None, "a case with a reload is not judged without --sql"
        self._hang_up()
        self._world.reload()
        self.exchanges.append(Exchange("sql", "(configuration read again)", (), ""))

    def _say(self, step: Say) -> None:
        allow = step.allow.of(self._endpoint.profile) if isinstance(step.allow, By) else step.allow
        sent = [self.names.render(piece) for piece in step.pieces]
        allowed = tuple(self.names.render(text) for text in allow)
        reply = self._send(self._links[step.on], tuple(piece.encode("latin-1") for piece in sent), step)
        exchange = Exchange(step.on, "".join(sent), allowed, reply.data.decode("latin-1"), _note(step, reply))
        self.exchanges.append(exchange)
        if exchange.note or not any(self.names.match(text, exchange.got) for text in allow):
            self._fail(exchange)

    def _send(self, link: Link, pieces: tuple[bytes, ...], step: Say) -> Reply:
        if step.quiet:
            return link.overhear(pieces)
        if step.closes:
            return link.tell(pieces, step.patience)
        return link.ask(pieces, step.versions, step.patience)

    def _look_behind(self, step: Sql) -> None:
        assert self._world is not None, "a case with SQL is not judged without --sql"
        database = self._world.database
        statement = self.names.render(step.statement)
        if step.fails:
            self._want_refusal(database, statement)
            return
        if step.rows is None:
            database.execute(statement)
            self.exchanges.append(Exchange("sql", statement, (), ""))
            return
        wanted = str(
            [tuple(self.names.render(cell) if isinstance(cell, str) else cell for cell in row) for row in step.rows]
        )
        exchange = Exchange("sql", statement, (wanted,), str(database.query(statement)))
        self.exchanges.append(exchange)
        if exchange.got != wanted:
            self._fail(exchange)

    def _want_refusal(self, database: Database, statement: str) -> None:
        got = "done"
        try:
            database.execute(statement)
        except (pymysql.MySQLError, sqlite3.Error) as error:
            got = f"refused: {error}"
        exchange = Exchange("sql", statement, ("refused",), got)
        self.exchanges.append(exchange)
        if got == "done":
            self._fail(exchange)

    def _fail(self, exchange: Exchange) -> None:
        self.failed = exchange
        raise CaseFailed(render(self.exchanges))


def _note(step: Say, reply: Reply) -> str:
    if reply.hang:
        return f"hang: no {'close' if step.closes else 'complete answer'} within {step.patience:g} s"
    if reply.closed and not step.closes:
        return "the endpoint closed the connection"
    return ""


def render(exchanges: Sequence[Exchange]) -> str:
    """Return the conversation as numbered lines, with what was allowed under the last step."""
    lines = []
    for number, exchange in enumerate(exchanges, 1):
        lines.append(f"{number:3}  {exchange.on:>3} > {shown(exchange.sent)}")
        lines.append(f"     {'':>3} < {shown(exchange.got)}{f'  ({exchange.note})' if exchange.note else ''}")
    lines += [f" allowed: {shown(allowed)}" for allowed in exchanges[-1].allowed]
    return "\n".join(lines)


def shown(text: str) -> str:
    r"""Return bytes as a reader types them: CR LF as \r\n, other bytes outside ASCII as \xNN, long runs cut."""
    line = "".join(c if " " <= c <= "~" and c != "\\" else ESCAPES.get(c, f"\\x{ord(c):02x}") for c in text)
    return line if len(line) <= 600 else f"{line[:400]} ... ({len(line) - 500} more) ... {line[-100:]}"
