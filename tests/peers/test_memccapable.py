"""libmemcached's own tester: what memcached passes, kvref passes; what it does not pass is listed with the reason."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from peers.tools import server, tool

pytestmark = pytest.mark.live
CASES = 27  # of each protocol
LISTED: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("memccapable.toml").read_text())
# A name is padded to forty characters; what follows is its verdict, or the next name where it failed.
CASE = re.compile(r"((?:ascii|binary)(?: [a-z]+)+) {2,}(\[pass\])?")


def failures(name: str) -> set[str]:
    """Return the cases of both protocols that a server does not pass."""
    failed = set()
    with server(name) as target:
        for protocol in ("-a", "-b"):
            command = [tool("memccapable"), "-h", target.host, "-p", str(target.port), "-t", "10", protocol]
            said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            cases = CASE.findall(said.stdout)
            assert len(cases) == CASES, said.stdout + said.stderr
            failed |= {case for case, passed in cases if not passed}
    return failed


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Future[set[str]]]]:
    # The tester sleeps most of its time.
    with ThreadPoolExecutor(len(LISTED)) as pool:
        yield {name: pool.submit(failures, name) for name in LISTED}


@pytest.mark.parametrize("name", LISTED)
def test_memccapable(name: str, found: dict[str, Future[set[str]]]) -> None:
    assert sorted(found[name].result()) == sorted(case for cases in LISTED[name].values() for case in cases)
