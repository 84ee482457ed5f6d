"""What the judge says of a schema, and that a table which the database refuses affects its own case alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kvref.specification.starter_kit import starter_files
from kvref_conformance.case import Shape
from kvref_conformance.errors import CannotJudge, NotRun
from kvref_conformance.sql import connect, layout
from kvref_conformance.sql.base import Database
from kvref_conformance.sql.world import World

SCHEMA = starter_files("kvref")["schema/sqlite.sql"]
NOT_NULL = SCHEMA.replace("flags VARCHAR(250) DEFAULT '0'", "flags VARCHAR(250) NOT NULL DEFAULT '0'")
COLUMNS = "k VARCHAR(8) PRIMARY KEY, v VARCHAR(8)"
Made = Callable[[str], Database]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Return what opens a store with a schema."""
    opened: list[Database] = []

    def store(schema: str) -> Database:
        path = tmp_path / f"{len(opened)}.db"
        connection = sqlite3.connect(path)
        connection.executescript(schema)
        connection.close()
        opened.append(connect(f"sqlite:///{path}", "8.0.33"))
        return opened[-1]

    yield store
    for each in opened:
        each.close()


def test_a_missing_column_is_named_once(made: Made) -> None:
    (problem,) = layout.problems(made(SCHEMA + "ALTER TABLE containers DROP COLUMN cas_column;"))
    assert problem.startswith("innodb_memcache.containers needs the columns name, db_schema")


def test_a_store_without_containers_names_the_layout(made: Made) -> None:
    with pytest.raises(CannotJudge, match=r"is not a store of kvref .*`kvref implement DIR` writes the schema"):
        made("CREATE TABLE t (a);")


def test_flags_that_refuse_null_are_a_complaint(made: Made) -> None:
    database = made(NOT_NULL)
    assert layout.problems(database) == []
    assert layout.complaints(database) == ["your `containers.flags` refuses NULL: declare it without NOT NULL"]
    assert layout.complaints(made(SCHEMA)) == []


def test_a_refused_mapping_affects_no_later_case(made: Made) -> None:
    database = made(NOT_NULL)
    world = World(database, cast("Any", None), lambda: None, "z0000")
    with pytest.raises(NotRun, match=r"set-up: the database refuses the table or the mapping of the case: .*NOT NULL"):
        world.shaped(Shape(COLUMNS, flags=None, cas=None, expiry=None))
    names = world.shaped(Shape(f"{COLUMNS}, f INT", cas=None, expiry=None))
    assert database.query(f"SELECT COUNT(*) FROM {names['t']}") == [(0,)]
    assert [name for name in database.tables("kvc_") if name != names["t"]] == []
