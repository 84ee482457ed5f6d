"""The starter kit drives a real server: the judge reloads and restarts it with the kit's own scripts."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.commands import kvref
from helpers.waiting import until

from kvref_testbed.targets.ports import free_port

pytestmark = pytest.mark.nightly

SERVER = """#!/bin/sh
echo $$ > server.pid
set -- "$1" $(shift; for setting; do printf ' --set %s' "$setting"; done)
store=$1
shift
exec "$PYTHON" -m kvref serve --store "sqlite:///$PWD/$store" --listen "127.0.0.1:$PORT" "$@"
"""


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, int]]:
    """Yield the folder of a kit whose server is kvref, and the port; the server is started by `restart.sh`."""
    folder, port = tmp_path / "kit", free_port()
    assert kvref("implement", folder).returncode == 0
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("PORT", str(port))
    (folder / "server").write_text(SERVER)
    (folder / "server").chmod(0o755)
    store = sqlite3.connect(folder / "data.db")
    store.executescript((folder / "schema/sqlite.sql").read_text())
    store.close()
    subprocess.run([folder / "restart.sh"], check=True, timeout=60)
    until(lambda: accepts(port))
    yield folder, port
    os.kill(int((folder / "server.pid").read_text()), signal.SIGTERM)


def test_a_server_is_judged_with_the_scripts_of_the_kit(kit: tuple[Path, int]) -> None:
    folder, port = kit
    scripts = ["--reload", str(folder / "reload.sh"), "--restart", str(folder / "restart.sh")]
    cases = ["KV-LIFE-003", "KV-BATCH-003"]
    only = [word for name in cases for word in ("--only", name)]
    words = [
        f"127.0.0.1:{port}",
        "--sql",
        f"sqlite:///{folder / 'data.db'}",
        "--allow-destructive",
        "--profile",
        "kvref",
    ]
    judged = kvref("conform", *words, *scripts, *only, "--report", folder / "report", timeout=120)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    lines = map(json.loads, (folder / "report" / "report.jsonl").read_text(encoding="utf-8").splitlines())
    verdicts = Counter(each["verdict"] for each in lines if set(each.get("requirements", ())) & set(cases))
    assert verdicts.keys() == {"holds"}
    assert verdicts["holds"] >= len(cases)


def test_the_script_for_reloads_returns_once_the_reload_is_over(kit: tuple[Path, int]) -> None:
    folder, _ = kit

    def reload() -> int:
        return subprocess.run([folder / "reload.sh"], check=False, timeout=60).returncode

    log = folder / "server.log"
    assert reload() == 0
    assert log.read_text().count("configuration reloaded") == 1
    store = sqlite3.connect(folder / "data.db")
    with store:
        store.execute("ALTER TABLE containers RENAME TO hidden")
    assert reload() == 3
    assert log.read_text().count("configuration not reloaded") == 1
    with store:
        store.execute("ALTER TABLE hidden RENAME TO containers")
    store.close()
    assert reload() == 0
    (folder / "server.log").write_text("")  # a server that does not log
    pid = (folder / "server.pid").read_text()
    sleeper = subprocess.Popen(["sh", "-c", "trap '' HUP; exec sleep 60"])
    try:
        (folder / "server.pid").write_text(str(sleeper.pid))
        assert reload() == 1
    finally:
        (folder / "server.pid").write_text(pid)
        sleeper.kill()
        sleeper.wait()
