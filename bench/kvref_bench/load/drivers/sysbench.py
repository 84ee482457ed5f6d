"""sysbench, run to its end: prepared selects over many connections, in C (libmariadb) with one thread for each.

It sees that each select finds its one row; the bytes of a row are not shown to its scripts.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref_bench.errors import BenchError
from kvref_bench.peers.rows import DATABASE
from kvref_bench.workload.keys import table_keys
from kvref_testbed.targets.needs import tool

if TYPE_CHECKING:
    from kvref_bench.load.work import Keys
    from kvref_bench.sql.login import Login

_SCRIPTS: Final = files("kvref_bench.load.drivers") / "scripts"
_QUERIES: Final = re.compile(r"queries:\s+(\d+)\s")
_ERRORS: Final = re.compile(r"ignored errors:\s+(\d+)\s")
_SECONDS: Final = re.compile(r"total time:\s+([\d.]+)s")


class Done(NamedTuple):
    """What one run did: selects, the seconds they took, CPU seconds of the process."""

    operations: int
    seconds: float
    cpu: float


def select(login: Login, statement: str, keys: Keys, connections: int, seconds: float) -> Done:
    """Run a select over and over, prepared once on each connection.

    Args:
        login: where the server is, its UNIX socket or its port.
        statement: with one `?`, the key; tables are those of the database `kvref_bench`.
        keys: text, all of which are in the table; uniformly drawn.
        connections: each with a thread of its own, 1 to 65536.
        seconds: of the selects, without the connecting; whole ones.

    Raises:
        BenchError: it ended with an error, or a select did not find its row. MissingError: it is not installed.
    """
    program = tool("sysbench")
    place = (
        [f"--mysql-socket={login.socket}"]
        if login.socket
        else [f"--mysql-host={login.host}", f"--mysql-port={login.port}"]
    )
    with (
        as_file(_SCRIPTS / "select.lua") as script,
        tempfile.NamedTemporaryFile("wb") as names,
        tempfile.TemporaryFile("w+") as output,
    ):
        names.writelines(key + b"\n" for key in table_keys(keys))
        names.flush()
        argv = [
            program, str(script), "--db-driver=mysql", "--db-ps-mode=auto", *place, f"--mysql-user={login.user}",
            f"--mysql-password={login.password}", f"--mysql-db={DATABASE}", f"--threads={connections}",
            f"--time={max(1, round(seconds))}", "--events=0", "--percentile=0",
            f"--keys_file={names.name}", f"--keys_count={keys.count}", f"--key_length={keys.length}",
            f"--statement={statement}", "run",
        ]  # fmt: skip
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return _read(output.read(), process.returncode, used.ru_utime + used.ru_stime)


def _read(text: str, status: int, cpu: float) -> Done:
    queries, errors, seconds = (each.search(text) for each in (_QUERIES, _ERRORS, _SECONDS))
    if status or queries is None or errors is None or seconds is None:
        fatal = next((line for line in text.splitlines() if "FATAL" in line), text[-300:])
        raise BenchError(f"sysbench ended with {status}: {fatal}")
    if int(errors[1]):
        raise BenchError(f"sysbench met {errors[1]} errors: {text[-300:]}")
    return Done(int(queries[1]), float(seconds[1]), cpu)
