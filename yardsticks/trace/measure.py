"""Start traced servers, send the commands of `commands.toml` and count what each calls."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from kvref_testbed import targets

FILE: Final = Path(__file__).with_name("commands.toml")
REPETITIONS: Final = 9
SECONDS: Final = 20.0  # until a reply or a start counts as failed
LISTENING: Final = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
REQUEST: Final = b"\x80"  # a frame of the binary protocol begins with it
# The last line of a reply.
END: Final = re.compile(
    rb"^(?:END|STORED|NOT_STORED|DELETED|NOT_FOUND|TOUCHED|HD|EN|NS|NF|\d+|VA .*\r\n.*|\w*ERROR.*)\r\n\Z", re.MULTILINE
)


def setups() -> list[dict[str, Any]]:
    """Return the set-ups with their commands."""
    with FILE.open("rb") as file:
        return list(tomllib.load(file)["setup"])


def measure(stores: Sequence[str] = ("sqlite", "mysql-8.0")) -> dict[str, Any]:
    """Return the figures of each command by set-up, for the set-ups over these stores.

    Raises:
        RuntimeError: a server does not start or does not reply, with what it logged.
    """
    return {setup["name"]: _figures(setup) for setup in setups() if setup["store"] in stores}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each figure that differs, of the commands that both have."""
    found = []
    for setup in sorted(old.keys() & new.keys()):
        for command in sorted(old[setup].keys() & new[setup].keys()):
            before, after = old[setup][command], new[setup][command]
            if before != after:
                found.append(f"{setup}: {command}: {_shown(before)} -> {_shown(after)}")
    return found


def beyond_budget(measured: dict[str, Any]) -> list[str]:
    """Return a line for each figure above its budget."""
    found = []
    for setup in setups():
        for command in setup["command"]:
            figures = measured.get(setup["name"], {}).get(command["name"], {})
            for what, most in command.get("budget", {}).items():
                if figures.get(what, 0) > most:
                    found.append(f"{setup['name']}: {command['name']}: {figures[what]} {what}, budget {most}")
    return found


def _shown(figures: dict[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in figures.items())


def _figures(setup: dict[str, Any]) -> dict[str, dict[str, int]]:
    with started(setup) as server:
        return {command["name"]: server.least(command) for command in setup["command"]}


@contextmanager
def started(setup: dict[str, Any]) -> Iterator[Traced]:
    """Give a traced server of a set-up. Raises RuntimeError with what it logged if it does not start."""
    with (
        _store(setup["store"], setup.get("server", ())) as dsn,
        _traced(dsn + setup.get("query", ""), setup.get("settings", ())) as server,
    ):
        yield server


@contextmanager
def _store(name: str, options: Sequence[str]) -> Iterator[str]:
    """Give the DSN of a store with the demo table and the rows cold0, cold1, …."""
    rows = [(f"cold{number}", "value", 0, number + 1, 0) for number in range(REPETITIONS)]
    insert = "INSERT INTO {}demo_test (c1, c2, c3, c4, c5) VALUES ({})"
    if name == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "traced.sqlite"
            _init(f"sqlite:///{file}")
            with sqlite3.connect(file) as database:
                database.executemany(insert.format("", "?, ?, ?, ?, ?"), rows)
            yield f"sqlite:///{file}"
        return
    with targets.sql_server(name, options) as server:
        _init(server.dsn)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(insert.format("test.", "%s, %s, %s, %s, %s"), rows)
            connection.commit()
        yield server.dsn


def _init(dsn: str) -> None:
    subprocess.run([sys.executable, "-m", "kvref", "init", "--demo", "--store", dsn], check=True, capture_output=True)


class Traced:
    """A traced server and a connection to it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)

    def least(self, command: dict[str, Any]) -> dict[str, int]:
        """Return the figures of the repetition with the fewest calls: timers of the server call too."""
        every = [_count(calls, command.get("times", 1)) for calls in self._repeat(command)]
        return min(every, key=lambda figures: (figures["calls"], figures["changes"]))

    def calls(self, command: dict[str, Any]) -> list[tuple[str, str]]:
        """Return file and function of each call of the repetition with the fewest, in their order.

        A file is a path in the package `kvref`, a function has its qualified name. Calls of all threads are in it.
        """
        return [(file, function) for _, file, function in min(self._repeat(command), key=len)]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _repeat(self, command: dict[str, Any]) -> list[list[list[Any]]]:
        """Return the calls of each repetition, each call as thread, file and function."""
        return [self._once(command, number) for number in range(REPETITIONS)]

    def _once(self, command: dict[str, Any], number: int) -> list[list[Any]]:
        times = command.get("times", 1)
        if "first" in command:
            self._exchange(command["first"].format(n=number).encode("latin-1"), 1)
        self._control("on")
        self._exchange("".join(command["send"].format(n=number, i=i) for i in range(times)).encode("latin-1"), times)
        return list(json.loads(self._control("off")))

    def _control(self, word: str) -> str:
        """Return the line with which the recorder answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def _exchange(self, request: bytes, replies: int) -> None:
        self._socket.sendall(request)
        if request.startswith(REQUEST):
            self._hear_frames(replies)
            return
        reply = b""
        while len(END.findall(reply)) < 1 or (replies > 1 and reply.count(b"\r\n") < replies):
            received = self._socket.recv(1 << 16)
            if not received:
                raise RuntimeError(f"the server closed the connection after {request!r}")
            reply += received
        if b"ERROR" in reply:
            raise RuntimeError(f"{request!r} was answered with {reply!r}")

    def _hear_frames(self, replies: int) -> None:
        for _ in range(replies):
            header = self._socket.recv(24, socket.MSG_WAITALL)
            status, length = struct.unpack_from(">HI", header, 6)
            body = self._socket.recv(length, socket.MSG_WAITALL) if length else b""
            if status:
                raise RuntimeError(f"a frame was answered with {body!r}")


def _count(calls: list[list[Any]], times: int) -> dict[str, int]:
    """Return calls for each command, different functions and files, and how often the file changes within a thread."""
    threads: dict[int, list[str]] = {}
    for thread, file, _ in calls:
        threads.setdefault(thread, []).append(file)
    changes = sum(before != after for files in threads.values() for before, after in pairwise(files))
    functions = Counter((file, name) for _, file, name in calls)
    return {
        "calls": -(-len(calls) // times),
        "functions": len(functions),
        "files": len({file for file, _ in functions}),
        "changes": -(-changes // times),
    }


@contextmanager
def _traced(dsn: str, settings: Sequence[str]) -> Iterator[Traced]:
    words = [sys.executable, "-m", "yardsticks.trace.server", "serve", "--store", dsn, "--listen", "127.0.0.1:0"]
    for each in settings:
        words += ["--set", each]
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=FILE.parents[2],
    )
    try:
        server = Traced(process, _port(process))
        yield server
        server.close()
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def _port(process: subprocess.Popen[str]) -> int:
    """Return the port that the server logs. Raises RuntimeError with its log if it ends instead."""
    assert process.stderr is not None
    logged = []
    for line in process.stderr:
        logged.append(line)
        found = LISTENING.search(line)
        if found:
            return int(found[1])
    raise RuntimeError(f"the traced server does not listen: {''.join(logged)}")
