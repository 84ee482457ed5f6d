"""`kvref probe` on a terminal: lines can be edited, and earlier ones are recalled."""

from __future__ import annotations

import os
import pty
import select
import socketserver
import sys
import threading
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.programs
UP, LEFT = b"\x1b[A", b"\x1b[D"
SECONDS = 60


class Repeat(socketserver.StreamRequestHandler):
    """Answer each line with itself."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(b"you sent " + line)


def until_shown(terminal: int, text: bytes) -> bytes:
    """Return what a terminal shows up to a text."""
    seen = b""
    while text not in seen:
        assert select.select([terminal], [], [], SECONDS)[0], seen
        seen += os.read(terminal, 4096)
    return seen


def on_terminal(words: list[str], use: Callable[[int], None]) -> int:
    """Run kvref on its own terminal, and return its exit code."""
    process, terminal = pty.fork()
    if not process:
        environment = os.environ | {"TERM": "xterm", "INPUTRC": "/dev/null"}
        os.execve(sys.executable, [sys.executable, "-m", "kvref", *words], environment)
    ended = False
    try:
        use(terminal)
        _, status = os.waitpid(process, 0)
        ended = True
    finally:
        os.close(terminal)  # ends what still runs
        if not ended:
            os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize(("end", "code"), [(b"\x04", 0), (b"\x03", 130)])
def test_lines_are_edited_and_recalled(end: bytes, code: int) -> None:
    def use(terminal: int) -> None:
        until_shown(terminal, b"> ")
        os.write(terminal, b"ge a" + 2 * LEFT + b"t\r")
        until_shown(terminal, b"you sent get a\\r\\n\r\n> ")
        os.write(terminal, UP + b"b\r")
        until_shown(terminal, b"you sent get ab\\r\\n\r\n> ")
        os.write(terminal, end)
        # A signal that comes between the prompt and readline's wait for input is noticed with the next input alone.
        while code and not select.select([terminal], [], [], 1)[0]:
            os.write(terminal, end)
        until_shown(terminal, b"interrupted" if code else b"\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Repeat) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert on_terminal(["probe", f"127.0.0.1:{server.server_address[1]}"], use) == code
        finally:
            server.shutdown()
            thread.join()
