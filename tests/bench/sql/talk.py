"""Exchanges of a plan, run on a server one after the other."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import islice, starmap
from typing import TYPE_CHECKING, NamedTuple

from kvref_bench import workload
from kvref_bench.load.records import Exchange
from kvref_bench.load.work import Clock, Task, Work

if TYPE_CHECKING:
    import socket

    from kvref_bench.load.records import Answer, Kind
    from kvref_bench.scenario.records import Table


class Outcome(NamedTuple):
    """The result of some exchanges.

    kinds: of their operations. foreseen: exchanges with the expected reply. unexpected: replies that are not allowed.
    """

    kinds: Counter[Kind]
    foreseen: int
    unexpected: list[bytes]


class Talk:
    """A worker's plan of two sessions, whose exchanges the test runs."""

    def __init__(
        self, dsn: str, table: Table, statements: dict[str, str], depth: int = 1, missing: float = 0.0
    ) -> None:
        of = work(table, statements, depth=depth, missing=missing)
        self.plan = workload.plan_of(Task(dsn, of, Clock(0, 1), "", "", 0, 1))
        self._sessions = 0

    def run(self, exchanges: int = 60) -> Outcome:
        """Run some exchanges on a further connection."""
        kinds: Counter[Kind] = Counter()
        foreseen, unexpected = 0, list[bytes]()
        with closing(self.plan.connect()) as connection:
            for exchange in starmap(Exchange, islice(self.plan.exchanges(self._sessions), exchanges)):
                answer = self._answer(connection, exchange)
                foreseen += answer is None
                unexpected += () if answer is None else answer.unexpected
                kinds.update(self.plan.kinds[each] for each in (exchange.kinds if answer is None else answer.kinds))
        self._sessions += 1
        return Outcome(kinds, foreseen, unexpected)

    def _answer(self, connection: socket.socket, exchange: Exchange) -> Answer | None:
        connection.sendall(exchange.request)
        data = b""
        while data != exchange.reply:
            received = connection.recv(1 << 16)
            assert received, "the server closed the connection"
            data += received
            if data != exchange.reply and (answer := self.plan.reader.read(exchange, data)) is not None:
                return answer
        return None


def work(table: Table, statements: dict[str, str], *, depth: int = 1, missing: float = 0.0) -> Work:
    """Make a work with each statement as often as any other."""
    keys = replace(table.keys, missing=missing)
    return Work(
        keys, table.values, dict.fromkeys(statements, 1.0), protocol="mysql", statements=statements,
        sessions=2, depth=depth, pool=256,
    )  # fmt: skip
