"""The guide to backups: its commands are run in their order, over SQLite and MySQL, and what it shows is compared."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from helpers.guide import Shell, blocks, fits
from helpers.live import sql_server_or_skip

from kvref_testbed.targets.ports import free_port

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up.md"


@pytest.mark.live
@pytest.mark.nightly
def test_a_restored_backup_has_the_rows_of_its_time(programs: Path, tmp_path: Path) -> None:
    with sql_server_or_skip("mysql-9.7") as server:
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": "200",
            "KVREF": f"127.0.0.1:{free_port()}",
            "MYSQL_PORT": str(server.port),
        }
        with closing(Shell(tmp_path, environment)) as bash:
            for block in blocks(GUIDE.read_text(encoding="utf-8")):
                output = bash.run(block.commands)
                assert block.shown is None or fits(block.shown, output), f"{block.commands}\nprinted\n{output}"
