"""A mysqld on loopback, and the target that is a database server without the plugin.

Knows nothing of memcached: it becomes a target in `plugin.py`, with the plugin, and here without. The builds:
`builds.py`; servers for tests: `servers.py`; servers of a cluster: `galera.py` and `group.py`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pymysql

from kvref.errors import TargetError
from kvref_testbed.targets.folders import build_once, cache_root
from kvref_testbed.targets.needs import missing_library
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_port
from kvref_testbed.targets.run import Restartable
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_testbed.targets.artifacts import Program
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run

# The longest path a unix socket may have (unix(7): sun_path is 108 bytes with the final zero).
_SOCKET_PATH_BYTES = 107
_SOCKET = "sql.sock"
_DATA = "data"
_TEMPORARY = "tmp"
_START_SECONDS = 180.0  # on a machine whose disk has other work too
_LAST_LINES = 10


@dataclass(frozen=True, slots=True)
class Build:
    """One build of mysqld.

    program: gets the server, which may take long the first time.
    initialise: the arguments and the standard input that make an empty data folder, from the program's base.
    schemas: folders that must be in the data folder before it is initialised.
    options: what this version needs in addition to `--no-defaults` to run next to others.
    """

    program: Callable[[Progress], Program]
    initialise: Callable[[Path], tuple[Sequence[str], bytes]]
    schemas: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server runs.

    address: that it listens on.
    enter: words in front of its command, which enter its network namespace.
    """

    address: str = LOOPBACK
    enter: tuple[str, ...] = ()


HERE = Place()


@dataclass(frozen=True, slots=True)
class Server:
    """A mysqld that answers SQL on its unix socket, as root without a password.

    folder: its run's.
    port: of TCP, where root needs no password either if that is on loopback; None: it listens on the socket only.
    place: where it runs.
    """

    program: Program
    folder: Path
    port: int | None = None
    place: Place = HERE

    @property
    def socket(self) -> Path:
        """Return the path of its unix socket."""
        return self.folder / _SOCKET

    @property
    def data(self) -> Path:
        """Return its data folder."""
        return self.folder / _DATA

    @property
    def dsn(self) -> str:
        """Return the DSN of its SQL side: TCP where it listens there, else the socket."""
        if self.port is not None:
            return f"mysql://root@{self.place.address}:{self.port}/"
        return f"mysql://root@localhost/?unix_socket={quote(str(self.socket))}"

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection with autocommit; close it with `contextlib.closing`.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        # Without TLS, which a socket file does not need and whose errors name lines of Python's own source.
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", autocommit=True, read_timeout=patience, ssl_disabled=True
        )

    def version(self) -> str:
        """Return the version that the server reports, e.g. `8.0.33`."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            rows = cursor.fetchall()
        return str(rows[0][0])

    def answer(self) -> None:
        """Raise NotYetError unless it takes connections."""
        try:
            # PyMySQL leaks its socket if no server listens, so check that first.
            with socket.socket(socket.AF_UNIX) as first:
                first.connect(str(self.socket))
            self.connect().close()
        except (OSError, pymysql.err.OperationalError) as error:
            raise NotYetError(f"the server at {self.socket} said: {error}") from error


def run_as() -> tuple[str, ...]:
    """Return the option without which mysqld refuses to run as root; empty for other users."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def boot(run: Run, build: Build, options: Iterable[str], progress: Progress, port: int | None = None) -> Server:
    """Start a server on a fresh data folder and wait until it answers SQL; see `lay_out` and `start`."""
    return start(run, build, lay_out(run.folder, build, progress, port), options)


def lay_out(folder: Path, build: Build, progress: Progress, port: int | None = None, place: Place = HERE) -> Server:
    """Make a fresh data folder.

    folder: of the server, in that of its run or that itself.
    port, place: see `Server`.
    Returns the server that `start` will start on it. Raises MissingError for an artifact, a program or a library.
    """
    program = build.program(progress)
    server = Server(program, folder, port, place)
    if len(os.fsencode(server.socket)) > _SOCKET_PATH_BYTES:
        limit = f"longer than the {_SOCKET_PATH_BYTES} bytes of a unix socket"
        raise TargetError(f"{server.socket} is {limit}: set TMPDIR to a shorter folder")
    shutil.copytree(_template(build, program, progress), server.data)
    (folder / _TEMPORARY).mkdir()
    return server


def start(
    run: Run,
    build: Build,
    server: Server,
    options: Iterable[str],
    name: str = "mysqld",
    env: Mapping[str, str] | None = None,
) -> Server:
    """Start a server on its data folder, once or again, and wait until it answers SQL.

    options: of mysqld; the last of two equal ones counts, so these override the ones set here.
    name: of the process, with the server's folder in the run's before it if that is another.
    env: the whole environment; None for the caller's.
    Raises MissingError for a library, TargetError when the server ends or never answers.
    """
    run.start(name, [*command(server), *build.options, *options], env)
    run.wait_for(f"SQL at {server.socket}", server.answer, _START_SECONDS)
    return server


