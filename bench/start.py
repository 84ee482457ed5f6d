# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref"]
# ///
"""Seconds from the start of a process to its first answer: `kvref serve` over SQLite, and `kvref --help`.

python bench/start.py
python bench/start.py --times 20
"""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import click

KVREF = (sys.executable, "-m", "kvref")
PAUSE = 0.001  # seconds between two attempts to connect
PATIENCE = 30.0


def first_answer(folder: Path) -> float:
    """Start a server with a new file, and return the seconds until it has answered a get."""
    place = folder / "socket"
    begun = time.perf_counter()
    command = [*KVREF, "serve", "--store", f"sqlite:///{folder}/file.sqlite", "--create", "--listen", f"unix:{place}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            while time.perf_counter() - begun < PATIENCE:
                with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(place))
                    client.sendall(b"get key\r\n")
                    if client.recv(100) == b"END\r\n":
                        return time.perf_counter() - begun
                time.sleep(PAUSE)
            sys.exit(f"kvref serve has not answered within {PATIENCE:g} s")
        finally:
            server.terminate()


def help_shown() -> float:
    """Return the seconds that `kvref --help` takes."""
    begun = time.perf_counter()
    subprocess.run([*KVREF, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


@click.command()
@click.option("--times", default=9, show_default=True, type=click.IntRange(1), help="Starts of each.")
def main(times: int) -> None:
    """Measure both, in turns."""
    starts, helps = [], []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            starts.append(first_answer(Path(folder)))
        helps.append(help_shown())
    for what, seconds in (("kvref serve, first answer", starts), ("kvref --help", helps)):
        click.echo(f"{what}: {statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})")


if __name__ == "__main__":
    main()
