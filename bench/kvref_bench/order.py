"""In which order the points of a scenario are measured, so that what changes with time falls on all alike.

Repetitions outermost, then settings, then sessions, then series and servers in turn; each repetition begins with
another server. The open loop comes after the closed one, because its rates are shares of what that did.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.runs.records import Peer
    from kvref_bench.scenario.records import Scenario, Series

Settings = dict[str, int]
_SQL_SERVER: Final = "mysql://"


@dataclass(frozen=True, slots=True)
class Turn:
    """One point to measure.

    share: of the closed loop's median at which the open loop sends; None: closed loop.
    """

    series: Series
    server: str
    settings: Settings
    sessions: int
    repetition: int
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """The points that are measured one after the other under the same settings."""

    settings: Settings
    repetition: int
    turns: tuple[Turn, ...]

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the servers that have a part in it, first come first."""
        return tuple(dict.fromkeys(turn.server for turn in self.turns))


def left_out(series: str, server: str, settings: Settings, reason: str) -> str:
    """Return in words what is not measured, and why."""
    return f"left out: {series} on {server}{''.join(f' {name}={value}' for name, value in settings.items())}: {reason}"


class Order(NamedTuple):
    """All rounds of a run, closed loop first, and what is left out from the beginning."""

    rounds: tuple[Round, ...]
    left: tuple[str, ...]

    @property
    def points(self) -> int:
        """Count the points."""
        return sum(len(each.turns) for each in self.rounds)


def arrange(scenario: Scenario, peers: Sequence[Peer], settable: frozenset[str]) -> Order:
    """Put the points of a scenario in their order.

    Args:
        peers: the servers, in the order of the first repetition.
        settable: names of those that can be started with settings; the others are measured once, as they are.
    """
    left: list[str] = []
    lines: list[tuple[Series, Peer, tuple[Settings, ...]]] = []
    for series, peer in product(scenario.series, peers):
        reason = _unfit(scenario, series, peer)
        if reason is not None:
            left.append(left_out(series.name, peer.name, {}, reason))
            continue
        wanted = combinations(scenario, series)
        if peer.name not in settable and wanted != ({},):
            why = "it cannot be started with settings; measured once, as it is"
            left += [left_out(series.name, peer.name, each, why) for each in wanted]
            wanted = ({},)
        lines.append((series, peer, wanted))
    shares: tuple[tuple[float | None, ...], ...] = ((None,), scenario.rates)
    rounds = [each for loop in shares if loop for each in _rounds(scenario, peers, lines, loop)]
    return Order(tuple(rounds), tuple(left))


def combinations(scenario: Scenario, series: Series) -> tuple[Settings, ...]:
    """Return every combination of a series' settings; one that is empty where it has none."""
    settings = scenario.settings if series.settings is None else series.settings
    return tuple(dict(zip(settings, values, strict=True)) for values in product(*settings.values()))


def estimate(scenario: Scenario, order: Order | None = None) -> float:
    """Estimate how long measuring takes, s; without tables and starts.

    order: None: of one server that can do everything.
    """
    each = scenario.warmup + scenario.measure + scenario.cooldown
    if order is not None:
        return order.points * each
    points = sum(len(combinations(scenario, one)) * len(one.sessions or scenario.sessions) for one in scenario.series)
    return points * scenario.repetitions * (1 + len(scenario.rates)) * each


def _unfit(scenario: Scenario, series: Series, peer: Peer) -> str | None:
    if series.over == "memcached" and peer.address is None:
        return "it has no memcached address"
    if series.over == "sql" and not (peer.sql or "").startswith(_SQL_SERVER):
        return f"no SQL server is known behind it: give --sql {_SQL_SERVER}..."
    if series.needs_table and peer.kind == "memcached":
        return "native memcached has no table"
    if scenario.kind == "lag" and peer.sql is None:
        return "what SQL sees is not known: give --sql"
    return None


def _rounds(
    scenario: Scenario,
    peers: Sequence[Peer],
    lines: Sequence[tuple[Series, Peer, tuple[Settings, ...]]],
    shares: Sequence[float | None],
) -> Iterator[Round]:
    settings: list[Settings] = []
    for _, _, wanted in lines:
        settings += [each for each in wanted if each not in settings]
    for repetition in range(scenario.repetitions):
        first = repetition % len(peers)
        turned = [peer.name for peer in (*peers[first:], *peers[:first])]
        for each in settings:
            here = sorted(
                ((series, peer.name) for series, peer, wanted in lines if each in wanted),
                key=lambda line: (scenario.series.index(line[0]), turned.index(line[1])),
            )
            sessions = sorted({n for series, _ in here for n in series.sessions or scenario.sessions})
            turns = [
                Turn(series, server, each, n, repetition, share)
                for n in sessions
                for series, server in here
                if n in (series.sessions or scenario.sessions)
                for share in shares
            ]
            yield Round(each, repetition, tuple(turns))
