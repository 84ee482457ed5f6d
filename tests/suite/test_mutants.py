"""The judge on trial: every broken server is failed by a case of the requirement that it breaks, and the whole one is not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MUTANTS = Path(__file__).with_name("mutants.py")
START_SECONDS = 20.0

# Mutant -> a requirement it breaks, and the chapter whose cases must say so.
BROKEN = {
    "forgets_the_switch": ("KV-MAP-002", "mapping"),
    "shares_the_binding": ("KV-MAP-028", "mapping"),
    "echoes_the_bare_key": ("KV-MAP-001", "mapping"),
    "takes_unknown_for_default": ("KV-MAP-010", "mapping_words"),
    "ignores_a_changed_delimiter": ("KV-DELIM-001", "delimiter"),
    "unbinds_at_a_failed_bind": ("KV-BIND-003", "bind"),
    "switches_once_in_a_get": ("KV-MGET-008", "multiget"),
    "stores_whatever_the_cas_number": ("KV-CORE-011", "storage"),
    "flushes_every_table": ("KV-FLUSH-002", "delete_flush"),
    "takes_default_for_an_alias": ("KV-DEF-004", "default_mapping"),
    "forgets_the_switch_of_a_silent_store": ("KV-SEQ-001", "machine"),
}

# The judge waits three seconds for each configuration that it never sees.
SELECTIONS = {"ignores_a_changed_delimiter": ("-k", "colon")}


@contextmanager
def serving(mutant: str, folder: Path) -> Iterator[list[str]]:
    """Serve a mutant from a fresh file; give the suite's options to reach it."""
    store, log = folder / "kvref.sqlite", folder / "log"
    command = [
        sys.executable,
        str(MUTANTS),
        mutant,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        f"sqlite:///{store}",
    ]
    with log.open("w") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        address = listening(process, log)
        yield [f"--endpoint={address}", f"--sql=sqlite:///{store}", f"--reload=kill -HUP {process.pid}"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


def listening(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that a server logs, as soon as it does."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text())
        if found:
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"the mutant did not start:\n{log.read_text()}")


def judge(options: list[str], chapter: str, folder: Path, *selection: str) -> tuple[int, set[str]]:
    """Run a chapter or a selection of it; return the exit code and the requirements that failed."""
    command = [sys.executable, "-m", "pytest", "--pyargs", f"kvref_conformance.cases.test_{chapter}", "-q", "--tb=no"]
    command += ["-p", "kvref_conformance.plugin", "-p", "no:cacheprovider", f"--report={folder}", *options, *selection]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    lines = map(json.loads, (folder / "report.jsonl").read_text().splitlines())
    return done.returncode, {name for line in lines if line.get("verdict") == "fails" for name in line["requirements"]}


@pytest.mark.parametrize("mutant", BROKEN)
def test_a_mutant_is_failed_by_the_requirement_it_breaks(mutant: str, tmp_path: Path) -> None:
    requirement, chapter = BROKEN[mutant]
    with serving(mutant, tmp_path) as options:
        code, failed = judge(options, chapter, tmp_path, *SELECTIONS.get(mutant, ()))
    assert code == 1
    assert requirement in failed


@pytest.mark.parametrize("chapter", sorted({chapter for _, chapter in BROKEN.values()}))
def test_the_unbroken_server_is_not_failed(chapter: str, tmp_path: Path) -> None:
    with serving("none", tmp_path) as options:
        assert judge(options, chapter, tmp_path) == (0, set())
