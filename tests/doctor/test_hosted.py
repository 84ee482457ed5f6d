"""The guide for hosted databases: its commands are run as an administrator without SUPER, files and plugins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.guide import Shell, blocks, fits
from helpers.live import target_or_skip
from pymysql import OperationalError, connect

from kvref_testbed.targets.ports import free_port

PATH = Path(__file__).parents[2] / "docs" / "how-to" / "migrate-a-hosted-database.md"
GUIDE = PATH.read_text()
BLOCKS = blocks(GUIDE)
# What the administrator of a hosted database may do: no SUPER, FILE, SHUTDOWN, and nothing in the schema `mysql` but to read it.
# Where RDS documents it: rds_superuser_role, in the page of the role-based privilege model.
PRIVILEGES = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, PROCESS, REFERENCES, INDEX, ALTER, SHOW DATABASES, "
    "CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT, CREATE VIEW, SHOW VIEW, "
    "CREATE ROUTINE, ALTER ROUTINE, CREATE USER, EVENT, TRIGGER, CREATE ROLE, DROP ROLE, APPLICATION_PASSWORD_ADMIN, "
    "ROLE_ADMIN, SET_USER_ID, XA_RECOVER_ADMIN"
)
SWITCHED_OFF = "4. Switch the option off, then upgrade"


@pytest.fixture
def shell(programs: Path, tmp_path: Path) -> Iterator[tuple[Shell, Path]]:
    """Return a shell with the variables of the guide, and the socket of the database."""
    with target_or_skip("mysql-8.0-plugin") as old:
        assert old.socket is not None
        with closing(connect(unix_socket=str(old.socket), user="root")) as root, root.cursor() as cursor:
            cursor.execute("SET GLOBAL partial_revokes = ON")
            cursor.execute("CREATE USER 'admin'@'localhost'")
            cursor.execute(f"GRANT {PRIVILEGES} ON *.* TO 'admin'@'localhost' WITH GRANT OPTION")
            cursor.execute("REVOKE INSERT, UPDATE, DELETE, CREATE, DROP, ALTER ON mysql.* FROM 'admin'@'localhost'")
        made = Shell(
            tmp_path,
            {
                "PATH": f"{programs}:{os.environ['PATH']}",
                "COLUMNS": "200",
                "DB": f"--socket={old.socket} --user=admin",
                "DSN": f"mysql://admin@localhost/?unix_socket={old.socket}",
                "KVREF_DSN": f"mysql://kvref@localhost/?unix_socket={old.socket}&password_file=kvref.password",
                "OLD_MEMCACHED": old.memcached(),
                "KVREF": f"127.0.0.1:{free_port()}",
            },
        )
        with closing(made):
            yield made, Path(old.socket)


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_every_command_of_the_guide(shell: tuple[Shell, Path]) -> None:
    bash, socket = shell
    with closing(connect(unix_socket=str(socket), user="admin")) as admin, admin.cursor() as cursor:
        with pytest.raises(OperationalError, match="denied"):
            cursor.execute("UNINSTALL PLUGIN daemon_memcached")
        with pytest.raises(OperationalError, match="denied"):
            cursor.execute("SET GLOBAL read_only = 1")
    off = False
    for block in BLOCKS:
        if block.section == SWITCHED_OFF and not off:
            off = True  # what the provider's console does
            with closing(connect(unix_socket=str(socket), user="root")) as root, root.cursor() as cursor:
                cursor.execute("UNINSTALL PLUGIN daemon_memcached")
        output = bash.run(block.commands)
        if block.shown is not None:
            assert fits(block.shown, output), f"{block.section}:\n{block.commands}\nprinted\n{output}"
    assert off
