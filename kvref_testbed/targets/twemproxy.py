"""twemproxy, a proxy for memcached's text protocol, in front of another target.

It passes on the verbs that name a key, and `version`; it closes the connection at any other word. Its clients share one
connection to the server, so a mapping that is chosen on it is chosen for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.plain import started
from kvref_testbed.targets.ports import LOOPBACK, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.recipe import Recipe
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Endpoint

OF_SERVER = "--server="
_PROCESS = "nutcracker"
# Without ejection a server that failed once is used again: there is no other one for its keys.
_CONFIGURATION = """\
kvref:
  listen: {listen}
  hash: fnv1a_64
  distribution: ketama
  auto_eject_hosts: false
  timeout: 5000
  servers:
   - {server}:1
"""


@dataclass(frozen=True, slots=True)
class Twemproxy:
    """The `nutcracker` program in front of a private instance; see `recipe.Recipe` for the fields.

    server: the recipe of what is behind it.
    """

    name: str
    summary: str
    server: Recipe
    profile: str

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the server behind it, write the configuration, start twemproxy and wait for its port.

        options: of nutcracker, e.g. `--mbuf-size=512`, and behind OF_SERVER of the server
            (`--server=--daemon_memcached_r_batch_size=10`).
        Raises MissingError without the program, TargetError when one of them ends, with what it printed.
        """
        program = tool(_PROCESS)
        behind = [each.removeprefix(OF_SERVER) for each in options if each.startswith(OF_SERVER)]
        server = self.server.boot(run, behind, progress)
        port, statistics = free_ports(2)
        address = f"{LOOPBACK}:{port}"
        configuration = run.folder / "nutcracker.yml"
        configuration.write_text(_CONFIGURATION.format(listen=address, server=server.address))
        places = [
            f"--conf-file={configuration}",
            f"--stats-addr={LOOPBACK}",
            f"--stats-port={statistics}",
            # Without this option Debian's build writes to the log of the machine's own service.
            f"--output={run.log(_PROCESS)}",
        ]
        mine = [each.replace("{mc_port}", str(port)) for each in options if not each.startswith(OF_SERVER)]
        # No SQL, though the plugin has it: on tables of its own the suite begins each case with `bind`, see above.
        return started(run, _PROCESS, [program, *places, *mine], address)
