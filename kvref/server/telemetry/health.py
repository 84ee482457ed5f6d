"""Whether a server can serve, from what its processes have shown; waits for nothing."""

from __future__ import annotations

from typing import Final

from kvref.server.telemetry.event_counters import EventCounters, State

SILENT: Final = 5.0  # seconds without a beat
OWED: Final = 2.0  # seconds that the store may take for an answer


def trouble(tally: EventCounters) -> str:
    """Return why the server cannot serve, empty where it can.

    Each process that runs must be well; a worker that is being replaced is none.
    """
    if tally.state is not State.SERVING:
        return "the server is starting" if tally.state is State.STARTING else "the server is stopping"
    running = [process for process in tally.processes if process.pid]
    if not running:
        return "no worker runs"
    for process in running:
        if process.silence > SILENT:
            return f"process {process.pid} has been unresponsive for {process.silence:.0f} s"
        if process.owed > OWED:
            return f"the store has not answered for {process.owed:.0f} s"
        reason = process.trouble
        if reason is None:
            return "the store has not answered yet"
        if reason:
            return f"the store cannot be used: {reason}"
    return ""
