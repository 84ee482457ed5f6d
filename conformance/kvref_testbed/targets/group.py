"""MySQL Group Replication on loopback: the members, the target, and a group for tests.

What kvref serves from, not what is judged:

    with mysql_group() as group:
        ...                                  # group.dsn: all members; group.members[0].connect()
        group.members[0].kill()
        group.members[0].start()             # it joins again
        group.members[1].take_over()         # a planned change of the primary
"""

from __future__ import annotations

import uuid
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pymysql

from kvref.errors import TargetError
from kvref_testbed.targets import mysqld
from kvref_testbed.targets.builds import MYSQL_9_7
from kvref_testbed.targets.mysqld import HERE, Place
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_ports
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Run
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_testbed.targets.progress import Progress

MEMBERS: Final = 3
_ONLINE_SECONDS: Final = 180.0  # on a machine whose disk has other work too
_ONLINE: Final = "ONLINE"
_MEMBER: Final = (
    "SELECT MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid"
)
# The others expel a member that was silent for 5 s at once, and one that sees no majority for 5 s gives up.
_OPTIONS: Final = (
    "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=log", "--plugin-load-add=group_replication.so",
    "--loose-group_replication_start_on_boot=OFF",
    "--loose-group_replication_bootstrap_group=OFF",
    "--loose-group_replication_member_expel_timeout=0",
    "--loose-group_replication_unreachable_majority_timeout=5", "--loose-group_replication_autorejoin_tries=0",
    # Of the group's own channel: a member without TLS takes the password of root, which is empty, over TCP.
    "--loose-group_replication_recovery_get_public_key=ON",
)  # fmt: skip


# The other members of a group that is not on loopback, which receive what it has.
_LET_ROOT_IN: Final = (
    "SET SESSION sql_log_bin = 0",
    "CREATE USER IF NOT EXISTS root@'%'",
    "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION",
)


class Member(mysqld.RestartableServer):
    """One mysqld at a time, on a data folder in that of the run; made by `lay_out`.

    Its options say where it and the others listen.
    """

    def start(self, *, new_group: bool = False) -> None:
        """Start on the data folder that is there, join the group, and wait until it is online.

        new_group: it is the first one. Raises TargetError.
        """
        self._free()
        self._launch()
        if self.host != LOOPBACK:
            with closing(self.connect(_ONLINE_SECONDS)) as connection:
                for each in _LET_ROOT_IN:
                    connection.query(each)
        self.join(new_group=new_group)

    def join(self, *, new_group: bool = False) -> None:
        """Join the group, or make it, and wait until it is online; see `start`."""
        self._run.wait_for(f"{self.name} to leave its old group", self._leave, _ONLINE_SECONDS)
        with closing(self.connect(_ONLINE_SECONDS)) as connection:
            connection.query("CHANGE REPLICATION SOURCE TO SOURCE_USER='root' FOR CHANNEL 'group_replication_recovery'")
            if new_group:
                connection.query("SET GLOBAL group_replication_bootstrap_group = ON")
            connection.query("START GROUP_REPLICATION")
            if new_group:
                connection.query("SET GLOBAL group_replication_bootstrap_group = OFF")
        self._run.wait_for(f"{self.name} to be online", self._online, _ONLINE_SECONDS)

    def state(self) -> tuple[str, str]:
        """Return its state and its role in the group, for example `("ONLINE", "PRIMARY")`."""
        with closing(self.connect(10)) as connection, connection.cursor() as cursor:
            cursor.execute(_MEMBER)
            rows = cursor.fetchall()
        return (str(rows[0][0]), str(rows[0][1])) if rows else ("OFFLINE", "")

    def take_over(self) -> None:
        """Make it the primary of its group, and return when it is."""
        with closing(self.connect(_ONLINE_SECONDS)) as connection:
            connection.query("SELECT group_replication_set_as_primary(@@server_uuid)")

    def _leave(self) -> None:
        """Leave a group that has expelled it: it is in the state ERROR and offline, and ends its connections once."""
        try:
            with closing(self.connect(_ONLINE_SECONDS)) as connection:
                connection.query("STOP GROUP_REPLICATION")
                connection.query("SET GLOBAL offline_mode = OFF")
        except (OSError, pymysql.err.OperationalError) as error:
            raise NotYetError(f"{self.name} said: {error}") from error

    def _online(self) -> None:
        try:
            state, _ = self.state()
        except (OSError, pymysql.err.MySQLError) as error:
            raise NotYetError(f"{self.name} said: {error}") from error
        if state != _ONLINE:
            raise NotYetError(f"{self.name} is {state}")


