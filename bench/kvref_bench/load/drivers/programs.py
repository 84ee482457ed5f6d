"""Clients in other languages: each session is a process, a script of `scripts` that gets one key after the other.

A script gets as arguments HOST:PORT, the key that switches to the mapping (or nothing), warm-up and measured seconds,
the number of gets (0: until the time is over) and a file of keys and values, `key<TAB>value` in each line. It connects,
prints `ready`, and begins with the first line that it reads. It prints `began` when the warm-up is over, then for each
second `{"second": 0, "hit": {"BIN": COUNT}, "miss": {…}, "error": {…}}` with the bins of `load.histogram`, and after
the time, the last get or SIGTERM

    {"seconds": …, "cpu": …, "user": …, "system": …, "errors": …, "unexpected": [[KEY, ANSWER], …]}

where `cpu` is exact and `user` and `system` may count in hundredths. Then it waits until its input ends, so that its
memory and its context switches can be read. What a script does around a get (reads the clock twice, counts) is in its
CPU time.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import psutil

from kvref.addresses import UNIX
from kvref_bench.errors import BenchError
from kvref_bench.load.drivers.meter import KINDS, Measured
from kvref_bench.load.recorder import UNEXPECTED
from kvref_bench.load.result import Cell, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from kvref_bench.load.drivers.meter import Pair, Pools, Window
    from kvref_bench.load.work import Task

_SCRIPTS: Final = files("kvref_bench.load.drivers") / "scripts"
_READY_SECONDS: Final = 60.0


@contextmanager
def perl(module: str, package: str) -> Iterator[list[str]]:
    """Yield the command of the script in Perl with one of its clients.

    module: `Cache::Memcached` or `Cache::Memcached::Fast`. package: of Debian, that has it.

    Raises:
        BenchError: it is not installed.
    """
    program = shutil.which("perl")
    if program is None or subprocess.run([program, f"-M{module}", "-e1"], capture_output=True, check=False).returncode:
        raise BenchError(f"there is no Perl with {module}: install {package} (its name in Debian)")
    with as_file(_SCRIPTS / "gets.pl") as script:
        yield [program, str(script), module]


@contextmanager
def libmemcached() -> Iterator[list[str]]:
    """Yield the command of the script in C, compiled.

    Raises:
        BenchError: there is no compiler or no libmemcached.
    """
    compiler = shutil.which("cc")
    with tempfile.TemporaryDirectory() as folder, as_file(_SCRIPTS / "gets.c") as source:
        program = str(Path(folder) / "gets")
        argv = [compiler or "cc", "-O2", "-o", program, str(source), "-l:libmemcached.so.11"]
        built = None if compiler is None else subprocess.run(argv, capture_output=True, text=True, check=False)
        if built is None or built.returncode:
            cause = "there is no cc" if built is None else built.stderr.strip()[-200:]
            raise BenchError(f"no client of libmemcached: {cause}: install gcc, libc6-dev and libmemcached11 (Debian)")
        yield [program]


def run(
    task: Task, word: str | None, pools: Pools, window: Window, opening: Callable[[], AbstractContextManager[list[str]]]
) -> Measured:
    """Measure one worker's sessions.

    word: as of `blocking.pymemcache`. pools: of each session. window: of the point. opening: gives the command.
    """
    with ExitStack() as stack:
        command = stack.enter_context(opening())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sessions = [
            stack.enter_context(_Session(task, command, word, pool, folder / str(number)))
            for number, pool in enumerate(pools)
        ]
        for each in sessions:
            each.wait_until_ready()
        time.sleep(window.ready())
        window.start()
        for each in sessions:
            each.go()
        measured = Measured(window.wall, 0.0, Usage())
        _listen(sessions, window, measured)
        window.flush()
        measured.stopped = window.stopped or measured.stopped
        return measured


def _listen(sessions: Sequence[_Session], window: Window, measured: Measured) -> None:
    with selectors.DefaultSelector() as selector:
        for each in sessions:
            selector.register(each.output, selectors.EVENT_READ, each)
        asked = False
        while selector.get_map():
            for key, _ in selector.select(window.pause):
                session: _Session = key.data
                if not session.hear(window, measured):
                    selector.unregister(session.output)
            if window.over() and not asked:
                asked = True
                for each in sessions:
                    each.ask_to_end()


class _Session:
    """One process; a context manager that ends it."""

    def __init__(self, task: Task, command: Sequence[str], word: str | None, pool: Sequence[Pair], path: Path) -> None:
        path.write_bytes(b"".join(b"%s\t%s\n" % (key.encode(), value) for key, value in pool))
        if task.address.startswith(UNIX):
            raise BenchError(f"{task.address}: driver {task.work.driver} connects over TCP only: give HOST:PORT")
        clock, operations = task.clock, task.work.operations
        warmup = 0.0 if operations is not None else clock.warmup
        self._argv = [
            *command, task.address, word or "", str(warmup), str(clock.measure), str(operations or 0), str(path)
        ]  # fmt: skip
        self._rest = b""
        self._before: tuple[int, int] = (0, 0)

    def __enter__(self) -> _Session:
        self._errors = cast("IO[bytes]", tempfile.TemporaryFile())
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._input.close()
        self.output.close()
        self._errors.close()

    def wait_until_ready(self) -> None:
        """Wait until it is connected. Raises BenchError when it ends instead."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            heard = b""
            while not heard.endswith(b"ready\n"):
                data = os.read(self.output.fileno(), 4096) if selector.select(_READY_SECONDS) else b""
                heard += data
                if not data:
                    raise BenchError(f"{self._argv[0]} did not begin: {self._words()}")

    def go(self) -> None:
        """Let it begin."""
        with suppress(BrokenPipeError):  # it ended: `hear` will tell
            self._input.write(b"go\n")

    def ask_to_end(self) -> None:
        """Let it end with the answer to its last get."""
        self._process.send_signal(signal.SIGTERM)

    def hear(self, window: Window, measured: Measured) -> bool:
        """Take what it says; False when that was all."""
        data = os.read(self.output.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == b"began":
                self._before = self._switches()
                continue
            message = json.loads(line)
            if "second" in message:
                _count(message, window, measured)
            else:
                self._end(message, measured)
                return False
        if not data:
            measured.stopped = f"a session ended: {self._words()}"
        return bool(data)

    def _end(self, message: dict[str, Any], measured: Measured) -> None:
        now, usage = self._switches(), measured.usage
        # Where both are zero the clock of hundredths has not moved.
        share = message["user"] / ((message["user"] + message["system"]) or 1.0)
        usage.user += message["cpu"] * share
        usage.system += message["cpu"] * (1 - share)
        usage.rss += psutil.Process(self._process.pid).memory_info().rss
        usage.voluntary += now[0] - self._before[0]
        usage.involuntary += now[1] - self._before[1]
        measured.seconds = max(measured.seconds, message["seconds"])
        measured.errors += message["errors"]
        unexpected = [(key.encode(), answer.encode()) for key, answer in message["unexpected"]]
        measured.unexpected += unexpected[: UNEXPECTED - len(measured.unexpected)]

    def _switches(self) -> tuple[int, int]:
        switches = psutil.Process(self._process.pid).num_ctx_switches()
        return switches.voluntary, switches.involuntary

    def _words(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-300:].decode(errors="backslashreplace").strip() or "without a word"


def _count(message: dict[str, Any], window: Window, measured: Measured) -> None:
    second = message["second"]
    together: dict[int, int] = {}
    for kind in KINDS:
        for place, count in message.get(kind.outcome, {}).items():
            kept = measured.histograms.setdefault(Cell(second, kind, "service"), {})
            kept[int(place)] = kept.get(int(place), 0) + count
            together[int(place)] = together.get(int(place), 0) + count
    if together:
        window.tell(second, together)
