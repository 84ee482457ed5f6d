"""Galera clusters on loopback: the nodes, their state transfer, the target, and a cluster for tests.

What kvref serves from, not what is judged. A target (`galera`) is booted once and left alone; a cluster for tests is
not:

    with galera_cluster() as cluster:
        ...                                  # cluster.dsn: all nodes; cluster.nodes[0].connect()
        cluster.nodes[0].kill()
        cluster.nodes[0].start()             # it joins again: pause, resume, cut_off and reunite are the other faults
        for node in cluster.nodes: node.kill()
        cluster.bootstrap()                  # after all of them are gone

MariaDB's own scripts for the transfer come with `mariadb-server`, whose installation would start a server of the
machine's own, and the one with rsync fails as root. See `wsrep_sst_backup` and `wsrep_sst_common` for the arguments of
a script. A joiner that lacks only the last transactions gets them by Galera itself; then the donor receives the option
to bypass.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pymysql

from kvref.errors import TargetError
from kvref_testbed.targets import mysqld, needs
from kvref_testbed.targets.builds import MARIADB
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_ports
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Run
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kvref_testbed.targets.mysqld import Build
    from kvref_testbed.targets.progress import Progress

METHOD: Final = "kvref_copy"
# The joiner's answer goes to the donor as it is, which so learns where to copy to.
_SCRIPT: Final = r"""#!/bin/sh
set -eu
role= address= data= gtid= domain= bypass= parent=
while [ $# -gt 0 ]; do
  case $1 in
    --role) role=$2 ;;
    --address) address=$2 ;;
    --datadir) data=${2%/} ;;
    --gtid) gtid=$2 ;;
    --gtid-domain-id) domain=$2 ;;
    --parent) parent=$2 ;;
    --bypass) bypass=yes ;;
  esac
  shift
done
if [ "$role" = joiner ]; then
  rm -f "$data/arrived"
  echo "ready ${address%%/*}$data"
  until [ -e "$data/arrived" ]; do
    kill -0 "$parent"
    sleep 0.05
  done
  cat "$data/arrived"
  rm "$data/arrived"
  exit
