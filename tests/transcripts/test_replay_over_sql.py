"""Recordings of the plugin on kvref over InnoDB of live servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.live import MYSQL_8, sql_server_or_skip

from kvref.cli import main

# Of each group, and above all what a store over SQL can get wrong.
SAMPLE = (
    "core:map-001", "core:bind-001", "core:range-010", "core:verb-104", "core:verb-109", "core:default-020",
    "core:runtime-023", "core:runtime-027", "core:runtime-047", "columns:type-185", "columns:coll-011",
    "columns:cont-225", "columns:side-004", "columns:side-005", "columns:side-014", "columns:flush-004",
    "columns:cas-004", "columns:idx-016", "more:clock-002", "more:life-011", "more:bound-018", "more:beside-003",
    "columns:flush-009", "columns:flush-011", "columns:side-044", "core:name-005", "more:index-012",
)  # fmt: skip


def replay(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["replay", *arguments])
    return result.exit_code, result.output


@pytest.mark.live
@pytest.mark.parametrize("database", [MYSQL_8, "mariadb", "mysql-9.7"])
def test_sample_replays_over_innodb(database: str) -> None:
    with sql_server_or_skip(database):
        pass  # what the machine lacks is a reason to skip
    code, output = replay(*SAMPLE, "--target", f"kvref-{database}", "--profile", "mysql-8.0")
    assert code == 0, output
    assert f"8.0.33: {len(SAMPLE)} same" in output


@pytest.mark.nightly
@pytest.mark.live
def test_both_servers_are_started_again(tmp_path: Path) -> None:
    found = {"8.0.33": "VALUE k 3 1\r\nv\r\nEND\r\n"}
    steps: list[dict[str, Any]] = [
        {"send": {"on": "a", "packets": ["set k 3 0 1\r\nv\r\n"]}, "got": {"8.0.33": "STORED\r\n"}}
    ]
    for action in ("kill9", "restart", "reload"):
        steps.append({"restart": {"how": action}, "got": {"8.0.33": "open"}})
        steps.append({"send": {"on": action, "packets": ["get k\r\n"]}, "got": found})
    steps += [
        {"sql": {"on": "s", "statement": "DELETE FROM innodb_memcache.containers"}, "got": {"8.0.33": {"affected": 1}}},
        {"restart": {"how": "reload"}, "got": {"8.0.33": "closed"}},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"id": "again-001", "group": "again", "title": "again", "steps": steps}) + "\n")
    with sql_server_or_skip("mysql-8.0"):
        pass
    code, output = replay(str(path), "--target", "kvref-mysql-8.0", "--profile", "mysql-8.0")
    assert code == 0, output


def test_target_that_is_no_sql_server_takes_no_profile() -> None:
    code, output = replay("core:map-001", "--target", "memcached", "--profile", "mysql-8.0")
    assert code == 2
    assert "exclude each other" in output
