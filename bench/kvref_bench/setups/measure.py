"""One set-up after the other: its server, and pairs with the demo table of the same store in alternating order.

The server of the demo table runs all the time. Over MySQL all servers have the same database server.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import TargetError
from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Clock
from kvref_bench.peers import PeerSpec
from kvref_bench.peers.processes import SERVER, check_processors, listening
from kvref_bench.peers.sqlite_tables import SCHEME, SQLiteTables
from kvref_bench.setups.entries import LOGIN, VERBS, setups
from kvref_bench.turns import cpus, loaded, serving
from kvref_testbed.targets import QUIET, MissingError, kvref_server
from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.work import Work
    from kvref_bench.pairs.measure import Settings
    from kvref_bench.peers import OpenPeer
    from kvref_bench.peers.base_tables import Tables
    from kvref_bench.setups.entries import Setup
    from kvref_bench.turns.loaded import Done
    from kvref_testbed.targets import KvrefServer
    from kvref_testbed.targets.progress import Progress

DATABASE: Final = "mysql-8.0"
KVREF: Final = "kvref"
METRICS: Final = "{metrics}"

# Of each verb: the set-up, then the demo table.
Pair = dict[str, tuple["Done", "Done"]]


@dataclass(slots=True)
class Measured:
    """The result of a set-up over a store.

    pairs: in the order in which they were measured. skipped: why it was not measured; "" if it was.
    """

    setup: Setup
    store: str
    pairs: list[Pair] = field(default_factory=list)
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """A server of a set-up that runs.

    address: of clients. administration: an address without TLS and authentication. tables: where its table is.
    pids: its processes by name. extras: login and TLS of the work of clients. count: rows of its table.
    """

    setup: Setup
    address: str
    administration: str
    tables: Tables
    pids: Mapping[str, int]
    extras: dict[str, Any]
    count: int

    def work(self, verb: str, seed: int = 0) -> Work:
        """Return the requests of one verb."""
        return replace(self.setup.requests(self.count, verb, seed), **self.extras)

    def measure(self, verb: str, clock: Clock, engine: Engine, seed: int = 0) -> Done:
        """Measure one verb once. Raises BenchError for a wrong or missing reply."""
        return loaded.measure(self.setup.name, self.address, self.work(verb, seed), clock, engine, self.pids)

    def sweep(self, engine: Engine) -> None:
        """Get every key once and compare its value. Raises BenchError."""
        loaded.sweep(self.setup.name, self.address, self.work("get"), engine)


def measure(
    wanted: Mapping[str, Sequence[Setup]], settings: Settings, say: Callable[[str], None], progress: Progress = QUIET
) -> Iterator[Measured]:
    """Measure the set-ups of each store, and yield each as it is done.

    A set-up for which the machine lacks a program or an artifact, and one that fails, is yielded with the reason.

    Args:
        wanted: set-ups by store. say: takes a line of progress. progress: of what is downloaded and booted.

    Raises:
        BenchError: a wrong reply of the server of the demo table. TargetError: it does not start.
    """
    with loaded.generator(settings.where) as engine:
        for store, several in wanted.items():
            with ExitStack() as stack:
                try:
                    database = stack.enter_context(opened(store, settings, progress))
                    demo = stack.enter_context(serve(setups()[0], store, database, settings, progress))
                except MissingError as lack:
                    yield from (Measured(setup, store, skipped=str(lack)) for setup in several)
                    continue
                demo.sweep(engine)
                for setup in several:
                    yield _measured(setup, store, database, demo, engine, settings, say, progress)


@contextmanager
def opened(store: str, settings: Settings, progress: Progress) -> Iterator[OpenPeer | None]:
    """Boot the database server of a store for the block; None: it has none."""
    if store != "mysql":
        yield None
        return
    with ExitStack() as stack:
        with cpus.on(settings.where.servers):
            peer = stack.enter_context(peers.open(PeerSpec(endpoint=DATABASE), progress))
        yield peer


def _measured(  # noqa: PLR0913, PLR0917 - what, where and how
    setup: Setup, store: str, database: OpenPeer | None, demo: Server, engine: Engine, settings: Settings,
    say: Callable[[str], None], progress: Progress,
) -> Measured:  # fmt: skip
    measured = Measured(setup, store)
    try:
        with serve(setup, store, database, settings, progress) as server:
            server.sweep(engine)
            for number in range(settings.pairs):
                measured.pairs.append(pair(server, demo, engine, settings, number))
            # Threads and children that came since the start inherit where they may run.
            check_processors(server.pids.values(), settings.where.servers)
    except (TargetError, BenchError) as error:
        measured.skipped = str(error)
        say(f"{store}: {setup.name}: left out: {error}")
        return measured
    costs = (f"{verb} {' '.join(f'{ours / theirs:.2f}' for ours, theirs in of)}" for verb, of in costs_of(measured))
    say(f"{store}: {setup.name}: CPU time of kvref / demo table: {', '.join(costs)}")
    return measured


def costs_of(measured: Measured) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield each verb with the microseconds of CPU time of kvref in each pair, of the set-up and of the demo table."""
    for verb in VERBS:
        both = (each[verb] for each in measured.pairs)
        yield verb, [(ours.server[KVREF], theirs.server[KVREF]) for ours, theirs in both]


