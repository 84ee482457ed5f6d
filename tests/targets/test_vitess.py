"""Vitess as a target: it comes with two shards and goes, and kvref over it serves as the suite demands."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pymysql
import pytest
from helpers.commands import kvref

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.usefixtures("state"), pytest.mark.timeout(900)]


def test_it_comes_and_goes(kvref_json: Any, available: Callable[[str], None]) -> None:
    available("vitess")
    up = kvref_json("up", "vitess")
    assert (up["address"], up["profile"], up["store"]) == (None, None, None)
    assert up["version"].endswith("-Vitess")
    address = urlsplit(up["sql"])
    with (
        closing(pymysql.connect(host=address.hostname, port=address.port or 0, user="root")) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW VITESS_SHARDS")
        assert cursor.fetchall() == (("innodb_memcache/0",), ("test/-80",), ("test/80-",))
    folder = Path(up["folder"])
    running = [each for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or ())]
    assert {each.name() for each in running} >= {"mysqld", "vtcombo"}
    kvref_json("down", "vitess")
    psutil.wait_procs(running, timeout=10)
    assert not any(each.is_running() for each in running)
    assert not folder.exists()


def test_kvref_over_it_holds(available: Callable[[str], None], tmp_path: Path) -> None:
    available("vitess")
    words = ["conform", "--target", "kvref-vitess", "--only", "KV-MAP-*", "--report", str(tmp_path / "report")]
    judged = kvref(*words, timeout=600)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert re.search(r"as kvref: [1-9]\d* holds", judged.stdout)


def test_generated_conversations_are_those_of_one_server(available: Callable[[str], None]) -> None:
    available("vitess")
    compared = kvref("duel", "kvref-vitess", "kvref-mysql-8.0", "--conversations", "5", timeout=600)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "5 conversations" in compared.stdout
    assert ": 0 differ" in compared.stdout
