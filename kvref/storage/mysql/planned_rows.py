"""Rows of one mapping for planned commands over a database server: read, locked and written by few statements.

The functions of `MySQLRows` that take a connection block, and change nothing outside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kvref.engine.mapping import Directory, Kind
from kvref.engine.operations import Cell, Insert, LockWaitError, Remove, Row, Update
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, FLAGS, HIT, VALUES, CachedRow, Parameters, Renewal, written_row
from kvref.engine.values import RefusedError, to_bytes
from kvref.protocol.hits import renamed
from kvref.storage.config.containers import Container
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog.events import KeyTypes, Table
from kvref.storage.mysql.binlog.row_cache import CachedTable, RowCache
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import RetryableError, RowLockedError
from kvref.storage.mysql.mapped_table import MappedTable, StoredKey
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.statements import (
    NO_WAIT,
    SHARED,
    SHARED_BY_MYSQL,
    SKIP_LOCKED,
    WITHOUT_LOCKED,
    WITHOUT_WAITING,
)
from kvref.storage.mysql.write_batch import Operation
from kvref.storage.planned_rows import RowReader, bytes_of_row
from kvref.storage.rows import Remembered

MIN_ROW: Final = 1 << 10  # bytes
_VALUE: Final = b"VALUE "  # in front of the word in what a get shows
MAX_IDENTITIES: Final = 1 << 14  # kept of words, whose folding takes longer than all else


class UncertainError(RetryableError):
    """The server compares keys otherwise than `RowIdentities`: only a statement for one key says whose row it is."""


class Found(NamedTuple):
    """The row of a word as a get shows it, and as the table has it; ABSENT and None if there is none."""

    row: CachedRow
    stored: Row | None


_NONE: Final = Found(ABSENT, None)


class _NoKey(NamedTuple):
    """The identity of a word that no row can have as its key."""

    word: bytes


class MySQLRows:
    """The rows of one mapping, see `KnownRows`.

    Attributes:
        cached: those of the row cache, None without one.
        rows: the cached ones; none without a row cache.
        largest: about how many bytes the largest row has that was read; before one is, see `bytes_of_row`.
        may_conflict: a row may be refused because of another one, or be deleted with it.
        missing: always empty: that a row is missing is not known without a query.
    """

    missing: Set[bytes]

    def __init__(self, bound: Bound, table: MappedTable, isolation: Isolation, directory: Directory) -> None:
        self.missing = set()
        self.cached: CachedRows | None = None
        self.rows: RowReader = dict[bytes, CachedRow]()
        self.largest = bytes_of_row(bound.mapping)
        self._seen_largest = MIN_ROW
        self._bound = bound
        self.mapping = self._mapping = bound.mapping
        self._table = table
        self._identities = table.identities
        self._isolation = isolation
        self._directory = directory
        self._generation = directory.generation
        # What all words of one row have in common; None if only the server can compare it.
        self.identity = Remembered[bytes, Hashable](self._identity, MAX_IDENTITIES)
        self._clears = bound.rules.clears_unmapped
        self.may_conflict = self._mapping.other_unique or self._mapping.cascades
        self._is_simple = bound.all_mapped and len(bound.mapping.values) == 1

    def in_order(self, operations: Sequence[Operation]) -> bool:
        """Return whether each row is written by itself: whether one is refused depends on those before it.

        Another unique index refuses no update that leaves its columns as they are, or makes them NULL.
        """
        if not self.may_conflict:
            return False
        if self._mapping.cascades or self._mapping.unique_values:
            return True
        return not all(type(each) is Update and each.row.key == each.key for each in operations)

    @property
    def source(self) -> MySQLRows:
        """Return what knows whether mapping and settings are as they were."""
        return self

    @property
    def live(self) -> bool:
        return self._table.version.live and self._directory.generation == self._generation and not self._mapping.fault

    def require_live(self) -> None:
        """Raise RetryableError if the table was altered, or settings have changed, since commands were planned."""
        if not self.live:
            raise RetryableError(f"the columns of {self._mapping.source} changed")

    @property
    def hits(self) -> int:
        return 0 if self.cached is None else self.cached.cache.hits

    @hits.setter
    def hits(self, number: int) -> None:
        if self.cached is not None:
            self.cached.cache.hits = number

    def use_cache(self, cache: RowCache, is_new: Callable[[CachedTable], bool]) -> None:
        """Show rows of a cache; `is_new` returns whether kept rows of a table may be shown now."""
        container = self.mapping.row
        assert isinstance(container, Container)
        source = container.db_schema or "", container.db_table or ""
        form = self.mapping.name, self._table.select, self._directory.separator, MySQLRows
        types = {Kind.INTEGER: KeyTypes.INTEGER, Kind.TEXT: KeyTypes.CHAR}.get(self.mapping.key.kind, KeyTypes.NONE)
        self.rows = self.cached = CachedRows(self, cache, (form, source, types), is_new)

    def plan_write(self, word: bytes) -> None:
        """Show no row of a word directly until `written` was called as often."""
        if self.cached is not None:
            self.cached.planned[self.identity(word)] += 1

    def written(self, word: bytes) -> None:
        """Note that a command that `plan_write` was called for is answered."""
        if self.cached is not None:
            planned, identity = self.cached.planned, self.identity(word)
            planned[identity] -= 1
            if not planned[identity]:
                del planned[identity]

    def key_of(self, word: bytes) -> StoredKey | None:
        """Return the key of a word as the table stores it; None if only the server can compare it, or there is none."""
        key = self._table.key_of(word)
        if key is not None:
            return key
        try:
            cell = self._bound.session.key_to_find(self._mapping, word)
        except RefusedError:
            return None
        return None if cell is None else self._identities.stored_key(cell)

    def stored_key(self, found: Found) -> StoredKey | None:
        """Return the key of a row as the table stores it; None if only the server can compare it."""
        return None if found.stored is None else self._identities.stored_key(found.stored.key)

    def locked_row(self, word: bytes) -> Hashable:
        """Return what names the row of a word among the rows of all mappings with this key.

        None: no row can have this key, or only the server can compare it.
        """
        identity = self.identity(word)
        if identity is None or isinstance(identity, _NoKey):
            return None
        return self._mapping.source, self._mapping.key.name, identity

    def identities(self, words: Iterable[bytes]) -> list[Hashable]:
        """Return the identity of each word."""
        known = self.identity.made
        return [known[word] if word in known else self.identity(word) for word in words]

    def _identity(self, word: bytes) -> Hashable:
        cell = self._bound.session.key_to_find(self._mapping, word)
        if cell is None:
            return _NoKey(word)
        stored_key = self._identities.stored_key(cell)
        try:
            return None if stored_key is None else self._identities.identity(stored_key)
        except UnicodeDecodeError:
            return None

    def read_many(
        self, connection: MySQLConnection, words: Sequence[bytes]
    ) -> tuple[dict[bytes, CachedRow], set[bytes]]:
        """Return the rows of some words, each once, and the words whose rows others may have locked.

        Raises as `MySQLConnection.execute`; UncertainError: which row is whose is known only of fewer words.
        """
        if self._isolation.reads_lock:
            return self._read_shared(connection, words)
        if self._takes(words) and not self._isolation.shows_deletes:
            rows = self._shown(self._cells(connection, words, ""))
            return rows if len(rows) == len(words) else dict.fromkeys(words, ABSENT) | rows, set()
        shown_rows, _ = self._read(connection, words, "")
        if self._isolation.shows_deletes:
            keys = {word: each.stored.key for word, each in shown_rows.items() if each.stored is not None}
            if keys:
                present = {to_bytes(each) for each in connection.present(self._mapping, set(keys.values()))}
                shown_rows.update({word: _NONE for word, key in keys.items() if to_bytes(key) not in present})
        return {word: each.row for word, each in shown_rows.items()}, set()

    def find(self, connection: MySQLConnection, words: Sequence[bytes]) -> dict[bytes, Found]:
        """Return the rows of those of some words that have one; otherwise as `read_many`, and without any lock."""
        found, _ = self._read(connection, words, "")
        return {word: each for word, each in found.items() if each.stored is not None}

    def _read_shared(
        self, connection: MySQLConnection, words: Sequence[bytes]
    ) -> tuple[dict[bytes, CachedRow], set[bytes]]:
        """Return what `read_many` does of rows that no other transaction has written without committing."""
        lock = SHARED_BY_MYSQL if connection.mariadb is None else SHARED
        missing: set[bytes] = set()
        try:
            found, _ = self._read(connection, words, lock + WITHOUT_WAITING, begins=False)
        except LockWaitError as error:
            _require_row_lock(connection, error)
            found, missing = self._read(connection, words, lock + WITHOUT_LOCKED, begins=False)
        return {word: each.row for word, each in found.items()}, missing

    def shards_of(self, connection: MySQLConnection, words: Sequence[bytes]) -> dict[bytes, object]:
        """Return which shard of Vitess has the row of each word; None: it has none, the word itself: it is not known.

        The connection is outside a transaction; raises as `MySQLConnection.execute`.
        """
        cells = {word: self._bound.session.key_to_find(self._mapping, word) for word in words}
        shards: dict[bytes, object] = {word: None if cell is None else word for word, cell in cells.items()}
        keys = {
            word: cell for word, cell in cells.items() if cell is not None and not (isinstance(cell, int) and cell < 0)
        }
        if keys:
            shards.update(zip(keys, connection.shards(self._mapping, [*keys.values()]), strict=True))
        return shards

    def lock_many(self, connection: MySQLConnection, words: Sequence[bytes]) -> tuple[dict[bytes, Found], set[bytes]]:
        """Lock the rows of some words of different rows without waiting, and begin a transaction if none is open.

        Returns the rows, and the words whose rows others may have locked. Raises as `read_many`; LockWaitError: another
        transaction has locked the whole table.
        """
        found = self.lock_all(connection, words)
        return self._read(connection, words, SKIP_LOCKED) if found is None else (found, set())

    def lock_all(self, connection: MySQLConnection, words: Sequence[bytes]) -> dict[bytes, Found] | None:
        """Lock the rows of some words of different rows without waiting; return them, None if one of them is locked.

        None: rows up to that one in the order of the index may be locked now, and none behind it: where all lock rows
        in this order, waiting for it is not a deadlock. Begins a transaction and raises as `lock_many`.
        """
        continues = connection.in_transaction
        try:
            return self._read(connection, words, NO_WAIT)[0]
        except LockWaitError as error:
            _require_row_lock(connection, error)
            if continues:
                connection.require_open()  # what was written is gone with some settings, and in some clusters
        return None

    def _read(
        self, connection: MySQLConnection, words: Sequence[bytes], lock: str, *, begins: bool = True
    ) -> tuple[dict[bytes, Found], set[bytes]]:
        """Return the rows of words, and the words that have none; see `MySQLConnection.look_up_all`."""
        if self._takes(words):
            cells = self._cells(connection, words, lock, begins=begins)
            found = {
                word: Found(
                    row,
                    Row(self._table.key_in(cells[word]), row[VALUES] or (cells[word][1] or b"",), *row[FLAGS:VALUES]),
                )
                for word, row in self._shown(cells).items()
            }
        else:
            found = self._read_any(connection, words, lock, begins=begins)
        missing = {word for word in words if word not in found}
        found.update(dict.fromkeys(missing, _NONE))
        return found, missing

    def _takes(self, words: Sequence[bytes]) -> bool:
        """Return whether the cells of SQL text say all about the rows of some words."""
        return self._table.whole and self._table.takes_words(words)

    def _cells(
        self, connection: MySQLConnection, words: Sequence[bytes], lock: str, *, begins: bool = True
    ) -> dict[Any, Any]:
        """Return the cells of the row of each word that has one, see `_takes`."""
        table = self._table
        rows = connection.select_raw(
            self._mapping, table.select + table.among(words) + lock, begins=begins and bool(lock)
        )
        found: dict[Any, Any] = {cells[0]: cells for cells in rows}
        if len(found) == len(words) and found.keys() == set(words):
            return found
        if table.is_number:  # of ZEROFILL, SQL shows more digits
            return {b"%d" % int(cells[0] or b""): cells for cells in rows}
        return self._matched(words, [(self._identities.stored_key(cells[0]), cells) for cells in rows])

    def _shown(self, found: dict[bytes, Cells]) -> dict[bytes, CachedRow]:
        rows = self._table.rows(found, self._directory.separator)
        if rows:
            self._measure(max([len(row[HIT]) for row in rows.values()]))
        return rows

    def _read_any(
        self, connection: MySQLConnection, words: Sequence[bytes], lock: str, *, begins: bool
    ) -> dict[bytes, Found]:
        sought: dict[StoredKey, list[bytes]] = {}
        cells: list[Cell] = []
        for word in words:
            cell = self._bound.session.key_to_find(self._mapping, word)
            if cell is None:
                continue
            stored_key = self._identities.stored_key(cell)
            if stored_key is None:
                raise UncertainError(f"{self._mapping.key.collation} compares this key otherwise")
            if stored_key not in sought:
                cells.append(cell)
            sought.setdefault(stored_key, []).append(word)
        if not sought:
            return {}
        rows = connection.look_up_all(self._mapping, cells, lock, begins=begins)
        found = self._matched([*sought], [(self._identities.stored_key(row.key), row) for row in rows])
        return {word: self._found(word, row) for stored_key, row in found.items() for word in sought[stored_key]}

    def _matched(self, wanted: Sequence[StoredKey], rows: list[tuple[StoredKey | None, Any]]) -> dict[StoredKey, Any]:
        found, complete = self._identities.match(wanted, rows)
        if complete:
            return found
        if len(wanted) > 1:
            raise UncertainError("the server found rows of other keys than expected")
        return {wanted[0]: rows[0][1]} if rows else {}

    def _measure(self, size: int) -> None:
        """Let `largest` follow the rows that are read: columns without a width would allow any size."""
        self.largest = self._seen_largest = max(self._seen_largest, size)

    def _found(self, word: bytes, row: Row) -> Found:
        cached = self._bound.row(word, row.values, 0, row.flags, row.cas, row.expiry)
        self._measure(len(cached[0]))
        return Found(cached, row)

    def operation(self, word: bytes, found: Found, new: CachedRow, parameters: Parameters | None) -> Operation:
        """Return what writes the decided row of a word, `found` before; `new`, `parameters`: see `Decision`."""
        mapping, stored = self._mapping, found.stored
        if stored is None:
            assert parameters is not None, "of no row nothing is deleted"
            return Insert(mapping, self._row(self._bound.key(word), parameters), self._clears)
        if parameters is None:
            return Remove(mapping, stored.key)
        if isinstance(parameters, Renewal):
            cas = None if mapping.cas is None else new[CAS]
            row = replace(stored, cas=cas, expiry=new[EXPIRY])
            return Update(mapping, stored.key, row, clear_unmapped=False, value_unchanged=True)
        # An unchanged key is not written again.
        renamed_key = self._bound.rules.renames_key and stored.key != word
        key = self._bound.key(word) if renamed_key else stored.key
        return Update(mapping, stored.key, self._row(key, parameters), self._clears)

    def _row(self, key: Cell, parameters: Parameters) -> Row:
        if self._is_simple:
            value, flags, cas, expiry = parameters
            return Row(key, (value,), flags, cas, expiry)  # type: ignore[arg-type]  # numbers, or NULL
        return written_row(self._mapping, key, parameters)


class CachedRows:
    """The kept rows of one mapping, those that are as new as the server and that no planned command writes.

    Args:
        rows: of the mapping.
        cache: has them.
        place: of its part of the cache, see `RowCache.table`.
        is_new: returns whether kept rows may be shown now.

    Attributes:
        planned: identities of rows that planned commands write, with the number of commands.
    """

    def __init__(
        self,
        rows: MySQLRows,
        cache: RowCache,
        place: tuple[Hashable, Table, KeyTypes],
        is_new: Callable[[CachedTable], bool],
    ) -> None:
        self.cache = cache
        self.stored_key = rows.key_of
        self.planned: Counter[Hashable] = Counter()
        self._identity = rows.identity
        self._place = place
        self._table = cache.table(*place)
        self._is_new = is_new
        self._shown: bool | None = None  # may kept rows be shown; None: not checked since the last input

    def table(self) -> CachedTable:
        """Return the part of the cache."""
        if not self._table.live:
            self._table = self.cache.table(*self._place)
        return self._table

    def check_again(self, up_to_date: Callable[[float], bool], now: float) -> bool:
        """Check with the next row that is read whether kept rows may be shown: new input has arrived.

        Returns what `up_to_date` says of the tables at a loop time.
        """
        self._shown = None
        return up_to_date(now)

    def get(self, word: bytes) -> CachedRow | None:
        cached = self.table()
        row = cached.rows.get(self.stored_key(word))  # type: ignore[arg-type]  # of None there is no row
        if row is None or (self.planned and (None in self.planned or self._identity(word) in self.planned)):
            return None
        if self._shown is None:
            self._shown = self._is_new(cached)
        return shown_for(row, word) if self._shown else None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, bytes) and self.get(word) is not None


def shown_for(row: CachedRow, word: bytes) -> CachedRow:
    """Return a row, which there is, as a get of a word shows it: a kept row has the word of the get that read it."""
    hit = row[HIT]
    own_word = hit[len(_VALUE) : hit.index(b" ", len(_VALUE))]
    return row if own_word == word else (renamed(hit, own_word, word), *row[1:])


def _require_row_lock(connection: MySQLConnection, error: LockWaitError) -> None:
    """Raise an error of a statement with NOWAIT again if the whole table is locked: SKIP LOCKED would wait for that.

    MariaDB does not say which it is.
    """
    if connection.mariadb is None and not isinstance(error, RowLockedError):
        raise error


def unplanned(table: MappedTable) -> str:
    """Return why the commands of a mapping are not planned, empty if they are."""
    mapping = table.mapping
    if not table.identities.known:
        return f"the server alone compares keys of {mapping.key.collation or 'this column'}"
    if any(each.fixed or each.exact for each in mapping.values):
        return "a column shows something else than what is written"
    columns = [mapping.key, *mapping.values, *(each for each in mapping.options.values() if each)]
    return "a column is mapped twice" if len({each.name for each in columns}) < len(columns) else ""
