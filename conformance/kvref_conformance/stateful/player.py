"""Run commands on a few connections and compare each reply with the model's."""

from __future__ import annotations

import itertools
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.conversation import Exchange
from kvref_conformance.findings import signature
from kvref_conformance.frames import BETWEEN
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer
from kvref_conformance.next_word import depends_on_address
from kvref_conformance.template import with_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
        protocols: of the connections that are opened, by name.

    failed: something was not allowed; nothing is sent any more.
    kinds: verbs that were sent, with the first words of the replies.
    """

    def __init__(
        self,
        judge: Judge,
        search: Search,
        case: str,
        model: Model,
        keys: Sequence[str],
        protocols: Mapping[str, str],
    ) -> None:
        self.model = model
        self.failed = False
        self.kinds: set[tuple[str, ...]] = set()
        self._judge, self._search, self._case, self._keys = judge, search, case, keys
        self._exchanges: list[Exchange] = []
        self._protocols = protocols
        self._connections = {on: judge.endpoint.connect(binary=kind == s.BINARY) for on, kind in protocols.items()}
        for on in protocols:
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
        on, protocol = steps[0].on, self._protocols[steps[0].on]
        requests, answers = [], []
        for step in map(_certain, steps):
            number = self.model.number(step) if isinstance(step, s.Store) and step.verb == "cas" else 0
            requests.append(encodings.request(step, number))
            answers += [each for each in self.model.take(step) if isinstance(each, Answer)]
        sent = encodings.joined(protocol, requests)
        data = encodings.sent(protocol, sent)
        reply = self._connections[on].ask((data,), patience=PATIENCE)
        got, note = encodings.received(protocol, reply.data), reply.note(PATIENCE)
        self._judge.exercised.record(on, data, got, binary=protocol == s.BINARY)
        texts = tuple(
            encodings.joined(protocol, each) for each in itertools.product(*(answer.texts for answer in answers))
        )
        numbers = tuple(number for answer in answers for number in answer.numbers)
        self.kinds.add((sent.split(" ", 1)[0], *got.split()[:2][: 1 if protocol != s.BINARY else 2]))
        kept = not note and self.model.numbers.answers(Answer(on, texts, numbers), got)
        binary = protocol == s.BINARY
        self._exchanges.append(Exchange(on, sent, texts, got, note, kept, opening=opening, binary=binary))
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
