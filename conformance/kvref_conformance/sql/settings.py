"""Settings of cases: the endpoint is restarted with them, at the same address and on the same data."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Final

from kvref_conformance.errors import NotRun
from kvref_conformance.sql.reload import wait_for_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvref.addresses import SocketAddress

    Restart = Callable[[Mapping[str, int]], str | None]

INTERVAL: Final = "innodb_api_bk_commit_interval"
# An idle commit would end an open batch at any moment: cases with settings that name no interval run without.
NEVER: Final = 100000
COMMAND_SECONDS: Final = 120
NO_WAY: Final = "needs --restart COMMAND: the endpoint must be started again with settings"


class Settings:
    """The settings in force.

    Args:
        address: the endpoint.
        restart: as the hook `pytest_kvref_restart`.
        prepare: called before a start.
        reconnect: opens the SQL connection again, which a restarted server has closed.
    """

    def __init__(
        self,
        address: SocketAddress,
        restart: Restart,
        prepare: Callable[[], None],
        reconnect: Callable[[], None],
    ) -> None:
        self._address = address
        self._restart = restart
        self._prepare = prepare
        self._reconnect = reconnect
        self._current: dict[str, int] = {}
        self._refused: dict[tuple[tuple[str, int], ...], str] = {}

    def bring(self, wanted: Mapping[str, int] | None) -> None:
        """Let the endpoint run with these settings; None: with its own, as before the run.

        Raises:
            NotRun: it cannot be started again, or refuses them.
            CaseFailed: it did not come back.
        """
        settings = {} if wanted is None else with_interval(wanted)
        if settings == self._current:
            return
        key = tuple(settings.items())
        reason = self._refused.get(key) or self._start(settings)
        if reason:
            self._refused[key] = reason
            raise NotRun(reason)

    def forget(self) -> None:
        """Take it that the endpoint runs with its own settings: something else has started it."""
        self._current = {}
        self._reconnect()

    def _start(self, settings: dict[str, int]) -> str:
        self._prepare()
        reason = self._restart(settings)
        if reason is None:
            return NO_WAY
        self._current = {} if reason else settings
        wait_for_port(self._address)
        self._reconnect()
        return reason


def with_interval(settings: Mapping[str, int]) -> dict[str, int]:
    """Return settings of a case with the interval that it has if it names none."""
    return {INTERVAL: NEVER, **settings}


def by_command(command: str) -> Restart:
    """Return the hook's function for a shell command, to which the settings are appended as NAME=VALUE words."""

    def restart(settings: Mapping[str, int]) -> str:
        reason = _run(command, settings)
        if reason and settings:
            _run(command, {})
        return reason

    return restart


def _run(command: str, settings: Mapping[str, int]) -> str:
    words = [shlex.quote(f"{name}={value}") for name, value in settings.items()]
    # The user's own command line, given with --restart.
    done = subprocess.run(  # noqa: S602
        " ".join([command, *words]), shell=True, check=False, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    output = (done.stderr or done.stdout).strip()
    return f"--restart: {command!r} ended with {done.returncode}: {output}" if done.returncode else ""
