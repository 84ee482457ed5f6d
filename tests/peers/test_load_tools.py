"""memcslap and memcaslap run to their end, in both protocols, and every byte they read is what they wrote."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest
from peers.tools import keeps_bytes, tool

from kvref import collations
from kvref_testbed.targets import Target

pytestmark = pytest.mark.live
OPERATIONS = 2000
# Its errors are counted, or printed among its lines, and its exit code is 0 either way.
COUNTERS = re.compile(r"^(\w+): (\d+)$", re.MULTILINE)
WRONG = ("get_misses", "verify_misses", "verify_failed", "expired_get", "unexpired_unget")


@pytest.fixture(scope="module")
def kvref() -> Iterator[Target]:
    with keeps_bytes() as target:
        yield target


def rows(target: Target) -> tuple[int, int, int]:
    """Return how many rows SQL sees, and their shortest and longest value."""
    assert target.store is not None
    with closing(sqlite3.connect(target.store.removeprefix("sqlite:///"))) as file:
        collations.register(file)
        found: tuple[int, int, int] = file.execute(
            "SELECT COUNT(*), MIN(LENGTH(v)), MAX(LENGTH(v)) FROM anything"
        ).fetchone()
        file.execute("DELETE FROM anything")
        file.commit()
    return found


@pytest.mark.parametrize("protocol", [[], ["--binary"]], ids=["text", "binary"])
@pytest.mark.parametrize("kind", ["set", "get", "mget"])
def test_memcslap(kvref: Target, kind: str, protocol: list[str]) -> None:
    command = [
        tool("memcslap"),
        f"--servers={kvref.address}",
        "--concurrency=2",
        "--execute-number=300",
        f"--test={kind}",
        *protocol,
    ]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (output.returncode, output.stderr) == (0, "")
    assert re.search(rf"^Time to {kind} +600 keys by +2 threads:", output.stdout, re.MULTILINE), output.stdout
    assert rows(kvref)[0] == 300


@pytest.mark.parametrize("protocol", [[], ["-B"]], ids=["text", "binary"])
@pytest.mark.parametrize(
    "more", [["-v", "1"], ["-v", "0.2", "-d", "10"], ["-v", "0.5", "-e", "0.3"]], ids=["", "mget", "expiry"]
)
def test_memcaslap(kvref: Target, more: list[str], protocol: list[str]) -> None:
    # One in ten writes (-o overwrites, and then counts verify_failed against memcached too).
    command = [
        tool("memcaslap"),
        "-s",
        kvref.memcached(),
        "-T",
        "1",
        "-c",
        "4",
        "-x",
        str(OPERATIONS),
        "-b",
        *more,
        *protocol,
    ]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    counted = {name: int(number) for name, number in COUNTERS.findall(output.stdout)}
    assert (output.returncode, output.stderr) == (0, "")
    assert "ERROR" not in output.stdout, output.stdout
    assert (counted["cmd_get"], counted["cmd_set"]) == (OPERATIONS * 9 // 10, OPERATIONS // 10)
    assert {name: counted[name] for name in WRONG if name in counted} == dict.fromkeys(set(WRONG) & counted.keys(), 0)
    assert rows(kvref) == (OPERATIONS // 10, 1024, 1024)
