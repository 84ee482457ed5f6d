"""Run commands of the text protocol on two connections and compare each reply with the model's."""

from __future__ import annotations

import itertools
import re
import sys
from typing import TYPE_CHECKING, Final

from kvref_conformance.conversation import Exchange
from kvref_conformance.findings import signature
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer
from kvref_conformance.next_word import depends_on_address
from kvref_conformance.template import with_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvref_conformance.findings import Search
    from kvref_conformance.judge import Judge
    from kvref_conformance.model.model import Model

# Seconds: a conversation that hangs does so many times while it is shrunk.
PATIENCE: Final = 2.0
CONNECTIONS: Final = "ab"


class Player:
    """One conversation.

    Args:
        judge: of the run.
        search: takes what is not allowed.
        case: id of the generated case.
        model: gives the allowed replies.
        keys: of the conversation.
        connections: names of those that are opened.

    failed: something was not allowed; nothing is sent any more.
    """

    def __init__(
        self,
        judge: Judge,
        search: Search,
        case: str,
        model: Model,
        keys: Sequence[str] = (),
        connections: str = CONNECTIONS,
    ) -> None:
        self.model = model
        self.failed = False
        self._judge, self._search, self._case, self._keys = judge, search, case, keys
        self._exchanges: list[Exchange] = []
        self._connections = {on: judge.endpoint.connect() for on in connections}
        for on in connections:
            model.take(s.Open(on))

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()

    def send(self, *steps: s.Request, opening: bool = False) -> None:
        """Send commands in one packet on one connection, and judge the replies.

        Args:
            steps: the commands.
            opening: they bind the mapping on a new connection.

        Raises:
            CaseFailed: one is not allowed, in a way that is not known; the text is the conversation so far.
            Enough: nothing more is to be looked for.
        """
        if self.failed:
            return
        on = steps[0].on
        requests, answers = [], []
        for step in map(_certain, steps):
            number = self.model.number(step) if isinstance(step, s.Store) and step.verb == "cas" else 0
            requests.append(s.request(step, number))
            answers += [each for each in self.model.take(step) if isinstance(each, Answer)]
        sent = "".join(requests)
        reply = self._connections[on].ask((sent.encode("latin-1"),), patience=PATIENCE)
        got, note = reply.data.decode("latin-1"), reply.note(PATIENCE)
        self._judge.exercised.record(on, sent.encode("latin-1"), got)
        texts = tuple(map("".join, itertools.product(*(answer.texts for answer in answers))))
        numbers = tuple(number for answer in answers for number in answer.numbers)
        kept = not note and self.model.numbers.answers(Answer(on, texts, numbers), got)
        self._exchanges.append(Exchange(on, sent, texts, got, note, kept, opening=opening))
        if not kept:
            request, allowed, rest = _first_wrong(requests, answers, got)
            self._fail(request, allowed, f"{note} {rest}" if note else rest)

    def change(self, statement: str) -> None:
        """Run a statement over SQL."""
        assert self._judge.world is not None, "a table is changed over SQL"
        self._judge.world.database.execute(statement)
        self._exchanges.append(Exchange("sql", statement, (), ""))

    def compare_rows(self, table: str, columns: str = "c1, c2, c3") -> None:
        """Compare the rows of a table with the model's, of a table of the suite those of the keys; show what differs.

        Args:
            table: name.
            columns: key, values, flags.

        Raises:
            CaseFailed, Enough: as `send`.
        """
        assert self._judge.world is not None, "a table is read over SQL"
        if self.failed:
            return
        key, wanted = columns.partition(",")[0], self.model.rows_of(table)
        listed = ", ".join(f"'{key}'" for key in dict.fromkeys([*self._keys, *(str(row[0]) for row in wanted)]))
        where = f" WHERE {key} IN ({listed})" if self._keys else ""
        statement = f"SELECT {columns} FROM {table}{where} ORDER BY {key}"  # noqa: S608 - own names
        got = sorted((tuple(row) for row in self._judge.world.database.query(statement)), key=str)
        if got != wanted:
            self._exchanges.append(Exchange("sql", statement, (str(wanted),), str(got), "", kept=False))
            self._fail(statement, (str(wanted),), str(got))

    def _fail(self, request: str, allowed: Iterable[str], got: str) -> None:
        self.failed = True
        # Where keys are drawn too, what is wrong looks different in each conversation.
        found = signature(request, allowed, got, self._keys) if self._keys else (request.split(maxsplit=1)[0],)
        self._search.fail(self._case, tuple(self._exchanges), found)


def _certain(step: s.Request) -> s.Request:
    """Return a get with fewer words where the answer would depend on an address."""
    while isinstance(step, s.Get) and depends_on_address(s.request(step).encode("latin-1"), sys.maxsize):
        step = s.Get(step.on, step.words[:-1], step.cas, step.expiry)
    return step


def _first_wrong(requests: list[str], answers: list[Answer], got: str) -> tuple[str, Iterable[str], str]:
    """Return the first request of a packet that is not answered as allowed, what is, and what came from there on."""
    for request, answer in zip(requests[:-1], answers[:-1], strict=True):
        found = next(filter(None, (re.match(with_numbers(text), got) for text in answer.texts)), None)
        if found is None:
            return request, answer.texts, got
        got = got[found.end() :]
    return requests[-1], answers[-1].texts, got
