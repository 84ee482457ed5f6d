"""The two databases, and the suite's own tables put up and taken down."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers.live import nightly, target_or_skip

from kvref_conformance.case import Setup, Shape
from kvref_conformance.endpoints import endpoint
from kvref_conformance.errors import NotRun
from kvref_conformance.sql import connect
from kvref_conformance.sql.base import POLICY_COLUMNS
from kvref_conformance.sql.world import USUAL, World

CONTAINERS = (
    "name, db_schema, db_table, key_columns, value_columns, "
    "flags, cas_column, expire_time_column, unique_idx_name_on_key"
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a file with the configuration tables and one mapping `aaa`."""
    path = tmp_path / "s.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE containers ({CONTAINERS})")
        connection.execute("CREATE TABLE config_options (name, value)")
        connection.execute(f"CREATE TABLE cache_policies ({POLICY_COLUMNS})")
        connection.execute("INSERT INTO cache_policies VALUES (?, ?, ?, ?, ?)", USUAL.policies[0])
        connection.execute(
            "INSERT INTO containers VALUES ('aaa','test','demo_test','c1','c2','c3','c4','c5','PRIMARY')"
        )
        connection.execute("INSERT INTO config_options VALUES ('separator', '|')")
    connection.close()
    return path


@pytest.mark.parametrize("slashes", ["sqlite://", "sqlite:///"])
def test_a_sqlite_file_is_named_with_three_or_four_slashes(store: Path, slashes: str) -> None:
    database = connect(f"{slashes}{store}", "8.0.33")
    assert database.query("SELECT name FROM innodb_memcache.containers") == [("aaa",)]
    assert not database.has_plugin()
    assert database.over_sql() == ""
    assert database.product() == f"SQLite {sqlite3.sqlite_version}"
    database.close()


@pytest.mark.live
@pytest.mark.parametrize(
    ("target", "product", "over_sql"),
    [
        nightly("mysql-8.0-plugin", "MySQL 8.0.33", ""),
        nightly("kvref-mysql-8.0", "MySQL 8.0.33", "mysql"),
        ("kvref-mariadb", "MariaDB 10.", "mariadb"),
        ("kvref-galera", "MariaDB 10.", "galera"),
    ],
)
def test_a_server_without_the_plugin_is_reached_through_sql(target: str, product: str, over_sql: str) -> None:
    with target_or_skip(target) as booted:
        assert booted.sql is not None
        with closing(connect(booted.sql, "8.0.33")) as database:
            assert database.product().startswith(product)
            assert database.over_sql() == over_sql


def test_a_replacement_that_fails_changes_nothing(store: Path) -> None:
    database = connect(f"sqlite:///{store}", "8.0.33")
    with pytest.raises(sqlite3.OperationalError):
        database.replace({"innodb_memcache.config_options": [("name", "value\\"), ("too", "many", "cells")]})
    assert database.query("SELECT * FROM innodb_memcache.config_options") == [("separator", "|")]
    database.replace({"innodb_memcache.config_options": [("odd", "back\\slash and quote '"), ("none", None)]})
    assert database.query("SELECT * FROM innodb_memcache.config_options") == [
        ("odd", "back\\slash and quote '"),
        ("none", None),
    ]
    database.close()


@pytest.fixture
def world(store: Path, scripted: Callable[..., Any]) -> Iterator[World]:
    """Return the tables of a run on an endpoint that never shows a new configuration."""
    target = endpoint.find(scripted().where, "kvref")
    with closing(connect(f"sqlite:///{store}", "8.0.33")) as database:
        yield World(database, target, lambda: None, "z1234")


def content(world: World) -> tuple[list[Any], ...]:
    database = world.database
    return (
        database.query("SELECT name, db_table FROM innodb_memcache.containers"),
        database.query("SELECT * FROM innodb_memcache.config_options"),
        database.tables("kvc_"),
    )


def test_a_table_to_which_a_failed_case_has_left_references_is_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvref_conformance.sql.world.SEEN_SECONDS", 0.1)
    before = content(world)
    world.create()
    shape = Shape("k VARCHAR(8) PRIMARY KEY, v INT", "v", flags="0", cas=None, expiry="0")
    names = world.shaped(shape)
    world.database.insert(names["t"], ("x", 1))
    world.database.execute(
        f"CREATE TABLE {names['t']}_child (k VARCHAR(8), FOREIGN KEY (k) REFERENCES {names['t']} (k))"
    )
    world.database.insert(f"{names['t']}_child", ("x",))
    other = world.shaped(shape)
    assert other["t"] != names["t"]
    assert world.database.query(f"SELECT * FROM {other['t']}") == []
    assert world.shaped(shape) == other
    world.remove()
    assert content(world) == before


def test_a_configuration_is_written_and_put_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvref_conformance.sql.world.SEEN_SECONDS", 0.1)
    before = content(world)
    world.create()
    world.configure(Setup(":"))
    assert ("table_map_delimiter", ":") in content(world)[1]
    world.configure(Setup(containers=(("default", None), ("beta", "t2"))))
    assert content(world)[0][:2] == [("default", "kvc_missing"), ("beta", "kvc_two_z1234")]
    world.remove()
    assert content(world) == before


def test_what_a_case_changed_and_reloaded_is_written_again_for_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvref_conformance.sql.world.SEEN_SECONDS", 0.1)
    world.create()
    world.configure(Setup(":"))
    world.database.execute("UPDATE innodb_memcache.config_options SET value = '!' WHERE name = 'table_map_delimiter'")
    world.configure(Setup(":"))
    assert ("table_map_delimiter", "!") in content(world)[1]  # the endpoint has not read it
    world.reload()
    world.configure(Setup(":"))
    assert ("table_map_delimiter", ":") in content(world)[1]


def test_without_a_way_to_reload_a_configuration_is_not_judged(world: World) -> None:
    world.create()
    stuck = World(world.database, world._endpoint, None, "z9999")
    with pytest.raises(NotRun, match="--reload"):
        stuck.configure(Setup(":"))


def test_what_a_killed_run_left_is_removed(world: World, store: Path) -> None:
    before = content(world)
    with closing(connect(f"sqlite:///{store}", "8.0.33")) as database:
        World(database, world._endpoint, None, "zdead").create()
    later = World(world.database, world._endpoint, None, "zbeef")
    later.create()
    later.remove()
    assert content(world) == before
