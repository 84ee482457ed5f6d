"""libmemcached's own tester: what memcached passes, kvref passes; what it does not pass is listed with the reason."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from helpers.live import nightly
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
            output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            cases = CASE.findall(output.stdout)
            assert len(cases) == CASES, output.stdout + output.stderr
            failed |= {case for case, passed in cases if not passed}
    return failed


@pytest.mark.parametrize("name", [nightly(each) if each.endswith("plugin") else each for each in LISTED])
def test_memccapable(name: str) -> None:
    assert sorted(failures(name)) == sorted(case for cases in LISTED[name].values() for case in cases)
