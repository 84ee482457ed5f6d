"""Is the endpoint still the one it was? A server that ended, or that something started again, is a crash."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from kvref_conformance.errors import CannotJudge
from kvref_conformance.wire.connection import Connection, version_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.endpoints.endpoint import Endpoint

# For one that something else watches and starts again; a MySQL server takes this long.
COMES_BACK_SECONDS: Final = 10.0
PATIENCE: Final = 5.0
STEP_SECONDS: Final = 0.2


class Liveness:
    """Watches one endpoint between conversations.

    Args:
        endpoint: the endpoint.

    Attributes:
        revive: starts it again, as the hook `pytest_kvref_restart` without settings: "" if it answers, the reason if
            not, or None if there is no way to start it.
        ended: why nothing more can be tried; empty while the endpoint answers.
        back: called when it answers again.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.revive: Callable[[], str | None] = lambda: None
        self._identity: tuple[str, int] | None = None
        self.ended = ""
        self.back: Callable[[], None] = lambda: None

    def mark(self) -> None:
        """Remember which process answers; to be called where it may have been started again on purpose."""
        self._identity = self._probe()

    def is_lost(self) -> bool:
        """Return whether it answers no more, or whether another process does."""
        try:
            if self._identity is None:
                version_line(self._endpoint.address)
                return False
            found = self._probe()
        except (CannotJudge, OSError):
            return True
        (process, uptime), self._identity = self._identity, found
        return found is None or found[0] != process or found[1] < uptime

    def bring_back(self, case: str) -> str:
        """Make a lost endpoint answer again.

        Args:
            case: id of the case in which it was lost.

        Returns:
            how it came back; where it did not, why not, and `ended` has the reason for all cases behind.
        """
        reply = self.revive()
        if reply is None:
            how = self._wait() or "did not come back"
            fix = "; with --restart COMMAND the run would continue"
        else:
            how, fix = f"could not be started again: {reply}" if reply else self._wait() or "did not come back", ""
        if how.startswith("came"):
            return how
        self.ended = f"the endpoint ended in case {case} and {how}{fix}"
        return how

    def _wait(self) -> str:
        began = time.monotonic()
        while time.monotonic() - began < COMES_BACK_SECONDS:
            try:
                version_line(self._endpoint.address)
                self.back()
                self.mark()
            except (CannotJudge, OSError):
                time.sleep(STEP_SECONDS)
            else:
                return f"came back after {time.monotonic() - began:.1f} s"
        return ""

    def _probe(self) -> tuple[str, int] | None:
        """Return process id and uptime; None where the endpoint does not tell."""
        with Connection(self._endpoint.address, self._endpoint.sentinel) as connection:
            reply = connection.exchange((b"stats\r\n",), patience=PATIENCE).data.decode("latin-1")
        found = {name: re.search(rf"^STAT {name} (\d+)\r$", reply, re.MULTILINE) for name in ("pid", "uptime")}
        pid, uptime = found["pid"], found["uptime"]
        return (pid[1], int(uptime[1])) if pid and uptime else None
