"""kvref as a target: the recipe of `kvref serve`, and a server for tests that can be killed and restarted.

Nothing of the server is imported here, so that it is judged exactly as the other endpoints are.

    with kvref_server("mysql-8.0") as server:
        server.start()
        ...                                  # change server.file
        server.reload()                      # False: the configuration is refused, the old one stays in force
        server.kill()
        server.start()
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_testbed.targets.ports import LOOPBACK, free_port, version_at
from kvref_testbed.targets.run import Restartable, Run
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from kvref_testbed.targets.galera import Galera
    from kvref_testbed.targets.group import MySQLGroup
    from kvref_testbed.targets.mysqld import SQLOnly
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.router import MySQLRouter
    from kvref_testbed.targets.vitess import Vitess

_START_SECONDS = 60.0  # on a machine that is busy with other servers
_STOP_SECONDS = 10.0
# In the folder of a target: the number of its `kvref serve`, which is another one after a restart.
PID_FILE = "kvref.pid"
# A file that does not exist gets the plugin's demo table, which the suite and the recordings start from.
NEW_FILE = ("--create", "--demo")
OF_DATABASE = "--database="
# Exit code of `reload_command` where several processes cannot serve the configuration; as the suite's --reload has it.
_UNFIT = 3
_RELOAD = """
cd {folder} || exit 1
began=$(wc -c <kvref.log)
kill -HUP "$(cat {pid_file})" || exit 1
for tries in $(seq 2000); do
  said=$(tail -c +$((began + 1)) kvref.log | grep -E 'configuration (not )?reloaded') && break
  sleep 0.01
done
case $said in
  *'not reloaded'*--workers*) echo "$said" >&2; exit {unfit};;
  '') echo 'kvref serve did not reload' >&2; exit 1;;
esac
"""


def reload_command(folder: Path) -> str:
    """Return a shell command that makes `kvref serve` read its configuration again, and waits until it has.

    folder: of its target.
    """
    return _RELOAD.format(folder=shlex.quote(str(folder)), pid_file=PID_FILE, unfit=_UNFIT)


@dataclass(frozen=True, slots=True)
class KvrefSQLite:
    """`kvref serve` over a fresh SQLite file with the demo rows; see `recipe.Recipe` for the other fields.

    program: what `python -m` runs, the words in front of `serve` with it.
    always: options of `kvref serve` in front of others.
    """

    name: str = "kvref-sqlite"
    profile: str = "kvref"
    summary: str = "kvref over SQLite, this installation"
    program: tuple[str, ...] = ("kvref",)
    always: tuple[str, ...] = ()

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:  # noqa: ARG002 -- it is quick
        """Start `kvref serve`, which makes the file, and wait for its port.

        options: of `kvref serve`.
        Raises TargetError when it ends, with what it printed.
        """
        return _serve(run, f"sqlite:///{run.folder / 'kvref.sqlite'}", (*self.always, *options), self.program)


@dataclass(frozen=True, slots=True)
class KvrefInnoDB:
    """`kvref serve` over a SQL server of its own with the demo rows; see `recipe.Recipe` for the fields.

    database: the SQL server's recipe.
    program: see KvrefSQLite.
    """

    name: str
    summary: str
    database: SQLOnly | MySQLRouter | Vitess
    profile: str = "kvref"
    program: tuple[str, ...] = ("kvref",)

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the SQL server, `kvref init` and `kvref serve`, and wait for its port.

        options: of `kvref serve`, and behind OF_DATABASE of the SQL server (`--database=--max_connections=500`).
        Raises TargetError when one of them ends, with what it printed.
        """
        database_options, options = _parted(options)
        store = self.database.boot(run, database_options, progress)
        assert store.sql is not None, "a SQL server has a DSN"
        return _over(run, store, store.sql, options, self.program)


@dataclass(frozen=True, slots=True)
class KvrefCluster:
    """`kvref serve` over all servers of a cluster of its own with the demo rows; see `recipe.Recipe`."""

    name: str
    summary: str
    database: Galera | MySQLGroup
    profile: str = "kvref"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the servers, `kvref init` and `kvref serve`; options and errors as of KvrefInnoDB.

        Whoever judges it gets the SQL side of the server that kvref uses while it serves.
        """
        database_options, options = _parted(options)
        store = self.database.boot(run, database_options, progress)
        assert store.sql is not None, "a cluster has a DSN"
        first = store.sql.partition(",")[0] + "/"
        return replace(_over(run, store, store.sql, options), sql=first)


def _parted(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the options of the SQL server from those of `kvref serve`."""
    database_options = [each.removeprefix(OF_DATABASE) for each in options if each.startswith(OF_DATABASE)]
    return database_options, [each for each in options if not each.startswith(OF_DATABASE)]


