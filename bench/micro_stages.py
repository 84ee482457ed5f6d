"""The stages of an exchange inside kvref over SQLite, each through a public door of the server: see `micro.py`."""

from __future__ import annotations

import asyncio
import gc
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from kvref import profiles
from kvref.addresses import Address
from kvref.engine.dispatch import execute
from kvref.engine.session import Session
from kvref.errors import KvrefError
from kvref.protocol.codec import encode, parser
from kvref.server.connection import Connection
from kvref.server.executors.choice import executor_for
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server, lock_wait
from kvref.server.settings import parse
from kvref.storage.sqlite.pending import Transaction
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.sqlite.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micro_cases import Case

TICK: Final = 32  # connections whose requests arrive in one turn of the loop
WHILE_THE_DISK_WORKS: Final = 0.0002  # seconds between two looks whether it is done
_NOWHERE: Final = Listener(Address("127.0.0.1", 0))
ANSWERED: Final = 60.0  # seconds for all requests of a case
STAGES: Final = ("parse", "dispatch", "storage", "commit", "reply")


class Sink(asyncio.Transport):
    """A transport that counts what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def write(self, data: Any) -> None:
        self.size += len(data)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        raise KvrefError("the server closes the connection: its requests are wrong")


class Bench:
    """A server over a filled file, in the running loop, without a listener.

    path: path of the file, with its table. count: exchanges of each measurement.
    """

    def __init__(self, store: SQLiteStore, count: int) -> None:
        profile = profiles.load("kvref")
        self.count = count
        self.server = Server(store, profile, partial(parse, [], None, profile), [_NOWHERE])
        wait = lock_wait(profile, self.server.settings)
        self.server.executor = executor_for(store, self.server.isolation, wait)
        self._transactions = Transactions(store, self.server.isolation, store.commit)
        self._sinks = [Sink() for _ in range(TICK)]
        self._connections: dict[str, list[Connection]] = {}

    async def stages(self, case: Case) -> dict[str, float]:
        """Measure every stage of a case once; CPU microseconds of each exchange.

        In addition to the stages there is `run`: dispatch and storage together, as the executor runs them.
        """
        requests = case.requests(self.count)
        parse_time, commands = self._parse(case, requests)
        run_time, commit_time, replies = await self._run(commands)
        found = {
            "parse": parse_time,
            "storage": self._storage(commands),
            "commit": commit_time,
            "reply": self._reply(commands, replies),
        }
        found["dispatch"] = run_time - found["storage"]
        return {name: found[name] / self.count for name in STAGES} | {"run": run_time / self.count}

    async def whole(self, case: Case) -> float:
        """Measure all together once. Raises KvrefError where not everything was answered."""
        requests = case.requests(self.count)
        connections = self._opened(case)
        before = sum(sink.size for sink in self._sinks)
        gc.collect()
        began = time.process_time()
        await self._feed(connections, requests, case.reply_size)
        used = (time.process_time() - began) * 1e6
        size = sum(sink.size for sink in self._sinks) - before
        if size != case.reply_size * self.count:
            raise KvrefError(f"{case.name}: {size} bytes of replies instead of {case.reply_size * self.count}")
        return used / self.count

    async def turn_again(self, case: Case) -> None:
        """Answer as `whole` does, to be profiled."""
        await self._feed(self._opened(case), case.requests(self.count), case.reply_size)

    async def _feed(self, connections: Sequence[Connection], requests: Sequence[bytes], size: int) -> None:
        late = time.monotonic() + ANSWERED
        for first in range(0, len(requests), TICK):
            some = requests[first : first + TICK]
            full = [sink.size + size for sink in self._sinks[: len(some)]]
            for connection, data in zip(connections, some, strict=False):
                connection.data_received(data)
            await asyncio.sleep(0)
            # A connection whose turn is over has the rest of its replies later. `whole` reports incomplete replies.
            while any(sink.size < all_of_it for sink, all_of_it in zip(self._sinks, full, strict=False)):
                if time.monotonic() > late:
                    return
                await asyncio.sleep(0)

    def _opened(self, case: Case) -> list[Connection]:
        # The first byte decides the protocol of a connection for good.
        if case.protocol not in self._connections:
            self._connections[case.protocol] = [Connection(self.server, _NOWHERE) for _ in self._sinks]
            for connection, sink in zip(self._connections[case.protocol], self._sinks, strict=True):
                connection.connection_made(sink)
        return self._connections[case.protocol]

    def _parse(self, case: Case, requests: Sequence[bytes]) -> tuple[float, list[list[Any]]]:
        commands: list[list[Any]] = []
        one = parser(requests[0], self.server.wire_rules)

        def read() -> None:
            for data in requests:
                one.feed(data)
                found = []
                while (command := one.next_command()) is not None:
                    found.append(command)
                commands.append(found)

        used = _cpu(read)
        if {len(each) for each in commands} != {case.commands}:
            raise KvrefError(f"{case.name}: {len(commands[0])} commands instead of {case.commands}")
        return used, commands

    async def _run(self, commands: Sequence[Sequence[Any]]) -> tuple[float, float, list[list[Any]]]:
        """Run commands through the executor, in ticks; CPU microseconds of running and committing, and replies."""
        executor, now = self.server.executor, int(time.time())
        sessions = [(Session(self.server.shared), executor.begin()) for _ in range(TICK)]
        replies: list[list[Any]] = []

        def run(some: Sequence[Sequence[Any]]) -> None:
            for (session, transaction), several in zip(sessions, some, strict=False):
                given = [executor.run(transaction, partial(execute, session, each, now), _late) for each in several]
                replies.append(given)

        running = committing = 0.0
        for first in range(0, len(commands), TICK):
            running += _cpu(partial(run, commands[first : first + TICK]), collect=not first)
            start = time.process_time()
            if executor.unsettled is not None:
                executor.commit()
            while executor.unsettled is not None:
                await asyncio.sleep(WHILE_THE_DISK_WORKS)
                committing, start = committing + (time.process_time() - start) * 1e6, time.process_time()
            await asyncio.sleep(0)  # the executor's tick is over
        if any(reply is None for several in replies for reply in several):
            raise KvrefError("a command waits: its stages cannot be separated")
        return running, committing, replies

    def _storage(self, commands: Sequence[Sequence[Any]]) -> float:
        """Run the storage operations of the commands, and nothing else; CPU microseconds."""
        operations, now = [], int(time.time())
        session, own = Session(self.server.shared), Transaction()
        for command in (each for several in commands for each in several):
            steps, answer = execute(session, command, now), None
            try:
                while True:
                    operations.append(steps.send(answer))
                    answer = self._transactions.execute(own, operations[-1])
            except StopIteration:
                pass
        self._settle()

        def carry_out() -> None:
            run = self._transactions.execute
            for operation in operations:
                run(own, operation)

        used = _cpu(carry_out)
        self._settle()
        return used

    def _settle(self) -> None:
        cast(SQLiteStore, self.server.store).commit()
        self._transactions.settled(lost=False)

    def _reply(self, commands: Sequence[Sequence[Any]], replies: Sequence[Sequence[Any]]) -> float:
        both = [pair for several in zip(commands, replies, strict=True) for pair in zip(*several, strict=True)]

        def write() -> None:
            for command, reply in both:
                encode(command, reply, 1)

        return _cpu(write)


def _late(reply: Any) -> None:
    raise KvrefError(f"a command had to wait and was answered with {reply!r}: its stages cannot be separated")


def _cpu(work: Callable[[], object], *, collect: bool = True) -> float:
    """Do something; CPU microseconds."""
    if collect:
        gc.collect()
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e6
