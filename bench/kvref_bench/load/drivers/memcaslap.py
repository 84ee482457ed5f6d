"""memcaslap of libmemcached-tools, run to its end: a client in C that verifies what it reads.

It generates its own keys, different ones at each start: its first set of each key is an insert, and its gets read keys
that the same process has set.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref.addresses import UNIX
from kvref_bench.errors import BenchError
from kvref_testbed.targets.needs import tool

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY_LENGTH: Final = 17  # bytes; 16 is the least that it makes
_CONFIGURATION: Final = "key\n{key} {key} 1\nvalue\n{value} {value} 1\ncmd\n0 {sets:g}\n1 {gets:g}\n"
_DONE: Final = re.compile(r"Ops: (\d+) TPS: (\d+)")
_WRONG: Final = re.compile(r"(get_misses|verify_misses|verify_failed): [1-9]\d*|(SERVER|CLIENT)_ERROR[^\n]*")


class Done(NamedTuple):
    """What one run did: operations, operations a second, CPU seconds of its process."""

    operations: int
    per_second: float
    cpu: float


def run(address: str, connections: int, gets: float, value: int, options: Sequence[str]) -> Done:
    """Run it with one thread, every value verified.

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
    with tempfile.NamedTemporaryFile("w+") as configuration, tempfile.TemporaryFile("w+") as output:
        configuration.write(_CONFIGURATION.format(key=KEY_LENGTH, value=value, sets=1 - gets, gets=gets))
        configuration.flush()
        argv = [program, "-s", address, "-T", "1", "-c", str(connections), "-F", configuration.name, "-v", "1.0"]
        process = subprocess.Popen([*argv, *options], stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    found = _DONE.search(text)
    if process.returncode or found is None:
        raise BenchError(f"memcaslap ended with {process.returncode}: {text[-300:]}")
    wrong = _WRONG.search(text)
    if wrong is not None:
        raise BenchError(f"memcaslap met {wrong[0]}: values are missing or wrong, if not for lack of memory")
    return Done(int(found[1]), float(found[2]), used.ru_utime + used.ru_stime)