fi
to=/${address#*/}
state="$gtid $domain"
if [ -z "$bypass" ]; then
  rm -f "$data/tables_flushed" "$data/sst_error"
  echo 'flush tables'
  until grep -qs : "$data/tables_flushed"; do
    if [ -e "$data/sst_error" ]; then exit 255; fi
    sleep 0.05
  done
  state=$(cat "$data/tables_flushed")
  rm "$data/tables_flushed"
  # What each node has of its own.
  find "$to" -mindepth 1 -maxdepth 1 ! -name galera.cache ! -name 'g*state.dat' -exec rm -rf {} +
  find "$data" -mindepth 1 -maxdepth 1 ! -name galera.cache ! -name 'g*state.dat' ! -name arrived \
    -exec cp -a {} "$to" \;
  echo continue
fi
echo "$state" >"$to/arrived.new"
mv "$to/arrived.new" "$to/arrived"
echo "done $state"
"""


def install(folder: Path) -> None:
    """Write the script of METHOD into a new folder, which must come first in the PATH of each node."""
    folder.mkdir()
    script = folder / f"wsrep_sst_{METHOD}"
    script.write_text(_SCRIPT)
    script.chmod(0o700)


_PROVIDER: Final = "libgalera_smm.so"
_TRANSFER: Final = "transfer"  # the folder of the script, in that of the run
_SYNCED: Final = ("ON", "Synced")
_SYNC_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 5.0
_POSITION: Final = re.compile(r"Recovered position: *(?P<uuid>[0-9a-f-]+):(?P<number>-?\d+)")
_SAVED: Final = re.compile(r"^seqno: *(?P<number>-?\d+)$", re.MULTILINE)
_NOTHING: Final = "00000000-0000-0000-0000-000000000000"
# The others continue without a node that was silent for this long; Galera's own 5 and 15 s are for wide networks.
_PROVIDER_OPTIONS: Final = (
    "evs.keepalive_period=PT0.5S", "evs.inactive_check_period=PT0.25S", "evs.suspect_timeout=PT2S",
    "evs.inactive_timeout=PT4S", "evs.install_timeout=PT4S", "gcache.size=32M", "gcache.recover=yes",
)  # fmt: skip
_OPTIONS: Final = (
    "--wsrep-on=ON", "--wsrep-cluster-name=kvref", f"--wsrep-node-address={LOOPBACK}", "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2", "--default-storage-engine=InnoDB",
    f"--wsrep-sst-method={METHOD}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cluster is made of.

    build: of MariaDB.
    count: of nodes.
    options: further ones of each mariadbd.
    """

    build: Build
    count: int
    options: tuple[str, ...]


class GaleraNode(mysqld.RestartableServer):
    """One mariadbd at a time, on a data folder in that of the run; made by `lay_out`.

    Its options are those of the provider and of mariadbd, that is, where it and the others listen.
    """

    def start(self, *, new_cluster: bool = False) -> None:
        """Start on the data folder that is there and wait until it has what the cluster has.

        new_cluster: it is the first one. Raises TargetError.
        """
        self._free()
        how = self._as_first() if new_cluster else self._where_it_stood()
        path = f"{self._run.folder / _TRANSFER}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self._launch(how, {**os.environ, "PATH": path})
        self.wait_until_synced()

    def wait_until_synced(self, seconds: float = _SYNC_SECONDS) -> None:
        """Wait until it serves and has what the cluster has; raises TargetError when the time is over."""
        self._run.wait_for(f"{self.name} to be synced", self._synced, seconds)

    def status(self, name: str) -> str:
        """Give one of its status variables, such as `wsrep_cluster_size`."""
        with closing(self.connect(10)) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE %s", (name,))
            rows = cursor.fetchall()
        return str(rows[0][1])

    def cut_off(self) -> None:
        """Part it from the other nodes; clients still reach it."""
        self._isolate(1)

    def reunite(self) -> None:
        """Let it see the other nodes again."""
        self._isolate(0)

    def last_number(self) -> int:
        """Return the number of the last transaction that it has, of one that does not run; -1: it has none."""
        saved = self._saved()
        return saved if saved >= 0 else self._recovered()[1]

    def _synced(self) -> None:
        try:
            found = tuple(self.status(name) for name in ("wsrep_ready", "wsrep_local_state_comment"))
            if found == _SYNCED:
                # A node that was stopped reports this until it receives the state of the others.
                with closing(self.connect(_ANSWER_SECONDS)) as connection:
                    connection.query("SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1")
        except (OSError, pymysql.err.MySQLError) as error:
            raise NotYetError(f"{self.name} said: {error}") from error
        if found != _SYNCED:
            raise NotYetError(f"{self.name} is {found[1]}, ready: {found[0]}")

    def _isolate(self, number: int) -> None:
        with closing(self.connect(30)) as connection:
            connection.query(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={number}'")

    def _as_first(self) -> list[str]:
        state = self.server.data / "grastate.dat"
        if state.exists():
            state.write_text(state.read_text().replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))
        # The members of the cluster that was.
        (self.server.data / "gvwstate.dat").unlink(missing_ok=True)
        return ["--wsrep-new-cluster", *self._where_it_stood()]

    def _where_it_stood(self) -> list[str]:
        """Return the option that spares a transfer of everything after a crash, as MariaDB's service has it."""
        if not (self.server.data / "grastate.dat").exists() or self._saved() >= 0:
            return []
        uuid, number = self._recovered()
        return [] if uuid == _NOTHING else [f"--wsrep-start-position={uuid}:{number}"]

    def _saved(self) -> int:
        state = self.server.data / "grastate.dat"
        found = _SAVED.search(state.read_text()) if state.exists() else None
        return int(found["number"]) if found else -1

    def _recovered(self) -> tuple[str, int]:
        command = [*mysqld.command(self.server), *self._build.options, *self._options, "--wsrep-recover"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        output = done.stdout.decode(errors="replace")
        found = _POSITION.search(output)
        if done.returncode or found is None:
            last = "\n".join(output.splitlines()[-10:])
            raise TargetError(f"{self.name}: --wsrep-recover exited with {done.returncode}:\n{last}")
        return found["uuid"], int(found["number"])


def lay_out(run: Run, plan: Plan, progress: Progress) -> list[GaleraNode]:
    """Return a run the folders of nodes, which `GaleraNode.start` will start one after the other.

    Raises MissingError where MariaDB or Galera is not installed.
    """
    provider = needs.file(_PROVIDER)
    install(run.folder / _TRANSFER)
    ports = free_ports(3 * plan.count)
    sql, group, transfer = (ports[kind::3] for kind in range(3))
    all_of_them = f"gcomm://{','.join(f'{LOOPBACK}:{port}' for port in group)}"
    nodes = []
    for number in range(plan.count):
        name = f"node{number + 1}"
        folder = run.folder / name
        folder.mkdir()
        listens = f"gmcast.listen_addr=tcp://{LOOPBACK}:{group[number]}", f"ist.recv_addr={LOOPBACK}:{transfer[number]}"
        options = (
            *_OPTIONS,
            f"--wsrep-provider={provider}",
            f"--wsrep-cluster-address={all_of_them}",
            f"--wsrep-provider-options={';'.join((*listens, *_PROVIDER_OPTIONS))}",
            f"--wsrep-sst-receive-address={LOOPBACK}:{group[number]}",
            f"--wsrep-node-name={name}",
            *plan.options,
        )
        server = mysqld.lay_out(folder, plan.build, progress, sql[number])
        nodes.append(GaleraNode(run, plan.build, name, server, options))
    return nodes


NODES = 3


@dataclass(frozen=True, slots=True)
class Galera:
    """Three nodes, each on a port of loopback and a socket; see `recipe.Recipe` for the fields."""

    name: str = "galera"
    summary: str = "three MariaDB servers as a Galera cluster, from mariadb-server-core and galera-4; SQL only"
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the nodes one after the other on fresh data folders.

        options: of each mariadbd. Raises TargetError.
        """
        nodes = started(run, options, progress)
        first = nodes[0].server
        return Endpoint(address=None, version=first.version(), sql=mysqld.dsn_of(nodes), socket=first.socket)


def started(run: Run, options: Sequence[str], progress: Progress) -> list[GaleraNode]:
    """Start the nodes of a new cluster; each is synced when the next one begins."""
    nodes = lay_out(run, Plan(MARIADB, NODES, tuple(options)), progress)
    for each in nodes:
        progress.step(f"starting {each.name} of {NODES}")
        each.start(new_cluster=each is nodes[0])
    return nodes


class GaleraCluster:
    """Nodes with the same rows; made by `galera_cluster`.

    nodes: in the order of the DSN.
    """

    def __init__(self, nodes: list[GaleraNode]) -> None:
        self.nodes = nodes

    @property
    def dsn(self) -> str:
        """Return the DSN that names all nodes, `mysql://root@127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/`."""
        return mysqld.dsn_of(self.nodes)

    def bootstrap(self) -> None:
        """Start the cluster again after all nodes are gone, beginning with the one that has most.

        Raises TargetError, also while one of them runs.
        """
        if running := [each.name for each in self.nodes if each.running()]:
            raise TargetError(f"{', '.join(running)} runs: stop all nodes before you bootstrap the cluster")
        first = max(self.nodes, key=lambda each: each.last_number())
        first.start(new_cluster=True)
        for each in self.nodes:
            if each is not first:
                each.start()


@contextmanager
def galera_cluster(options: Sequence[str] = (), progress: Progress = QUIET) -> Iterator[GaleraCluster]:
    """Start a private cluster of three nodes; it is killed with the block.

    options: of each mariadbd, at every start. Raises TargetError.
    """
    run = Run.create()
    try:
        yield GaleraCluster(started(run, options, progress))
    finally:
        run.stop(0)
