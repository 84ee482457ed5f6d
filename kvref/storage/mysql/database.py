"""What all connections to one database server share: its address, the profile, statements, what was seen of tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary

from kvref.engine.mapping import Mapping, Naming
from kvref.profiles import Profile
from kvref.storage.config.catalog import SharedMappings
from kvref.storage.mysql.cluster import Nodes
from kvref.storage.mysql.login import Login
from kvref.storage.mysql.schema import KnownTables
from kvref.storage.mysql.statements import Statements
from kvref.storage.rows import PerMapping


class Database:
    """One database server, or one cluster of them; a write waits `lock_wait` seconds for a row lock."""

    def __init__(self, login: Login, profile: Profile, lock_wait: float) -> None:
        self.login = login
        self.nodes = Nodes(login)
        self.profile = profile
        self.lock_wait = lock_wait
        self.reply_timeout = login.reply_timeout(lock_wait)
        self.vitess = False  # it is Vitess, as far as connections were opened
        self.shared_mappings: SharedMappings | None = None
        self.when_committed: Callable[[float], None] | None = None  # gets the seconds of a COMMIT, in its thread
        self._commits = itertools.count(1)
        self.last_commit = 0  # another number after each commit of any connection, before anyone learns of it
        self.naming = Naming()
        self.known: KnownTables = {}  # seen since the configuration was read; older connections retire
        refuses = profile["table.fulltext"] == "refuses-rows"
        self.statements = PerMapping(partial(Statements, refuses_hidden=refuses))
        self._shapes: WeakKeyDictionary[Mapping, dict[str, object]] = WeakKeyDictionary()

    def note_commit(self) -> None:
        """Record that a connection has committed, or may have; any thread may."""
        self.last_commit = next(self._commits)

    def record_and_compare_columns(self, mapping: Mapping, part: str, shape: object) -> bool:
        """Record how a part of a table is described, and return whether it was so before; a new width cuts values."""
        shapes = self._shapes.setdefault(mapping, {})
        before = shapes.get(part)
        shapes[part] = shape
        return before is None or before == shape

    def columns(self, mapping: Mapping, part: str) -> object:
        """Return how a part of a table was described last, None if it was not read yet."""
        return self._shapes.get(mapping, {}).get(part)
