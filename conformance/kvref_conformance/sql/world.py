"""The suite's own tables and mappings, the configurations that cases ask for, and the way back.

Every change of the endpoint's configuration is made here, between cases, with no memcached connection open: in 8.0 an
idle one holds a metadata lock, and UNINSTALL PLUGIN leaves old ones without answers.
"""

from __future__ import annotations

import string
import time
from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Setup
from kvref_conformance.errors import CannotJudge, NotJudged
from kvref_conformance.sql.base import CONTAINER_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.sql.base import Database, Row

PREFIX: Final = "kvc_"
USUAL: Final = Setup()
# A row in each own table, so that a plain key tells which table is the default.
WHERE: Final = "kvc-where"
# A reload by signal is not over when the command returns; an endpoint that never shows it is judged as it is.
SEEN_SECONDS: Final = 3.0


class World:
    """Tables t1, t2, t3 and mappings m1 -> t1, m1b -> t1, m2 -> t2, q (one letter) -> t3.

    Args:
        database: connection behind the endpoint.
        endpoint: the endpoint.
        reload: makes the endpoint read its configuration again; None: cases that need it are not judged.
        tag: letters and digits that no other run uses.
    """

    def __init__(self, database: Database, endpoint: Endpoint, reload: Callable[[], None] | None, tag: str) -> None:
        self.database = database
        self._endpoint = endpoint
        self._reload = reload
        self._before = (database.query(f"SELECT {CONTAINER_COLUMNS} FROM {database.containers}"), self._options())  # noqa: S608
        taken = {str(row[0]).lower() for row in self._before[0]}
        letter = next((letter for letter in reversed(string.ascii_lowercase) if letter not in taken), None)
        if letter is None:
            raise CannotJudge("every mapping of one letter is taken: the suite needs one of its own")
        self.names = {"m1": f"{tag}m1", "m1b": f"{tag}m1b", "m2": f"{tag}m2", "q": letter}
        self.names |= {f"t{n}": f"{PREFIX}{word}_{tag}" for n, word in enumerate(("one", "two", "three"), 1)}
        self.names |= {f"w{n}": f"test/{self.names[f't{n}']}" for n in (1, 2, 3)}
        # 250 bytes would end a 5.6 server (core:map-065); 249 are the longest that are safe everywhere.
        self.names["w249"] = f"@@{self.names['m2']}.".ljust(249, "x")
        self.names |= {"m2up": f"{tag}m2".upper(), "m2cut": f"{tag}m", "containers": database.containers}
        delimiter = next((value for name, value in self._before[1] if name == "table_map_delimiter"), None) or "."
        self._setup = USUAL if delimiter == USUAL.delimiter else Setup(str(delimiter))
        self._changed = False

    def create(self) -> None:
        """Make the tables and mappings, after removing what a killed run left."""
        left = self._remove_leftovers()
        for n in (1, 2, 3):
            table = self.names[f"t{n}"]
            self.database.create_table(table)
        self._map_own()
        if left and self._reload is not None:
            self._reload()

    def default_words(self) -> tuple[str, ...]:
        """Return schema/table of every mapping that was there before: one of them is the default."""
        return tuple(f"{row[1]}/{row[2]}" for row in self._before[0])

    def configure(self, wanted: Setup | None) -> None:
        """Bring the endpoint into a configuration; None is the usual one.

        Raises:
            NotJudged: there is no way to reload.
            CaseFailed: the endpoint did not come back from the reload.
        """
        setup = wanted or USUAL
        if setup == self._setup:
            return
        if self._reload is None:
            raise NotJudged("needs --reload COMMAND: the endpoint must read its configuration again")
        self._setup, self._changed = setup, True
        self._mark_tables()
        self._write(setup)
        self._reload()
        self._wait_until_seen(setup)

    def remove(self) -> None:
        """Put the configuration back as it was before the run and drop the suite's tables."""
        database, (containers, options) = self.database, self._before
        database.revive()
        if self._changed:
            database.replace({database.containers: containers, database.options: options})
        else:
            self._delete_own_rows()
        # The plugin keeps a mapping until it is loaded again: the one letter would meet a dropped table.
        if self._reload is not None and (self._changed or database.has_plugin()):
            self._reload()
        for table in database.tables(PREFIX):
            if table in self.names.values():
                database.execute(f"DROP TABLE {table}")

    def _remove_leftovers(self) -> bool:
        self._delete_own_rows()
        left = self.database.tables(PREFIX)
        for table in left:
            self.database.execute(f"DROP TABLE {table}")
        self._before = ([row for row in self._before[0] if not str(row[2]).startswith(PREFIX)], self._before[1])
        return bool(left)

    def _delete_own_rows(self) -> None:
        own = f"SUBSTR(db_table, 1, {len(PREFIX)}) = '{PREFIX}'"
        self.database.execute(f"DELETE FROM {self.database.containers} WHERE {own}")  # noqa: S608 - constants

    def _options(self) -> list[Row]:
        return self.database.query(f"SELECT name, value FROM {self.database.options}")  # noqa: S608 - a constant

    def _map_own(self) -> None:
        for mapping, table in (("m1", "t1"), ("m1b", "t1"), ("m2", "t2"), ("q", "t3")):
            self.database.map_table(self.names[mapping], self.names[table])

    def _mark_tables(self) -> None:
        for n in (1, 2, 3):
            table = self.names[f"t{n}"]
            self.database.execute(f"DELETE FROM {table} WHERE c1 = '{WHERE}'")  # noqa: S608 - own names
            self.database.insert(table, (WHERE, f"t{n}", 0, 0, 0))

    def _write(self, setup: Setup) -> None:
        containers, options = self._before
        options = [row for row in options if row[0] != "table_map_delimiter"]
        if setup.delimiter is not None:
            options.append(("table_map_delimiter", setup.delimiter))
        kept = containers if setup.containers is None else []
        self.database.replace({self.database.containers: kept, self.database.options: options})
        if setup.containers is None:
            self._map_own()
        for name, table in setup.containers or ():
            self.database.map_table(name, self.names.get(table or "", f"{PREFIX}missing"))

    def _wait_until_seen(self, setup: Setup) -> None:
        deadline = time.monotonic() + SEEN_SECONDS
        while time.monotonic() < deadline and not self._is_seen(setup):
            time.sleep(0.02)

    def _is_seen(self, setup: Setup) -> bool:
        word = f"@@{self.names['m1']}{setup.delimiter or '.'}"
        with self._endpoint.link() as link:
            default = link.ask((f"get {WHERE}\r\n".encode(),)).data
            switch = link.ask((f"get {word}\r\n".encode(),)).data
        if setup.containers is None:
            return switch.startswith(b"VALUE ") and not default.startswith(b"VALUE ")
        wanted = default_table(setup.containers)
        return default == f"VALUE {WHERE} 0 2\r\n{wanted}\r\nEND\r\n".encode()


def default_table(containers: tuple[tuple[str, str | None], ...]) -> str | None:
    """Return the table of the default mapping: the usable row named `default`, else the first usable one by name."""
    usable = {name: table for name, table in containers if table is not None}
    first = min(usable, key=str.lower)
    return usable.get("default", usable[first])
