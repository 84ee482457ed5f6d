"""yrmcds: a server of memcached's protocols without memcached's code, as the machine's package installs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.plain import started
from kvref_testbed.targets.ports import LOOPBACK, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Endpoint

# It serves once it owns `virtual_ip`, and listens there too. Without `bind_ip` it would listen on every interface, and
# one that is the same as `virtual_ip` it binds twice and fails: hence another address of the loopback interface.
_CONFIGURATION = """\
virtual_ip = {host}
bind_ip = 127.0.0.2
port = {port}
repl_port = {replication}
temp_dir = "{folder}"
"""


@dataclass(frozen=True, slots=True)
class Yrmcds:
    """The `yrmcdsd` program; see `recipe.Recipe` for the fields."""

    name: str = "yrmcds"
    profile: str = "memcached"
    summary: str = "yrmcds, memcached's protocols in code of its own"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:  # noqa: ARG002 -- it is quick
        """Write the configuration, start yrmcdsd and wait for its port.

        options: lines of its configuration, e.g. `max_data_size=2M`; it ignores a name that it does not know.
        Raises MissingError without the program, TargetError when it ends, e.g. because of an option.
        """
        port, replication = free_ports(2)
        folder = run.folder / "objects"
        folder.mkdir()
        lines = _CONFIGURATION.format(host=LOOPBACK, port=port, replication=replication, folder=folder)
        mine = [each.replace("{mc_port}", str(port)) for each in options]
        configuration = run.folder / "yrmcds.conf"
        configuration.write_text("\n".join([lines, *mine, ""]))
        return started(run, "yrmcdsd", [tool("yrmcdsd"), "-f", str(configuration)], f"{LOOPBACK}:{port}")
