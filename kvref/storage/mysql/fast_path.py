"""Rows of one mapping for plain commands over a database server: read and written by few statements; it blocks.

A plain word is ASCII and short enough for the key column, so that it is the key as SQL has it. Whatever is odd is left
to the slow path: nothing is written then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import LockWaitError, Row
from kvref.engine.rules import Rules
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import AgainError
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import RowIdentities
from kvref.storage.mysql.schema import quote
from kvref.storage.mysql.statements import NO_WAIT, SKIP_LOCKED, Statements, literal
from kvref.storage.rows import MAX_VALUE, take_sets

# Bytes of the statement for one set without its value; the key is in it three times, with two digits for each byte.
BYTES_OF_SET: Final = 2048
BYTES_OF_DELETE: Final = 64  # the same without the key, which has two digits for each byte


class Version:
    """A version of all table definitions; `live` is False once they must be read again."""

    __slots__ = ("live",)

    def __init__(self) -> None:
        self.live = True


class PlainTable:
    """The table of one mapping, as it is now.

    Args:
        mapping: whose key finds one row.
        sql: its statements.
        identities: of its keys.
        version: of all tables.
        rules: facts of the profile.

    Attributes:
        readable: its rows can be shown without a look at their types; `writable`: sets need none either; `whole`: their
            cas numbers neither; `removable`: no row goes with another one that is deleted.
        longest_key: of plain commands, in bytes; `text`: the value is.
        select: what reads its rows, without the condition.
    """

    def __init__(
        self, mapping: Mapping, sql: Statements, identities: RowIdentities, version: Version, rules: Rules
    ) -> None:
        self.mapping = mapping
        self._sql = sql
        self._identities = identities
        key, value = mapping.key, mapping.values[0]
        self.version = version
        self.rules = rules
        self._removals: PlainRemovals | None = None
        self.longest_key = MAX_VALUE if key.width is None else key.width
        self.readable = (
            len(mapping.values) == 1
            and identities.known
            and key.kind is not Kind.INTEGER
            and _shows_ascii(key)
            and _shows_ascii(value)
            and all(each is None or _is_number(each) for each in (mapping.flags, mapping.expiry))
        )
        self.writable = self.readable and not rules.clears_unmapped and take_sets(mapping, _shows_ascii)
        self.removable = self.readable and not mapping.cascades
        self.text = value.kind is Kind.TEXT
        self.select = sql.select
        names = [each.name for each in sql.columns]
        self._flags = 0 if mapping.flags is None else names.index(mapping.flags.name)
        self._expiry = 0 if mapping.expiry is None else names.index(mapping.expiry.name)
        self._cas = 0 if mapping.cas is None else names.index(mapping.cas.name)
        self.whole = self.readable and (mapping.cas is None or _is_number(mapping.cas))
        self._begin_key = _opening(key)

    def takes_word(self, word: bytes) -> bool:
        """Return whether a get may look up a key of the wire as a plain word."""
        return self.readable and len(word) <= self.longest_key and word.isascii()

    def read(self, connection: MySQLConnection, words: Sequence[bytes]) -> tuple[dict[bytes, Cells], bool]:
        """Return the rows of some words, and whether the others have none for certain.

        Args:
            connection: outside a transaction.
            words: plain, each once.

        Raises:
            KvrefError, LockWaitError: as `MySQLConnection.execute`.
        """
        rows = connection.ask(self.mapping, self._sql.select + self.among(words))
        found = {cells[0]: cells for cells in rows}
        if len(found) == len(words) and found.keys() == set(words):
            return found, True  # type: ignore[return-value]  # no key is NULL where all are words
        return self.match(words, rows)

    def match(self, words: Sequence[bytes], rows: Sequence[Cells]) -> tuple[dict[bytes, Cells], bool]:
        """Return the row of each word that has one of some rows, see `RowIdentities.match`."""
        return self._identities.match(words, [(self._identities.spelled(cells[0]), cells) for cells in rows])  # type: ignore[return-value]

    def parts(self, cells: Cells) -> tuple[int | None, bytes, int | None]:
        """Return flags, value and expiry of a row; None for NULL and for a column that is not mapped."""
        flags = cells[self._flags] if self._flags else None
        expiry = cells[self._expiry] if self._expiry else None
        return (
            None if flags is None else int(flags),
            cells[1] or b"",
            None if expiry is None else int(expiry),
        )

    def numbers(self, cells: Cells) -> tuple[int | None, int | None, int | None]:
        """Return flags, cas and expiry of a row, see `parts`; only where `whole`."""
        flags = cells[self._flags] if self._flags else None
        cas = cells[self._cas] if self._cas else None
        expiry = cells[self._expiry] if self._expiry else None
        return (
            None if flags is None else int(flags),
            None if cas is None else int(cas),
            None if expiry is None else int(expiry),
        )

    def row(self, cells: Cells) -> Row:
        """Return a row whose cells are of SQL text; only where `whole`."""
        flags, cas, expiry = self.numbers(cells)
        return Row(cells[0], (cells[1] or b"",), flags, cas, expiry)

    @property
    def removals(self) -> PlainRemovals:
        """Return what removes rows of the table."""
        if self._removals is None:
            self._removals = PlainRemovals(self)
        return self._removals

    def write(
        self, connection: MySQLConnection, rows: dict[bytes, Row], previous: dict[bytes, bytes]
    ) -> tuple[dict[bytes, bool], str | None]:
        """Write rows in a transaction of their own.

        Args:
            connection: outside a transaction.
            rows: by their words.
            previous: words that are written only together with another one, and that one.

        Returns:
            The words that are answered, without those whose row is locked or spelled otherwise and those that go with
            them, and whether each is written; and why all of that is lost, or that its outcome is not known.

        Raises:
            KvrefError, LockWaitError: as `MySQLConnection.execute`; nothing is written.
        """
        return _in_transaction(connection, partial(self._write, connection, rows, previous))

    def _write(
        self, connection: MySQLConnection, rows: dict[bytes, Row], previous: dict[bytes, bytes]
    ) -> dict[bytes, bool]:
        locked, certain = self.lock(connection, self.among(rows))
        found = {cells[0] for cells in locked}
        certain = certain and found <= rows.keys()
        old, new = rows, {}
        if len(found) < len(rows) or not certain:
            old = {word: row for word, row in rows.items() if word in found}
            new = {word: row for word, row in rows.items() if word not in found} if certain else {}
            for word, other in previous.items():
                if other not in old and other not in new:
                    old.pop(word, None)
                    new.pop(word, None)
        sql = self._sql
        if old and connection.change(sql.update_all([*old.values()], clear_unmapped=False, keeps_value=False)) != len(
            old
        ):
            raise AgainError("not all rows were there")
        if new:
            connection.change(sql.insert_all([*new.values()], clear_unmapped=False))
        return dict.fromkeys([*old, *new], True)

    def lock(self, connection: MySQLConnection, among: str, *columns: Column) -> tuple[Sequence[Cells], bool]:
        """Lock rows without waiting, and begin a transaction.

        Args:
            connection: outside a transaction.
            among: see `among`.
            columns: what to read besides the keys.

        Returns:
            The rows, and whether every other key has none.

        Raises:
            KvrefError, LockWaitError: as `MySQLConnection.execute`.
        """
        names = ", ".join([self._sql.key_as_bytes, *[quote(each.name) for each in columns]])
        rows = f"SELECT {names} FROM {self._sql.indexed}{among}"  # noqa: S608 - identifiers are quoted
        try:
            return connection.ask(self.mapping, rows + NO_WAIT, "key", begins=True), True
        except LockWaitError:
            return connection.ask(self.mapping, rows + SKIP_LOCKED, "key", begins=True), False

    def remove(self, connection: MySQLConnection, words: Sequence[bytes]) -> None:
        """Remove rows in the transaction that has locked them.

        Raises:
            AgainError: not all of them were there.
            KvrefError, LockWaitError: as `MySQLConnection.execute`.
        """
        if connection.change(self._sql.remove_all(self.among(words))) != len(words):
            raise AgainError("not all rows were there")

    def among(self, words: Iterable[bytes]) -> str:
        """Return the condition of the rows of some words."""
        begin = self._begin_key
        keys = ", ".join([f"{begin}{word.hex()}'" for word in words])
        return f" WHERE {self._sql.key} IN ({keys})"


class PlainRemovals:
    """Removes rows of a table, in transactions without sets: a foreign key may depend on which comes first.

    Args:
        table: of the rows, which is removable.

    Attributes:
        mapping, version: of the table.
    """

    def __init__(self, table: PlainTable) -> None:
        self._table = table
        self.mapping = table.mapping
        self.version = table.version

    def write(
        self, connection: MySQLConnection, rows: dict[bytes, Row], previous: dict[bytes, bytes]
    ) -> tuple[dict[bytes, bool], str | None]:
        """Remove rows in a transaction of their own, see `PlainTable.write`; one that is missing is not written.

        A row that is expired, or soon is, counts as locked; one that is spelled otherwise is removed.
        """
        return _in_transaction(connection, partial(self._remove, connection, rows, previous))

    def _remove(
        self, connection: MySQLConnection, rows: dict[bytes, Row], previous: dict[bytes, bytes]
    ) -> dict[bytes, bool]:
        table, expiry = self._table, self.mapping.expiry
        locked, certain = table.lock(connection, table.among(rows), *(() if expiry is None else (expiry,)))
        found, matched = table.match([*rows], locked)
        soon = int(time.time()) + 1
        removed: dict[bytes, bool] = {}
        taken: set[bytes | None] = set()
        for word in rows:
            if word in previous and previous[word] not in removed:
                continue
            cells = found.get(word)
            if cells is None:
                if certain and matched:
                    removed[word] = False
                continue
            until = cells[1] if expiry else None
            # Of one row, under another spelling, the first delete removes it.
            if cells[0] not in taken and not (until is not None and table.rules.is_over(int(until), soon)):
                removed[word] = True
                taken.add(cells[0])
        there = [word for word, is_there in removed.items() if is_there]
        if there:
            table.remove(connection, there)
        return removed


def _in_transaction(
    connection: MySQLConnection, write: Callable[[], dict[bytes, bool]]
) -> tuple[dict[bytes, bool], str | None]:
    """Return what `write` does, and the outcome of the commit, which nothing needs if it has written nothing."""
    try:
        written = write()
    except BaseException:
        connection.roll_back()
        raise
    if True not in written.values():
        connection.roll_back()
        return written, None
    return written, connection.commit()


def _shows_ascii(column: Column) -> bool:
    """Return whether SQL shows a cell's bytes as the wire has them, and ASCII is the same in them."""
    if column.kind is Kind.BYTES:
        return column.codec is None
    # CHAR is filled up with spaces on the wire.
    unpadded = column.codec is None or column.codec.from_sql(b"a") == b"a"
    return column.kind is Kind.TEXT and column.charset.unit in (0, 1) and unpadded


def _is_number(column: Column) -> bool:
    return column.kind is Kind.INTEGER and column.codec is None


def _opening(column: Column) -> str:
    """Return the part of a literal before its hexadecimal digits."""
    return literal(column, b"").removesuffix("'") if column.kind is not Kind.INTEGER else ""
