"""Commands of kvref from a process that has loaded them already and forks: one starts in some milliseconds of CPU.

The child runs what `python -m kvref` runs, with arguments, environment, folder and limits of its own. Only its
command line in the process list is that of the process that forked it. Servers and other commands have a process each
that forks them, so that a server has only its own modules in memory.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, cast

NUMBER = struct.Struct("i")
LIMITS = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
LONGEST = 1 << 20  # bytes of a request
JUDGES = {"conform", "replay"}
# Coverage of processes needs its own start in each.
MEASURED = {"COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"}


class Warm:
    """A server's process, or that of another command, to be used like a `subprocess.Popen`.

    Args:
        arguments: `kvref`, the command, and its words.
        streams: descriptors of input, output and error output of another command; of a server, `stderr` is a pipe.
        environment: of the process; by default this one's.
        folder: where it runs; by default where this process does.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        streams: tuple[int, int, int] | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.args = list(arguments)
        self.returncode: int | None = None
        self.stderr: IO[str] | None = None
        self._state, state = os.pipe()
        passed, closed = list(streams or ()), [state]
        if streams is None:
            reading, writing = os.pipe()
            self.stderr = os.fdopen(reading, "r")
            passed.append(writing)
            closed.append(writing)
        try:
            limits = {number: resource.getrlimit(number) for number in LIMITS}
            environment = dict(os.environ if environment is None else environment)
            request = json.dumps([self.args, environment, str(folder or Path.cwd()), list(limits.items())]).encode()
            descriptors = array.array("i", [state, *passed])
            _forking("serve" if streams is None else "commands").sendmsg(
                [request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors.tobytes())]
            )
        finally:
            for each in closed:
                os.close(each)
        (self.pid,) = NUMBER.unpack(os.read(self._state, NUMBER.size))

    def poll(self) -> int | None:
        """Return how it ended; None where it runs."""
        if self.returncode is None and select.select([self._state], [], [], 0)[0]:
            ended = os.read(self._state, NUMBER.size)
            os.close(self._state)
            assert ended, "the process that forks the servers is gone"
            self.returncode = os.waitstatus_to_exitcode(*NUMBER.unpack(ended))
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return how it ended, which must be within so many seconds."""
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._state], [], [], left)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.poll()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            # It may have ended without a report from the process that forked it.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


@cache
def _forking(what: str) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    with theirs:
        process = subprocess.Popen([sys.executable, __file__, what, str(theirs.fileno())], pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        process.wait(timeout=20)

    atexit.register(end)
    return ours


class Forker:
    """The process that forks; `requests` reports its children."""

    def __init__(self, requests: socket.socket, load: Callable[[str], object]) -> None:
        self._requests = requests
        self._load = load  # gets the command of each request
        self._states: dict[int, int] = {}  # process -> where its end is written
        self._woken, self._wake = os.pipe()
        for each in (self._woken, self._wake):
            os.set_blocking(each, False)

    def run(self) -> list[str] | None:
        """Fork on request; return the arguments in a child, and None once the requests end."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        while True:
            ready = select.select([self._requests, self._woken], [], [])[0]
            if self._woken in ready:
                os.read(self._woken, 1000)
                self._tell_ended()
            if self._requests in ready:
                request, state, streams = self._request()
                if not request:
                    return None
                arguments = self._fork(request, state, streams)
                if arguments is not None:
                    return arguments

    def _request(self) -> tuple[bytes, int, list[int]]:
        request, passed, _, _ = self._requests.recvmsg(LONGEST, socket.CMSG_SPACE(4 * NUMBER.size))
        if not request:
            return b"", -1, []
        descriptors = array.array("i")
        descriptors.frombytes(passed[0][2])
        state, *streams = descriptors
        return request, state, streams

    def _fork(self, request: bytes, state: int, streams: list[int]) -> list[str] | None:
        arguments, environment, folder, limits = json.loads(request)
        self._load(arguments[1])
        pid = os.fork()
        if pid:
            for each in streams:
                os.close(each)
            os.write(state, NUMBER.pack(pid))
            self._states[pid] = state
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, each in enumerate(streams, start=3 - len(streams)):  # a single one is for errors
            os.dup2(each, number)
        for each in (*streams, state, self._woken, self._wake, *self._states.values()):
            os.close(each)
        self._requests.close()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path.insert(0, folder)  # as for `python -m kvref`
        for number, (soft, hard) in limits:
            resource.setrlimit(number, (soft, hard))
        return cast("list[str]", arguments)

    def _tell_ended(self) -> None:
        while self._states:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            state = self._states.pop(pid)
            os.write(state, NUMBER.pack(status))
            os.close(state)


def load_command(name: str) -> None:
    """Load a command of kvref, if there is one of that name; with the judge's commands also its cases."""
    entry = commands().get(name)
    if entry is not None:
        entry.load()
    if name in JUDGES:
        import_module("kvref_conformance.plugin")
        import_module("kvref_conformance.cases").all_cases()


if __name__ == "__main__":
    # As for `python -m kvref`, the tests' modules are none of its own.
    sys.path[:] = [each for each in sys.path if Path(each) not in (Path(__file__).parent, Path(__file__).parents[1])]
    import kvref.cli.serve
    import kvref.storage.sqlite.store
    from kvref.cli.registry import commands

    what, descriptor = sys.argv[1:]
    found = Forker(socket.socket(fileno=int(descriptor)), load_command if what == "commands" else str).run()
    if found is not None:
        sys.argv = found
        kvref.cli.main()
