"""A server that is one process without settings of the plugin: started, and started again when it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets.ports import ask_version
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_testbed.targets.run import Run

_START_SECONDS = 10.0


def started(
    run: Run, name: str, argv: Sequence[str], address: str, ask: Callable[[int], str] = ask_version
) -> Endpoint:
    """Start the main process of a target and wait until it answers.

    name: name of the process.
    argv: its command line.
    address: HOST:PORT where it listens.
    ask: returns the version of the server at a port, or raises NotYetError.
    Raises TargetError with its output if it ends.
    """
    port = int(address.rpartition(":")[2])

    def start() -> str:
        run.start(name, argv)
        return run.wait_for(f"{name} at {address}", lambda: ask(port), _START_SECONDS)

    def restart(settings: Mapping[str, int]) -> None:
        if settings:
            raise TargetError(f"{name} has no settings of batches and locks")
        run.end(run.processes[-1], 0)
        start()

    return Endpoint(address=address, version=start(), restart=restart)