def lay_out(run: Run, options: Sequence[str], progress: Progress, places: Sequence[Place]) -> list[Member]:
    """Return a run the folders of the members, which `Member.start` will start one after the other.

    options: of each mysqld. places: where each runs. Raises MissingError where MySQL 9.7 cannot be had.
    """
    ports = free_ports(2 * MEMBERS)
    sql, group = ports[:MEMBERS], ports[MEMBERS:]
    addresses = [each.address for each in places]
    seeds = [f"{address}:{port}" for address, port in zip(addresses, group, strict=True)]
    common = (
        *_OPTIONS,
        f"--loose-group_replication_group_name={uuid.uuid4()}",
        f"--loose-group_replication_group_seeds={','.join(seeds)}",
        f"--loose-group_replication_ip_allowlist={','.join(sorted({*addresses}))}",
    )
    members = []
    for number, place in enumerate(places, 1):
        name = f"member{number}"
        folder = run.folder / name
        folder.mkdir()
        own = (
            f"--server-id={number}",
            f"--report-host={place.address}",
            f"--report-port={sql[number - 1]}",
            f"--loose-group_replication_local_address={seeds[number - 1]}",
        )
        server = mysqld.lay_out(folder, MYSQL_9_7, progress, sql[number - 1], place)
        members.append(Member(run, MYSQL_9_7, name, server, (*common, *own, *options)))
    return members


def started(
    run: Run, options: Sequence[str], progress: Progress, places: Sequence[Place] = (HERE,) * MEMBERS
) -> list[Member]:
    """Start the members of a new group, the first one as its primary; each is online when the next one begins."""
    members = lay_out(run, options, progress, places)
    for each in members:
        progress.step(f"starting {each.name} of {MEMBERS}")
        each.start(new_group=each is members[0])
    return members


@dataclass(frozen=True, slots=True)
class MySQLGroup:
    """Three members with one primary, each on a port of loopback and a socket; see `recipe.Recipe` for the fields."""

    name: str = "mysql-group"
    summary: str = "three MySQL 9.7 servers as a replication group with one primary; SQL only"
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the members one after the other on fresh data folders.

        options: of each mysqld. Raises TargetError.
        """
        members = started(run, options, progress)
        first = members[0].server
        return Endpoint(address=None, version=first.version(), sql=mysqld.dsn_of(members), socket=first.socket)


@dataclass(frozen=True, slots=True)
class Group:
    """Members with the same rows; made by `mysql_group`, in the order of the DSN."""

    members: list[Member]

    @property
    def dsn(self) -> str:
        """Return the DSN that names all members."""
        return mysqld.dsn_of(self.members)

    def primary(self) -> Member:
        """Return the member that is online and the primary; raises TargetError if no one is."""
        for each in self.members:
            if each.running() and each.state() == (_ONLINE, "PRIMARY"):
                return each
        raise TargetError("no member is the primary")


@contextmanager
def mysql_group(
    options: Sequence[str] = (), progress: Progress = QUIET, places: Sequence[Place] = (HERE,) * MEMBERS
) -> Iterator[Group]:
    """Start a private group of three members; it is killed with the block.

    options: of each mysqld, at every start. places: where each runs. Raises TargetError.
    """
    run = Run.create()
    try:
        yield Group(started(run, options, progress, places))
    finally:
        run.stop(0)
