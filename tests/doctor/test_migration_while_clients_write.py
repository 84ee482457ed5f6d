"""The guide to migrate while clients write: its commands are run under writes, which all succeed and none of which is lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster.generator import Writer, writing
from helpers.guide import Shell, blocks, fits
from helpers.live import missing_skips, sql_server_or_skip, target_or_skip
from pymysql import connect

from kvref_bench.load import drivers
from kvref_testbed.targets import SQLServer
from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.ports import free_port

PATH = Path(__file__).parents[2] / "docs" / "how-to" / "migrate-while-clients-write.md"
GUIDE = PATH.read_text()
BLOCKS = blocks(GUIDE)
LOAD_SECONDS = 40
MOVE = "2. Move the clients"
SWITCH = "4. Switch"


@dataclass
class Address:
    """HOST:PORT."""

    text: str

    def connect(self) -> socket.socket:
        host, port = self.text.split(":")
        return socket.create_connection((host, int(port)), timeout=60)


@dataclass
class Migration:
    """A shell with the variables of the guide, where the plugin and kvref listen, and the new server."""

    shell: Shell
    plugin: Address
    kvref: Address
    new: SQLServer

    def run(self, section: str) -> None:
        """Run the commands of a section, and compare what they print."""
        for block in [each for each in BLOCKS if each.section == section]:
            output = self.shell.run(block.commands)
            if block.shown is not None:
                assert fits(block.shown, output), f"{block.section}:\n{block.commands}\nprinted\n{output}"

    def rows(self) -> dict[str, str]:
        """Return the rows of the new server."""
        with closing(connect(unix_socket=str(self.new.socket), user="root")) as root, root.cursor() as cursor:
            cursor.execute("SELECT c1, c2 FROM test.demo_test")
            return dict(cursor.fetchall())


@pytest.fixture
def migration(programs: Path, tmp_path: Path) -> Iterator[Migration]:
    port = free_port()
    reached = ["--skip-networking=0", f"--port={port}", "--bind-address=127.0.0.1"]
    with target_or_skip("mysql-8.0-plugin", reached) as old, sql_server_or_skip("mysql-9.7") as new:
        kvref = f"127.0.0.1:{free_port()}"
        made = Shell(
            tmp_path,
            {
                "PATH": f"{programs}:{os.environ['PATH']}",
                "COLUMNS": "200",
                "OLD_SOCKET": str(old.socket),
                "OLD_PORT": str(port),
                "OLD_MEMCACHED": old.memcached(),
                "OLD_DUMP": str(programs / "8.0" / "bin" / "mysqldump"),
                "NEW_PORT": str(new.port),
                "KVREF": kvref,
            },
        )
        with closing(made):
            yield Migration(made, Address(old.memcached()), Address(kvref), new)


def wrong(writers: list[Writer]) -> list[object]:
    """Return wrong replies, and commands that failed."""
    return [each for writer in writers for each in (*writer.wrong, *writer.refusals)]


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_no_command_fails_and_no_write_is_lost(migration: Migration) -> None:
    migration.run("")
    with writing(migration.plugin, "w") as writers:
        migration.run("1. Start kvref next to the plugin")
        for each in writers:
            each.move(migration.kvref)
        for section in (MOVE, "3. Copy and replicate", SWITCH):
            migration.run(section)
            for each in writers:
                each.wait_for_an_acknowledgement()
    assert wrong(writers) == []
    rows = migration.rows()
    assert [text for each in writers for text in each.differences(rows)] == []
    migration.run("5. Afterwards")


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_memcaslap_reads_what_it_wrote(migration: Migration) -> None:
    with missing_skips():
        tool("memcaslap")
    migration.run("")
    # Its keys are any bytes.
    migration.shell.run(
        'mysql $OLD -e "ALTER TABLE test.demo_test MODIFY c1 VARCHAR(32) COLLATE latin1_bin NOT NULL"\n'
    )
    migration.run("1. Start kvref next to the plugin")
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(drivers.memcaslap, migration.kvref.text, 2, 0.95, 100, ["-t", f"{LOAD_SECONDS}s"])
        for section in (MOVE, "3. Copy and replicate", SWITCH):
            migration.run(section)
        assert not load.done(), "it ran through the switch"
        assert load.result().operations > LOAD_SECONDS


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_switch_that_cannot_be_made_is_taken_back(migration: Migration) -> None:
    for section in ("", "1. Start kvref next to the plugin", MOVE, "3. Copy and replicate"):
        migration.run(section)
    migration.shell.run('mysql $NEW -e "STOP REPLICA SQL_THREAD"\n')
    definition = next(each for each in BLOCKS if each.section == SWITCH).commands
    with writing(migration.kvref, "w") as writers:
        assert migration.shell.run(definition) == "not switched\n"
        for each in writers:
            each.wait_for_an_acknowledgement()
        migration.shell.run('mysql $NEW -e "START REPLICA SQL_THREAD"\n')
        migration.run(SWITCH)
        for each in writers:
            each.wait_for_an_acknowledgement()
    assert [each for writer in writers for each in writer.wrong] == []
    rows = migration.rows()
    assert [text for each in writers for text in each.differences(rows)] == []
