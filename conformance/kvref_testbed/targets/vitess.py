"""Vitess on loopback: its gate, the shards behind it, the target, and one for tests.

What kvref serves from, not what is judged. vtcombo is vtgate and the tablets in one process; the shards are databases
of one mysqld. It is built from the Go module, once.

    with vitess() as cluster:
        ...                                  # cluster.dsn; cluster.connect(): SQL through vtgate
        cluster.gate.kill()
        cluster.gate.start()                 # with the vschema of the beginning
        cluster.database.kill()              # the mysqld of all shards
        cluster.database.start()
"""

from __future__ import annotations

import json
import os
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pymysql

from kvref_testbed.targets import mysqld
from kvref_testbed.targets.builds import MYSQL_8_0
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_port, free_ports
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Restartable, Run
from kvref_testbed.targets.target import Endpoint
from kvref_testbed.targets.vitess_programs import VERSION, as_user, program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_testbed.targets.progress import Progress

_START_SECONDS: Final = 120.0  # on a machine that is busy with other servers
_STATEMENT_SECONDS: Final = 60.0
_PATIENCE: Final = 20.0  # seconds to end after SIGTERM
CONFIGURATION: Final = "innodb_memcache"
TABLES: Final = "test"
SHARDS: Final[dict[str, tuple[str, ...]]] = {CONFIGURATION: ("0",), TABLES: ("-80", "80-")}
# Of the keyspace for tables. Each table needs a vindex that finds the shard of a row by its key.
VSCHEMA: Final = {
    "sharded": True,
    "vindexes": {"xxhash": {"type": "xxhash"}},
    "tables": {"demo_test": {"column_vindexes": [{"column": "c1", "name": "xxhash"}]}},
}
# A hash of the bytes finds a row whose key has other letter case only if the column takes these for two keys, too.
DEMO: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLES}.demo_test (c1 VARCHAR(32) COLLATE utf8mb4_0900_bin NOT NULL PRIMARY KEY,"
    " c2 VARCHAR(1024), c3 INT, c4 BIGINT UNSIGNED, c5 INT) DEFAULT CHARSET = utf8mb4",
    f"INSERT INTO {TABLES}.demo_test (c1, c2, c3, c4, c5) VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)",  # noqa: S608 - constant
)
_MYSQLD: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--max-connections=1000")


