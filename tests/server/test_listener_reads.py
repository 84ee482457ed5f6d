"""Which queue a get goes to: that of the primary, or that of the secondaries, by the value that its listener has."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kvref import profiles
from kvref.engine.operations import Lookup
from kvref.server.executors.mysql.batching import Batching
from kvref.server.executors.mysql.command import Command
from kvref.server.executors.mysql.executor import MySQLExecutor
from kvref.server.executors.mysql.plain_commands import Origin, PlainGet, PlainLone
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.login import parse
from kvref.storage.mysql.store import MySQLStore

PRIMARY, SECONDARY = "the primary", "a secondary"
# Of the DSN and of the listener: who answers plain gets, and whether they wait for the connection's last write.
VALUES = [
    ("primary", "", PRIMARY, False),
    ("primary", "replica", PRIMARY, False),
    ("replica", "", SECONDARY, False),
    ("replica", "primary", PRIMARY, False),
    ("replica", "session", SECONDARY, False),
    ("session", "", SECONDARY, True),
    ("session", "primary", PRIMARY, False),
    ("session", "replica", SECONDARY, False),
    ("session", "session", SECONDARY, True),
]


class Operation:
    """A look-up of no mapping, as `Batching` reads it."""

    mapping = None
    for_update = False
    plain = True


@pytest.mark.parametrize(("of_dsn", "of_listener", "answers", "waits"), VALUES)
def test_gets_go_where_the_listener_says_if_the_dsn_allows_it(
    monkeypatch: pytest.MonkeyPatch, of_dsn: str, of_listener: str, answers: str, waits: bool
) -> None:
    async def play() -> None:
        store = MySQLStore(parse(f"mysql://kvref@a,b/?reads={of_dsn}", {}), profiles.load("kvref"), 1.0)
        executor = MySQLExecutor(store, Isolation())
        batching = cast(Batching, executor._batching)
        transaction = executor.begin(of_listener)
        assert (transaction.last_write is not None) == waits
        seen: list[str] = []
        for work, name in ((batching._plain_reads, SECONDARY), (batching._reads, PRIMARY)):
            monkeypatch.setattr(work, "add", lambda *_, name=name: seen.append(name))
        monkeypatch.setattr(store, "alike", lambda mapping: mapping)
        monkeypatch.setattr(batching, "_goes_together", lambda *_: True)
        monkeypatch.setattr("kvref.server.executors.mysql.batching.ports.Lookup", Operation)
        origin = Origin(cast(Any, None), transaction.last_write, primary_only=transaction.primary_only)
        batching.add_read(cast(Any, None), PlainLone(origin, b"k", b"", b"", lambda *_: None))
        batching.add_get(cast(Any, None), PlainGet(origin, b"k", b"", b"k", b"k", with_cas=False))
        command = Command(cast(Any, None), cast(Any, None), transaction)
        command.operation = cast(Lookup, Operation())
        assert batching.takes(command)
        assert seen == [answers] * 3
        batching.add_get(cast(Any, None), PlainGet(origin, b"k", b"", b"k", b"k", with_cas=True))
        assert seen[-1] == PRIMARY
        await executor.close()

    asyncio.run(play())
