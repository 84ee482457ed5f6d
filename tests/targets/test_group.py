"""A replication group as a target: it comes, its members have one primary, and it goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from kvref.storage.mysql.login import parse

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.usefixtures("state")]


def test_it_comes_and_goes(kvref_json: Any, available: Callable[[str], None]) -> None:
    available("mysql-group")
    up = kvref_json("up", "mysql-group")
    assert (up["address"], up["profile"], up["store"]) == (None, None, None)
    login = parse(up["sql"], {})
    assert len(login.nodes) == 3
    roles = []
    for host, port in login.nodes:
        with closing(pymysql.connect(host=host, port=port, user="root")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@super_read_only")
            roles += cursor.fetchall()
            cursor.execute("SELECT MEMBER_STATE FROM performance_schema.replication_group_members")
            assert cursor.fetchall() == (("ONLINE",),) * 3
    assert roles == [(0,), (1,), (1,)]
    folder = Path(up["folder"])
    running = [each for each in psutil.process_iter(["cwd"]) if each.info["cwd"] and str(folder) in each.info["cwd"]]
    kvref_json("down", "mysql-group")
    psutil.wait_procs(running, timeout=10)
    assert not any(each.is_running() for each in running)
    assert not folder.exists()
