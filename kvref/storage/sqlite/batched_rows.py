"""The rows of one mapping as the open transaction of one connection shows them to planned commands.

Pending rows are those of `transactions.py`, whoever has written them. A command for which this module returns None
runs by steps: it waits for a lock, or names its row by another spelling.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import Final, NamedTuple

from kvref.engine.operations import Cell
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, HIT, CachedRow, Parameters
from kvref.engine.values import RefusedError, to_bytes
from kvref.errors import StoreError
from kvref.protocol.hits import renamed
from kvref.storage.isolation import Isolation
from kvref.storage.planned_rows import Overlay, RowReader, Source
from kvref.storage.sqlite.planned_rows import PlannedWrite, SQLiteRows, is_text
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.sqlite.transactions import Identity, Transaction, Transactions, Version

MAX_IDENTITIES: Final = 1 << 14  # of words that are kept
MAX_WRITE: Final = 2 << 20  # bytes that a planned write may add to the pending ones in addition to its row
_NO_ROWS: Final[dict[bytes, CachedRow]] = {}
_NOTHING: Final[frozenset[bytes]] = frozenset()


class Named(NamedTuple):
    """The row that a word names: its identity among pending rows, and its key as the cell of the key column.

    `exact`: a row that is written under this word is stored under the same bytes.
    """

    identity: Identity
    key: Cell
    sql_key: Cell
    exact: bool


# A row as a command finds it, and whether a reply that shows it waits for no commit.
Seen = tuple[CachedRow, bool]


class BatchedRows:
    """The rows of one mapping, for the commands of connections with batches, see `KnownRows`."""

    def __init__(
        self, rows: SQLiteRows, bound: Bound, store: SQLiteStore, transactions: Transactions, isolation: Isolation
    ) -> None:
        self._rows = rows
        self._bound = bound
        self._store = store
        self._cache = store.cache
        self._sql = store.statements(bound.mapping)
        self._transactions = transactions
        self._pending = transactions.pending
        self._isolation = isolation
        self._named: dict[bytes, Named | None] = {}
        self.rows: RowReader = _NO_ROWS
        self.missing: Set[bytes] = _NOTHING
        self.source: Source = rows.source
        self.hits = 0
        self._sought: Sequence[bytes] = ()  # words whose rows are read together
        self._overlay: Overlay | None = None  # committed rows that were read in this turn
        self._clears = -1  # at which number of `RowCache.clears`

    @property
    def largest(self) -> int:
        return self._rows.largest

    def plan_write(self, word: bytes) -> None:  # noqa: ARG002 - see `KnownRows`
        """Let the connection wait for its own commands: gets that follow are planned."""
        self.rows, self.missing = _NO_ROWS, _NOTHING

    def show_directly(self, *, shown: bool) -> None:
        """Decide whether gets show committed rows without a plan, as far as they are known."""
        if shown:
            self.rows, self.missing = self._rows.rows, self._rows.missing
        else:
            self.rows, self.missing = _NO_ROWS, _NOTHING

    @property
    def may_show(self) -> bool:
        """Return whether a connection that has written nothing sees each row as it is committed."""
        return not self._pending or not (
            self._isolation.reads_uncommitted or self._isolation.reads_lock or self._isolation.shows_deletes
        )

    @property
    def may_be_refused(self) -> bool:
        """Return whether the table can refuse a row for more than its key when a batch is committed."""
        return self._store.has_rules(self._bound.mapping)

    def begin(self) -> bool:
        """Return whether the write lock is taken that a commit needs; raises StoreError."""
        return self._rows.begin()

    def seek(self, words: Sequence[bytes]) -> None:
        """Read the rows of some words together, once one of them is needed; forget what was read before."""
        self._sought, self._overlay = words, None

    def forget(self) -> None:
        """Read rows again: a commit may have changed them."""
        self._overlay = None

    def read(self, transaction: Transaction, word: bytes) -> Seen | None:
        """Return the row that a get of a word shows, None if it has to wait for a lock; raises StoreError."""
        if not self._pending:
            return self._committed(word)
        named = self._named.get(word) or self.named(word)
        if named is None:
            return self._committed(word)  # there is none, or its key has no pending row
        identity = named.identity
        version = transaction.versions.get(identity)
        isolation = self._isolation
        if version is None:
            others = self._pending.newest_of(identity, locked=isolation.row_locks)
            if others is not None and isolation.reads_uncommitted:
                version = others
            elif isolation.reads_lock and self._pending.holders.get(identity) not in (None, transaction):
                return None
            elif others is not None and isolation.shows_deletes and _deletes(others):
                return ABSENT, True
        return self._committed(word) if version is None else (self._shown(version, word), True)

    def find(self, transaction: Transaction, word: bytes) -> tuple[Named, CachedRow, bool] | None:
        """Return the row that a write of a word finds, as `read` does; None if the command runs by steps.

        Raises StoreError.
        """
        named = self._named.get(word) or self.named(word)
        if named is None or not named.exact:
            return None
        identity, row_locks = named.identity, self._isolation.row_locks
        if row_locks and self._pending.holders.get(identity, transaction) is not transaction:
            return None
        version: Version | PlannedWrite | None = transaction.versions.get(identity)
        if version is None and not row_locks:
            version = self._pending.newest_of(identity, locked=False)
        if version is not None:
            if type(version) is not PlannedWrite or version.rows is not self._rows or version.word != word:
                return None
            return (named, version.cached, True) if self._may_add(transaction, version.cached) else None
        row, durable = self._committed(word)
        overlay = self._overlay
        if (overlay is not None and word in overlay.aliases) or self._rows.has_blobs():
            return None
        return (named, row, durable) if self._may_add(transaction, row) else None

    def _may_add(self, transaction: Transaction, row: CachedRow) -> bool:
        """Return whether the pending writes of a transaction are far below their limit."""
        return transaction.size + len(row[HIT]) + MAX_WRITE <= self._pending.max_bytes

    def add(
        self,
        transaction: Transaction,
        named: Named,
        word: bytes,
        row: CachedRow,
        new: CachedRow,
        parameters: Parameters,
    ) -> bool:
        """Keep a write until the commit; return whether the file can hold it: if not, nothing is kept."""
        kind = self._rows.kind_of(row, new, parameters)
        write = PlannedWrite(self._rows, kind, word, named.key, named.sql_key, new, parameters)
        size = write.measure()
        if size < 0:
            return False
        try:
            self._transactions.add_planned(transaction, named.identity, write, size)
        except StoreError:
            return False
        return True

    def named(self, word: bytes) -> Named | None:
        """Return what a word names, None if that is not a row that the file can hold."""
        if word in self._named:
            return self._named[word]
        if len(self._named) >= MAX_IDENTITIES:
            self._named.clear()
        found = self._named[word] = self._name(word)
        return found

    def _name(self, word: bytes) -> Named | None:
        try:
            cell = self._bound.key(word)
        except RefusedError:
            return None  # see `Session.key_to_find`; no mapping of planned commands is unsearchable
        key = self._sql.key(cell)
        if isinstance(key, str) and not key.isascii() and not is_text(key):
            return None
        identity: Hashable = self._sql.identity(cell)
        return Named((self._bound.mapping.source, identity), cell, key, self._rows.shown_key(cell) == word)

    def _shown(self, version: Version | PlannedWrite, word: bytes) -> CachedRow:
        """Return a pending row as a get of a word shows it."""
        if type(version) is PlannedWrite and version.rows is self._rows:
            row, key = version.cached, version.word
        else:
            found = self._transactions.shown(self._bound.mapping, version)
            if found is None:
                return ABSENT
            key = to_bytes(found.key)
            row = self._bound.row(key, found.values, 0, found.flags, found.cas, found.expiry)
        return row if key == word or not row[HIT] else (renamed(row[HIT], key, word), *row[1:])

    def _committed(self, word: bytes) -> Seen:
        """Return a row as the commits of all connections leave it."""
        rows = self._rows
        row = rows.rows.get(word)
        if row is not None:
            return row, True
        if word in rows.missing:
            return ABSENT, True
        if self._clears != self._cache.clears:
            self._overlay, self._clears = None, self._cache.clears
        overlay = self._overlay
        if overlay is None or (word not in overlay.rows and word not in overlay.aliases):
            sought = self._sought if word in self._sought else (word,)
            overlay = self._overlay = rows.read_many(sought, written=False)
        key = overlay.aliases.get(word, word)
        row = overlay.rows[key]
        if key != word and row[HIT]:
            row = renamed(row[HIT], key, word), *row[1:]
        return row, not (overlay.all_not_durable or key in overlay.not_durable)


def _deletes(version: Version | PlannedWrite) -> bool:
    return not version.cached[HIT] if type(version) is PlannedWrite else version.row is None
