"""One fault after another under random commands, each with its own keys, so that histories stay short."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import NamedTuple

from consistency.clients import LIST, NUMBER, REGISTER, Client, read_all
from consistency.histories import History, Verdict, check
from helpers.waiting import until_risen

CLIENTS = 16
KEYS = (f"{REGISTER}1", f"{REGISTER}2", f"{REGISTER}3", f"{NUMBER}1", f"{NUMBER}2", f"{LIST}1")
_LEAD = 0.3  # seconds at most from the first replies to the fault
_BACK_SECONDS = 60.0  # in which each client is served again
_SLOW_SECONDS = 10.0  # after a longer time without service, a file lists what clients waited for


class Times(NamedTuple):
    """When a fault began and ended, and when each client was served again (monotonic clock)."""

    began: float
    ended: float
    served: float


@dataclass
class Found:
    """Figures of some cycles.

    Attributes:
        faults: how often each came.
        acknowledged: commands that were carried out.
        refused: commands that were answered by an error.
        unknown: commands whose outcome is unknown.
        keys: whose histories were checked.
        wrong: histories that are not as promised, or were not decided, and replies that no command has.
        stale: gets that missed an acknowledged write of another connection, where that is allowed.
        times: seconds from the begin of a fault until each client was served again, by fault.
    """

    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    refused: int = 0
    unknown: int = 0
    keys: int = 0
    stale: int = 0
    wrong: list[str] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)

    def add(self, fault: str, seconds: float, verdict: Verdict, clients: list[Client]) -> None:
        """Add a cycle."""
        self.faults[fault] += 1
        self.times.setdefault(fault, []).append(round(seconds, 3))
        self.acknowledged += sum(each.acknowledged for each in clients)
        self.refused += sum(each.refused for each in clients)
        self.unknown += verdict.unknown
        self.keys += verdict.keys
        self.stale += verdict.stale
        self.wrong += [f"{fault}: {key} is not as promised" for key in verdict.wrong]
        self.wrong += [f"{fault}: {key} was not decided" for key in verdict.undecided]
        self.wrong += [f"{fault}: {text}" for each in clients for text in each.wrong]


def play(
    connect: Callable[[], socket],
    faults: Mapping[str, Callable[[], None]],
    cycles: int,
    folder: Path,
    name: str,
    *,
    session: bool = False,
) -> Found:
    """Let faults come in turn, and check the history of each.

    Args:
        connect: opens a connection to the system.
        faults: each begins and ends when it is called.
        cycles: how many faults come.
        folder: keeps the histories that are not as promised, and what clients waited for where that took long.
        name: of the system, the begin of its files.
        session: see `histories.check`.
    """
    found = Found()
    names = [*faults]
    drawn = random.Random(name)
    for number in range(cycles):
        fault = names[number % len(names)]
        # A key begins with the letter of its kind.
        keys = [f"{key}.{number}" for key in KEYS]
        file = folder / f"{name}-{number}-{fault.replace(' ', '-')}.jsonl"
        with History(file) as history:
            clients, times = _cycle(connect, faults[fault], keys, history, drawn.uniform(0, _LEAD))
            read_all(connect, keys, history, len(clients) + 1)
        verdict = check(file, session=session)
        seconds = times.served - times.began
        found.add(fault, seconds, verdict, clients)
        if seconds > _SLOW_SECONDS:
            file.with_suffix(".txt").write_text(late(clients, times), encoding="utf-8")
        if not (verdict.wrong or verdict.undecided):
            file.unlink()
    return found


def _cycle(
    connect: Callable[[], socket], fault: Callable[[], None], keys: list[str], history: History, lead: float
) -> tuple[list[Client], Times]:
    """Return the clients, which have ended, and the times of the fault."""
    first = Client(0, connect, keys, history)
    for key in keys:
        if not key.startswith(REGISTER):
            assert first.do(key, "add", "0" if key.startswith(NUMBER) else ""), f"{key} cannot be added"
    first.close()
    clients = [Client(1 + each, connect, keys, history) for each in range(CLIENTS)]
    for each in clients:
        each.start()
    try:
        until_risen(lambda: [each.acknowledged for each in clients])
        time.sleep(lead)  # the fault comes at any moment
        began = time.monotonic()
        fault()
        ended = time.monotonic()
        until_risen(lambda: [each.acknowledged for each in clients], seconds=_BACK_SECONDS)
        times = Times(began, ended, time.monotonic())
    finally:
        for each in clients:
            each.stop()
    return clients, times


def late(clients: list[Client], times: Times) -> str:
    """Return the commands that were refused, had no reply or took long, in the order in which they were sent.

    Args:
        clients: that have ended.
        times: of the fault.
    """
    commands = sorted(each for client in clients for each in client.late)
    began, ended, served = times
    head = f"{ended - began:8.2f} s: the fault ended\n{served - began:8.2f} s: each client was served again\n"
    return head + "".join([f"{sent - began:8.2f} s: {text}\n" for sent, text in commands])
