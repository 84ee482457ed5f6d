"""Runs commands over a store in this process that answers each operation at once and commits each write alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kvref.engine.mapping import Directory, Mapping
from kvref.engine.operations import OperationGen
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.words import Words, ordinary_mapping
from kvref.engine.session import Session
from kvref.errors import ConfigError, StoreError
from kvref.protocol.commands import Right
from kvref.protocol.replies import Reply
from kvref.protocol.rules import WireRules
from kvref.server.executors.base import Execution, Executor
from kvref.server.planner import Planner
from kvref.server.scheduler import Scheduler, Work
from kvref.server.slots import SETTLED
from kvref.storage.base import DirectStore
from kvref.storage.isolation import Isolation

SLICE: Final = 500  # operations of one command before the other connections have their turn


class DirectExecutor(Executor):
    """Answer all operations, each write committed alone; raises ConfigError if the settings turn batches on."""

    def __init__(self, store: DirectStore, isolation: Isolation) -> None:
        if isolation.batches:
            raise ConfigError(
                f"store {store.dsn}: it commits each command alone: set daemon_memcached_r_batch_size and"
                " daemon_memcached_w_batch_size to 1, or choose another store"
            )
        self._store = store
        self._scheduler = Scheduler(SETTLED, 0.0)  # no write waits for another
        self._planners: dict[tuple[Mapping, Right, bool, int], Planner | None] = {}
        self._loop = asyncio.get_running_loop()

    def run(
        self, transaction: None, begin: Callable[[], OperationGen], done: Callable[[Reply], None]  # noqa: ARG002
    ) -> Reply | None:  # fmt: skip
        """Run a command, see `Executor`; only one of many operations calls `done`."""
        command = Execution(begin, done)
        return self._advance(command) if command.start() else command.reply

    def planner(self, transaction: None, session: Session, wire_rules: WireRules) -> Planner | None:  # noqa: ARG002
        mapping = ordinary_mapping(session)
        if mapping is None:
            return None
        kind = mapping, session.access.rights, session.bound, session.shared.directory.generation
        if kind not in self._planners:
            bound = Bound(session, mapping)
            rows = self._store.planned_rows(bound)
            planned = None if rows is None else Planner(
                Work(bound, rows), Words(session), self._scheduler, wire_rules, lambda _now: True)  # fmt: skip
            self._planners = {each: found for each, found in self._planners.items() if each[3] == kind[3]}
            self._planners[kind] = planned
        found = self._planners[kind]
        return found if found is not None and found.live else None

    async def read_directory(self) -> Directory:
        return self._store.read_directory()

    async def close(self) -> None:
        """Carry out what is planned."""
        self._scheduler.run()

    def _advance(self, command: Execution) -> Reply | None:
        for _ in range(SLICE):
            assert command.operation is not None, "a command that has ended has no operation"
            try:
                answer = self._store.execute(command.operation)
            except StoreError as error:
                waits = command.send(None, error)
            except Exception:  # noqa: BLE001 - logged whole
                waits = command.fail()
            else:
                waits = command.send(answer)
            if not waits:
                return command.reply
        self._loop.call_soon(self._go_on, command)
        return None

    def _go_on(self, command: Execution) -> None:
        reply = self._advance(command)
        if reply is not None:
            command.done(reply)