class Below(mysqld.RestartableServer):
    """The mysqld of all shards, one at a time, on the data folder of its run."""

    def start(self) -> None:
        """Start on the data folder that is there, and wait until it answers SQL; raises TargetError."""
        self._free()
        self._launch()

    def query(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements with autocommit, and return what the last one found; raises pymysql's errors."""
        with closing(self.connect(_STATEMENT_SECONDS)) as connection, connection.cursor() as cursor:
            for each in statements:
                cursor.execute(each)
            return list(cursor.fetchall())


class Gate(Restartable):
    """One vtcombo at a time.

    run: gets a folder for it.
    database: the mysqld below.
    progress: reports the build. Raises MissingError where there is none.
    options: further ones of vtcombo.
    """

    def __init__(self, run: Run, database: mysqld.Server, progress: Progress, options: Sequence[str]) -> None:
        super().__init__(run, "vitess", _PATIENCE)
        self._command = [*as_user(), str(program(progress))]
        self._database = database
        self._more = options
        self._folder = run.folder / "vitess"
        self._folder.mkdir()
        self.host = LOOPBACK
        self.port, self._http, self._grpc = free_ports(3)
        schema = self._folder / "schema" / TABLES
        schema.mkdir(parents=True)
        (schema / "vschema.json").write_text(json.dumps(VSCHEMA), encoding="utf-8")

    @property
    def dsn(self) -> str:
        """Return the DSN of vtgate."""
        return f"mysql://root@{self.host}:{self.port}/"

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection with autocommit through vtgate; raises pymysql's errors.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        return pymysql.connect(
            host=self.host, port=self.port, user="root", autocommit=True, ssl_disabled=True, read_timeout=patience
        )

    def start(self) -> None:
        """Start it, and wait until it reaches every shard; raises TargetError."""
        environment = {**os.environ, "VTDATAROOT": str(self._folder), "VTROOT": str(self._folder)}
        self._process = self._run.start(self.name, [*self._command, *self._options()], environment)
        self._run.wait_for(f"vtgate at {self.host}:{self.port}", self._serves, _START_SECONDS)

    def _serves(self) -> None:
        try:
            with closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("SHOW VITESS_TABLETS")
                serving = sum(row[4] == "SERVING" for row in cursor.fetchall())
        except (OSError, pymysql.err.MySQLError) as error:
            raise NotYetError(str(error)) from error
        if serving < sum(map(len, SHARDS.values())):
            raise NotYetError(f"{serving} shards serve")

    def _options(self) -> list[str]:
        keyspaces = [
            {"name": name, "shards": [{"name": each} for each in shards], "replicaCount": -1, "rdonlyCount": -1}
            for name, shards in SHARDS.items()
        ]
        users = [f"--db-{each}-user=root" for each in ("app", "dba", "allprivs", "appdebug", "filtered", "repl")]
        return [
            f"--json-topo={json.dumps({'cells': ['test'], 'keyspaces': keyspaces})}",
            f"--schema-dir={self._folder / 'schema'}",
            f"--db-socket={self._database.socket}", f"--mycnf-socket-file={self._database.socket}",
            "--mycnf-server-id=1", "--db-charset=utf8mb4", *users,
            f"--bind-address={LOOPBACK}", f"--port={self._http}",
            f"--grpc-bind-address={LOOPBACK}", f"--grpc-port={self._grpc}",
            f"--mysql-server-bind-address={LOOPBACK}", f"--mysql-server-port={self.port}",
            "--mysql-auth-server-impl=none", "--dbddl-plugin=vttest", "--tablet-types-to-wait=primary",
            "--vschema-ddl-authorized-users=%",
            "--queryserver-config-transaction-cap=100", "--queryserver-config-pool-size=50", *self._more,
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cluster:
    """Vitess for tests; made by `vitess`.

    gate: vtgate and the tablets.
    database: the mysqld below them.
    """

    gate: Gate
    database: Below

    @property
    def dsn(self) -> str:
        """Return the DSN of vtgate."""
        return self.gate.dsn

    def connect(self) -> Connection[Cursor]:
        """Open a SQL connection with autocommit through vtgate; raises pymysql's errors."""
        return self.gate.connect()

    def shard(self, name: str) -> str:
        """Return the quoted name of the database of a shard, for statements to the mysqld."""
        return f"`vt_{TABLES}_{name}`"


def started(run: Run, options: Sequence[str], progress: Progress, gate_options: Sequence[str] = ()) -> Cluster:
    """Start mysqld, and Vitess over it, with the demo table in a sharded keyspace.

    options: of mysqld. gate_options: of vtcombo. Raises MissingError where Vitess cannot be built or run, TargetError.
    """
    program(progress)
    as_user()
    server = mysqld.lay_out(run.folder, MYSQL_8_0, progress, free_port())
    database = Below(run, MYSQL_8_0, "mysqld", server, [*_MYSQLD, *options])
    database.start()
    for keyspace, shards in SHARDS.items():
        database.query(*[f"CREATE DATABASE `vt_{keyspace}_{shard}`" for shard in shards])
    gate = Gate(run, server, progress, gate_options)
    progress.step("starting Vitess")
    gate.start()
    with closing(gate.connect()) as connection:
        for statement in DEMO:
            connection.query(statement)
    return Cluster(gate, database)


@dataclass(frozen=True, slots=True)
class Vitess:
    """Two shards for tables and a keyspace for the configuration; see `recipe.Recipe` for the fields."""

    name: str = "vitess"
    summary: str = f"Vitess {VERSION.removeprefix('v0.')} over MySQL 8.0.33, tables in two shards; SQL only"
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start mysqld and vtcombo on fresh data, and wait until vtgate reaches every shard.

        options: of mysqld. Raises MissingError where Vitess cannot be built or run, TargetError.
        """
        cluster = started(run, options, progress)
        with closing(cluster.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            rows = cursor.fetchall()
        return Endpoint(address=None, version=str(rows[0][0]), sql=cluster.dsn)


@contextmanager
def vitess(
    gate_options: Sequence[str] = (), options: Sequence[str] = (), progress: Progress = QUIET
) -> Iterator[Cluster]:
    """Start a private Vitess; it is killed with the block.

    gate_options: of vtcombo, options: of mysqld, at every start. Raises TargetError.
    """
    run = Run.create()
    try:
        yield started(run, options, progress, gate_options)
    finally:
        run.stop(0)
