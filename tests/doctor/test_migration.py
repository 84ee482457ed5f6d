"""The migration guide: its commands are run in their order, from both plugins to a current MySQL, and what it shows is compared."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.guide import Shell, blocks, fits, migration
from helpers.live import MYSQL_8, missing_skips, sql_server_or_skip, target_or_skip

from kvref.errors import TargetError
from kvref_testbed.targets import sql_server
from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.ports import free_port

GUIDE = migration()
BLOCKS = [block for block in blocks(GUIDE) if block.reason is None]
# kvref over a 5.6 server is not what the guide is for; and two blocks show what only 8.0 answers.
NOT_ON_5_6 = ("5. Replace the plugin", "6. Back to the plugin")
SHOWN_OF_8_0 = ("3. Rehearse on a copy", "said.txt")


@pytest.fixture(params=["mysql-8.0", "mysql-5.6"])
def shell(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Iterator[tuple[str, Shell]]:
    profile: str = request.param
    with target_or_skip(f"{profile}-plugin") as old, sql_server_or_skip("mysql-9.7") as new:
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": "200",
            "OLD_SOCKET": str(old.socket),
            "OLD_MEMCACHED": old.memcached(),
            "OLD_PROFILE": profile,
            "OLD_DUMP": str(programs / profile.removeprefix("mysql-") / "bin" / "mysqldump"),
            "NEW_PORT": str(new.port),
            "KVREF": f"127.0.0.1:{free_port()}",
        }
        made = Shell(tmp_path, environment)
        try:
            yield profile, made
        finally:
            made.close()


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_command_of_the_guide(shell: tuple[str, Shell]) -> None:
    profile, bash = shell
    assert {block.section for block in BLOCKS} >= set(NOT_ON_5_6)
    for block in BLOCKS:
        if profile == "mysql-5.6" and block.section in NOT_ON_5_6:
            continue
        output = bash.run(block.commands)
        of_8_0 = block.section == SHOWN_OF_8_0[0] and SHOWN_OF_8_0[1] in block.commands
        if block.shown is not None and not (profile == "mysql-5.6" and of_8_0):
            assert fits(block.shown, output), f"{block.section}:\n{block.commands}\nprinted\n{output}"


LOSING = """
printf 'bind z\\nset lost 0 0 3\\\\r\\\\n\\\\xff\\\\xfe1\\n' | kvref probe "$OLD_MEMCACHED" | grep STORED
mysql $OLD -Ne "SELECT c1 FROM test.z WHERE NOT HEX(c2) <=> HEX(CONVERT(CAST(c2 AS BINARY) USING utf8mb4))"
$OLD_DUMP $OLD --databases test > z.sql; mysql $NEW < z.sql; mysql $NEW -Ne "SELECT HEX(c2) FROM test.z"
mysql $OLD -e "UNINSTALL PLUGIN daemon_memcached; ALTER TABLE test.z MODIFY c2 BLOB"
$OLD_DUMP $OLD --databases test > z.sql; mysql $NEW < z.sql; mysql $NEW -Ne "SELECT HEX(c2) FROM test.z"
"""
MAPPED = """
mysql $OLD -e "UNINSTALL PLUGIN daemon_memcached"
mysql $OLD -e "CREATE TABLE test.z (c1 VARCHAR(32) PRIMARY KEY, c2 TEXT, c3 INT, c4 BIGINT UNSIGNED, c5 INT) CHARSET utf8mb4"
mysql $OLD -e "INSERT INTO innodb_memcache.containers VALUES ('z', 'test', 'z', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
mysql $OLD -e "INSERT INTO test.z VALUES ('kept', _utf8mb4 x'C3A4', 0, 0, 0); INSTALL PLUGIN daemon_memcached SONAME 'libmemcached.so'"
answers "$OLD_MEMCACHED"
"""


@pytest.mark.live
@pytest.mark.nightly
def test_what_is_no_text_is_found_lost_by_a_dump_and_kept_by_a_blob(shell: tuple[str, Shell]) -> None:
    profile, bash = shell
    bash.run(BLOCKS[0].commands + MAPPED)
    # 5.6 dumps question marks, 8.0 what ends at that byte when it is loaded; neither says a word.
    left = {"mysql-8.0": [], "mysql-5.6": ["3F3F31"]}[profile]
    assert bash.run(LOSING).split() == ["<", "STORED\\r\\n", "lost", "C3A4", *left, "C3A4", "FFFE31"]


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("a … c\n", "a b  c\n", True),
        ("a\n", "a\nb\n", False),
        ("…\nb\n", "a\na\nb\n", True),
        ("a … c\n", "a\nc\n", False),
    ],
)
def test_what_fits_what_is_shown(shown: str, output: str, same: bool) -> None:
    assert fits(shown, output) is same


def test_a_command_that_fails_ends_the_guide(tmp_path: Path) -> None:
    with closing(Shell(tmp_path, {})) as bash:
        assert bash.run("x=1\n") == ""
        assert bash.run("cat; echo $x\n") == "1\n"
        with pytest.raises(AssertionError, match="a command fails"):
            bash.run("false\necho on\n")


@pytest.mark.live
@pytest.mark.parametrize("name", [MYSQL_8, "mysql-9.7"])
def test_a_server_without_the_plugin_refuses_its_options(name: str) -> None:
    with sql_server_or_skip(name, ["--innodb_api_trx_level=0", "--loose_daemon_memcached_w_batch_size=1"]):
        pass
    with (
        pytest.raises(TargetError, match="unknown variable 'daemon_memcached_w_batch_size=1'"),
        sql_server(name, ["--daemon_memcached_w_batch_size=1"]),
    ):
        pass


@pytest.mark.nightly
def test_a_dump_of_debians_programs_has_the_same_rows(tmp_path: Path) -> None:
    guide = " ".join(GUIDE.split())
    assert "From 8.0 they work too, if you use both of them and leave out `--set-gtid-purged=OFF`" in guide
    with missing_skips():
        dump, client = tool("mariadb-dump"), tool("mariadb")
    with target_or_skip("mysql-8.0-plugin") as old, sql_server_or_skip("mysql-9.7") as new:
        from_old = ["--user=root", f"--socket={old.socket}"]
        words = [dump, *from_old, "--single-transaction", "--databases", "innodb_memcache", "test"]
        refused = subprocess.run([*words, "--set-gtid-purged=OFF"], capture_output=True, check=False)
        assert b"unknown variable 'set-gtid-purged=OFF'" in refused.stderr
        path = tmp_path / "old.sql"
        path.write_bytes(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        to_new = ["--user=root", f"--socket={new.socket}"]
        with path.open("rb") as file:
            subprocess.run([client, *to_new], stdin=file, check=True)
        tables = ("test.demo_test", "innodb_memcache.containers", "innodb_memcache.config_options")
        rows = ";".join(f"SELECT * FROM {table} ORDER BY 1" for table in tables)
        found = [
            subprocess.run([client, *each, "-Ne", rows], stdout=subprocess.PIPE, check=True).stdout
            for each in (from_old, to_new)
        ]
    assert found[0] == found[1] != b""
