"""`kvref serve` from a process that has loaded it already and forks: a server starts in some milliseconds of CPU.

The child runs what `python -m kvref` runs, with arguments, environment, folder and limits of its own. Only its
command line in the process list is that of the process that forked it.
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
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, cast

NUMBER = struct.Struct("i")
LIMITS = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
LONGEST = 1 << 20  # bytes of a request


class Warm:
    """A server's process, to be used like a `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.args = list(arguments)
        self.returncode: int | None = None
        reading, writing = os.pipe()
        self._state, state = os.pipe()
        try:
            limits = {number: resource.getrlimit(number) for number in LIMITS}
            request = json.dumps([self.args, dict(os.environ), str(Path.cwd()), list(limits.items())]).encode()
            _forking().sendmsg(
                [request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writing, state]).tobytes())]
            )
        finally:
            os.close(writing)
            os.close(state)
        self.stderr: IO[str] | None = os.fdopen(reading, "r")
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
def _forking() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    with theirs:
        process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        process.wait(timeout=20)

    atexit.register(end)
    return ours


class Forker:
    """The process that forks; `requests` reports its children."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
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
                request, (stderr, state) = self._request()
                if not request:
                    return None
                arguments = self._fork(request, stderr, state)
                if arguments is not None:
                    return arguments

    def _request(self) -> tuple[bytes, tuple[int, int]]:
        request, passed, _, _ = self._requests.recvmsg(LONGEST, socket.CMSG_SPACE(2 * NUMBER.size))
        if not request:
            return b"", (-1, -1)
        descriptors = array.array("i")
        descriptors.frombytes(passed[0][2])
        return request, cast("tuple[int, int]", tuple(descriptors))

    def _fork(self, request: bytes, stderr: int, state: int) -> list[str] | None:
        pid = os.fork()
        if pid:
            os.close(stderr)
            os.write(state, NUMBER.pack(pid))
            self._states[pid] = state
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stderr, 2)
        for each in (stderr, state, self._woken, self._wake, *self._states.values()):
            os.close(each)
        self._requests.close()
        arguments, environment, folder, limits = json.loads(request)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
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


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # as for `python -m kvref`, the tests' modules are none of its own
    import kvref.cli.serve
    import kvref.storage.sqlite.store

    found = Forker(socket.socket(fileno=int(sys.argv[1]))).run()
    if found is not None:
        sys.argv = found
        kvref.cli.main()
