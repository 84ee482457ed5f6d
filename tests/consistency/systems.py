"""What is served, and the faults that come: one or several kvref processes over a store, and what can happen to them."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path

from cluster.network import Node, network, parted
from cluster.rows import dsn, is_expelled, prepare, used
from cluster.vitess import FOUR_SHARDS, vitess_cluster_or_skip
from faults.clock import HOUR, YEAR, a_clock
from faults.processes import children
from helpers.database import database_or_skip
from helpers.live import missing_skips
from helpers.row_cache_checker import OPTIONS, local_dsn
from helpers.serving import Served, serving
from helpers.waiting import until
from pymysql import OperationalError

from kvref.errors import TargetError
from kvref.storage.base import PRIMARY, SESSION
from kvref.storage.mysql.cluster import SECONDARY_SECONDS
from kvref_testbed import targets
from kvref_testbed.targets import Group, SQLServer
from kvref_testbed.targets.group import MEMBERS, Member
from kvref_testbed.targets.mysqld import RestartableServer
from kvref_testbed.targets.router import Router
from kvref_testbed.targets.vitess import SHARDS, TABLES
from kvref_testbed.targets.vitess_cluster import TABLETS, Gate

_HANG = 0.5  # seconds that a process is stopped
_LONG_HANG = 4.5  # longer than `timeout=`
_CLOCK_STEPS = (HOUR, 0, -HOUR, YEAR, 0)  # from the real time
OVER_A_DATABASE = ("--set", "innodb_lock_wait_timeout=2")


ROW_CACHE = ("--set", "row_cache_binlog=1")
_SHORT_FILES = "--max-binlog-size=4096"  # the follower of a log passes the end of a file after some dozen commands


@dataclass
class System:
    """Processes of kvref over one store.

    Args:
        store: its DSN.
        options: of `kvref serve`.
        first: words in front of each command.
    """

    store: str
    options: Sequence[str] = ()
    first: Sequence[str] = ()
    faults: dict[str, Callable[[], None]] = field(default_factory=dict)
    _served: list[tuple[ExitStack, Served]] = field(default_factory=list)
    _next: int = 0

    def start(self, processes: int) -> None:
        """Start so many processes."""
        for _ in range(processes):
            self._served.append(self._started())

    def connect(self) -> socket.socket:
        """Open a connection to the processes in turn; raises OSError while that one is down."""
        self._next += 1
        return self._served[self._next % len(self._served)][1].connect()

    def kill(self) -> None:
        """Kill a process, and start another one in its place."""
        self._replace(lambda served: served.process.kill())

    def restart(self) -> None:
        """End a process in order, and start another one in its place."""
        self._replace(lambda _: None)

    def hang(self) -> None:
        """Stop a process, with its workers, for a moment."""
        pid = self._any().process.pid
        stopped = [pid, *children(pid)]
        for each in stopped:
            os.kill(each, signal.SIGSTOP)
        time.sleep(_HANG)  # how long it hangs
        for each in stopped:
            os.kill(each, signal.SIGCONT)

    def kill_worker(self) -> None:
        """Kill a worker; its parent starts another one."""
        os.kill(random.choice(children(self._any().process.pid)), signal.SIGKILL)

    def reload(self) -> None:
        """Let each process read the configuration again."""
        for _, served in self._served:
            served.process.send_signal(signal.SIGHUP)

    def close(self) -> None:
        """End all processes."""
        for stack, _ in self._served:
            stack.close()

    def _any(self) -> Served:
        return random.choice(self._served)[1]

    def _started(self) -> tuple[ExitStack, Served]:
        stack = ExitStack()
        return stack, stack.enter_context(serving(self.store, *self.options, first=self.first))

    def _replace(self, end: Callable[[Served], None]) -> None:
        number = random.randrange(len(self._served))
        stack, served = self._served[number]
        end(served)
        stack.close()
        self._served[number] = self._started()


@contextmanager
def over_sqlite(folder: Path) -> Iterator[System]:
    """Serve a SQLite file by two workers, whose clock can be set."""
    with ExitStack() as stack:
        with missing_skips():
            clock = stack.enter_context(a_clock(folder))
        system = System(f"sqlite:///{folder / 'kvref.sqlite'}", ("--workers", "2"), clock.through)
        steps = cycle(_CLOCK_STEPS)
        system.faults |= {
            "kill -9 of kvref": system.kill,
            "kill -9 of a worker": system.kill_worker,
            "SIGSTOP of kvref": system.hang,
            "restart": system.restart,
            "reload": system.reload,
            "clock step": lambda: clock.set(next(steps)),
        }
        stack.callback(system.close)
        system.start(1)
        yield system


@contextmanager
def over_database(name: str, _folder: Path) -> Iterator[System]:
    """Serve a database by two processes of kvref."""
    with database_or_skip(name) as server, _over(server, f"{server.dsn}?timeout=3") as system:
        yield system


@contextmanager
def with_row_cache(name: str, _folder: Path, *, local: bool = False) -> Iterator[System]:
    """Serve a database by two processes of kvref with a row cache.

    Args:
        name: of the database.
        local: by the Unix socket, so that kvref compares cached rows with the files of the log.
    """
    with database_or_skip(name, (*OPTIONS[name], _SHORT_FILES)) as server:
        store = f"{local_dsn(server)}&timeout=3" if local else f"{server.dsn}?timeout=3"
        with _over(server, store, ROW_CACHE) as system:
            yield system


@contextmanager
def _over(server: SQLServer, store: str, options: Sequence[str] = ()) -> Iterator[System]:
    with ExitStack() as stack:
        system = System(store, (*OVER_A_DATABASE, *options))
        system.faults |= {
            "kill -9 of kvref": system.kill,
            "kill -9 of the database": lambda: _lost(server),
            "SIGSTOP of kvref": system.hang,
            "SIGSTOP of the database": lambda: _hung(server, _HANG),
            "long SIGSTOP of the database": lambda: _hung(server, _LONG_HANG),
            "restart": system.restart,
        }
        stack.callback(system.close)
        system.start(2)
        yield system


@contextmanager
def over_galera(_folder: Path) -> Iterator[System]:
    """Serve a Galera cluster of three nodes by one process."""
    with ExitStack() as stack:
        with missing_skips():
            cluster = stack.enter_context(targets.galera_cluster())
        prepare(cluster.nodes[0], cluster.dsn, "ALL ON *.*")
        system = System(dsn(*cluster.nodes, options="?timeout=3"), OVER_A_DATABASE)

        def cut_off() -> None:
            node = used(cluster)
            node.cut_off()
            time.sleep(_LONG_HANG)  # longer than the others wait for it
            node.reunite()
            node.wait_until_synced()

        def hang() -> None:
            node = used(cluster)
            _hung(node, _LONG_HANG)
            node.wait_until_synced()

        system.faults |= {
            "kill -9 of kvref": system.kill,
            "kill -9 of the node in use": lambda: _lost(used(cluster)),
            "SIGSTOP of the node in use": hang,
            "the node in use is cut off": cut_off,
        }
        stack.callback(system.close)
        system.start(1)
        yield system


@contextmanager
def over_group(reads: str, _folder: Path) -> Iterator[System]:
    """Serve a replication group of three members by two processes, with this value of `reads=`."""
    with ExitStack() as stack:
        with missing_skips():
            group = stack.enter_context(targets.mysql_group())
        prepare(_primary(group), group.dsn, "ALL ON *.*")
        system = System(dsn(*group.members, options=f"?timeout=3&reads={reads}"), OVER_A_DATABASE)

        def secondary() -> Member:
            primary = _primary(group)
            return random.choice([each for each in group.members if each is not primary])

        def hang() -> None:
            lost = _primary(group)
            _hung(lost, 2 * _LONG_HANG)
            until(lambda: is_expelled(lost))
            lost.join()

        def lose_secondary() -> None:
            lost = secondary()
            lost.kill()
            until(lambda: _members(_primary(group)) < MEMBERS)  # it cannot join while its group still has it
            lost.start()

        system.faults |= {
            "kill -9 of kvref": system.kill,
            "planned switch of the primary": lambda: secondary().take_over(),
            "kill -9 of the primary": lambda: _lost(_primary(group)),
            "SIGSTOP of the primary": hang,
        }
        if reads == SESSION:
            system.faults |= {
                "kill -9 of a secondary": lose_secondary,
                "SIGSTOP of a secondary": lambda: _hung(secondary(), 2 * SECONDARY_SECONDS),
            }
        stack.callback(system.close)
        system.start(2)
        yield system


@contextmanager
def over_parted_group(_folder: Path) -> Iterator[System]:
    """Serve a replication group, whose members are in network namespaces, by two processes."""
    with ExitStack() as stack:
        with missing_skips():
            machine, hosts = stack.enter_context(network(MEMBERS))
            group = stack.enter_context(targets.mysql_group(places=[each.place for each in hosts]))
        prepare(_primary(group), group.dsn, "ALL ON *.*")
        system = System(dsn(*group.members, options="?timeout=3"), OVER_A_DATABASE)

        def part(*, primary: bool, others: list[Node]) -> None:
            used = _primary(group)
            lost = used if primary else random.choice([each for each in group.members if each is not used])
            with parted(hosts[group.members.index(lost)], others):
                time.sleep(2 * _LONG_HANG)  # how long nothing arrives
            until(lambda: is_expelled(lost))
            lost.join()

        system.faults |= {
            "partition of the primary": lambda: part(primary=True, others=[machine, *hosts]),
            "partition of a secondary": lambda: part(primary=False, others=[machine, *hosts]),
        }
        stack.callback(system.close)
        system.start(2)
        yield system


@contextmanager
def over_router(_folder: Path) -> Iterator[System]:
    """Serve a replication group behind MySQL Router by two processes.

    The router has a fixed list of members, so that no fault may make another one the primary.
    """
    with ExitStack() as stack:
        with missing_skips():
            router, group = stack.enter_context(targets.mysql_router())
        prepare(_primary(group), router.dsn, "ALL ON *.*")
        system = System(dsn(router, options="?timeout=3"), OVER_A_DATABASE)
        system.faults |= {
            "kill -9 of kvref": system.kill,
            "kill -9 of the router": lambda: _lost(router),
            "SIGSTOP of the router": lambda: _hung(router, _HANG),
            "long SIGSTOP of the router": lambda: _hung(router, _LONG_HANG),
            "SIGSTOP of the primary": lambda: _hung(_primary(group), _HANG),
            "restart": system.restart,
        }
        stack.callback(system.close)
        system.start(2)
        yield system


@contextmanager
def over_vitess(_folder: Path) -> Iterator[System]:
    """Serve a Vitess cluster, with three tablets in each of two shards and two vtgates, by two processes."""
    with ExitStack() as stack:
        cluster = stack.enter_context(vitess_cluster_or_skip(TABLETS))
        system = System(f"{cluster.dsn}?timeout=3", OVER_A_DATABASE)
        gates = cycle(cluster.gates)

        def shard() -> str:
            return random.choice(cluster.shards())

        system.faults |= {
            "kill -9 of kvref": system.kill,
            "planned change of a primary": lambda: cluster.take_over(shard()),
            "kill -9 of a primary": lambda: cluster.rejoin(cluster.lose_primary(shard())),
            "kill -9 of a vtgate": lambda: _lost(next(gates)),
            "SIGSTOP of a vtgate": lambda: _hung(next(gates), _LONG_HANG),
        }
        stack.callback(system.close)
        system.start(2)
        yield system


@contextmanager
def over_resharded_vitess(_folder: Path) -> Iterator[System]:
    """Serve a Vitess cluster whose rows move from two shards to four and back, by two processes."""
    with ExitStack() as stack:
        cluster = stack.enter_context(vitess_cluster_or_skip(1))
        system = System(f"{cluster.dsn}?timeout=3", OVER_A_DATABASE)
        system.faults |= {
            "two shards become four": lambda: cluster.reshard(FOUR_SHARDS),
            "four shards become two": lambda: cluster.reshard(SHARDS[TABLES]),
        }
        stack.callback(system.close)
        system.start(2)
        yield system


def _lost(server: RestartableServer | Router | Gate) -> None:
    server.kill()
    server.start()


def _hung(server: RestartableServer | Router | Gate, seconds: float) -> None:
    server.pause()
    try:
        time.sleep(seconds)  # how long it hangs
    finally:
        server.resume()


def _members(member: Member) -> int:
    """Return how many members one sees in its group."""
    with closing(member.connect(10)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM performance_schema.replication_group_members")
        ((count,),) = cursor.fetchall()
    return int(count)


def _primary(group: Group) -> Member:
    """Return the primary, once there is one that answers."""

    def found() -> Member | None:
        with suppress(OperationalError, TargetError):
            return group.primary()
        return None

    member = until(found)
    assert member is not None
    return member


@dataclass(frozen=True)
class Setup:
    """A system, and how many faults it meets in a full run.

    Args:
        name: in the report.
        serve: starts it.
        cycles: of a full run.
        session: a plain get need only show what its own connection has written.
    """

    name: str
    serve: Callable[[Path], AbstractContextManager[System]]
    cycles: int
    session: bool = False


_LOCALLY = "two processes with row cache by the Unix socket"
SETUPS = (
    Setup("SQLite, two workers", over_sqlite, 396),
    Setup("MySQL 9.7, two processes", partial(over_database, "mysql-9.7"), 150),
    Setup("MySQL 9.7, two processes with row cache", partial(with_row_cache, "mysql-9.7"), 150),
    Setup(f"MySQL 9.7, {_LOCALLY}", partial(with_row_cache, "mysql-9.7", local=True), 150),
    Setup("MariaDB, two processes", partial(over_database, "mariadb"), 102),
    Setup(f"MariaDB, {_LOCALLY}", partial(with_row_cache, "mariadb", local=True), 102),
    Setup("Galera", over_galera, 102),
    Setup("replication group, two processes", partial(over_group, PRIMARY), 100),
    Setup("replication group behind MySQL Router, two processes", over_router, 60),
    Setup("replication group, two processes with reads=session", partial(over_group, SESSION), 24, session=True),
    Setup("replication group in network namespaces, two processes", over_parted_group, 12),
    Setup("Vitess, two processes", over_vitess, 25),
    Setup("Vitess while rows move to other shards, two processes", over_resharded_vitess, 2),
)
