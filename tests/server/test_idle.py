"""Which batches a tick of the idle commit takes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kvref.server.timers import IdleRule


@dataclass
class Seen:
    """A connection as the rule sees it."""

    batch_since: float | None
    quiet_since: float

    def commit_idle(self) -> None:
        """Unused here: the rule only chooses."""


NOW = 100.0
NONE = Seen(None, 0.0)
YOUNG = Seen(95.1, 95.1)
OLD_AND_BUSY = Seen(90.0, 99.9)
OLD_AND_QUIET = Seen(90.0, 94.0)
CLIENTS = [NONE, YOUNG, OLD_AND_BUSY, OLD_AND_QUIET]


@pytest.mark.parametrize(
    ("commits", "interval", "due"),
    [
        ("every-open", 5, [OLD_AND_BUSY, OLD_AND_QUIET, YOUNG]),  # idle-020, idle-024
        ("older-than-5s", 1, [OLD_AND_BUSY, OLD_AND_QUIET]),  # idle-020, idle-025
        ("idle", 5, [OLD_AND_QUIET]),
        ("idle", 6, [OLD_AND_QUIET]),
        ("idle", 7, []),
    ],
)
def test_due(commits: str, interval: int, due: list[Seen]) -> None:
    assert IdleRule(commits).due(CLIENTS, interval, NOW) == due


def test_six_at_once() -> None:
    """As 5.6 does (idle-031)."""
    clients = [Seen(10.0 + number, 0.0) for number in range(9)]
    assert IdleRule("older-than-5s").due(reversed(clients), 1, NOW) == clients[:6]
    assert IdleRule("every-open").due(reversed(clients), 1, NOW) == clients


@pytest.mark.parametrize(("commits", "period"), [("every-open", 7), ("older-than-5s", 7), ("idle", 1)])
def test_period(commits: str, period: float) -> None:
    assert IdleRule(commits).period(7) == period