def command(server: Server) -> list[str]:
    """Return the words that start a server on its data folder, further options to follow."""
    folder = server.program.seen(server.folder)
    listens = f"--port={server.port}", f"--bind-address={server.place.address}"
    network = ["--skip-networking"] if server.port is None else listens
    return [
        *server.place.enter,
        *server.program.command(server.folder),
        # Must be the first: nothing of the machine's my.cnf applies.
        "--no-defaults",
        f"--basedir={server.program.base}",
        f"--datadir={folder / _DATA}",
        # A server that starts removes temporary tables from its folder for them, whoever uses them: in one that is
        # shared MariaDB ends with signal 11, or says `6 Error on delete of '#sql-temptable-…'`.
        f"--tmpdir={folder / _TEMPORARY}",
        f"--socket={folder / _SOCKET}",
        f"--pid-file={folder / 'mysqld.pid'}",
        *network,
        "--innodb_buffer_pool_size=64M",
        # The server's own default, stated here to be explicit: every commit is durable.
        "--innodb_flush_log_at_trx_commit=1",
        *run_as(),
    ]


def _template(build: Build, program: Program, progress: Progress) -> Path:
    def fill(folder: Path) -> None:
        progress.step(f"initialising a data folder of {program.key} (once)")
        for schema in build.schemas:
            (folder / schema).mkdir()
        arguments, script = build.initialise(program.base)
        words = [
            *program.command(folder),
            "--no-defaults",
            *arguments,
            f"--basedir={program.base}",
            f"--datadir={program.seen(folder)}",
            *run_as(),
        ]
        with tempfile.TemporaryFile() as source:
            source.write(script)
            source.seek(0)
            done = subprocess.run(words, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            output = done.stdout.decode(errors="replace")
            last = "\n".join(output.splitlines()[-_LAST_LINES:])
            raise missing_library(output) or TargetError(f"{' '.join(words)} exited with {done.returncode}:\n{last}")
        # The server's identity (server_uuid): each copy makes its own.
        (folder / "auto.cnf").unlink(missing_ok=True)

    return build_once(cache_root() / "data" / program.key, fill, progress)


# MySQL takes 3 to 6 s from SIGTERM to its end, longer on a busy machine.
_PATIENCE = 60.0


class RestartableServer(Restartable):
    """One server at a time, on a data folder in that of its run.

    build: of the server.
    name: for errors.
    server: laid out in the folder of the run, or in its own folder there.
    options: of mysqld, at every start.
    """

    def __init__(self, run: Run, build: Build, name: str, server: Server, options: Sequence[str]) -> None:
        super().__init__(run, name, _PATIENCE)
        self._build = build
        self._options = tuple(options)
        self.server = server
        self.host = server.place.address

    @property
    def port(self) -> int:
        """Return where it answers TCP, started or not."""
        assert self.server.port is not None, "it listens on its socket only"
        return self.server.port

    @property
    def dsn(self) -> str:
        """Return the DSN of this server alone."""
        return self.server.dsn

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection as root with autocommit; raises pymysql's errors.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        return self.server.connect(patience)

    def _free(self) -> None:
        """Forget a process that has ended; raises TargetError if it still runs."""
        if self._process is not None:
            if self._process.alive():
                raise TargetError(f"{self.name} runs already, pid {self._process.pid}: stop or kill it first")
            self._end(0)

    def _launch(self, options: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        """Start on the data folder that is there, and wait until it answers SQL; see `start`."""
        before = list(self._run.processes)
        folder = self.server.folder
        name = "mysqld" if folder == self._run.folder else f"{folder.name}/mysqld"
        try:
            start(self._run, self._build, self.server, [*self._options, *options], name, env)
        finally:
            # One that ended at once is remembered too, so that the next start puts it away.
            self._process = next((each for each in self._run.processes if each not in before), None)


def dsn_of(servers: Sequence[RestartableServer]) -> str:
    """Return the DSN that names all servers of a cluster, the first one first."""
    return f"mysql://root@{','.join(f'{each.host}:{each.port}' for each in servers)}/"


def no_schema(_server: Server) -> Iterable[str]:
    """Return no statements."""
    return ()


@dataclass(frozen=True, slots=True)
class SQLOnly:
    """A build started for its SQL alone, on a port of loopback and a socket; see `recipe.Recipe` for the fields.

    schema: gives the statements that fill a fresh data folder.
    """

    name: str
    summary: str
    build: Build
    schema: Callable[[Server], Iterable[str]] = no_schema
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the server on a fresh data folder and fill it.

        options: of mysqld or mariadbd. Raises TargetError.
        """
        server = boot(run, self.build, options, progress, free_port())
        self.fill(server)
        return Endpoint(address=None, version=server.version(), sql=server.dsn, socket=server.socket)

    def fill(self, server: Server) -> None:
        """Run the statements of the schema."""
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            for statement in self.schema(server):
                cursor.execute(statement)
