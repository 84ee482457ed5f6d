"""A small blocking client: it sends the exchanges of a plan and returns their outcomes, as a load worker would."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, starmap
from typing import TYPE_CHECKING

from kvref_bench.load.records import Exchange, Kind
from kvref_bench.load.work import Clock, Task, Work
from kvref_bench.workload import plan_of

if TYPE_CHECKING:
    from kvref_bench.load.records import Plan


@dataclass
class Played:
    """equal: exchanges with exactly the expected reply. exchanges: each exchange with its outcomes."""

    plan: Plan
    equal: int = 0
    unexpected: list[bytes] = field(default_factory=list)
    exchanges: list[tuple[Exchange, tuple[Kind, ...]]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter("/".join(kind) for _, kinds in self.exchanges for kind in kinds))


def task(work: Work, address: str = "127.0.0.1:1", worker: int = 0, workers: int = 1) -> Task:
    return Task(address, work, Clock(0, 1), "", "", worker, workers)


def play(work: Work, address: str, exchanges: int, session: int = 0) -> Played:
    plan = plan_of(task(work, address))
    played = Played(plan)
    with plan.connect() as connection:
        connection.settimeout(10)
        for exchange in starmap(Exchange, islice(plan.exchanges(session), exchanges)):
            connection.sendall(exchange.request)
            data = b""
            while True:
                received = connection.recv(65536)
                assert received, f"closed after {exchange.request!r}: {data!r}"
                data += received
                if data == exchange.reply:
                    played.equal += 1
                    kinds = exchange.kinds
                    break
                answer = plan.reader.read(exchange, data)
                if answer is not None:
                    kinds = answer.kinds
                    played.unexpected += answer.unexpected
                    break
            played.exchanges.append((exchange, tuple(plan.kinds[kind] for kind in kinds)))
    return played
