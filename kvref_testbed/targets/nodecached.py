"""nodecached: a server of memcached's text protocol in JavaScript, which npm installs into kvref's cache.

It takes what one read of its socket brings for one command, and each connection has items of its own.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_testbed.targets.folders import build_once, cache_root, run_in
from kvref_testbed.targets.needs import MissingError, tool
from kvref_testbed.targets.plain import started
from kvref_testbed.targets.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Endpoint

_START_SECONDS = 20.0
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
