"""MySQL Router in front of a replication group: the target, and one for tests.

The router has a fixed list of members: it learns roles from the metadata of an InnoDB cluster only, which MySQL Shell
writes. It leads each connection to the first member of the list that accepts it, which is the primary of a new group.

    with mysql_router() as (router, group):
        router.kill()                        # router.dsn
        router.start()
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_testbed.targets.builds import MYSQL_ROUTER, from_debian
from kvref_testbed.targets.group import Group, started
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_port
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Restartable, Run
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_testbed.targets.group import Member
    from kvref_testbed.targets.progress import Progress

_NAME: Final = "mysql-router"
_START_SECONDS: Final = 30.0
_PATIENCE: Final = 10.0  # seconds to end after SIGTERM
_CONFIGURATION: Final = """\
[DEFAULT]
logging_folder =
runtime_folder = {folder}
data_folder = {folder}

[logger]
level = INFO

[routing:primary]
bind_address = {host}
bind_port = {port}
destinations = {members}
routing_strategy = first-available
protocol = classic
"""


class Router(Restartable):
    """One MySQL Router at a time.

    run: gets a folder for it.
    members: behind it, the primary first.
    progress: reports where its package comes from. Raises MissingError without that.
    """

    def __init__(self, run: Run, members: Sequence[Member], progress: Progress) -> None:
        super().__init__(run, _NAME, _PATIENCE)
        self._build = from_debian(MYSQL_ROUTER, progress)
        self._folder = run.folder / "router"
        self._folder.mkdir()
        self.host, self.port = LOOPBACK, free_port()
        addresses = ",".join(f"{each.host}:{each.port}" for each in members)
        seen = self._build.seen(self._folder)
        text = _CONFIGURATION.format(folder=seen, host=self.host, port=self.port, members=addresses)
        (self._folder / "router.conf").write_text(text, encoding="utf-8")

    @property
    def dsn(self) -> str:
        """Return the DSN of the member that it leads to, as root."""
        return f"mysql://root@{self.host}:{self.port}/"

    def start(self) -> None:
        """Start it, and wait until it leads to a member; raises TargetError."""
        command = [*self._build.command(self._folder), "--config", str(self._build.seen(self._folder) / "router.conf")]
        self._process = self._run.start(self.name, command)
        self._run.wait_for(f"{self.name} at {self.host}:{self.port}", self._leads_to_a_member, _START_SECONDS)

    def _leads_to_a_member(self) -> None:
        try:
            with closing(pymysql.connect(host=self.host, port=self.port, user="root", connect_timeout=5)):
                pass
        except (OSError, pymysql.err.MySQLError) as error:
            raise NotYetError(str(error)) from error


@contextmanager
def mysql_router(progress: Progress = QUIET) -> Iterator[tuple[Router, Group]]:
    """Start a private group of three members and a router in front; they are killed with the block.

    Raises TargetError.
    """
    run = Run.create()
    try:
        members = started(run, (), progress)
        router = Router(run, members, progress)
        router.start()
        yield router, Group(members)
    finally:
        run.stop(0)


@dataclass(frozen=True, slots=True)
class MySQLRouter:
    """The router and the members behind it; see `recipe.Recipe` for the fields."""

    name: str = _NAME
    summary: str = "MySQL Router 9.7 in front of the members of mysql-group; SQL only"
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the members and then the router, and wait until it leads to one.

        options: of each mysqld. Raises MissingError without the router's package, TargetError.
        """
        members = started(run, options, progress)
        router = Router(run, members, progress)
        progress.step("starting MySQL Router")
        router.start()
        return Endpoint(address=None, version=members[0].server.version(), sql=router.dsn)