def _over(run: Run, store: Endpoint, dsn: str, options: Sequence[str], program: Sequence[str] = ("kvref",)) -> Endpoint:
    assert store.sql is not None, "a SQL server has a DSN"
    command = [sys.executable, "-m", "kvref", "init", "--demo", "--store", store.sql]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise TargetError(f"kvref init ended with {made.returncode}: {made.stderr.strip()}")
    return replace(_serve(run, dsn, options, program), sql=store.sql, socket=store.socket)


def _serve(run: Run, store: str, options: Sequence[str], program: Sequence[str] = ("kvref",)) -> Endpoint:
    port = free_port()
    address = f"{LOOPBACK}:{port}"
    mine = [each.replace("{mc_port}", str(port)) for each in options]
    command = [sys.executable, "-m", *program, "serve", "--listen", address, "--store", store, *NEW_FILE, *mine]

    def start(settings: Mapping[str, int]) -> str:
        pairs = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        process = run.start("kvref", [*command, *pairs])
        (run.folder / PID_FILE).write_text(f"{process.pid}\n")
        return run.wait_for(f"kvref serve at {address}", lambda: version_at(port), _START_SECONDS)

    def restart(settings: Mapping[str, int]) -> None:
        run.end(run.processes[-1], _STOP_SECONDS)
        start(settings)

    return Endpoint(address=address, version=start({}), store=store, restart=restart)


_RELOAD_SECONDS: Final = 10.0
_REFUSAL: Final = 2  # exit status of a `kvref serve` that cannot use what it was given
# What `kvref serve` logs once a reload is over.
_ACCEPTED: Final = "configuration reloaded"
_REFUSED: Final = "configuration not reloaded"


class KvrefServer(Restartable):
    """One `kvref serve` at a time; made by `kvref_server`.

    run: the folder of the file and the log.
    options: of `kvref serve`.
    store: DSN of a SQL server with the configuration tables; None: the SQLite file.
    python: the Python whose kvref it is; None: this one.
    program: what `python -m` runs.
    """

    def __init__(
        self, run: Run, options: Sequence[str], store: str | None, python: Path | None, program: str = "kvref"
    ) -> None:
        super().__init__(run, "kvref serve", _STOP_SECONDS)
        self._options = options
        # With -P it is the kvref that is installed there, wherever this is started.
        self._start = [*([sys.executable] if python is None else [str(python), "-P"]), "-m", program]
        self._port = free_port()
        self.file: Path = run.folder / "kvref.sqlite"
        self._store = store or f"sqlite:///{self.file}"

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        return LOOPBACK, self._port

    def start(self, settings: Sequence[str] = (), config: Path | None = None) -> bool:
        """Start on the store as it is, a new one if there is no file; False when it refuses the configuration and ends.

        settings: NAME=VALUE, as `kvref serve --set` takes them. config: a configuration file with a `[[listener]]` at
        `address` without TLS and authentication; None: that is the only listener. Raises TargetError when it ends
        otherwise.
        """
        listen = f"{LOOPBACK}:{self._port}"
        listeners = ["--listen", listen] if config is None else ["--config", str(config)]
        command = [*self._start, "serve", *listeners, "--store", self._store]
        command += [*NEW_FILE, *self._options]
        command += [word for setting in settings for word in ("--set", setting)]
        self._process = self._run.start("kvref", command)
        try:
            self._run.wait_for(f"kvref serve at {listen}", lambda: version_at(self._port), _START_SECONDS)
        except TargetError:
            if self.exit_status() != _REFUSAL:
                raise
            self._end(0)
            return False
        return True

    def reload(self) -> bool:
        """Make it read its configuration again; False when it refuses and keeps the old one. Raises TargetError."""
        process = self._running()
        with self._run.log("kvref").open(encoding="utf-8", errors="replace") as log:
            log.seek(0, os.SEEK_END)
            os.kill(process.pid, signal.SIGHUP)
            logged, deadline = "", time.monotonic() + _RELOAD_SECONDS
            while time.monotonic() < deadline:
                logged += log.read()
                if _ACCEPTED in logged or _REFUSED in logged:
                    return _REFUSED not in logged
                time.sleep(0.001)
        raise TargetError(f"kvref serve did not reload within {_RELOAD_SECONDS:g} s\n{self._run.last_words(process)}")


@contextmanager
def kvref_server(
    profile: str,
    options: Sequence[str] = (),
    store: str | None = None,
    python: Path | None = None,
    program: str = "kvref",
) -> Iterator[KvrefServer]:
    """Yield a server of a profile, not yet started; it is killed with the block.

    options: further ones of `kvref serve`. store, python, program: as of `KvrefServer`.
    """
    run = Run.create()
    try:
        yield KvrefServer(run, ["--profile", profile, *options], store, python, program)
    finally:
        run.stop(0)