def pair(server: Server, demo: Server, engine: Engine, settings: Settings, number: int) -> Pair:
    """Measure each verb on both servers, the set-up first in pairs of even number. Raises BenchError."""
    clock, found = Clock(settings.warmup, settings.seconds), {}
    for verb in VERBS:
        done = [each.measure(verb, clock, engine, number) for each in loaded.in_turn([server, demo], number)]
        ours, theirs = loaded.in_turn(done, number)
        found[verb] = (ours, theirs)
    return found


@contextmanager
def serve(
    setup: Setup, store: str, database: OpenPeer | None, settings: Settings, progress: Progress
) -> Iterator[Server]:
    """Start the server of a set-up over its filled table for the block.

    Raises:
        BenchError: it refuses the set-up. TargetError: it does not start; MissingError: the machine lacks something.
    """
    with ExitStack() as stack, cpus.on(settings.where.servers):
        table = setup.made(store, settings.keys)
        metrics = f"{LOOPBACK}:{free_port()}"
        options = [*settings.kvref, *(metrics if each == METRICS else each for each in setup.options)]
        if database is not None:
            database.tables.make(table, progress)
        kvref = stack.enter_context(kvref_server(KVREF, options, database.tables_dsn if database else None))
        administration = "{}:{}".format(*kvref.address)
        address, extras, config = _listen(kvref, setup.listener) if setup.listener else (administration, {}, None)
        serving.start(kvref, None if database else table, progress, config)
        if METRICS in setup.options:
            serving.scrape(stack, metrics)
        tables = database.tables if database else SQLiteTables(f"{SCHEME}{kvref.file}")
        pids = listening(kvref=administration) | ({"mysqld": database.processes()[SERVER]} if database else {})
        with cpus.on(settings.where.clients):
            yield Server(setup, address, administration, tables, pids, extras, settings.keys)


def _listen(kvref: KvrefServer, keys: Mapping[str, str]) -> tuple[str, dict[str, Any], Path]:
    """Write what a listener needs, and return its address, fields of the work of its clients, and the configuration."""
    folder = kvref.file.parent
    listener = {"address": f"{LOOPBACK}:{free_port()}"} | {
        key: text.format(folder=folder) for key, text in keys.items()
    }
    extras = {}
    if "auth_file" in listener:
        users = folder / "users"
        users.write_text(f"{LOGIN}\n", encoding="utf-8")
        users.chmod(0o600)
        extras["login"] = LOGIN
    if "tls_cert" in listener:
        words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        files = ["-keyout", listener["tls_key"], "-out", listener["tls_cert"]]
        subprocess.run([tool("openssl"), *words.split(), *files], check=True, capture_output=True)
        extras["tls"] = listener["tls_cert"]
    config = folder / "listeners.toml"
    tables = ({"address": "{}:{}".format(*kvref.address)}, listener)
    lines = (["[[listener]]", *(f"{key} = {json.dumps(value)}" for key, value in each.items())] for each in tables)
    config.write_text("\n".join(line for each in lines for line in each), encoding="utf-8")
    return listener["address"], extras, config
