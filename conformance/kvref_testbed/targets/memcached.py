"""memcached, and other servers and proxies of its protocol."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_testbed.targets.builds import from_debian
from kvref_testbed.targets.folders import build_once, cache_root, run_in
from kvref_testbed.targets.needs import MissingError, tool
from kvref_testbed.targets.ports import LOOPBACK, free_port, free_ports, reach, version_at
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_testbed.targets.builds import Package
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Recipe

_START_SECONDS = 10.0


def started(
    run: Run,
    name: str,
    argv: Sequence[str],
    address: str,
    read_version: Callable[[int], str] = version_at,
    seconds: float = _START_SECONDS,
) -> Endpoint:
    """Start the main process of a target and wait until it answers.

    name: name of the process.
    argv: its command line.
    address: HOST:PORT where it listens.
    read_version: returns the version of the server at a port, or raises NotYetError.
    seconds: after which it should answer.
    Raises TargetError with its output if it ends.
    """
    port = int(address.rpartition(":")[2])

    def start() -> str:
        run.start(name, argv)
        return run.wait_for(f"{name} at {address}", lambda: read_version(port), seconds)

    def restart(settings: Mapping[str, int]) -> None:
        if settings:
            raise TargetError(f"{name} has no settings of batches and locks")
        run.end(run.processes[-1], 0)
        start()

    return Endpoint(address=address, version=start(), restart=restart)


_USERS = ("-Y", "--auth-file", "-S", "--enable-sasl")


@dataclass(frozen=True, slots=True)
class Memcached:
    """The `memcached` program in PATH, or that of another Debian release; see `recipe.Recipe` for the fields.

    package: of that release, installed in the cache the first time.
    """

    name: str = "memcached"
    profile: str = "memcached"
    summary: str = "native memcached, from the package of that name"
    package: Package | None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start memcached and wait for its port.

        options: of memcached, e.g. `-m128` or `--max-item-size=2m`.
        Raises MissingError without the program, TargetError when it ends, e.g. because of an option.
        """
        mine = list(options)
        asks_users = any(each.startswith(_USERS) for each in mine)
        command = from_debian(self.package, progress).command(run.folder) if self.package else [tool("memcached")]
        return _listening(run, "memcached", command, mine, reach if asks_users else version_at)


def _listening(
    run: Run, name: str, command: Sequence[str], options: Sequence[str], read_version: Callable[[int], str] = version_at
) -> Endpoint:
    port = free_port()
    # memcached refuses to run as root without this option.
    user = ["-u", "root"] if os.geteuid() == 0 else []
    mine = [each.replace("{mc_port}", str(port)) for each in options]
    words = [*command, *user, "-l", LOOPBACK, "-p", str(port), "-U", "0", *mine]
    return started(run, name, words, f"{LOOPBACK}:{port}", read_version)


_PROXY_CONFIGURATION = """\
pools{{ main = {{ backends = {{ "{server}" }} }} }}
routes{{ default = route_direct{{ child = "main" }} }}
"""


@dataclass(frozen=True, slots=True)
class MemcachedProxy:
    """The proxy that newer memcached has built in, in front of a memcached of the same package; see `recipe.Recipe`.

    package: of a Debian release that builds the proxy.
    """

    package: Package
    name: str = "memcached-proxy"
    profile: str = "memcached"
    summary: str = "the proxy built into memcached, in front of the target memcached-newer"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the memcached behind it, write the configuration, start the proxy and wait for its port.

        options: of the proxy, e.g. `-t2`.
        Raises MissingError without the package, TargetError when one of them ends.
        """
        program = from_debian(self.package, progress)
        server = _listening(run, "memcached", program.command(run.folder), [])
        configuration = "proxy.lua"
        (run.folder / configuration).write_text(_PROXY_CONFIGURATION.format(server=server.address))
        # `routelib` is the library of routes that the program has built in.
        route = f"proxy_config=routelib,proxy_arg={program.seen(run.folder) / configuration}"
        return _listening(run, self.name, program.command(run.folder), ["-o", route, *options])


_LAST_LINES = 8
_HERE: Final = Path(__file__).parent / "node"
# The second pins what nodecached depends on, with checksums: its own package.json takes any version.
_PINS: Final = ("package.json", "package-lock.json")


@dataclass(frozen=True, slots=True)
class Nodecached:
    """The program `nodecached` of the package of that name; see `recipe.Recipe` for the fields."""

    name: str = "nodecached"
    profile: str = "memcached"
    summary: str = "nodecached, memcached's text protocol in JavaScript"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Install it the first time, start it and wait for its port.

        options: of nodecached, e.g. `-vv` or `--maxSizeMb=64`; it ignores one that it does not know.
        Raises MissingError without Node or when npm fails, TargetError when it ends.
        """
        node = tool("node")
        program = _installed(progress) / "node_modules" / "nodecached" / "bin" / "nodecached.js"
        port = free_port()
        mine = [each.replace("{mc_port}", str(port)) for each in options]
        words = [node, "--require", str(_HERE / "loopback.js"), str(program), "-p", str(port), *mine]
        return started(run, "nodecached", words, f"{LOOPBACK}:{port}")


