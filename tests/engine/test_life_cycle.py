"""When a row of containers is read and how long it is kept; ids in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
PLUGINS = ("mysql-8.0", "mysql-5.6")
TABLE = "CREATE TABLE {0} (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))"
CONTAINER = "INSERT INTO containers VALUES ('{0}', 'test', '{1}', 'k', 'v', '0', '0', '0', 'PRIMARY')"
WORLD = (
    "DELETE FROM containers",
    *(sql for name in ("d", "t1", "t2", "t3") for sql in (TABLE.format(name), f"INSERT INTO {name} VALUES ('k', '{name}')")),
    *(CONTAINER.format(*row) for row in (("aaa", "d"), ("m1", "t1"), ("m2", "t2"))),
)  # fmt: skip


def moved(harness: Harness, name: str, table: str) -> None:
    harness.sql.execute("UPDATE containers SET db_table = ? WHERE name = ?", (table, name))


def says(harness: Harness, command: str, connection: str = "a") -> str:
    """Return the value answered, or the reply's first line."""
    lines = harness.say(command.encode() + b"\r\n", connection).decode().split("\r\n")
    return lines[1] if lines[0].startswith("VALUE") else lines[0]


@pytest.mark.parametrize("profile", PLUGINS)
def test_a_spelling_that_reads_the_row_anew_can_fail(harness: Make, profile: str) -> None:
    endpoint = harness(profile, *WORLD)
    says(endpoint, "get @@m1.k")
    moved(endpoint, "m1", "nope")
    assert says(endpoint, "get @@M1.k") == "END"
    assert says(endpoint, "get k") == "t1"


def test_kvref_keeps_rows_for_every_connection_alike_until_a_reload(harness: Make) -> None:
    endpoint = harness("kvref", *WORLD)
    says(endpoint, "get @@m1.k")
    moved(endpoint, "m1", "t3")
    moved(endpoint, "aaa", "t3")
    for connection in ("a", "b"):
        assert [says(endpoint, f"get @@{name}.k", connection) for name in ("M1", "m1", "AAA", "aaa")] == [
            "t1",
            "t1",
            "d",
            "d",
        ]
        assert says(endpoint, "get k", connection) == "d"
    endpoint.sql.execute(CONTAINER.format("late", "t2"))
    assert says(endpoint, "get @@Late.k") == "t2"
    endpoint.shared.directory.replace(endpoint.store.read_directory())
    assert [says(endpoint, f"get @@{name}.k") for name in ("M1", "aaa")] == ["t3", "t3"]
    assert says(endpoint, "get k", "never switched") == "t3"
