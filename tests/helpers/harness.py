"""Semantics and storage without a socket: bytes in, bytes out, on a real SQLite file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kvref import collations, profiles
from kvref.engine.cache.memory import Cache
from kvref.engine.counters import Counters
from kvref.engine.dispatch import execute
from kvref.engine.rules import rules
from kvref.engine.session import Session, Shared
from kvref.errors import ConfigError, StoreError
from kvref.protocol.codec import Parser, encode, parser
from kvref.protocol.replies import Closed, Reply
from kvref.protocol.rules import wire_rules
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.sqlite.transactions import Transaction, Transactions


class Harness:
    """An endpoint in this process.

    Args:
        folder: where the file goes.
        profile: whose answers.
        sql: statements run on the file, after the demo rows are there and before the configuration is read.
        now: what its clock shows, in seconds; a test moves it.
    """

    def __init__(self, folder: Path, profile: str = "kvref", *sql: str, now: int = 1_700_000_000) -> None:
        self.now = now
        self.facts = profiles.load(profile)
        self.store = SQLiteStore(folder / "harness.sqlite", self.facts)
        self.store.initialise()
        self.sql = sqlite3.connect(folder / "harness.sqlite", isolation_level=None)
        collations.register(self.sql)
        for statement in sql:
            self.sql.execute(statement)
        try:
            directory, numbers = self.store.read_directory(), self.store.cas_numbers()
        except ConfigError:
            self.close()
            raise
        self.shared = Shared(rules(self.facts), directory, numbers, Counters(), cache=Cache(self.now))
        self._isolation = Isolation()
        self._transactions = Transactions(self.store, self._isolation, self.store.commit)
        self._connections: dict[str, tuple[Parser, Session, Transaction]] = {}

    def close(self) -> None:
        """Close the file."""
        self.store.close()
        self.sql.close()

    def batch(self, writes: int, reads: int = 1, level: int = 0) -> None:
        """Let so many writes or reads make a full batch, at this isolation level, from now on."""
        self.shared.limits.writes, self.shared.limits.reads = writes, reads
        self._isolation.direct = False
        self._isolation.level, self._isolation.read_batch = level, reads > 1
        self._isolation.deletes_visible = self.facts["isolation.deleted"] == "seen"

    def say(self, data: bytes, connection: str = "a") -> bytes:
        """Return the reply to bytes sent on a named connection."""
        if connection not in self._connections:
            grammar = wire_rules(self.facts, 1 << 20, for_cache=self.shared.directory.policies.fills_cache)
            parts = parser(data, grammar), Session(self.shared), Transaction()
            self._connections[connection] = parts
        bytes_in, session, transaction = self._connections[connection]
        bytes_in.feed(data)
        replies = []
        while (command := bytes_in.next_command()) is not None:
            reply = self._run(session, transaction, command)
            replies.append(encode(command, reply, session.written_cas))
            if isinstance(reply, Closed):
                return b"".join(replies) + b"<EOF>"
        return b"".join(replies) + (b"<EOF>" if bytes_in.closed else b"")

    def session(self, connection: str) -> Session:
        """Return the session of a named connection."""
        return self._connections[connection][1]

    def forget(self, connection: str) -> None:
        """Forget a named connection."""
        self._connections.pop(connection, None)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Return what SQL sees from outside."""
        return self.sql.execute(query).fetchall()

    def _run(self, session: Session, transaction: Transaction, command: object) -> Reply:
        self.store.refresh()
        steps = execute(session, command, self.now)  # type: ignore[arg-type]
        try:
            operation = next(steps)
            while True:
                try:
                    answer = self._transactions.execute(transaction, operation)
                except StoreError as error:
                    operation = steps.throw(error)
                else:
                    operation = steps.send(answer)
        except StopIteration as stop:
            reply: Reply = stop.value
            session.settle()
            return reply
        finally:
            self.store.commit()
