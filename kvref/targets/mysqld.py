"""Boot a MySQL server on a copy of a data folder that is initialised once per version.

Knows nothing of memcached: with the plugin it becomes a target in `plugin.py`. The builds: `builds.py`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pymysql

from kvref.errors import TargetError
from kvref.targets.folders import build_once, cache_root
from kvref.targets.needs import missing_library
from kvref.targets.ports import NotYetError
from kvref.targets.unpack import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref.targets.artifacts import Artifact
    from kvref.targets.progress import Progress
    from kvref.targets.run import Run

# The longest path a unix socket may have (unix(7): sun_path is 108 bytes with the final zero).
_SOCKET_PATH_BYTES = 107
_START_SECONDS = 60.0
_LAST_LINES = 10


@dataclass(frozen=True, slots=True)
class Build:
    """One build of mysqld.

    initialise: the arguments and the standard input that make an empty data folder, from the unpacked build.
    schemas: folders that must be in the data folder before it is initialised.
    options: what this version needs beyond `--no-defaults` to run beside others.
    """

    artifact: Artifact
    initialise: Callable[[Path], tuple[Sequence[str], bytes]]
    schemas: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """A mysqld that answers SQL on its unix socket, as root without a password.

    base: the unpacked build.
    """

    base: Path
    socket: Path

    @property
    def dsn(self) -> str:
        """Give the DSN of its SQL side."""
        return f"mysql://root@localhost/?unix_socket={quote(str(self.socket))}"

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection with autocommit; close it with `contextlib.closing`.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        # Without TLS, which a socket file does not need and whose errors name lines of Python's own source.
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", autocommit=True, read_timeout=patience, ssl_disabled=True
        )

    def answer(self) -> None:
        """Raise NotYetError unless it takes connections."""
        try:
            # PyMySQL leaves its socket open when nobody listens, so whether somebody does is asked first.
            with socket.socket(socket.AF_UNIX) as first:
                first.connect(str(self.socket))
            self.connect().close()
        except (OSError, pymysql.err.OperationalError) as error:
            raise NotYetError(f"the server at {self.socket} said: {error}") from error


def run_as() -> tuple[str, ...]:
    """Give the option without which mysqld refuses to run as root; nothing for anybody else."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def boot(run: Run, build: Build, options: Iterable[str], progress: Progress) -> Server:
    """Start a server on a fresh data folder and wait until it answers SQL; arguments and errors as `start`."""
    return start(run, build, lay_out(run, build, progress), options)


def lay_out(run: Run, build: Build, progress: Progress) -> Server:
    """Give the run a fresh data folder.

    Returns the server that `start` will start on it. Raises MissingError for an artifact or a library.
    """
    base = unpacked(build.artifact, progress)
    server = Server(base, run.folder / "sql.sock")
    if len(os.fsencode(server.socket)) > _SOCKET_PATH_BYTES:
        limit = f"longer than the {_SOCKET_PATH_BYTES} bytes of a unix socket"
        raise TargetError(f"{server.socket} is {limit}: set TMPDIR to a shorter folder")
    shutil.copytree(_template(build, base, progress), run.folder / "data")
    return server


def start(run: Run, build: Build, server: Server, options: Iterable[str]) -> Server:
    """Start a server on the data folder of its run, once or again, and wait until it answers SQL.

    options: of mysqld; the last of two equal ones counts, so these override the ones set here.
    Raises MissingError for a library, TargetError when the server ends or never answers.
    """
    run.start("mysqld", [*_command(server, run.folder), *build.options, *options])
    run.wait_for(f"SQL at {server.socket}", server.answer, _START_SECONDS)
    return server


def _command(server: Server, folder: Path) -> list[str]:
    return [
        str(server.base / "bin" / "mysqld"),
        # Must be the first: nothing of the machine's my.cnf applies.
        "--no-defaults",
        f"--basedir={server.base}",
        f"--datadir={folder / 'data'}",
        f"--socket={server.socket}",
        f"--pid-file={folder / 'mysqld.pid'}",
        "--skip-networking",
        "--innodb_buffer_pool_size=64M",
        # The server's own default, here so that nobody has to look it up: every commit is durable.
        "--innodb_flush_log_at_trx_commit=1",
        *run_as(),
    ]


def _template(build: Build, base: Path, progress: Progress) -> Path:
    def fill(folder: Path) -> None:
        progress.step(f"initialising a data folder of {base.name} (once)")
        for schema in build.schemas:
            (folder / schema).mkdir()
        arguments, script = build.initialise(base)
        command = [
            str(base / "bin" / "mysqld"),
            "--no-defaults",
            *arguments,
            f"--basedir={base}",
            f"--datadir={folder}",
            *run_as(),
        ]
        with tempfile.TemporaryFile() as source:
            source.write(script)
            source.seek(0)
            done = subprocess.run(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace")
            last = "\n".join(said.splitlines()[-_LAST_LINES:])
            raise missing_library(said) or TargetError(f"{' '.join(command)} exited with {done.returncode}:\n{last}")
        # The server's identity (server_uuid): each copy makes its own.
        (folder / "auto.cnf").unlink(missing_ok=True)

    return build_once(cache_root() / "data" / base.name, fill, progress)
