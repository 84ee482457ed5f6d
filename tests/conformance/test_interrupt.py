"""Ctrl-C in the middle of a run: the endpoint is configured as before, a partial report is there, exit code 130."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kvref_testbed import targets


def configuration(path: Path) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'kvc%'").fetchall()
        rows = connection.execute("SELECT * FROM containers ORDER BY name").fetchall()
        return [tables, rows, connection.execute("SELECT * FROM config_options ORDER BY name").fetchall()]
    finally:
        connection.close()


def test_an_interrupted_run_puts_the_configuration_back(tmp_path: Path) -> None:
    with targets.running("kvref-sqlite") as target:
        assert target.store is not None
        store = Path(target.store.removeprefix("sqlite:///"))
        before = configuration(store)
        command = [sys.executable, "-m", "kvref", "conform", target.address, f"--sql={target.store}"]
        command += [f"--reload=kill -HUP {target.pid}", "--examples=100000"]
        # A run started in the background inherits an ignored SIGINT; a person's Ctrl-C meets the default.
        interruptible = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=interruptible,  # noqa: PLW1509 - no other thread runs here
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("behind_sql:"):  # the machine is next and takes long
                break
        assert configuration(store) != before
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
        assert process.wait(timeout=60) == 130
        process.stdout.close()
        assert "interrupted; the endpoint is configured as before" in output
        report = list(map(json.loads, (tmp_path / "kvref-report" / "report.jsonl").read_text().splitlines()))
        verdicts = {each["case"]: each for each in report if each["kind"] == "verdict"}
        assert verdicts["set-new"]["verdict"] == "holds"
        rest = [each for each in verdicts.values() if each["reason"] == "the run was interrupted"]
        assert {each["verdict"] for each in rest} == {"not-run"}
        assert f"{len(rest)} not-run: the run was interrupted" in output
        assert configuration(store) == before
