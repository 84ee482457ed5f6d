"""Generators of other projects, run to their end: memcaslap and sysbench, which pairs compare with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref.addresses import UNIX
from kvref_bench.errors import BenchError
from kvref_bench.workload.keys import table_keys
from kvref_testbed.targets.needs import tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.work import Keys
    from kvref_bench.sql.login import Login

KEY_LENGTH: Final = 17  # bytes of memcaslap's keys; 16 is the least that it makes
_CONFIGURATION: Final = "key\n{key} {key} 1\nvalue\n{value} {value} 1\ncmd\n0 {sets:g}\n1 {gets:g}\n"
_OPS: Final = re.compile(r"Ops: (?P<count>\d+) TPS: (?P<rate>\d+)")
_WRONG: Final = re.compile(r"(get_misses|verify_misses|verify_failed): [1-9]\d*|(SERVER|CLIENT)_ERROR[^\n]*")
_QUERIES: Final = re.compile(
    r"queries:\s+(?P<count>\d+)\s.*ignored errors:\s+(?P<errors>\d+)\s.*total time:\s+(?P<seconds>[\d.]+)s", re.DOTALL
)
_FATAL: Final = re.compile(r"^.*FATAL.*$", re.MULTILINE)


class Done(NamedTuple):
    """What one run did: operations, the seconds they took, CPU seconds of the process."""

    operations: int
    seconds: float
    cpu: float


def memcaslap(address: str, connections: int, gets: float, value: int, options: Sequence[str]) -> Done:
    """Run memcaslap of libmemcached-tools with one thread, every value verified.

    It generates its own keys, different ones at each start: its first set of each key is an insert, and its gets read
    keys that the same process has set.

    Args:
        address: HOST:PORT; memcaslap connects over TCP only.
        connections: 1 to 60000.
        gets: share of gets, 0 to 1; the others are sets.
        value: bytes of each value.
        options: further ones, at least how long (`-t 10s`, `-x 1000`).

    Raises:
        BenchError: it ended with an error, or met a value that is missing or wrong. MissingError: it is not installed.
    """
    if address.startswith(UNIX):
        raise BenchError(f"{address}: memcaslap connects over TCP only: give HOST:PORT")
    program = shutil.which("memaslap") or tool("memcaslap")  # Debian's name is the second
    with tempfile.NamedTemporaryFile("w+") as configuration:
        configuration.write(_CONFIGURATION.format(key=KEY_LENGTH, value=value, sets=1 - gets, gets=gets))
        configuration.flush()
        argv = [program, "-s", address, "-T", "1", "-c", str(connections), "-F", configuration.name, "-v", "1.0"]
        text, status, cpu = _run([*argv, *options])
    found = _OPS.search(text)
    if status or found is None:
        raise BenchError(f"memcaslap ended with {status}: {text[-300:]}")
    wrong = _WRONG.search(text)
    if wrong is not None:
        raise BenchError(f"memcaslap met {wrong[0]}: values are missing or wrong, if not for lack of memory")
    return Done(int(found["count"]), int(found["count"]) / float(found["rate"]), cpu)


def sysbench(login: Login, database: str, statement: str, keys: Keys, connections: int, seconds: float) -> Done:
    """Run prepared selects of sysbench, in C (libmariadb) with one thread for each connection.

    It sees that each select finds its one row; the bytes of a row are not shown to its scripts.

    Args:
        login: where the server is, its UNIX socket or its port.
        database: of the tables.
        statement: with one `?`, the key; prepared once on each connection.
        keys: text, all of which are in the table; uniformly drawn.
        connections: each with its own thread, 1 to 65536.
        seconds: of the selects, without the connecting; whole ones.

    Raises:
        BenchError: it ended with an error, or a select did not find its row. MissingError: it is not installed.
    """
    program = tool("sysbench")
    at = (f"--mysql-host={login.host}", f"--mysql-port={login.port}")
    place = (f"--mysql-socket={login.socket}",) if login.socket else at
    script = files("kvref_bench.load") / "scripts" / "select.lua"
    with as_file(script) as path, tempfile.NamedTemporaryFile("wb") as names:
        names.writelines(key + b"\n" for key in table_keys(keys))
        names.flush()
        argv = [
            program, str(path), "--db-driver=mysql", "--db-ps-mode=auto", *place, f"--mysql-user={login.user}",
            f"--mysql-password={login.password}", f"--mysql-db={database}", f"--threads={connections}",
            f"--time={max(1, round(seconds))}", "--events=0", "--percentile=0",
            f"--keys_file={names.name}", f"--keys_count={keys.count}", f"--key_length={keys.length}",
            f"--statement={statement}", "run",
        ]  # fmt: skip
        text, status, cpu = _run(argv)
    found = _QUERIES.search(text)
    if status or found is None:
        fatal = _FATAL.search(text)
        raise BenchError(f"sysbench ended with {status}: {fatal[0] if fatal else text[-300:]}")
    if int(found["errors"]):
        raise BenchError(f"sysbench met {found['errors']} errors: {text[-300:]}")
    return Done(int(found["count"]), float(found["seconds"]), cpu)


def _run(argv: Sequence[str]) -> tuple[str, int, float]:
    """Return output, exit code and CPU seconds of a program."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return output.read(), process.returncode, used.ru_utime + used.ru_stime
