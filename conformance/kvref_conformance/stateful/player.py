"""Take the steps of the model on an endpoint, and compare what comes with what the model allows.

The conversations of `commands`, `schemas` and `concurrency` have this one player. The steps are those of `model.steps`:
requests, of which several may be in a packet, connections that open and close, and statements over SQL.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pymysql

from kvref_conformance.conversation import Exchange
from kvref_conformance.errors import CaseFailed
from kvref_conformance.frames import BETWEEN
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer, Closed, Refill, Seen, Served, Silence
from kvref_conformance.next_word import depends_on_address
from kvref_conformance.template import with_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kvref_conformance.connection import Connection
    from kvref_conformance.coverage import Exercised
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.model.expected import Expected
    from kvref_conformance.model.model import Model
    from kvref_conformance.sql.base import Database
    from kvref_conformance.stateful.concurrency.sql import SqlConnections

# Seconds: a conversation that hangs does so many times while it is shrunk.
PATIENCE: Final = 2.0
# Seconds without a reply to a command that waits: long for an endpoint without the lock.
SILENT: Final = 0.02
# For each connection that a history leaves open to be closed by the endpoint.
CLOSE_SECONDS: Final = 1.0
SQL: Final = "sql"
# What an endpoint that ends makes of connections and statements.
BROKEN: Final = (CaseFailed, pymysql.MySQLError, sqlite3.Error)


class Wrong(NamedTuple):
    """A request or a statement, its allowed results, and the actual one."""

    request: str
    allowed: Iterable[str]
    got: str


class Player:
    """One conversation.

    Args:
        connect: opens a memcached connection, as `Endpoint.connect`.
        model: gives what is allowed.
        report: called once, with the player, when something is not allowed.
        exercised: counts the requests with their replies; None: they are not counted here.
        sql: takes the steps over SQL; None: there are none.
        patience: seconds in which what has to come comes.

    steps: that were taken.
    exchanges: what was sent and what came.
    wrong: what was not allowed; nothing is sent any more.
    """

    def __init__(
        self,
        connect: Callable[..., Connection],
        model: Model,
        report: Callable[[Player], None],
        *,
        exercised: Exercised | None = None,
        sql: SqlConnections | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.model = model
        self.steps: list[s.Step] = []
        self.exchanges: list[Exchange] = []
        self.wrong: Wrong | None = None
        self._connect, self._report = connect, report
        self._exercised, self._sql, self._patience = exercised, sql, patience
        self._connections: dict[str, Connection] = {}
        self._asked: dict[str, str] = {}

    @property
    def kinds(self) -> set[tuple[str, ...]]:
        """Return the verbs that were sent, with the first words of the replies."""
        return {
            (each.sent.split(" ", 1)[0], *each.got.split()[: 2 if each.binary else 1])
            for each in self.exchanges
            if each.on != SQL
        }

    def fill(self) -> None:
        """Give the tables of a history the rows of the model."""
        if self._sql is not None:
            self._attempt(SQL, "(filling the tables)", lambda: self._over_sql().fill(self.model))

    def take(self, *steps: s.Step) -> None:
        """Take a step, or send requests of one connection in one packet; nothing once something was not allowed.

        Raises:
            what `report` raises.
        """
        if self.wrong is None:
            steps = tuple(map(_certain, steps))
            self.steps += steps
            on = SQL if isinstance(steps[0], s.Statement) else steps[0].on
            self._attempt(on, encodings.shown(steps[0]), lambda: self._take(steps))

    def change(self, database: Database, statement: str) -> None:
        """Run a statement."""
        database.execute(statement)
        self.exchanges.append(Exchange(SQL, statement, (), ""))

    def compare_rows(self, database: Database, table: str, columns: str, keys: Sequence[str] = ()) -> None:
        """Compare the rows of a table with the model's; an exchange shows what differs.

        Args:
            database: has the table.
            table: name.
            columns: key, values, flags.
            keys: only rows with these, and with those of the model; empty: all rows.
        """
        if self.wrong is None:
            self._attempt(SQL, table, lambda: self._compare_rows(database, table, columns, keys))

    def close(self) -> None:
        """Close the connections; those of a history, which may commit, until the endpoint has closed them too."""
        connections = list(self._connections.values())
        if self._sql is None:
            for connection in connections:
                connection.close()
            return
        self._sql.roll_back()
        # All at once: a connection that waits for a lock of another one is not closed before that one.
        for connection in connections:
            connection.send(b"", half=True)
        for connection in connections:
            connection.drain(CLOSE_SECONDS)
        self._sql.end_waiting(self._patience)

    def _attempt(self, on: str, sent: str, do: Callable[[], None]) -> None:
        try:
            do()
        except BROKEN as error:
            self._see(Exchange(on, sent, (), f"{type(error).__name__}: {error}", "", kept=False))
        if self.wrong is not None:
            self._report(self)

    def _take(self, steps: Sequence[s.Step]) -> None:
        step = steps[0]
        if isinstance(step, s.Request):
            self._request([each for each in steps if isinstance(each, s.Request)])
            return
        begins = not self.model.sql_open
        expected = self.model.take(step)
        if isinstance(step, s.Open):
            self._open(step, expected)
        elif isinstance(step, s.Close):
            self._close(step, expected)
        else:
            statement = str(step).removeprefix("SQL: ")
            if isinstance(step, s.Change | s.End):
                self._over_sql().run(step, self.model, begins=begins)
                self._see(Exchange(SQL, statement, (), ""))
            self._observe(expected, statement)

    def _open(self, step: s.Open, expected: list[Expected]) -> None:
        # The endpoint deals connections to its threads in turn.
        for _ in range(self.model.skipped):
            self._connect(binary=step.protocol == s.BINARY).close()
        self._connections[step.on] = self._connect(binary=step.protocol == s.BINARY)
        if step.mapping:
            request = encodings.request(s.Bind(step.on, step.mapping, protocol=step.protocol))
            self._send(step.on, [request], expected, opening=True)

    def _request(self, steps: Sequence[s.Request]) -> None:
        requests: list[str] = []
        expected: list[Expected] = []
        for step in steps:
            number = self.model.number(step) if isinstance(step, s.Store) and step.verb == "cas" else 0
            requests.append(encodings.request(step, number))
            expected += self.model.take(step)
        self._send(steps[0].on, requests, expected)

    def _send(self, on: str, requests: list[str], expected: list[Expected], *, opening: bool = False) -> None:
        connection = self._connections[on]
        protocol = s.BINARY if connection.binary else s.TEXT
        sent = encodings.joined(protocol, requests)
        data = encodings.sent(protocol, sent)
        connection.send(data, ask=True)
        if len(requests) > 1:
            answers = [each for each in expected if isinstance(each, Answer)]
            texts = itertools.product(*(answer.texts for answer in answers))
            numbers = tuple(number for answer in answers for number in answer.numbers)
            expected = [Answer(on, tuple(encodings.joined(protocol, each) for each in texts), numbers)]
        else:
            answers = []
        self._asked[on] = sent
        self._observe(expected, opening=opening)
        last = self.exchanges[-1]
        if self._exercised is not None:
            self._exercised.record(on, data, last.got, binary=connection.binary)
        if answers and not last.kept:
            request, allowed, rest = _first_wrong(requests, answers, last.got)
            self.wrong = Wrong(request, allowed, f"{last.note} {rest}" if last.note else rest)

    def _close(self, step: s.Close, expected: list[Expected]) -> None:
        # The rows before the connection ends.
        if isinstance(expected[0], Seen):
            self._observe([expected.pop(0)], "(before the close)")
        if self.wrong is None:
            connection = self._connections[step.on]
            if step.quits:
                connection.send(encodings.sent(s.BINARY, "quit") if connection.binary else b"quit\r\n")
            self._observe(expected, f"({'quit' if step.quits else 'close'})")

    def _observe(self, expected: list[Expected], sent: str = "", *, opening: bool = False) -> None:
        """Look at what is expected, up to what is not allowed; `sent` is no request."""
        for each in expected:
            if self.wrong is None:
                self._see(self._answer(each, opening=opening) if isinstance(each, Answer) else self._look(each, sent))
                sent = ""

    def _see(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if not exchange.kept:
            got = f"{exchange.note} {exchange.got}" if exchange.note else exchange.got
            self.wrong = Wrong(exchange.sent, exchange.allowed, got)

    def _answer(self, expected: Answer, *, opening: bool) -> Exchange:
        on, connection = expected.on, self._connections[expected.on]
        reply = connection.end(self._patience)
        got = encodings.received(s.BINARY if connection.binary else s.TEXT, reply.data)
        note = reply.note(self._patience)
        kept = not note and self.model.numbers.answers(expected, got)
        return Exchange(on, self._asked[on], expected.texts, got, note, kept, opening=opening, binary=connection.binary)

    def _look(self, expected: Expected, sent: str) -> Exchange:
        """Look at what is no answer."""
        wrong = ""
        match expected:
            case Silence(s.AUTOCOMMIT):
                wrong = "" if self._over_sql().is_waiting(SILENT) else "SQL does not wait"
            case Served():
                wrong = "SQL goes on waiting" if self._over_sql().is_waiting(self._patience) else ""
            case Silence():
                reply = self._connections[expected.on].answer(SILENT)
                sent = self._asked[expected.on]
                wrong = "" if reply is None else f"it does not wait: {reply.data!r}"
            case Closed():
                wrong = "" if self._connections.pop(expected.on).hang_up(self._patience) else "it is not closed"
            case Refill():
                self._over_sql().insert(expected.table, dict(expected.rows))
            case Seen():
                wrong = self._over_sql().compare(self.model, expected, self._patience)
        on = expected.on if isinstance(expected, Silence | Closed) and expected.on in self._asked else SQL
        return Exchange(on, sent, (str(expected),), wrong or str(expected), kept=not wrong)

    def _over_sql(self) -> SqlConnections:
        assert self._sql is not None, "steps over SQL need a database"
        return self._sql

    def _compare_rows(self, database: Database, table: str, columns: str, keys: Sequence[str]) -> None:
        key, wanted = columns.partition(",")[0], self.model.rows_of(table)
        listed = ", ".join(f"'{key}'" for key in dict.fromkeys([*keys, *(str(row[0]) for row in wanted)]))
        where = f" WHERE {key} IN ({listed})" if keys else ""
        statement = f"SELECT {columns} FROM {table}{where} ORDER BY {key}"  # noqa: S608 - own names
        got = sorted((tuple(row) for row in database.query(statement)), key=str)
        if got != wanted:
            self._see(Exchange(SQL, statement, (str(wanted),), str(got), kept=False))


def counted(endpoint: Endpoint, exercised: Exercised | None) -> Callable[..., Connection]:
    """Return what opens connections to an endpoint and counts the requests on each before they are sent."""
    names = (f"connection {number}" for number in itertools.count())

    def connect(*, binary: bool) -> Connection:
        on = next(names)

        def watch(sent: bytes) -> None:
            if exercised is not None:
                exercised.record(on, sent, binary=binary) if sent else exercised.end(on)

        return endpoint.connect(binary=binary, watch=watch)

    return connect


def _certain(step: s.Step) -> s.Step:
    """Return a get with fewer words where the answer would depend on an address."""
    while (
        isinstance(step, s.Get)
        and step.protocol == s.TEXT
        and depends_on_address(encodings.request(step).encode("latin-1"), sys.maxsize)
    ):
        step = replace(step, words=step.words[:-1])
    return step


def _first_wrong(requests: list[str], answers: list[Answer], got: str) -> tuple[str, Iterable[str], str]:
    """Return the first request of a packet that is not answered as allowed, what is, and what came from there on."""
    for request, answer in zip(requests[:-1], answers[:-1], strict=True):
        found = next(filter(None, (re.match(with_numbers(text), got) for text in answer.texts)), None)
        if found is None:
            return request, answer.texts, got
        got = got[found.end() :].removeprefix(BETWEEN)
    return requests[-1], answers[-1].texts, got
