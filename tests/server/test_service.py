"""kvref as a service of systemd: passed sockets, notifications, the unit files."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from helpers.http_client import fetch, wait_for_health
from helpers.live import missing_skips
from helpers.serving import Served, ask, command, running, serving
from helpers.waiting import until_listening

import kvref
from kvref_testbed import targets

UNITS = Path(kvref.__file__).parent / "server" / "systemd"
EACH = pytest.mark.parametrize("workers", ["1", "2"])
# What a service manager does in the process that becomes the service: descriptors from 3 on, and its own pid.
BECOME = """
import os, sys
descriptors, names, words = sys.argv[1].split(","), sys.argv[2], sys.argv[3:]
for number, each in enumerate(descriptors, 3):
    os.dup2(int(each), number)
os.environ.update(LISTEN_PID=os.environ.get("TEST_PID", str(os.getpid())), LISTEN_FDS=str(len(descriptors)), LISTEN_FDNAMES=names)
os.execv(words[0], words)
"""


def tool(name: str) -> str:
    """Return a program of Debian's systemd, or skip."""
    found = shutil.which(name)
    with missing_skips():
        if found is None:
            raise targets.MissingError(f"{name!r} is not installed: apt-get install systemd")
    assert found is not None
    return found


@contextmanager
def listening(number: int) -> Iterator[list[socket.socket]]:
    """Listen on some ports, with descriptors that do not conflict with others."""
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        for each in made:
            high = os.dup2(each.fileno(), 100 + each.fileno())
            stack.enter_context(socket.socket(fileno=high))
        yield made


@contextmanager
def activated(
    store: Path, passed: list[socket.socket], names: str, *options: str, **environment: str
) -> Iterator[Served]:
    """Serve on sockets that are passed as a service manager passes them."""
    high = [100 + each.fileno() for each in passed]
    words = [sys.executable, "-c", BECOME, ",".join(map(str, high)), names, *command(store), *options]
    with running(words, store, os.environ | environment, high) as served:
        yield served


@EACH
def test_passed_sockets_are_served(tmp_path: Path, workers: str) -> None:
    with listening(3) as sockets:
        ports = [each.getsockname()[1] for each in sockets]
        with activated(tmp_path / "s.sqlite", sockets, "one:metrics:two", "--workers", workers) as served:
            wait_for_health(served, 200, "ok")
            for port in (ports[0], ports[2]):
                served.wait_for(f"listening on 127.0.0.1:{port}")
                with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                    assert ask(client, b"get AA\r\n").startswith(b"VALUE")
            served.wait_for(f"metrics on http://127.0.0.1:{ports[1]}/")
            assert fetch(served, "/metrics")[0] == 200
        # The manager's sockets stay open, and wait for the next start.
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=60) as waiting:
            waiting.sendall(b"get AA\r\nquit\r\n")
            with activated(tmp_path / "s.sqlite", sockets[:1], ""):
                assert waiting.recv(100).startswith(b"VALUE")


def test_a_socket_of_the_file_system(tmp_path: Path) -> None:
    path = tmp_path / "kvref.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        high = os.dup2(listener.fileno(), 100 + listener.fileno())
        words = [
            sys.executable,
            "-c",
            BECOME,
            str(high),
            "",
            *command(tmp_path / "s.sqlite"),
            "--metrics",
            "127.0.0.1:0",
        ]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, pass_fds=[high])
        os.close(high)
        assert process.stderr is not None
        while (line := process.stderr.readline()) and f"listening on unix:{path}" not in line:
            pass
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        process.terminate()
        assert process.wait(timeout=60) == 0
        process.stderr.close()


