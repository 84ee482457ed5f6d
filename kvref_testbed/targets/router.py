"""MySQL Router in front of a replication group, as a target.

The router has a fixed list of members: it learns roles from the metadata of an InnoDB cluster only, which MySQL Shell
writes. It leads each connection to the first member of the list that accepts it, which is the primary of a new group.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_testbed.targets.builds import MYSQL_ROUTER, from_debian
from kvref_testbed.targets.group import started
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_port
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run

_START_SECONDS: Final = 30.0
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


@dataclass(frozen=True, slots=True)
class MySQLRouter:
    """The router and the members behind it; see `recipe.Recipe` for the fields."""

    name: str = "mysql-router"
    summary: str = "MySQL Router 9.7 in front of the members of mysql-group; SQL only"
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the members and then the router, and wait until it leads to one.

        options: of each mysqld. Raises MissingError without the router's package, TargetError.
        """
        router = from_debian(MYSQL_ROUTER, progress)
        behind = started(run, options, progress)
        folder, port = run.folder / "router", free_port()
        folder.mkdir()
        members = ",".join(f"{each.host}:{each.port}" for each in behind)
        text = _CONFIGURATION.format(folder=router.seen(folder), host=LOOPBACK, port=port, members=members)
        (folder / "router.conf").write_text(text, encoding="utf-8")
        progress.step("starting MySQL Router")
        run.start(self.name, [*router.command(folder), "--config", str(router.seen(folder) / "router.conf")])
        run.wait_for(f"{self.name} at {LOOPBACK}:{port}", partial(_leads_to_a_member, port), _START_SECONDS)
        return Endpoint(address=None, version=behind[0].server.version(), sql=f"mysql://root@{LOOPBACK}:{port}/")


def _leads_to_a_member(port: int) -> None:
    try:
        with closing(pymysql.connect(host=LOOPBACK, port=port, user="root", connect_timeout=5)):
            pass
    except (OSError, pymysql.err.MySQLError) as error:
        raise NotYetError(str(error)) from error
