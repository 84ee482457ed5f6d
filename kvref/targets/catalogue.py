"""The targets kvref knows. A new one is a recipe and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref.targets.builds import MYSQL_5_6, MYSQL_8_0
from kvref.targets.kvref_serve import KvrefSQLite
from kvref.targets.memcached import Memcached
from kvref.targets.plugin import MySQLPlugin

if TYPE_CHECKING:
    from kvref.targets.recipe import Recipe

_RECIPES: tuple[Recipe, ...] = (
    MySQLPlugin("mysql-8.0-plugin", "mysql-8.0", "MySQL 8.0.33 with daemon_memcached", MYSQL_8_0),
    MySQLPlugin("mysql-5.6-plugin", "mysql-5.6", "MySQL 5.6.14 with daemon_memcached", MYSQL_5_6),
    Memcached(),
    KvrefSQLite(),
)


def recipes() -> tuple[Recipe, ...]:
    """Give every recipe, in the order in which they are listed."""
    return _RECIPES


def recipe(name: str) -> Recipe:
    """Find the recipe of a target. Raises TargetError naming the known ones."""
    for each in _RECIPES:
        if each.name == name:
            return each
    raise TargetError(f"unknown target {name!r}: known are {', '.join(each.name for each in _RECIPES)}")
