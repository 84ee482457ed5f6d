"""The targets kvref knows. A new one is a recipe and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.errors import TargetError, choices
from kvref_testbed.targets.builds import MARIADB, MEMCACHED_NEWER, MYSQL_5_6, MYSQL_8_0, MYSQL_9_7
from kvref_testbed.targets.galera import Galera
from kvref_testbed.targets.group import MySQLGroup
from kvref_testbed.targets.hazelcast import Hazelcast
from kvref_testbed.targets.kvref_server import KvrefCluster, KvrefInnoDB, KvrefSQLite
from kvref_testbed.targets.memcached import Memcached, MemcachedProxy, Nodecached, Twemproxy, Yrmcds
from kvref_testbed.targets.mysqld import SQLOnly
from kvref_testbed.targets.plugin import MySQLPlugin, config_script
from kvref_testbed.targets.router import MySQLRouter
from kvref_testbed.targets.vitess import Vitess

if TYPE_CHECKING:
    import click

    from kvref_testbed.targets.target import Recipe

_MARIADB = SQLOnly("mariadb", "MariaDB from the package mariadb-server-core; SQL only", MARIADB)
_MYSQL_8_0 = SQLOnly(
    "mysql-8.0", "MySQL 8.0.33 with the plugin's schema, without the plugin; SQL only", MYSQL_8_0, config_script
)
_MYSQL_9_7 = SQLOnly("mysql-9.7", "MySQL 9.7 of Debian sid, in a chroot, for root; SQL only", MYSQL_9_7)
_GALERA = Galera()
_GROUP = MySQLGroup()
_ROUTER = MySQLRouter()
_VITESS = Vitess()
_PLUGIN_8_0 = MySQLPlugin("mysql-8.0-plugin", "mysql-8.0", "MySQL 8.0.33 with daemon_memcached", MYSQL_8_0)
_MEMCACHED = Memcached()
_RECIPES: tuple[Recipe, ...] = (
    _PLUGIN_8_0,
    MySQLPlugin("mysql-5.6-plugin", "mysql-5.6", "MySQL 5.6.14 with daemon_memcached", MYSQL_5_6),
    _MEMCACHED,
    Memcached("memcached-newer", summary="memcached of Debian sid, in a chroot, for root", package=MEMCACHED_NEWER),
    MemcachedProxy(MEMCACHED_NEWER),
    Twemproxy("twemproxy", "twemproxy in front of the target mysql-8.0-plugin", _PLUGIN_8_0, "mysql-8.0"),
    Twemproxy("twemproxy-memcached", "twemproxy in front of the target memcached", _MEMCACHED, "memcached"),
    Yrmcds(),
    Nodecached(),
    Hazelcast(),
    KvrefSQLite(),
    KvrefSQLite(
        "kvref-sqlite-workers", summary="kvref over SQLite, two processes on one port", always=("--workers", "2")
    ),
    KvrefInnoDB("kvref-mariadb", "kvref over MariaDB", _MARIADB),
    KvrefInnoDB("kvref-mysql-8.0", "kvref over MySQL 8.0.33 without the plugin", _MYSQL_8_0),
    KvrefInnoDB("kvref-mysql-9.7", "kvref over MySQL 9.7", _MYSQL_9_7),
    KvrefCluster("kvref-galera", "kvref over a Galera cluster of three MariaDB servers", _GALERA),
    KvrefCluster("kvref-mysql-group", "kvref over a replication group of three MySQL 9.7 servers", _GROUP),
    KvrefInnoDB("kvref-mysql-router", "kvref over such a group behind MySQL Router", _ROUTER),
    KvrefInnoDB("kvref-vitess", "kvref over Vitess, tables in two shards", _VITESS),
    _MARIADB,
    _MYSQL_8_0,
    _MYSQL_9_7,
    _GALERA,
    _GROUP,
    _ROUTER,
    _VITESS,
)


def recipes() -> tuple[Recipe, ...]:
    """Return every recipe, in the order in which they are listed."""
    return _RECIPES


def recipe(name: str) -> Recipe:
    """Find the recipe of a target. Raises TargetError naming the known ones."""
    for each in _RECIPES:
        if each.name == name:
            return each
    raise TargetError(f"unknown target {name!r}{choices(name, [each.name for each in _RECIPES])}")


def profile_of(name: str) -> str:
    """Return the profile to judge a target with. Raises TargetError for one that serves only SQL."""
    profile = recipe(name).profile
    if profile is None:
        judged = ", ".join(each.name for each in _RECIPES if each.profile is not None)
        raise TargetError(f"the target {name} answers SQL and no memcached command: choose {judged}")
    return profile


def options_for(name: str, profile: str) -> tuple[str, ...]:
    """Return the options with which a target answers as a profile: kvref chooses; others are what they are."""
    chooses = isinstance(recipe(name), KvrefSQLite | KvrefInnoDB | KvrefCluster)
    return ("--profile", profile) if chooses else ()


def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    """Return the targets that begin so, behind NAME= too."""
    name, equals, begun = incomplete.rpartition("=")
    return [f"{name}{equals}{each.name}" for each in _RECIPES if each.name.startswith(begun)]
