"""`kvref serve` with a profile function that records the calls into `kvref`.

    python -m yardsticks.trace.server serve ARGUMENT...

Reads `on` and `off` from standard input, one a line. Replies to `on` with a line `on`, to `off` with one line of JSON:
the calls since `on`, each as thread, file and function. A generator that goes on counts as a call.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

import kvref
from kvref.cli import main
from kvref.server.executors.sqlite import executor

SILENCE: Final = 0.005  # seconds
# Seconds until the SQLite file is checked though its header is as before. With the server's own interval it depends on
# the speed of the machine whether a command checks.
REFRESH_INTERVAL: Final = 60.0
_PACKAGE: Final = str(Path(kvref.__file__).parent) + os.sep
# The interpreter inlines them from 3.12 on.
_INLINED: Final = {"<listcomp>", "<setcomp>", "<dictcomp>"}


class Recorder:
    """Record calls while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: list[tuple[int, str, str]] = []

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call, as `sys.setprofile` gives it."""
        if event == "call" and self.is_on:
            code = frame.f_code
            if code.co_filename.startswith(_PACKAGE) and code.co_name not in _INLINED:
                self.calls.append((threading.get_ident(), code.co_filename[len(_PACKAGE) :], code.co_qualname))

    def obey(self) -> None:
        """Carry out the lines of standard input until it ends."""
        for line in sys.stdin:
            if line.strip() == "on":
                self.calls.clear()
                self.is_on = True
                print("on", flush=True)
            else:
                self._wait_for_silence()
                self.is_on = False
                print(json.dumps(self.calls), flush=True)

    def _wait_for_silence(self) -> None:
        """Wait until nothing was called for some time: a command goes on after its reply."""
        seen = -1
        while seen != len(self.calls):
            seen = len(self.calls)
            time.sleep(SILENCE)


def run() -> None:
    """Serve with a recorder."""
    recorder = Recorder()
    threading.Thread(target=recorder.obey, daemon=True).start()
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)
    with patch.object(executor, "REFRESH_INTERVAL", REFRESH_INTERVAL):
        main()


if __name__ == "__main__":
    run()