@pytest.mark.parametrize(
    ("options", "environment", "output"),
    [
        (["--listen", "127.0.0.1:0"], {}, "systemd passed sockets: remove --listen"),
        ([], {"TEST_FDS": "x"}, "LISTEN_FDS='x': expected a number of file descriptors"),
        ([], {"TEST_KIND": "datagram"}, "descriptor 3 (db) from the service manager is not a listening stream socket"),
        ([], {"TEST_KIND": "file"}, "descriptor 3 (db) from the service manager: Socket operation on non-socket"),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, options: list[str], environment: dict[str, str], output: str) -> None:
    with ExitStack() as stack:
        kinds = {
            "datagram": lambda: stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)).fileno(),
            "file": lambda: stack.enter_context(open(os.devnull)).fileno(),  # noqa: PTH123
            "": lambda: stack.enter_context(socket.create_server(("127.0.0.1", 0))).fileno(),
        }
        descriptor = kinds[environment.get("TEST_KIND", "")]()
        become = BECOME.replace("str(len(descriptors))", 'os.environ.get("TEST_FDS", "1")')
        high = os.dup2(descriptor, 100 + descriptor)
        stack.callback(os.close, high)
        words = [sys.executable, "-c", become, str(high), "db", *command(tmp_path / "s.sqlite"), *options]
        ended = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=os.environ | environment,
            pass_fds=[high],
        )
    assert (ended.returncode, output in ended.stderr, "Traceback" in ended.stderr) == (2, True, False), ended.stderr


def test_sockets_of_another_process_are_left_alone(tmp_path: Path) -> None:
    with listening(1) as sockets:
        port = sockets[0].getsockname()[1]
        with activated(tmp_path / "s.sqlite", sockets, "", "--listen", "127.0.0.1:0", TEST_PID="1") as served:
            assert served.port != port


def test_systemd_socket_activate(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [tool("systemd-socket-activate"), "-l", f"127.0.0.1:{port}", *command(tmp_path / "s.sqlite")]
    # It starts the server with the first connection, whose bytes wait meanwhile.
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        with until_listening(("127.0.0.1", port)) as client:
            assert ask(client, b"set k 0 0 1\r\n1\r\nget k\r\n") == b"STORED\r\nVALUE k 0 1\r\n1\r\nEND\r\n"
    finally:
        process.terminate()
    assert process.wait(timeout=60) == 0


@EACH
@pytest.mark.parametrize("place", ["path", "abstract"])
def test_the_service_manager_is_reported(tmp_path: Path, workers: str, place: str) -> None:
    abstract = place == "abstract"
    path = f"@kvref-{os.getpid()}-{workers}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{path[1:]}" if abstract else path)
        manager.settimeout(10)
        words = [*command(tmp_path / "s.sqlite"), "--listen", "127.0.0.1:0", "--workers", workers]
        with running(words, tmp_path, os.environ | {"NOTIFY_SOCKET": path}) as served:
            assert manager.recv(100) == b"READY=1"
            before = time.monotonic_ns() // 1000
            served.reload()
            reported = re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=(\d+)", manager.recv(100))
            assert reported is not None
            assert before <= int(reported[1]) <= time.monotonic_ns() // 1000
            assert manager.recv(100) == b"READY=1"
            served.process.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            manager.recv(100)


def test_a_service_manager_that_is_gone_is_no_reason_to_stop(tmp_path: Path) -> None:
    words = [*command(tmp_path / "s.sqlite"), "--listen", "127.0.0.1:0"]
    with running(words, tmp_path, os.environ | {"NOTIFY_SOCKET": str(tmp_path / "none")}) as served:
        served.wait_for("cannot notify the service manager at NOTIFY_SOCKET")
        with served.connect() as client:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")


def test_the_unit_files(tmp_path: Path) -> None:
    verify = tool("systemd-analyze")
    for unit in UNITS.iterdir():
        # Only the program is somewhere else here.
        text = unit.read_text().replace("/opt/kvref/bin/kvref", sys.executable)
        (tmp_path / unit.name).write_text(text)
    output = subprocess.run(
        [verify, "verify", *(tmp_path / unit.name for unit in UNITS.iterdir())],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (output.returncode, output.stderr) == (0, "")
    # What the service starts is a command that there is.
    words = re.search(r"^ExecStart=/opt/kvref/bin/kvref (.+)$", (UNITS / "kvref.service").read_text(), re.MULTILINE)
    assert words is not None
    store = re.search(r"--store (\S+)", words[1].replace("%S", str(tmp_path)))
    assert store is not None
    (tmp_path / "kvref").mkdir()
    with serving(store[1]):
        assert (tmp_path / "kvref" / "kvref.sqlite").exists()
