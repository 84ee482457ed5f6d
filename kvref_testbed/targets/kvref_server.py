"""A `kvref serve` whose life is in its caller's hands: start, reload, stop, kill, on one store and port.

    with kvref_server("mysql-8.0") as server:
        server.start()
        ...                                  # change server.file
        server.reload()                      # False: the configuration is refused, the old one stays in force
        server.kill()
        server.start()

Nothing of the server is imported here, so that it is judged exactly as the other endpoints are.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_testbed.targets.kvref_serve import NEW_FILE
from kvref_testbed.targets.ports import LOOPBACK, ask_version, free_port
from kvref_testbed.targets.restartable import Restartable
from kvref_testbed.targets.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kvref_testbed.targets.process import Process

_START_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 10.0
_RELOAD_SECONDS: Final = 10.0
_REFUSAL: Final = 2  # exit status of a `kvref serve` that cannot use what it was given
# What `kvref serve` logs once a reload is over.
_ACCEPTED: Final = "configuration reloaded"
_REFUSED: Final = "configuration not reloaded"


class KvrefServer(Restartable):
    """One `kvref serve` at a time; made by `kvref_server`.

    run: the folder of the file and the log.
    options: of `kvref serve`.
    store: DSN of a SQL server with the configuration tables; None: the SQLite file.
    """

    def __init__(self, run: Run, options: Sequence[str], store: str | None) -> None:
        super().__init__(run, _STOP_SECONDS)
        self._options = options
        self._port = free_port()
        self.file: Path = run.folder / "kvref.sqlite"
        self._store = store or f"sqlite:///{self.file}"

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        return LOOPBACK, self._port

    def start(self, settings: Sequence[str] = ()) -> bool:
        """Start on the store as it is, a new one if there is no file; False when it refuses the configuration and ends.

        settings: NAME=VALUE, as `kvref serve --set` takes them. Raises TargetError when it ends otherwise.
        """
        listen = f"{LOOPBACK}:{self._port}"
        command = [sys.executable, "-m", "kvref", "serve", "--listen", listen, "--store", self._store]
        command += [*NEW_FILE, *self._options]
        command += [word for setting in settings for word in ("--set", setting)]
        self._process = self._run.start("kvref", command)
        try:
            self._run.wait_for(f"kvref serve at {listen}", lambda: ask_version(self._port), _START_SECONDS)
        except TargetError:
            if self.exit_status() != _REFUSAL:
                raise
            self._end(0)
            return False
        return True

    def reload(self) -> bool:
        """Make it read its configuration again; False when it refuses and keeps the old one. Raises TargetError."""
        process = self._running()
        with self._run.log("kvref").open(encoding="utf-8", errors="replace") as log:
            log.seek(0, os.SEEK_END)
            os.kill(process.pid, signal.SIGHUP)
            said, deadline = "", time.monotonic() + _RELOAD_SECONDS
            while time.monotonic() < deadline:
                said += log.read()
                if _ACCEPTED in said or _REFUSED in said:
                    return _REFUSED not in said
                time.sleep(0.001)
        raise TargetError(f"kvref serve did not reload within {_RELOAD_SECONDS:g} s\n{self._run.last_words(process)}")

    def _running(self) -> Process:
        if self._process is None or not self.running():
            raise TargetError("kvref serve does not run: start it first")
        return self._process


@contextmanager
def kvref_server(profile: str, options: Sequence[str] = (), store: str | None = None) -> Iterator[KvrefServer]:
    """Yield a server of a profile, not yet started; it is killed with the block.

    options: further ones of `kvref serve`. store: as of `KvrefServer`.
    """
    run = Run.create()
    try:
        yield KvrefServer(run, ["--profile", profile, *options], store)
    finally:
        run.stop(0)
