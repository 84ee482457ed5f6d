"""MySQL Router as a target: it leads to the primary, and kvref behind it serves as the suite demands."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymysql
import pytest
from helpers.commands import kvref

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.usefixtures("state"), pytest.mark.timeout(300)]


def test_it_leads_to_the_primary_and_goes(kvref_json: Any, available: Callable[[str], None]) -> None:
    available("mysql-router")
    up = kvref_json("up", "mysql-router")
    assert (up["address"], up["profile"], up["store"]) == (None, None, None)
    address = urlsplit(up["sql"])
    for _ in range(3):
        with (
            closing(pymysql.connect(host=address.hostname, port=address.port or 0, user="root")) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT @@port, @@super_read_only")
            ((port, read_only),) = cursor.fetchall()
        assert port != address.port
        assert not read_only
    kvref_json("down", "mysql-router")
    assert not Path(up["folder"]).exists()
    with pytest.raises(pymysql.err.OperationalError, match="Connection refused"):
        pymysql.connect(host=address.hostname, port=address.port or 0, user="root")


def test_kvref_over_the_router_holds(available: Callable[[str], None], tmp_path: Path) -> None:
    available("mysql-router")
    words = ["conform", "--target", "kvref-mysql-router", "--only", "KV-MAP-*", "--report", str(tmp_path / "report")]
    judged = kvref(*words, timeout=240)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert re.search(r"as kvref: [1-9]\d* holds", judged.stdout)
