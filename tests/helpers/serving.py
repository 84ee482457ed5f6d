"""A `kvref serve` process of its own for a test: started on a free port, always stopped."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from helpers.waiting import until
from helpers.warm import MEASURED, Warm

START_SECONDS = 20.0
LOOKS = 4  # connections that show the states of others
START = [sys.executable, "-m", "kvref", "serve"]
INTERPRETER = 2  # words of a command in front of the module
STEPS = "kvref_testbed.steps"
ENDS_OF_GETS = re.compile(rb"^(?:END|(?:(?:SERVER_|CLIENT_)?ERROR)[^\r\n]*)\r\n", re.MULTILINE)
_BINARY = struct.Struct(">BBHBBHI4sQ")
LISTENING = re.compile(r"listening on [0-9.]+:(\d+)")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?=kvref: )")  # of a line of the log


@dataclass
class Served:
    """A running server: its port (0 for a unix socket), its file or DSN, its process and what it logged so far."""

    process: subprocess.Popen[str] | Warm
    store: Path | str
    log: list[str] = field(default_factory=list)
    port: int = 0

    def wait_for(self, text: str, seconds: float = 10.0) -> str:
        """Return the first log line that holds `text`; fails after that many seconds."""

        def logged() -> str | None:
            ended = self.process.poll() is not None
            found = next((line for line in list(self.log) if text in line), None)
            assert found or not ended
            return found

        with self._log_shown(f"no {text!r}"):
            return str(until(logged, seconds=seconds, pause=0.01))

    def ports(self, count: int) -> list[int]:
        """Return the ports of so many listeners, in their order."""

        def found() -> list[str]:
            return LISTENING.findall("".join(self.log))

        with self._log_shown(f"not {count} listeners"):
            until(lambda: len(found()) == count, seconds=START_SECONDS, pause=0.01)
        return [int(port) for port in found()]

    def until_state(self, state: str, count: int = 1) -> None:
        """Wait until so many connections of a process have a state of `stats conns`, such as `conn_io_queue`."""
        until_state(self.connect, state, count)

    @contextmanager
    def _log_shown(self, what: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            raise AssertionError(f"{what} in the log:\n{''.join(self.log)}") from None

    def reload(self) -> None:
        """Send SIGHUP and wait until the configuration was read again, or refused."""
        self.log.clear()
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("reloaded")

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
    program: str = "kvref",
) -> Iterator[Served]:
    """Serve a SQLite file, or the store of a DSN, for the block; by default on a free port.

    first: words in front of the command. anew: start a new interpreter, so that the command line is the server's.
    program: what `python -m` runs; `STEPS` plans no command.
    """
    words = [*command(store), *(["--listen", listen] if listen else []), *options]
    words[INTERPRETER] = program
    with running([*first, *words], store, anew=anew) as served:
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
    *,
    anew: bool = False,
) -> Iterator[Served]:
    """Run a server, and wait until it listens; in the end it is stopped.

    words: its command, or what becomes it. descriptors: that it inherits. anew: start a new interpreter, also if
    `python -m kvref` could be forked from one that has loaded it.
    """
    process: subprocess.Popen[str] | Warm
    if anew or descriptors or list(words[: len(START)]) != START or MEASURED & os.environ.keys():
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, pass_fds=descriptors)
    else:
        process = Warm(words[INTERPRETER:], environment=environment)
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
        served.log.append(TIME.sub("", line))


def workers(served: Served) -> list[int]:
    """Return the processes of a server that its parent has started."""
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text()
    return [int(pid) for pid in children.split()]


def sockets(pid: int) -> int:
    """Return how many sockets a process has open."""
    found = 0
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found += each.readlink().name.startswith("socket:")
    return found


def until_state(connect: Callable[[], socket.socket], state: str, count: int = 1) -> None:
    """Wait until so many connections of a process have a state of `stats conns`.

    connect: opens a connection. Several look in turn: workers share them, and each shows its own connections only.
    """
    with ExitStack() as stack:
        styles = cycle([stack.enter_context(connect()) for _ in range(LOOKS)])
        row = f":state {state}\r\n".encode()
        until(lambda: ask(next(styles), b"stats conns\r\n").count(row) >= count, pause=0.005)


def until_read(client: socket.socket) -> None:
    """Wait until the server has read everything that was sent on a TCP connection."""
    ports = client.getsockname()[1], client.getpeername()[1]

    def left() -> int:
        """Return how many bytes are not acknowledged, or received and not read."""
        queued = 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, _, queues = line.split()[:5]
            ends = int(local[-4:], 16), int(remote[-4:], 16)
            sent, received = (int(each, 16) for each in queues.split(":"))
            queued += sent * (ends == ports) + received * (ends == ports[::-1])
        return queued

    until(lambda: not left(), pause=0.001)


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


def stats(connection: socket.socket) -> dict[str, str]:
    """Return the rows of `stats` by name."""
    rows = re.findall(rb"STAT (\S+) (.*)\r\n", ask(connection, b"stats\r\n"))
    return {name.decode(): value.decode() for name, value in rows}


def ask_binary(connection: socket.socket, words: Sequence[bytes]) -> list[bytes | None]:
    """Send binary gets and nothing behind them; return the value of each word, None for a miss.

    Raises:
        ConnectionError: closed, or the reply to a get is neither an item nor a miss.
    """
    frames = [_BINARY.pack(0x80, 0, len(word), 0, 0, 0, len(word), bytes(4), 0) + word for word in words]
    connection.sendall(b"".join(frames))
    with connection.makefile("rb") as stream:
        values: list[bytes | None] = []
        refused = []
        for word in words:
            header = stream.read(_BINARY.size)
            if len(header) < _BINARY.size:
                raise ConnectionError(f"closed instead of the reply to {word!r}")
            _, _, _, extras, _, status, length, _, _ = _BINARY.unpack(header)
            body = stream.read(length)
            if status > 1:
                refused.append(f"{word!r}: {body!r}")
            values.append(None if status else body[extras:])
    if refused:
        raise ConnectionError(", ".join(refused))
    return values


def ask_gets(connection: socket.socket, data: bytes) -> bytes:
    """Send gets and nothing behind them, so that a server may read them alone; return the reply to each line."""
    connection.sendall(data)
    return receive_gets(connection, data.count(b"\r\n"))


def receive_gets(connection: socket.socket, count: int) -> bytes:
    """Return the replies to as many gets that were sent."""
    reply = bytearray()
    while len(ENDS_OF_GETS.findall(reply)) < count:
        chunk = connection.recv(65536)
        if not chunk:
            return bytes(reply) + b"<EOF>"
        reply += chunk
    return bytes(reply)
