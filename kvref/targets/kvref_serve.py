"""kvref itself, started as its users start it: a process of its own that runs `kvref serve`.

Nothing of the server is imported here, so that it is judged exactly as the other endpoints are.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref.targets.ports import LOOPBACK, ask_version, free_port
from kvref.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref.targets.progress import Progress
    from kvref.targets.run import Run

_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class KvrefSQLite:
    """`kvref serve` over a fresh SQLite file with the demo rows; see `recipe.Recipe` for the fields."""

    name: str = "kvref-sqlite"
    profile: str = "kvref"
    summary: str = "kvref over SQLite, this installation"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:  # noqa: ARG002 -- it is quick
        """Start `kvref serve`, which makes the file, and wait for its port.

        options: of `kvref serve`.
        Raises TargetError when it ends, with what it printed.
        """
        port = free_port()
        address = f"{LOOPBACK}:{port}"
        store = f"sqlite:///{run.folder / 'kvref.sqlite'}"
        mine = [each.replace("{mc_port}", str(port)) for each in options]
        run.start("kvref", [sys.executable, "-m", "kvref", "serve", "--listen", address, "--store", store, *mine])
        version = run.wait_for(f"kvref serve at {address}", lambda: ask_version(port), _START_SECONDS)
        return Endpoint(address=address, version=version, store=store)
