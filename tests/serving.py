"""A `kvref serve` process of its own for a test: started on a free port, always stopped."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warm import Warm

START_SECONDS = 20.0
INTERPRETER = 2  # words of a command in front of the module
# Coverage of processes needs a start of its own in each.
MEASURED = {"COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"}
LISTENING = re.compile(r"listening on [0-9.]+:(\d+)")


@dataclass
class Served:
    """A running server: its port (0 for a unix socket), its file or DSN, its process and what it logged so far."""

    process: subprocess.Popen[str] | Warm
    store: Path | str
    log: list[str] = field(default_factory=list)
    port: int = 0

    def wait_for(self, text: str, seconds: float = 10.0) -> str:
        """Return the first log line that holds `text`; fails after that many seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in list(self.log):
                if text in line:
                    return line
            if self.process.poll() is not None and text not in "".join(self.log):
                break
            time.sleep(0.01)
        raise AssertionError(f"no {text!r} in the log:\n{''.join(self.log)}")

    def ports(self, count: int) -> list[int]:
        """Return the ports of so many listeners, in their order."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            found = LISTENING.findall("".join(self.log))
            if len(found) == count:
                return [int(port) for port in found]
            time.sleep(0.01)
        raise AssertionError(f"not {count} listeners in the log:\n{''.join(self.log)}")

    def reload(self) -> None:
        """Send SIGHUP and wait until the configuration was read again, or refused."""
        self.log.clear()
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("reloaded")

    def rest(self, seconds: float = 10.0) -> None:
        """Wait until the server's process waits for events: the turn of its loop that has answered is over."""
        deadline = time.monotonic() + seconds
        while Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def connect(self) -> socket.socket:
        """Open a connection with a time limit."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


@contextmanager
def serving(
    store: Path | str,
    *options: str,
    listen: str | None = "127.0.0.1:0",
    first: Sequence[str] = (),
    anew: bool = False,
) -> Iterator[Served]:
    """Serve a SQLite file, or the store of a DSN, for the block; by default on a free port.

    first: words in front of the command. anew: start a new interpreter, so that the command line is the server's.
    """
    words = [*command(store), *(["--listen", listen] if listen else []), *options]
    if anew or first or MEASURED & os.environ.keys():
        with running([*first, *words], store) as served:
            yield served
    else:
        with _looked_after(Warm(words[INTERPRETER:]), store) as served:
            yield served


def command(store: Path | str) -> list[str]:
    """Return the words that serve a SQLite file, or what a DSN names; options may follow."""
    return [
        sys.executable,
        "-m",
        "kvref",
        "serve",
        "--store",
        store if isinstance(store, str) else f"sqlite:///{store}",
        "--create",
        "--demo",
    ]


@contextmanager
def running(
    words: Sequence[str],
    store: Path | str,
    environment: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> Iterator[Served]:
    """Run a server, and wait until it listens; in the end it is stopped.

    words: its command, or what becomes it. descriptors: that it inherits.
    """
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, pass_fds=descriptors)
    with _looked_after(process, store) as served:
        yield served


@contextmanager
def _looked_after(process: subprocess.Popen[str] | Warm, store: Path | str) -> Iterator[Served]:
    served = Served(process, store)
    reader = threading.Thread(target=_collect, args=(served,), daemon=True)
    reader.start()
    try:
        line = served.wait_for("listening on", START_SECONDS)
        match = LISTENING.search(line)
        assert match is not None or "unix:" in line
        served.port = int(match[1]) if match is not None else 0
        yield served
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=60)
        reader.join(timeout=60)
        assert process.stderr is not None
        process.stderr.close()
    # Reached only when the test itself passed: nothing may have gone wrong unseen.
    assert "Traceback" not in "".join(served.log), "".join(served.log)


def _collect(served: Served) -> None:
    assert served.process.stderr is not None
    for line in served.process.stderr:
        served.log.append(line)


def ask(connection: socket.socket, data: bytes) -> bytes:
    """Send bytes and return the reply: everything up to the answer of a `version` sent behind them."""
    connection.sendall(data + b"version\r\n")
    reply = bytearray()
    while True:
        chunk = connection.recv(65536)
        if not chunk:
            return bytes(reply) + b"<EOF>"
        reply += chunk
        end = re.search(rb"VERSION [^\r\n]*\r\n\Z", reply)
        if end:
            return bytes(reply[: end.start()])
