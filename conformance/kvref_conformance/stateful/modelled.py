"""Take the steps of the model on an endpoint, and compare what comes with what the model allows.

The conversations of `commands`, `schemas` and `concurrency` are cases that come into being step by step: each step of
`model.steps`, such as a command, becomes one of `kvref_conformance.steps` with the replies that the model allows, and
`conversation.py` takes and judges it. Cas numbers have names in it, so that it can be repeated as it is.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pymysql

from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.conversation import DONE, Conversation, Exchange
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer, Closed, Refill, Seen, Served, Silence
from kvref_conformance.stateful.statements import SILENT, WAITER, insertion, opening, selection, statements
from kvref_conformance.steps import AwaitReply, AwaitSql, Disconnect, Eventually, Send, Sql, StartRequest, StartSql
from kvref_conformance.wire.frames import BETWEEN
from kvref_conformance.wire.next_word import depends_on_address
from kvref_conformance.wire.template import CAS, Names, with_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kvref_conformance.coverage import Exercised
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.model.expected import Expected
    from kvref_conformance.model.model import Model
    from kvref_conformance.model.rows import Number
    from kvref_conformance.sql.base import Database
    from kvref_conformance.stateful.concurrency.sql import SqlConnections
    from kvref_conformance.steps import Step

# Seconds: a conversation that hangs does so many times while it is shrunk.
PATIENCE: Final = 2.0
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


class ModelledConversation:
    """One conversation.

    Args:
        endpoint: the endpoint.
        model: gives what is allowed.
        report: called once, with the conversation, when something is not allowed.
        exercised: counts the requests with their replies; None: they are not counted.
        sql: takes the steps over SQL; None: there are none.
        patience: seconds in which what has to come comes.

    steps: that were taken.
    wrong: what was not allowed; nothing is sent any more.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: Model,
        report: Callable[[ModelledConversation], None],
        *,
        exercised: Exercised | None = None,
        sql: SqlConnections | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.model = model
        self.steps: list[s.Step] = []
        self.wrong: Wrong | None = None
        self._endpoint, self._report = endpoint, report
        self._exercised, self._sql, self._patience = exercised, sql, patience
        self._names = Names({}, str)
        self._conversation = Conversation(endpoint, self._names, None)
        self._numbers: dict[Number, str] = {}
        self._used: set[str] = set()

    @property
    def exchanges(self) -> list[Exchange]:
        """Return what was sent and what came."""
        return self._conversation.exchanges

    @property
    def kinds(self) -> set[tuple[str, ...]]:
        """Return the verbs that were sent, with the first words of the replies."""
        return {
            (each.sent.split(" ", 1)[0], *each.got.split()[: 2 if each.step.binary else 1])
            for each in self.exchanges
            if isinstance(each.step, Send)
        }

    def fill(self) -> None:
        """Give the tables of a history the rows of the model."""
        if self._sql is not None:
            self._attempt(SQL, "(filling the tables)", self._fill)

    def take(self, *steps: s.Step) -> None:
        """Take a step, or send requests of one connection in one packet; nothing once something was not allowed.

        Raises:
            what `report` raises.
        """
        if self.wrong is None:
            # Histories have batches.
            steps = tuple(_certain(step, counted=self._sql is not None) for step in steps)
            self.steps += steps
            on = SQL if isinstance(steps[0], s.Statement) else steps[0].on
            self._attempt(on, encodings.shown(steps[0]), lambda: self._take(steps))

    def change(self, database: Database, statement: str) -> None:
        """Run a statement."""
        database.execute(statement)
        self._conversation.judge(Exchange(SQL, statement, (), "", step=Sql(statement)))

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
        if self._sql is None:
            self._conversation.close()
            return
        self._sql.roll_back()
        # All at once: a connection that waits for a lock of another one is not closed before that one.
        connections = list(self._conversation.connections.values())
        for connection in connections:
            connection.send(b"", half=True)
        for connection in connections:
            connection.drain(CLOSE_SECONDS)
        self._conversation.close()
        self._sql.end_waiting(self._patience)

    def _attempt(self, on: str, sent: str, do: Callable[[], None]) -> None:
        try:
            do()
        except BROKEN as error:
            if self._conversation.failed is None:
                broken = Exchange(on, sent, (), f"{type(error).__name__}: {error}", "", passed=False)
                self.exchanges.append(broken)
                self.wrong = Wrong(sent, (), broken.got)
        else:
            return
        if self.wrong is None:
            failed = self.exchanges[-1]
            self.wrong = Wrong(failed.sent, failed.allowed, failed.got)
        self._report(self)

    def _take(self, steps: Sequence[s.Step]) -> None:
        step = steps[0]
        if isinstance(step, s.Request):
            self._request(step.on, [each for each in steps if isinstance(each, s.Request)])
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
                for each in statements(step, self.model, begins=begins):
                    self._run(each, self._over_sql().run(each))
            self._observe(expected, "" if isinstance(step, s.Change | s.End) else statement)

    def _first_use(self, on: str) -> None:
        """Add what a SQL connection begins with, where this is its first statement of the conversation."""
        if self._over_sql().transactions and on not in self._used:
            self._used.add(on)
            self._run(opening(on))

    def _fill(self) -> None:
        for each in self._over_sql().fill(self.model):
            self._run(each)

    def _run(self, step: Sql | StartSql, wrong: str = "") -> None:
        """Add a statement; `wrong` came although it should not."""
        self._first_use(step.on)
        done = "" if isinstance(step, StartSql) else DONE
        self._conversation.judge(Exchange(step.on, step.statement, (done,), wrong or done, passed=not wrong, step=step))

    def _open(self, step: s.Open, expected: list[Expected]) -> None:
        binary = step.protocol == s.BINARY
        # The endpoint deals connections to its threads in turn.
        for _ in range(self.model.skipped):
            self._endpoint.connect().close()
        if step.mapping:
            answer = expected.pop(0)
            assert isinstance(answer, Answer), "bind does not wait"
            request = encodings.request(s.Bind(step.on, step.mapping, protocol=step.protocol))
            bind = Send((request,), self._named(answer), step.on, patience=self._patience, binary=binary)
            self._take_one(partial(self._conversation.open, step.on, bind, binary=binary), answer, [request], [answer])
        else:
            self._conversation.open(step.on, None, binary=binary)
        self._observe(expected)

    def _request(self, on: str, steps: Sequence[s.Request]) -> None:
        binary = self._conversation.connections[on].binary
        protocol = s.BINARY if binary else s.TEXT
        requests: list[str] = []
        expected: list[Expected] = []
        for step in steps:
            number = self.model.number(step) if isinstance(step, s.Store) and step.verb == "cas" else 0
            requests.append(encodings.request(step, self._name_of(number)))
            expected += self.model.take(step)
        sent = encodings.joined(protocol, requests)
        first = expected.pop(0)
        if isinstance(first, Silence):
            self._conversation.take(StartRequest((sent,), on, SILENT, binary))
            self._record()
        else:
            # Several requests in a packet have no other effect than their answers.
            answers = [each for each in (first, *(expected if len(requests) > 1 else ())) if isinstance(each, Answer)]
            texts = itertools.product(*(answer.texts for answer in answers))
            numbers = tuple(number for answer in answers for number in answer.numbers)
            whole = Answer(on, tuple(encodings.joined(protocol, each) for each in texts), numbers)
            asking = Send((sent,), self._named(whole), on, patience=self._patience, binary=binary)
            self._take_one(partial(self._conversation.take, asking), whole, requests, answers)
            expected = expected if len(requests) == 1 else []
        self._observe(expected)

    def _take_one(self, take: Callable[[], None], whole: Answer, requests: list[str], answers: list[Answer]) -> None:
        """Take a step that has an answer, and learn its cas numbers."""
        try:
            take()
        except CaseFailed:
            if failed := self._conversation.failed:
                self._record()
                request, allowed, rest = _first_wrong(requests, answers, failed.got)
                self.wrong = Wrong(request, allowed, f"{failed.note} {rest}" if failed.note else rest)
            raise
        self._record()
        self.model.numbers.answers(whole, self.exchanges[-1].got)

    def _record(self) -> None:
        """Count the requests of the last exchange."""
        last = self.exchanges[-1]
        if self._exercised is not None and isinstance(last.step, Send | StartRequest):
            binary = last.step.binary
            data = encodings.sent(s.BINARY if binary else s.TEXT, last.sent)
            self._exercised.record(last.on, data, last.got if isinstance(last.step, Send) else None, binary=binary)

    def _close(self, step: s.Close, expected: list[Expected]) -> None:
        # The rows before the connection ends.
        if isinstance(expected[0], Seen):
            self._observe([expected.pop(0)], "(before the close)")
        if step.quits:
            connection = self._conversation.connections[step.on]
            request = "quit" if connection.binary else "quit\r\n"
            connection.send(encodings.sent(s.BINARY if connection.binary else s.TEXT, request))
            asking = StartRequest((request,), step.on, 0.0, connection.binary)
            self._conversation.judge(Exchange(step.on, request, (), "", step=asking))
        self._observe(expected, "(close)")

    def _observe(self, expected: list[Expected], sent: str = "") -> None:
        """Look at what is expected; `sent` is not a request."""
        for each in expected:
            if isinstance(each, Answer):
                awaiting = AwaitReply(self._named(each), each.on, self._patience)
                self._take_one(partial(self._conversation.take, awaiting), each, [""], [each])
            elif isinstance(each, Refill):
                filling = insertion(each.table, dict(each.rows))
                self._run(filling, self._over_sql().run(filling))
            elif not isinstance(each, Silence):  # the statement that waits was started as one that does
                on = each.on if isinstance(each, Closed) else SQL
                step, wrong = self._as_step(each), self._read_rows(each)
                self._conversation.judge(
                    Exchange(on, sent, (str(each),), wrong or str(each), passed=not wrong, step=step)
                )
            sent = ""

    def _read_rows(self, expected: Expected) -> str:
        """Look at what is not an answer; return what is wrong."""
        match expected:
            case Served():
                return "SQL goes on waiting" if self._over_sql().is_waiting(self._patience) else ""
            case Closed():
                if self._exercised is not None:
                    self._exercised.end(expected.on)
                closes = self._conversation.connections.pop(expected.on).hang_up(self._patience)
                return "" if closes else "it is not closed"
            case Seen():
                return self._over_sql().compare(self.model, expected, self._patience)
        return ""

    def _as_step(self, expected: Expected) -> Step | None:
        """Return the step by which a case looks at what is not an answer."""
        match expected:
            case Served():
                return AwaitSql(WAITER, patience=self._patience)
            case Closed():
                return Disconnect(expected.on)
            case Seen():
                step = selection(self.model, expected)
                self._first_use(step.on)
                return Eventually(step, self._patience) if expected.soon else step
        return None

    def _named(self, answer: Answer) -> tuple[str, ...]:
        """Return the texts of an answer with names for its cas numbers; what was not seen yet must be a new number."""
        if not answer.numbers:
            return answer.texts
        pieces = (text.split(CAS) for text in answer.texts)
        holes = list(map(self._hole, answer.numbers))
        return tuple(first + "".join(map("".join, zip(holes, rest, strict=True))) for first, *rest in pieces)

    def _hole(self, number: Number) -> str:
        name = self._numbers.setdefault(number, f"n{len(self._numbers)}")
        if number.seen is None:
            return f"<new cas {name}>"
        self._names.texts[name] = str(number.seen)
        return f"{{{name}}}"

    def _name_of(self, seen: int) -> str:
        """Return what is sent for a cas number: its name, or a number that none has."""
        return next((f"{{{name}}}" for number, name in self._numbers.items() if number.seen == seen), str(seen))

    def _over_sql(self) -> SqlConnections:
        assert self._sql is not None, "steps over SQL need a database"
        return self._sql

    def _compare_rows(self, database: Database, table: str, columns: str, keys: Sequence[str]) -> None:
        key, wanted = columns.partition(",")[0], self.model.rows_of(table)
        listed = ", ".join(f"'{key}'" for key in dict.fromkeys([*keys, *(str(row[0]) for row in wanted)]))
        where = f" WHERE {key} IN ({listed})" if keys else ""
        statement = f"SELECT {columns} FROM {table}{where} ORDER BY {key}"
        got = sorted((tuple(row) for row in database.query(statement)), key=str)
        if got != wanted:
            step = Sql(statement, tuple(wanted))
            self._conversation.judge(Exchange(SQL, statement, (str(wanted),), str(got), passed=False, step=step))


def _certain(step: s.Step, *, counted: bool) -> s.Step:
    """Return a get with fewer words where the answer would depend on an address; `counted`: see there."""
    while (
        isinstance(step, s.Get)
        and step.protocol == s.TEXT
        and depends_on_address(encodings.request(step).encode("latin-1"), sys.maxsize, counted=counted)
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