def _installed(progress: Progress) -> Path:
    def install(folder: Path) -> None:
        for each in _PINS:
            shutil.copy(_HERE / each, folder)
        # What a package wants to run while it is installed is not run: none of these needs it.
        command = [tool("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        progress.step("installing nodecached with npm (once)")
        done = run_in(folder, command)
        if done.returncode:
            last = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
            raise MissingError(f"npm could not install nodecached (status {done.returncode}):\n{last}")

    digest = hashlib.sha256(b"".join((_HERE / each).read_bytes() for each in _PINS)).hexdigest()
    return build_once(cache_root() / "servers" / f"nodecached-{digest[:8]}", install, progress)


# It serves once it owns `virtual_ip`, and listens there too. Without `bind_ip` it would listen on every interface, and
# one that is the same as `virtual_ip` it binds twice and fails: hence another address of the loopback interface.
_YRMCDS_CONFIGURATION = """\
virtual_ip = {host}
bind_ip = 127.0.0.2
port = {port}
repl_port = {replication}
temp_dir = "{folder}"
workers = {workers}
"""
_YRMCDS_WORKERS = 4


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
        lines = _YRMCDS_CONFIGURATION.format(
            host=LOOPBACK, port=port, replication=replication, folder=folder, workers=_YRMCDS_WORKERS
        )
        mine = [each.replace("{mc_port}", str(port)) for each in options]
        configuration = run.folder / "yrmcds.conf"
        configuration.write_text("\n".join([lines, *mine, ""]))
        command = [tool("yrmcdsd"), "-f", str(configuration)]
        return started(run, "yrmcdsd", command, f"{LOOPBACK}:{port}", _ask_every_worker)


def _ask_every_worker(port: int) -> str:
    """Return the version once each worker thread of yrmcds had its turn, or raise NotYetError.

    A request that yrmcds hands to a worker thread which has not begun to wait is never answered; the thread counts as
    busy from then on and gets no further request.
    """
    return [version_at(port, seconds=0.5) for _ in range(_YRMCDS_WORKERS)][-1]


OF_SERVER = "--server="
_PROCESS = "nutcracker"
# Without ejection a server that failed once is used again: there is no other one for its keys.
_TWEMPROXY_CONFIGURATION = """\
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
class Running:
    """A server that runs already, for a proxy in front of it; see `recipe.Recipe` for the other fields.

    address: HOST:PORT.
    """

    address: str
    name: str = "running"
    summary: str = "a server that runs already"
    profile: str | None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:  # noqa: ARG002
        """Start nothing."""
        return Endpoint(self.address, "")


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
        server_options = [each.removeprefix(OF_SERVER) for each in options if each.startswith(OF_SERVER)]
        server = self.server.boot(run, server_options, progress)
        port, statistics = free_ports(2)
        address = f"{LOOPBACK}:{port}"
        configuration = run.folder / "nutcracker.yml"
        configuration.write_text(_TWEMPROXY_CONFIGURATION.format(listen=address, server=server.address))
        places = [
            f"--conf-file={configuration}",
            f"--stats-addr={LOOPBACK}",
            f"--stats-port={statistics}",
            # Without this option Debian's build writes to the log of the machine's own service.
            f"--output={run.log(_PROCESS)}",
        ]
        mine = [each.replace("{mc_port}", str(port)) for each in options if not each.startswith(OF_SERVER)]
        # No SQL, though the plugin has it: on its own tables the suite begins each case with `bind`, see above.
        return started(run, _PROCESS, [program, *places, *mine], address)


def twemproxy_version() -> str:
    """Return what `nutcracker --version` says, such as `0.5.0`; raises MissingError without the program."""
    done = subprocess.run([tool(_PROCESS), "--version"], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()[0].rpartition("-")[2]
