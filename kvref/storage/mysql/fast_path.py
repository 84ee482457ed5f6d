"""Rows of one mapping for plain commands over a database server: read and written by few statements; it blocks.

A plain word is ASCII and short enough for the key column, so that it is the key as SQL has it. Whatever is odd is left
to the verbs: nothing is written then, and nothing said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import LockWaitError
from kvref.engine.rules import Rules
from kvref.protocol.fast_path import END, shown
from kvref.storage.fast_path import LARGEST_VALUE, take_sets
from kvref.storage.mysql.connection import Link
from kvref.storage.mysql.errors import AgainError
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Places
from kvref.storage.mysql.schema import quote
from kvref.storage.mysql.statements import NO_WAIT, SKIP_LOCKED, Statements, literal

# Bytes of a statement for a set beside its value, whose digits are two for each byte: its key comes three times.
BYTES_OF_SET: Final = 2048


class PlainSet:
    """What a plain set writes.

    Args:
        word: a plain one.
        flags: 0 to LARGEST_FLAGS.
        value: up to `PlainTable.longest_value` bytes, ASCII where the column is text.
    """

    __slots__ = ("flags", "value", "word")

    def __init__(self, word: bytes, flags: int, value: bytes) -> None:
        self.word = word
        self.flags = flags
        self.value = value

    @property
    def size(self) -> int:
        """Return how many bytes it has in a statement, at most."""
        return BYTES_OF_SET + 2 * len(self.value)


class Version:
    """What was seen of all tables together; live: until they are looked at anew."""

    __slots__ = ("live",)

    def __init__(self) -> None:
        self.live = True


class PlainTable:
    """The table of one mapping, as it is now.

    Args:
        mapping: whose key finds one row.
        sql: its statements.
        places: of its keys.
        version: of all tables.
        rules: facts in force.

    Attributes:
        readable: its rows can be shown without a look at their types; `writable`: sets need none either.
        longest_key, longest_value: of plain commands, in bytes; `text`: the value is.
    """

    def __init__(self, mapping: Mapping, sql: Statements, places: Places, version: Version, rules: Rules) -> None:
        self.mapping = mapping
        self._rules = rules
        self._sql = sql
        self._places = places
        key, value = mapping.key, mapping.values[0]
        self.version = version
        self.longest_key = LARGEST_VALUE if key.width is None else key.width
        self.readable = (
            len(mapping.values) == 1
            and places.known
            and key.kind is Kind.TEXT
            and _shows_ascii(key)
            and _shows_ascii(value)
            and all(each is None or _is_number(each) for each in (mapping.flags, mapping.expiry))
        )
        self.writable = self.readable and not rules.clears_unmapped and take_sets(mapping, _shows_ascii)
        self.longest_value = LARGEST_VALUE if value.width is None else min(value.width, LARGEST_VALUE)
        self.text = value.kind is Kind.TEXT
        names = [each.name for each in sql.columns]
        self._flags = 0 if mapping.flags is None else names.index(mapping.flags.name)
        self._expiry = 0 if mapping.expiry is None else names.index(mapping.expiry.name)
        self._begin_key, self._begin_value = _opening(key), _opening(value)

    def read(self, link: Link, words: Sequence[bytes]) -> tuple[dict[bytes, Cells], bool]:
        """Return the rows of some words, and whether the others have none for certain.

        Args:
            link: outside a transaction.
            words: plain, each once.

        Raises:
            KvrefError, LockWaitError: as `Link.execute`.
        """
        rows = link.ask(self.mapping, self._sql.select + self._among(words))
        found = {cells[0]: cells for cells in rows}
        if len(found) == len(words) and found.keys() == set(words):
            return found, True  # type: ignore[return-value]  # no key is NULL where all are words
        return self._places.match(words, [(self._places.spelled(cells[0]), cells) for cells in rows])  # type: ignore[return-value]

    def shown(self, word: bytes, cells: Cells, now: int) -> bytes:
        """Return the reply to a get of a row.

        Args:
            word: as the client sent it.
            cells: of the row.
            now: UNIX time in whole seconds.
        """
        expiry = cells[self._expiry] if self._expiry else None
        if expiry and self._rules.is_over(int(expiry), now):
            return END
        flags = cells[self._flags] if self._flags else None
        return shown(word, int(flags) % (1 << 32) if flags else 0, cells[1] or b"") + END

    def write(
        self, link: Link, sets: Sequence[PlainSet], numbers: Sequence[int]
    ) -> tuple[set[bytes | None], str | None]:
        """Write rows in a transaction of their own.

        Args:
            link: outside a transaction.
            sets: of different words.
            numbers: their cas numbers.

        Returns:
            The words that are written, which lacks those whose row is locked or spelled otherwise; and why that is
            lost, or that its outcome is not known.

        Raises:
            KvrefError, LockWaitError: as `Link.execute`; nothing is written.
        """
        try:
            written = self._write(link, list(zip(sets, numbers, strict=True)))
        except BaseException:
            link.roll_back()
            raise
        if not written:
            link.roll_back()
            return written, None
        return written, link.commit()

    def _write(self, link: Link, pairs: list[tuple[PlainSet, int]]) -> set[bytes | None]:
        words = {each.word for each, _ in pairs}
        found, certain = self._lock(link, self._among([each.word for each, _ in pairs]))
        certain = certain and found <= words
        old, new = pairs, []
        if len(found) < len(pairs) or not certain:
            old = [pair for pair in pairs if pair[0].word in found]
            new = [pair for pair in pairs if pair[0].word not in found] if certain else []
        if old and link.change(self._update(old)) != len(old):
            raise AgainError("not all rows were there")
        if new:
            link.change(self._insert(new))
        return {each.word for each, _ in (*old, *new)}

    def _lock(self, link: Link, among: str) -> tuple[set[bytes | None], bool]:
        """Lock rows, waiting for nobody; returns their keys, and whether any other is not there for certain."""
        keys = f"SELECT {self._sql.key_as_bytes} FROM {self._sql.indexed}{among}"  # noqa: S608 - identifiers are quoted
        try:
            return {cells[0] for cells in link.ask(self.mapping, keys + NO_WAIT, "key", begins=True)}, True
        except LockWaitError:
            return {cells[0] for cells in link.ask(self.mapping, keys + SKIP_LOCKED, "key", begins=True)}, False

    def _among(self, words: Sequence[bytes]) -> str:
        begin = self._begin_key
        keys = ", ".join([f"{begin}{word.hex()}'" for word in words])
        return f" WHERE {self._sql.key} IN ({keys})"

    def _update(self, pairs: Sequence[tuple[PlainSet, int]]) -> str:
        keys = [each.word.hex() for each, _ in pairs]
        begin = self._begin_value
        sets = [(self.mapping.values[0], [f"{begin}{each.value.hex()}'" for each, _ in pairs]), *self._options(pairs)]
        texts = [f"{quote(column.name)} = {self._case(keys, cells)}" for column, cells in sets]
        among = self._among([each.word for each, _ in pairs])
        return f"UPDATE {self._sql.indexed} SET {', '.join(texts)}{among}"  # noqa: S608 - identifiers are quoted

    def _case(self, keys: list[str], cells: list[str]) -> str:
        if cells.count(cells[0]) == len(cells):
            return cells[0]
        # Found rows have these bytes: no need to compare by a collation, which costs ten times as much.
        cases = " ".join([f"WHEN X'{key}' THEN {cell}" for key, cell in zip(keys, cells, strict=True)])
        return f"CASE {self._sql.key_as_bytes} {cases} END"

    def _insert(self, pairs: Sequence[tuple[PlainSet, int]]) -> str:
        options = self._options(pairs)
        columns = (self.mapping.key, self.mapping.values[0], *[column for column, _ in options])
        names = ", ".join([quote(column.name) for column in columns])
        cells = [
            [f"{self._begin_key}{each.word.hex()}'" for each, _ in pairs],
            [f"{self._begin_value}{each.value.hex()}'" for each, _ in pairs],
            *[cells for _, cells in options],
        ]
        rows = ", ".join([f"({', '.join(row)})" for row in zip(*cells, strict=True)])
        return f"INSERT INTO {self.mapping.source} ({names}) VALUES {rows}"  # noqa: S608 - identifiers are quoted

    def _options(self, pairs: Sequence[tuple[PlainSet, int]]) -> list[tuple[Column, list[str]]]:
        mapping = self.mapping
        found = []
        if mapping.flags is not None:
            found.append((mapping.flags, [str(each.flags) for each, _ in pairs]))
        if mapping.cas is not None:
            found.append((mapping.cas, [str(number) for _, number in pairs]))
        if mapping.expiry is not None:
            found.append((mapping.expiry, ["0"] * len(pairs)))
        return found


def _shows_ascii(column: Column) -> bool:
    """Tell whether SQL shows a cell's bytes as the wire has them, and ASCII is the same in them."""
    if column.kind is Kind.BYTES:
        return column.form is None
    # CHAR is filled up with spaces on the wire.
    unpadded = column.form is None or column.form.from_sql(b"a") == b"a"
    return column.kind is Kind.TEXT and column.charset.unit in (0, 1) and unpadded


def _is_number(column: Column) -> bool:
    return column.kind is Kind.INTEGER and column.form is None


def _opening(column: Column) -> str:
    """Return what stands in front of the hexadecimal digits of a literal."""
    return literal(column, b"").removesuffix("'") if column.kind is not Kind.INTEGER else ""
