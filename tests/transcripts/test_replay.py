"""`kvref replay` from outside: exit codes, what it prints, and the recordings themselves, on kvref and on the plugins."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import kvref
from helpers.live import missing_skips, target_or_skip

from kvref_testbed import targets

PLUGINS = ("mysql-8.0-plugin", "mysql-5.6-plugin")
Run = Callable[..., subprocess.CompletedProcess[str]]

CONVERSATION: dict[str, Any] = {
    "id": "try-001",
    "group": "try",
    "title": "a value and its row",
    "sql": ["INSERT INTO test.demo_test VALUES ('k','v',1,0,0)"],
    "steps": [
        {"send": {"on": "a", "packets": ["get k\r\n"]}, "got": {"8.0.33": "VALUE k 1 1\r\nv\r\nEND\r\n"}},
        {"send": {"on": "a", "packets": ["set k 2 0 1\r\nw\r\n"]}, "got": {"8.0.33": "STORED\r\n"}},
        {"sql": {"on": "s", "statement": "SELECT c1, c2, c4 FROM test.demo_test WHERE c1='K'"}, "got": {"8.0.33": {"rows": [["k", "w", {"cas": 1}]]}}},
    ],
}  # fmt: skip


@pytest.fixture
def replay(tmp_path: Path) -> Run:
    """Return a function that runs `kvref replay` in an empty directory."""

    def run(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return kvref("replay", *arguments, folder=tmp_path, timeout=timeout)

    return run


def file_of(tmp_path: Path, *conversations: dict[str, Any]) -> str:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in conversations))
    return str(path)


def changed(**fields: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(CONVERSATION)), **fields}


def test_conversation_that_goes_as_recorded(replay: Run, tmp_path: Path) -> None:
    done = replay(file_of(tmp_path, CONVERSATION), "--profile", "mysql-8.0", "--json", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8.0.33: 1 same" in done.stdout
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["totals"] == {"same": 1}
    assert written["conversations"][0]["conversation"] == "mine:try-001"


def test_difference_is_printed_as_a_numbered_conversation(replay: Run, tmp_path: Path) -> None:
    wrong = changed()
    wrong["steps"][1]["got"] = {"8.0.33": "NOT_STORED\r\n"}
    done = replay(file_of(tmp_path, wrong, changed(id="try-002")), "--profile", "mysql-8.0", "--json", "out.json")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "mine:try-001 (8.0.33): a value and its row\n"
        "  1  a> get k\\r\\n\n"
        "       < VALUE k 1 1\\r\\nv\\r\\nEND\\r\\n\n"
        "  2  a> set k 2 0 1\\r\\nw\\r\\n\n"
        "       recorded  NOT_STORED\\r\\n\n"
        "       observed  STORED\\r\\n\n"
    )
    assert "8.0.33: 1 same, 1 differs" in done.stdout
    (row, _) = json.loads((tmp_path / "out.json").read_text())["conversations"]
    assert row["differences"] == [{"step": 2, "recorded": "NOT_STORED\r\n", "observed": "STORED\r\n"}]


def test_refused_configuration_is_a_closed_port_and_a_fresh_start_refuses_it_too(replay: Run, tmp_path: Path) -> None:
    closed = changed(sql=["DELETE FROM innodb_memcache.containers"], port={"8.0.33": "closed"})
    closed["steps"] = [
        {"send": {"on": "a", "packets": ["get k\r\n"]}, "got": {"8.0.33": "<ConnectionRefusedError>"}},
        {"restart": {"how": "restart"}, "got": {"8.0.33": "closed"}},
        {"sql": {"on": "s", "statement": "INSERT INTO innodb_memcache.containers VALUES ('a','test','demo_test','c1','c2','c3','c4','c5','PRIMARY')"}},
        {"restart": {"how": "restart"}, "got": {"8.0.33": "open"}},
        {"send": {"on": "a", "packets": ["get AA\r\n"]}, "got": {"8.0.33": "VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"}},
    ]  # fmt: skip
    done = replay(file_of(tmp_path, closed, CONVERSATION | {"id": "try-002"}), "--profile", "mysql-8.0")
    assert done.returncode == 0, done.stdout


def test_kill_and_reload(replay: Run, tmp_path: Path) -> None:
    ended = changed()
    ended["steps"] += [
        {"restart": {"how": "kill9"}, "got": {"8.0.33": "open"}},
        {"send": {"on": "b", "packets": ["get k\r\n"]}, "got": {"8.0.33": "VALUE k 2 1\r\nw\r\nEND\r\n"}},
        {"restart": {"how": "reload"}, "got": {"8.0.33": "open"}},
        {"send": {"on": "c", "packets": ["get k\r\n"]}, "got": {"8.0.33": "VALUE k 2 1\r\nw\r\nEND\r\n"}},
    ]
    done = replay(file_of(tmp_path, ended), "--profile", "mysql-8.0")
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("order", [("map-001", "map-003"), ("map-003", "map-001")])
def test_each_only_selects(replay: Run, order: tuple[str, str]) -> None:
    done = replay("--profile", "mysql-8.0", *(word for name in order for word in ("--only", name)))
    assert "8.0.33: 2 same" in done.stdout, done.stdout


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_every_recording_replays_or_is_listed(replay: Run, tmp_path: Path) -> None:
    """Both plugin versions, every set; what is listed and replays after all fails too."""
    runs = list(product(("mysql-8.0", "mysql-5.6"), (("tx",), ("core", "columns", "binary"), ("more",))))

    def part(number: int) -> subprocess.CompletedProcess[str]:
        profile, names = runs[number]
        sets = [word for name in names for word in ("--set", name)]
        return replay("--profile", profile, *sets, "--json", f"{number}.json", timeout=1150)

    totals: Counter[str] = Counter()
    # Most of a replay is waiting for what does not come.
    with ThreadPoolExecutor(len(runs)) as pool:
        for number, done in enumerate(pool.map(part, range(len(runs)))):
            assert done.returncode == 0, done.stdout
            totals.update(json.loads((tmp_path / f"{number}.json").read_text())["totals"])
    assert totals.keys() == {"same", "listed"}
    assert totals["same"] > 1500


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_samples_replay_on_the_live_plugins(replay: Run) -> None:
    def sample(target: str) -> subprocess.CompletedProcess[str]:
        return replay("--target", target, "--sample", "--set", "core", "--set", "columns", timeout=580)

    for target in PLUGINS:
        with missing_skips(), targets.running(target):
            pass  # what the machine lacks is a reason to skip
    # Most of a replay is waiting for a server.
    with ThreadPoolExecutor(len(PLUGINS)) as pool:
        for done in pool.map(sample, PLUGINS):
            assert done.returncode == 0, done.stdout


@pytest.mark.nightly
@pytest.mark.live
def test_conversation_replays_on_a_plugin_that_somebody_else_runs(replay: Run, tmp_path: Path) -> None:
    with target_or_skip("mysql-8.0-plugin") as target:
        assert target.sql is not None
        done = replay(file_of(tmp_path, CONVERSATION), target.address, "--sql", target.sql, "--allow-destructive")
    assert done.returncode == 0, done.stdout + done.stderr
