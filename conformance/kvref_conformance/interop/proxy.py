"""twemproxy in front of an endpoint, one for each script: a mapping bound through it affects no other script."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_conformance.interop.kits import KitError, program

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOPBACK: Final = "127.0.0.1"
_START_SECONDS: Final = 5.0
_CONFIGURATION: Final = """\
interop:
  listen: {listen}
  hash: fnv1a_64
  distribution: ketama
  auto_eject_hosts: false
  timeout: 5000
  servers:
   - {server}:1
"""


@contextmanager
def twemproxy(server: str) -> Iterator[str]:
    """Start twemproxy in front of HOST:PORT, give its own address, and end it with the block.

    Raises:
        KitError: it does not start.
    """
    port, statistics = _free_ports()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, log = folder / "nutcracker.yml", folder / "log"
        file.write_text(_CONFIGURATION.format(listen=f"{LOOPBACK}:{port}", server=server))
        places = ["-c", str(file), "-o", str(log), "-p", str(folder / "pid")]
        words = [program("nutcracker"), *places, "-a", LOOPBACK, "-s", str(statistics)]
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            try:
                _wait(run, port, log)
                yield f"{LOOPBACK}:{port}"
            finally:
                run.kill()


def version() -> str:
    """Return what `nutcracker --version` says, such as `0.5.0`."""
    done = subprocess.run([program("nutcracker"), "--version"], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()[0].rpartition("-")[2]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind((LOOPBACK, 0))
        two.bind((LOOPBACK, 0))
        return one.getsockname()[1], two.getsockname()[1]


def _wait(run: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((LOOPBACK, port), 1.0).close()
        except OSError as error:
            if run.poll() is not None or time.monotonic() > deadline:
                said = log.read_text() if log.exists() else str(error)
                raise KitError(f"twemproxy does not start: {said[-300:]}") from error
            time.sleep(0.02)
        else:
            return
