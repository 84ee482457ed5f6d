"""The suite's own tables and mappings, the configurations of cases, and their restoration.

Tables are made and configurations changed here, with no memcached connection open: in 8.0 an idle one holds a metadata
lock, and UNINSTALL PLUGIN leaves old ones without answers.
"""

from __future__ import annotations

import itertools
import sqlite3
import string
import time
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_conformance.case import Setup
from kvref_conformance.errors import CannotJudge, NotRun
from kvref_conformance.sql.base import CONTAINER_COLUMNS, DEMO_COLUMNS, POLICY_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Shape
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.sql.base import Database, Row

PREFIX: Final = "kvc_"
USUAL: Final = Setup()
# What the endpoint has kept instead of a configuration that it cannot have: like no other.
REFUSED: Final = Setup(others=(("kvc_refused", "x"),))
# A row in each own table whose value is the table's name here.
WHERE: Final = "kvc-where"
# A reload by signal is not over when the command returns: over InnoDB each of 150 tables is looked at. An endpoint that
# has not shown it after so many seconds is judged as it is, and does not keep the later cases waiting as long.
SEEN_SECONDS: Final = 20.0
UNSEEN_SECONDS: Final = 1.0


class World:
    """Tables t1, t2, t3 and mappings m1 -> t1, m1b -> t1, m2 -> t2, q (one letter) -> t3; tables of a case's own shape.

    A further mapping leads to another table at each reload: a used mapping is unchanged until then, so it shows when
    the endpoint has read its configuration.

    Args:
        database: connection behind the endpoint.
        endpoint: the endpoint.
        reload: makes the endpoint read its configuration again; None: cases that need it are not-run.
        tag: letters and digits that no other run uses.
    """

    def __init__(self, database: Database, endpoint: Endpoint, reload: Callable[[], None] | None, tag: str) -> None:
        self.database = database
        self._endpoint = endpoint
        self._reload = reload
        self._before = (database.query(f"SELECT {CONTAINER_COLUMNS} FROM {database.containers}"), self._options())  # noqa: S608
        self._policies = database.query(f"SELECT {POLICY_COLUMNS} FROM {database.policies}")  # noqa: S608 - constants
        taken = {str(row[0]).lower() for row in self._before[0]}
        letter = next((letter for letter in reversed(string.ascii_lowercase) if letter not in taken), None)
        if letter is None:
            raise CannotJudge("every mapping of one letter is taken: the suite needs one of its own")
        self.names = {"m1": f"{tag}m1", "m1b": f"{tag}m1b", "m2": f"{tag}m2", "q": letter}
        self.names |= {f"t{n}": f"{PREFIX}{word}_{tag}" for n, word in enumerate(("one", "two", "three"), 1)}
        self.names |= {f"w{n}": f"test/{self.names[f't{n}']}" for n in (1, 2, 3)}
        self.names["w0"] = self._default_word()
        # 250 bytes would end a 5.6 server (core:map-065); 249 are the longest that are safe everywhere.
        self.names["w249"] = f"@@{self.names['m2']}.".ljust(249, "x")
        self.names |= {"m2up": f"{tag}m2".upper(), "m2cut": f"{tag}m"}
        self.names |= {"containers": database.containers, "options": database.options, "policies": database.policies}
        options = {str(name): str(value) for name, value in self._before[1] if value}
        policies = tuple(tuple(map(str, row)) for row in self._policies)
        self._setup = Setup(options.get("table_map_delimiter", "."), None, options.get("separator", "|"), (), policies)
        self._changed = False
        # A case may have changed the tables before it made the endpoint read them.
        self._reloaded_by_case = False
        self._shapes: dict[Shape, dict[str, str]] = {}
        self._numbers = itertools.count()
        self._null_flags = False
        self._shows_reloads = True
        # Sorts behind every name of a setup, so that it is never the default mapping.
        self._marker = (f"zz{tag}", "t1")

    def create(self) -> None:
        """Make the tables and mappings, after removing what a killed run left."""
        left = self._remove_leftovers()
        for n in (1, 2, 3):
            self.database.create_table(self.names[f"t{n}"], DEMO_COLUMNS)
        self._mark_tables()
        self._map_marker()
        self._map_own()
        if left and self._reload is not None:
            self._reload()
        self._shows_marker()  # used from now on

    def default_words(self) -> tuple[str, ...]:
        """Return schema/table of every mapping that was there before: one of them is the default."""
        return tuple(f"{row[1]}/{row[2]}" for row in self._before[0])

    def _default_word(self) -> str:
        """Return schema/table of the row named `default`, else of the first one; the suite's own sort behind it."""
        rows = {str(row[0]): f"{row[1]}/{row[2]}" for row in self._before[0]}
        return rows.get("default") or (rows[min(rows, key=str.lower)] if rows else "")

    def configure(self, wanted: Setup | None) -> None:
        """Bring the endpoint into a configuration; None is the usual one.

        Raises:
            NotRun: there is no way to reload, or the endpoint cannot have this configuration.
            CaseFailed: the endpoint did not come back from the reload.
        """
        setup = wanted or USUAL
        if setup == self._setup and not self._reloaded_by_case:
            return
        self._require_reload()
        if setup.hides_tables() and self._setup.hides_tables():
            self.configure(USUAL)  # a reload shows itself by what a get finds
        self._setup, self._changed = REFUSED, True
        self._write(setup)
        self._map_marker()
        self.reload(setup)

    def reload(self, setup: Setup | None = None) -> None:
        """Make the endpoint read its configuration again and wait until it has.

        Args:
            setup: what was written for it; None: what is in force, and perhaps a case's own.

        Raises:
            NotRun: there is no way to reload, or the endpoint cannot have this configuration.
            CaseFailed: the endpoint did not come back.
        """
        reload = self._require_reload()
        self._mark_tables()
        name, table = self._marker
        self._marker = (name, "t2" if table == "t1" else "t1")
        self.database.execute(
            f"UPDATE {self.database.containers} SET db_table = '{self.names[self._marker[1]]}' WHERE name = '{name}'"  # noqa: S608 - own names
        )
        reload()
        self._setup = setup or self._setup
        self._reloaded_by_case = setup is None
        deadline = time.monotonic() + (SEEN_SECONDS if self._shows_reloads else UNSEEN_SECONDS)
        while not self._shows_marker():
            if time.monotonic() > deadline:
                self._shows_reloads = False
                return
            time.sleep(0.02)

    def shaped(self, shape: Shape) -> dict[str, str]:
        """Return the names `m` and `t` of a mapping and its empty table, made if the shape has none to empty."""
        if shape not in self._shapes:
            self._make(shape)
        try:
            self.database.execute(f"DELETE FROM {self._shapes[shape]['t']}")  # noqa: S608 - own names
        except (sqlite3.Error, pymysql.err.IntegrityError):
            # A case that failed has left rows in another table that refer to these.
            self._make(shape)
        return self._shapes[shape]

    def _make(self, shape: Shape) -> None:
        """Make the table of a shape and its mapping; if the database refuses one, no later case is affected."""
        number = next(self._numbers)
        names = {"m": f"{self.names['m1']}s{number}", "t": f"{self.names['t1']}_{number}"}
        columns = shape.columns.format_map(self.names) if "{" in shape.columns else shape.columns
        self._shapes[shape] = names
        try:
            self.database.create_table(names["t"], columns, shape.key)
            # A replication group creates a table without a primary key, and rejects what writes to it.
            self.database.execute(f"DELETE FROM {names['t']}")  # noqa: S608 - own names
            self._map_shape(shape)
        except (sqlite3.Error, pymysql.MySQLError) as error:
            del self._shapes[shape]
            self.database.execute(f"DROP TABLE IF EXISTS `{names['t']}`")
            raise NotRun(f"set-up: the database refuses the table or the mapping of the case: {error}") from error

    def clear(self) -> None:
        """Leave the usual configuration without a shape.

        A plugin that is loaded with its server opens every mapped table, and 8.0.33 was seen to end while it started
        over tables it cannot read.

        Raises:
            NotRun: as `configure`.
        """
        self.configure(None)
        for names in self._shapes.values():
            self.database.execute(f"DELETE FROM {self.database.containers} WHERE name = '{names['m']}'")  # noqa: S608 - own names
        self._shapes.clear()

    def remove(self) -> None:
        """Put the configuration back as it was before the run and drop the suite's tables."""
        database, (containers, options) = self.database, self._before
        database.revive()
        if self._changed:
            database.replace(
                {database.containers: containers, database.options: options, database.policies: self._policies}
            )
        else:
            self._delete_own_rows()
        if self._null_flags:
            database.let_flags_be_null(allowed=False)
        # The plugin keeps a mapping until it is loaded again: the one letter would meet a dropped table.
        if self._reload is not None and (self._changed or database.has_plugin()):
            self._reload()
        for table in self._tables(*(self.names[f"t{n}"] for n in (1, 2, 3))):
            database.execute(f"DROP TABLE `{table}`")

    def _remove_leftovers(self) -> bool:
        self._delete_own_rows()
        left = self._tables(PREFIX)
        for table in left:
            self.database.execute(f"DROP TABLE `{table}`")
        self._before = ([row for row in self._before[0] if not str(row[2]).startswith(PREFIX)], self._before[1])
        return bool(left)

    def _tables(self, *prefixes: str) -> list[str]:
        """Return the tables that begin so, in an order in which they can be dropped: kvc_one_z1_7_child, kvc_one_z1_7,
        kvc_one_z1.
        """
        found = [table for table in self.database.tables(PREFIX) if table.startswith(prefixes)]
        return sorted(found, key=lambda table: table.count("_"), reverse=True)

    def _delete_own_rows(self) -> None:
        tag = self.names["m1"].removesuffix("m1")
        own = f"SUBSTR(db_table, 1, {len(PREFIX)}) = '{PREFIX}' OR SUBSTR(name, 1, {len(tag)}) = '{tag}'"
        self.database.execute(f"DELETE FROM {self.database.containers} WHERE {own}")  # noqa: S608 - constants

    def _options(self) -> list[Row]:
        return self.database.query(f"SELECT name, value FROM {self.database.options}")  # noqa: S608 - a constant

    def _require_reload(self) -> Callable[[], None]:
        if self._reload is None:
            raise NotRun("needs --reload COMMAND: the endpoint must read its configuration again")
        return self._reload

    def _map_own(self) -> None:
        for mapping, table in (("m1", "t1"), ("m1b", "t1"), ("m2", "t2"), ("q", "t3")):
            self.database.map_table(self.names[mapping], self.names[table])
        for shape in self._shapes:
            self._map_shape(shape)

    def _map_marker(self) -> None:
        name, table = self._marker
        self.database.map_table(name, self.names[table])

    def _map_shape(self, shape: Shape) -> None:
        names = self._shapes[shape]
        if shape.flags is None and not self._null_flags:
            self._null_flags = True
            self.database.let_flags_be_null(allowed=True)
        columns = (shape.key, shape.values, shape.flags, shape.cas, shape.expiry, shape.index)
        self.database.insert(self.database.containers, (names["m"], "test", names["t"], *columns))

    def _mark_tables(self) -> None:
        for n in (1, 2, 3):
            table = self.names[f"t{n}"]
            self.database.execute(f"DELETE FROM {table} WHERE c1 = '{WHERE}'")  # noqa: S608 - own names
            self.database.insert(table, (WHERE, f"t{n}", 0, 0, 0))

    def _write(self, setup: Setup) -> None:
        containers, options = self._before
        wanted = {"table_map_delimiter": setup.delimiter, "separator": setup.separator}
        options = [row for row in options if row[0] not in wanted]
        options += [(name, value) for name, value in wanted.items() if value is not None]
        options += setup.others
        unchanged = containers if setup.containers is None else []
        database = self.database
        database.replace({database.containers: unchanged, database.options: options, database.policies: setup.policies})
        if setup.containers is None:
            self._map_own()
        for name, table in setup.containers or ():
            self.database.map_table(name, self.names.get(table or "", f"{PREFIX}missing"))

    def _shows_marker(self) -> bool:
        name, table = self._marker
        with self._endpoint.connect() as connection:
            answer = connection.exchange((f"bind {name}\r\nget {WHERE}\r\n".encode(),)).data
        shown = "" if self._setup.hides_tables() else f"VALUE {WHERE} 0 2\r\n{table}\r\n"
        return answer == f"SUCCEED\r\n{shown}END\r\n".encode()
