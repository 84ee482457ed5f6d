"""Vitess as it runs in production: vtgates, and for each shard tablets with a mysqld each, one of them the primary.

What kvref serves from, for tests of faults. With several tablets in a shard, each write waits until a second one has
it (durability policy `semi_sync`), so that a primary may be lost. Tests make another one the primary, as operators do.

    with vitess_cluster() as cluster:
        ...                                  # cluster.dsn: all vtgates
        cluster.gates[0].kill()
        cluster.take_over("-80")             # a planned change of the primary
        lost = cluster.lose_primary("-80")   # kill -9 of mysqld and vttablet, and another primary
        cluster.rejoin(lost)                 # with an empty data folder
    with vitess_cluster(tablets=1) as cluster:
        cluster.reshard(("-40", "40-80", "80-c0", "c0-"))
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pymysql

from kvref.errors import TargetError
from kvref_testbed.targets import mysqld
from kvref_testbed.targets.builds import MYSQL_9_7
from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_port, free_ports, reach
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Restartable, Run
from kvref_testbed.targets.vitess import CONFIGURATION, DEMO, SHARDS, TABLES, VSCHEMA, Below
from kvref_testbed.targets.vitess_programs import as_user, programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_testbed.targets.progress import Progress

GATES: Final = 2
TABLETS: Final = 3  # of a shard: one may be lost, and writes need two
_CELL: Final = "test"
_START_SECONDS: Final = 120.0  # on a machine that is busy with other servers
_PATIENCE: Final = 20.0  # seconds to end after SIGTERM
_COMMAND_SECONDS: Final = 120.0
_DURABLE: Final = "semi_sync"
_NEXT: Final = 1000  # more than there are tablets
_WORKFLOW: Final = "move"
_FROM_PRIMARIES: Final = ("--tablet-types", "primary")
# As Vitess configures a mysqld that it starts, see its config/mycnf/mysql90.cnf.
_MYSQLD: Final = (
    "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=log", "--relay-log=relay", "--relay-log-recovery=ON",
    "--skip-replica-start", "--super-read-only", "--replica-net-timeout=8", "--max-connections=500",
    "--plugin-load=rpl_semi_sync_source=semisync_source.so;rpl_semi_sync_replica=semisync_replica.so",
    "--loose-rpl-semi-sync-source-timeout=1000000000000000000", "--loose-rpl-semi-sync-source-wait-no-replica=1",
    "--performance-schema=OFF",
)  # fmt: skip
_ACCOUNTS: Final = ("app", "dba", "allprivs", "appdebug", "filtered", "repl")
_SERVICES: Final = "grpc-queryservice,grpc-tabletmanager,grpc-updatestream"


class Topology(Restartable):
    """etcd, which has what all programs of a cluster know of each other.

    run: gets a folder for it. Raises MissingError without etcd.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run, "etcd", _PATIENCE)
        self.port, self._peers = free_ports(2)
        self._command = [
            tool("etcd"), "--data-dir", str(run.folder / "etcd"),
            "--listen-client-urls", self._url(self.port), "--advertise-client-urls", self._url(self.port),
            "--listen-peer-urls", self._url(self._peers), "--initial-advertise-peer-urls", self._url(self._peers),
            "--initial-cluster", f"default={self._url(self._peers)}", "--log-level", "error",
        ]  # fmt: skip

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options by which the programs of Vitess find it."""
        address = f"--topo-global-server-address={LOOPBACK}:{self.port}"
        return "--topo-implementation=etcd2", address, "--topo-global-root=/vitess/global"

    def start(self) -> None:
        """Start it, and wait until it listens; raises TargetError."""
        self._process = self._run.start(self.name, self._command)
        self._run.wait_for(f"etcd at {LOOPBACK}:{self.port}", lambda: reach(self.port), _START_SECONDS)

    @staticmethod
    def _url(port: int) -> str:
        return f"http://{LOOPBACK}:{port}"


class _Program(Restartable):
    """A program of Vitess, one process at a time; its folder is its VTDATAROOT.

    words: its command, but for the options of the topology.
    """

    def __init__(self, run: Run, name: str, folder: Path, words: Sequence[str], topology: Topology) -> None:
        super().__init__(run, name, _PATIENCE)
        self._folder = folder
        self._words = [*as_user(), *words, *topology.options]

    def launch(self, name: str) -> None:
        environment = {**os.environ, "VTDATAROOT": str(self._folder), "VTROOT": str(self._folder)}
        if self._process is not None:
            self._end(0)
        self._process = self._run.start(name, self._words, environment)


class Control(_Program):
    """One vtctld at a time, which carries out what `vtctldclient` orders."""

    def __init__(self, run: Run, topology: Topology, progress: Progress) -> None:
        folder = run.folder / "control"
        folder.mkdir()
        self._client = str(programs(progress) / "vtctldclient")
        http, self._grpc = free_ports(2)
        words = [
            str(programs(progress) / "vtctld"), "--service-map=grpc-vtctl,grpc-vtctld", f"--bind-address={LOOPBACK}",
            f"--port={http}", f"--grpc-bind-address={LOOPBACK}", f"--grpc-port={self._grpc}",
        ]  # fmt: skip
        super().__init__(run, "vtctld", folder, words, topology)

    def start(self) -> None:
        """Start it, and wait until it listens; raises TargetError."""
        self.launch("control/vtctld")
        self._run.wait_for("vtctld", lambda: reach(self._grpc), _START_SECONDS)

    def run(self, *words: str) -> str:
        """Run vtctldclient, and return what it prints; raises TargetError if it fails."""
        command = [*as_user(), self._client, f"--server={LOOPBACK}:{self._grpc}", *words]
        environment = {**os.environ, "VTDATAROOT": str(self._folder), "VTROOT": str(self._folder)}
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS
        )
        if ended.returncode:
            raise TargetError(f"vtctldclient {' '.join(words)} ended with {ended.returncode}: {ended.stderr.strip()}")
        return ended.stdout


class Tablet:
    """vttablet and its mysqld, which are started and killed together.

    run: the run. number: of the tablet, from 1; its server_id. shard: KEYSPACE/SHARD.

    port: of vttablet, for vtgate. database: the mysqld.
    """

    def __init__(self, run: Run, number: int, shard: str, topology: Topology, progress: Progress) -> None:
        self.alias = f"{_CELL}-{number:010}"
        self.shard = shard
        self._run, self._number, self._progress = run, number, progress
        self._server_id = number
        self._folder = run.folder / f"tablet{number}"
        self._sql = free_port()
        self._http, self.port = free_ports(2)
        self._server = self._lay_out()
        self.database = self._below(number)
        words = [str(programs(progress) / "vttablet"), *self._options(shard)]
        self._program = _Program(run, f"vttablet {number}", self._folder, words, topology)

    def _lay_out(self) -> mysqld.Server:
        self._folder.mkdir()
        return mysqld.lay_out(self._folder, MYSQL_9_7, self._progress, self._sql)

    def _below(self, server_id: int) -> Below:
        options = (*_MYSQLD, f"--server-id={server_id}")
        return Below(self._run, MYSQL_9_7, self._folder.name, self._server, options)

    def _options(self, shard: str) -> list[str]:
        keyspace, _, name = shard.partition("/")
        return [
            f"--tablet-path={self.alias}", f"--tablet-hostname={LOOPBACK}", "--init-tablet-type=replica",
            f"--init-keyspace={keyspace}", f"--init-shard={name}", f"--service-map={_SERVICES}",
            f"--bind-address={LOOPBACK}", f"--port={self._http}",
            f"--grpc-bind-address={LOOPBACK}", f"--grpc-port={self.port}",
            f"--db-socket={self._server.socket}", "--db-charset=utf8mb4",
            *(f"--db-{each}-user=root" for each in _ACCOUNTS),
            f"--mycnf-server-id={self._number}", f"--mycnf-mysql-port={self._sql}",
            f"--mycnf-socket-file={self._server.socket}",
            "--queryserver-config-transaction-cap=100", "--queryserver-config-pool-size=50",
            "--health-check-interval=1s",
        ]  # fmt: skip

    def start(self) -> None:
        """Start both, on an empty data folder if it was forgotten, and wait for the tablet's port; TargetError."""
        if not self._folder.exists():
            self._lay_out()
        self.database.start()
        self._program.launch(f"{self._folder.name}/vttablet")
        self._run.wait_for(f"vttablet {self.alias}", lambda: reach(self.port), _START_SECONDS)

    def kill(self) -> None:
        """Kill both with SIGKILL."""
        self._program.kill()
        self.database.kill()

    def executed(self) -> str:
        """Return the GTIDs of the transactions that its mysqld has."""
        ((found,),) = self.database.query("SELECT @@GLOBAL.gtid_executed")
        return str(found)

    def wait_for(self, gtids: str) -> None:
        """Raise NotYetError unless its mysqld has these transactions."""
        ((has,),) = self.database.query(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")
        if not has:
            raise NotYetError("it has not all transactions")

    def forget(self) -> None:
        """Remove the rows of a killed one: those that no other tablet had are not to come back."""
        shutil.rmtree(self._folder)
        # A replica skips what has its own server_id: its number as a primary must be another one.
        self._server_id += _NEXT
        self.database = self._below(self._server_id)


class Gate(_Program):
    """One vtgate at a time.

    number: of the gate, from 1. shards: how many there are at its start, in all keyspaces.
    """

    def __init__(self, run: Run, number: int, shards: int, topology: Topology, progress: Progress) -> None:
        self._shards = shards
        folder = run.folder / f"gate{number}"
        folder.mkdir()
        self.host = LOOPBACK
        self.port, http, grpc = free_ports(3)
        words = [
            str(programs(progress) / "vtgate"), f"--cell={_CELL}", f"--cells-to-watch={_CELL}",
            "--tablet-types-to-wait=PRIMARY", "--service-map=grpc-vtgateservice", "--mysql-auth-server-impl=none",
            f"--bind-address={LOOPBACK}", f"--port={http}", f"--grpc-bind-address={LOOPBACK}", f"--grpc-port={grpc}",
            f"--mysql-server-bind-address={LOOPBACK}", f"--mysql-server-port={self.port}",
            "--enable-buffer", "--tablet-refresh-interval=1s", "--vschema-ddl-authorized-users=%",
        ]  # fmt: skip
        super().__init__(run, f"vtgate {number}", folder, words, topology)

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection with autocommit; raises pymysql's errors.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        return pymysql.connect(
            host=self.host, port=self.port, user="root", autocommit=True, ssl_disabled=True, read_timeout=patience
        )

    def start(self) -> None:
        """Start it, and wait until it knows a primary of every shard; raises TargetError."""
        self.launch(f"{self._folder.name}/vtgate")
        self._run.wait_for(f"vtgate at {self.host}:{self.port}", self._serves, _START_SECONDS)

    def _serves(self) -> None:
        try:
            with closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT 1 FROM {TABLES}.demo_test WHERE c1 = 'AA'")  # noqa: S608 - constant
                cursor.execute("SHOW VITESS_SHARDS")
                shards = len(cursor.fetchall())
        except (OSError, pymysql.err.MySQLError) as error:
            raise NotYetError(str(error)) from error
        if shards < self._shards:
            raise NotYetError(f"{shards} shards are known")


@dataclass
class VitessCluster:
    """Vitess of separate programs; made by `vitess_cluster`.

    width: tablets of a new shard. tablets: of all shards, killed ones too. gates: in the order of the DSN.
    """

    run: Run
    topology: Topology
    control: Control
    progress: Progress
    width: int
    tablets: list[Tablet] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    _numbers: int = 0

    @property
    def dsn(self) -> str:
        """Return the DSN that names all gates."""
        return f"mysql://root@{','.join(f'{each.host}:{each.port}' for each in self.gates)}/"

    def connect(self) -> Connection[Cursor]:
        """Open a SQL connection with autocommit through the first gate; raises pymysql's errors."""
        return self.gates[0].connect()

    def shards(self) -> list[str]:
        """Return the shards of the keyspace of tables that serve, for example `-80`."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW VITESS_SHARDS")
            named = [str(name).partition("/") for (name,) in cursor.fetchall()]
        return [shard for keyspace, _, shard in named if keyspace == TABLES]

    def primary(self, shard: str) -> Tablet:
        """Return the primary of a shard of the keyspace of tables; raises TargetError if there is none."""
        found = json.loads(self.control.run("GetShard", f"{TABLES}/{shard}"))["shard"]["primary_alias"]
        alias = f"{found['cell']}-{found['uid']:010}"
        return next(each for each in self.tablets if each.alias == alias)

    def others(self, shard: str) -> list[Tablet]:
        """Return the other tablets of a shard that run."""
        primary = self.primary(shard)
        mine = [each for each in self.tablets if each.shard == f"{TABLES}/{shard}" and each is not primary]
        return [each for each in mine if each.database.running()]

    def take_over(self, shard: str) -> None:
        """Make another tablet the primary of a shard, as planned; raises TargetError."""
        after = self.others(shard)[0]
        self.control.run("PlannedReparentShard", f"{TABLES}/{shard}", "--new-primary", after.alias)

    def lose_primary(self, shard: str) -> Tablet:
        """Kill the primary of a shard with its mysqld, make another tablet the primary, and return the killed one."""
        lost = self.primary(shard)
        lost.kill()
        self.control.run("EmergencyReparentShard", f"{TABLES}/{shard}")
        return lost

    def rejoin(self, tablet: Tablet) -> None:
        """Start a killed tablet on an empty data folder, and wait until it has all rows; raises TargetError."""
        tablet.forget()
        tablet.start()
        gtids = self.primary(tablet.shard.partition("/")[2]).executed()
        self.run.wait_for(f"{tablet.alias} to replicate", lambda: tablet.wait_for(gtids), _START_SECONDS)

    def reshard(self, shards: Sequence[str]) -> None:
        """Move the rows of the keyspace of tables to other shards, and remove the old ones; raises TargetError."""
        before = self.shards()
        self.add_shards({TABLES: shards}, self.width)
        words = ("Reshard", "--workflow", _WORKFLOW, "--target-keyspace", TABLES)
        sources, targets = ",".join(before), ",".join(shards)
        self.control.run(*words, "create", "--source-shards", sources, "--target-shards", targets, *_FROM_PRIMARIES)
        self.run.wait_for("the rows to be copied", self._copied, _COMMAND_SECONDS)
        self.control.run(*words, "switchtraffic")
        self.control.run(*words, "complete")
        old = [f"{TABLES}/{each}" for each in before]  # which the topology has no more
        for each in [each for each in self.tablets if each.shard in old]:
            each.kill()
            self.tablets.remove(each)

    def _copied(self) -> None:
        text = self.control.run("Workflow", "--keyspace", TABLES, "show", "--workflow", _WORKFLOW)
        states = [each["state"] for each in _streams(json.loads(text))]
        if not states or any(each != "Running" for each in states):
            raise NotYetError(f"the streams are {states}")

    def add_shards(self, shards: Mapping[str, Sequence[str]], tablets: int) -> None:
        """Add shards with so many tablets each, the first one the primary; raises TargetError."""
        added: list[Tablet] = []
        for keyspace, names in shards.items():
            for name in names:
                for _ in range(tablets):
                    self._numbers += 1
                    added.append(Tablet(self.run, self._numbers, f"{keyspace}/{name}", self.topology, self.progress))
                    self.tablets.append(added[-1])
        for each in added:
            self.progress.step(f"starting a tablet of {each.shard}")
            each.start()
        for each in added[::tablets]:
            self.control.run("PlannedReparentShard", each.shard, "--new-primary", each.alias)


def _streams(shown: Any) -> Iterator[Any]:
    """Yield the streams of the workflows that vtctldclient shows."""
    for workflow in shown["workflows"]:
        for each in workflow["shard_streams"].values():
            yield from each["streams"]


@contextmanager
def vitess_cluster(
    tablets: int = TABLETS,
    progress: Progress = QUIET,
    shards: Sequence[str] = SHARDS[TABLES],
) -> Iterator[VitessCluster]:
    """Start a private cluster with the demo table in shards, two by default; it is killed with the block.

    tablets: of each shard for tables; one: without replication. shards: their names, which are ranges of keyspace IDs.
    Raises MissingError without Go, etcd or MySQL 9.7, TargetError.
    """
    run = Run.create()
    try:
        yield _started(run, tablets, shards, progress)
    finally:
        run.stop(0)


def _started(run: Run, tablets: int, shards: Sequence[str], progress: Progress) -> VitessCluster:
    topology = Topology(run)
    cluster = VitessCluster(run, topology, Control(run, topology, progress), progress, tablets)
    topology.start()
    cluster.control.start()
    cluster.control.run(
        "AddCellInfo", "--root", f"/vitess/{_CELL}", "--server-address", f"{LOOPBACK}:{topology.port}", _CELL
    )
    cluster.control.run("CreateKeyspace", CONFIGURATION)
    cluster.control.run("CreateKeyspace", f"--durability-policy={_DURABLE if tablets > 1 else 'none'}", TABLES)
    cluster.add_shards({CONFIGURATION: SHARDS[CONFIGURATION]}, tablets=1)
    cluster.add_shards({TABLES: shards}, tablets)
    table, row = (each.replace(f"{TABLES}.", "") for each in DEMO)
    cluster.control.run("ApplySchema", "--sql", table, TABLES)
    cluster.control.run("ApplyVSchema", "--vschema", json.dumps(VSCHEMA), TABLES)
    cluster.gates += [Gate(run, number, len(shards) + 1, topology, progress) for number in range(1, GATES + 1)]
    for each in cluster.gates:
        progress.step(f"starting {each.name}")
        each.start()
    with closing(cluster.connect()) as connection:
        connection.query(f"USE {TABLES}")
        connection.query(row)
    return cluster
