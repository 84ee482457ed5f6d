"""The table of one mapping: which keys are one row, whether rows can be used as SQL has them, and how some are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from kvref import collations
from kvref.engine.mapping import Column, Kind
from kvref.engine.mapping import Mapping as TableMapping
from kvref.engine.operations import Cell
from kvref.engine.plans.plan import CachedRow
from kvref.engine.values import join_value, shown_flags
from kvref.protocol.hits import SHOWN
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.statements import Statements, literal, written

_ANY: Final = 64 << 10  # bytes of a key without a width, more than any client sends
# These follow another one in `kvref.collations.names`: equal texts there need not be equal to the server.
_ONLY_NEAR: Final = ("utf8mb4_ja_0900_", "utf8mb4_zh_0900_")
# Of MariaDB's collations of Unicode 14 only what they have in common with Unicode 9 is known.
_NEWER: Final = "_uca1400_"

StoredKey = bytes | int
R = TypeVar("R")


class RowIdentities:
    """The keys of one mapping: decides locally which of them identify the same row.

    The server compares by the column's collation. If `kvref.collations` does not implement that collation exactly, the
    keys cannot be distinguished here, and their commands run one by one.
    """

    def __init__(self, mapping: TableMapping) -> None:
        self._key = mapping.key
        collation = mapping.key.collation.lower()
        self._ascii_only = _NEWER in collation
        self._fold: Callable[[str], str] | None = None
        if mapping.key.kind is Kind.TEXT and not collation.startswith(_ONLY_NEAR):
            known = collations.known(collation)
            self._fold = None if known is None else collations.order(known).folded
        self._simple = mapping.key.codec is None and mapping.key.charset.unit == 0
        # What no collation compares: cells of this type are one row if they are equal.
        self._exact: type[bytes] | type[int] | None = None
        if mapping.key.kind is not Kind.TEXT and mapping.key.codec is None:
            self._exact = int if mapping.key.kind is Kind.INTEGER else bytes
        self.known = (self._fold is not None or self._exact is not None) and not (
            mapping.unsearchable or mapping.beginning
        )

    def stored_key(self, cell: Cell) -> StoredKey | None:
        """Return a key as SQL has it, None for one that only the server can compare."""
        if self._fold is None:
            return cell if self._exact is not None and isinstance(cell, self._exact) else None
        # A text without form is what SQL has: most keys are.
        data = cell.encode() if self._simple and type(cell) is str else written(self._key, cell)
        return None if self._ascii_only and not data.isascii() else data

    def identity(self, stored: StoredKey) -> Hashable:
        """return what all keys of one row have in common; UnicodeDecodeError if the bytes are not a text."""
        if self._fold is None or isinstance(stored, int):
            return stored
        return self._fold(self._key.charset.decode(stored))

    def match(
        self, wanted: Collection[StoredKey], rows: Sequence[tuple[StoredKey | None, R]]
    ) -> tuple[dict[StoredKey, R], bool]:
        """Match rows to the keys that were looked up.

        Args:
            wanted: the keys, each once.
            rows: what the server found for all of them, each with its stored key.

        Returns:
            The row of each that has one, and whether the others have none for certain: the server agreed with what is
            known of its collation.
        """
        by_key = dict(rows)
        found = {stored: by_key[stored] for stored in wanted if stored in by_key}
        if len(found) == len(wanted) or not rows:
            return found, True
        try:
            placed = {self.identity(stored): row for stored, row in rows if stored is not None}
            identities = {stored: self.identity(stored) for stored in wanted}
        except UnicodeDecodeError:
            return found, False
        found.update(
            {
                each: placed[identity]
                for each, identity in identities.items()
                if each not in found and identity in placed
            }
        )
        return found, len(placed) == len(rows) and set(identities.values()).issuperset(placed)


class Version:
    """A version of all table definitions; `live` is False once they must be read again."""

    __slots__ = ("live",)

    def __init__(self) -> None:
        self.live = True


class MappedTable:
    """The table of one mapping, as it is now; the key of the mapping finds one row.

    A simple word is the key as SQL shows it: ASCII, or the digits of an integer, and short enough for the key column.

    Attributes:
        identities: of its keys.
        is_number: its key is an integer.
        whole: the cells of SQL text are all of a row with a simple word as its key.
        select: what reads its rows, without the condition.
    """

    def __init__(self, mapping: TableMapping, sql: Statements, version: Version) -> None:
        self.mapping = mapping
        self.identities = RowIdentities(mapping)
        self._sql = sql
        key, values = mapping.key, mapping.values
        self.version = version
        options = mapping.options.values()
        self.is_number = _is_number(key) and key.low <= 0  # a YEAR has other numbers of two digits
        if self.is_number:
            self._max_key = len(str(key.high)) - 1  # so many digits always fit
        else:
            self._max_key = _ANY if key.width is None else key.width
        self._takes_words = self.identities.known and (self.is_number or _shows_ascii(key))
        self.whole = (
            self._takes_words
            and all(_shows_ascii(each) or _is_number(each) for each in values)
            and all(each is None or _is_number(each) for each in options)
        )
        self._end = 1 + len(values)  # of the values among the cells
        self._numbers = [place for place, each in enumerate(values) if _is_number(each)]
        self._is_text = self._end == 2 and not self._numbers
        self.select = sql.select
        names = [each.name for each in sql.columns]
        self._flags, self._cas, self._expiry = [0 if each is None else names.index(each.name) for each in options]
        self._begin_key = literal(key, b"").removesuffix("'") if key.kind is not Kind.INTEGER else ""

    def key_of(self, word: bytes) -> StoredKey | None:
        """Return the key as the column has it, but for its letter case; None for a word that is not simple."""
        if not self._takes_words or len(word) > self._max_key:
            return None
        if self.is_number:
            return int(word) if word.isdigit() and word >= b"1" else None
        return word if word.isascii() else None

    def takes_words(self, words: Collection[bytes]) -> bool:
        """Return whether each of some words, at least one, is simple."""
        if not self._takes_words or max(map(len, words)) > self._max_key:
            return False
        joined = b"".join(words)
        return joined.isdigit() and min(words) >= b"1" if self.is_number else joined.isascii()

    def key_in(self, cells: Cells) -> Cell:
        """Return the key of a row, as it is stored."""
        return int(cells[0] or b"") if self.is_number else cells[0]

    def rows(self, found: Mapping[bytes, Cells], separator: bytes) -> dict[bytes, CachedRow]:
        """Return rows from the cells that were found for simple words; only if `whole`.

        Args:
            separator: between the values of a row.
        """
        flags_at, cas_at, expiry_at = self._flags, self._cas, self._expiry  # 0: not mapped
        rows: dict[bytes, CachedRow] = {}
        for word, cells in found.items():
            data = cells[1] or b""
            flag_bits, number, time = cells[flags_at], cells[cas_at], cells[expiry_at]
            flags = None if flag_bits is None or not flags_at else int(flag_bits)
            cas = None if number is None or not cas_at else int(number)
            expiry = None if time is None or not expiry_at else int(time)
            values: tuple[Cell, ...] | None = None
            if not self._is_text:
                values = self._values(cells)
                data = join_value(values, separator)
            rows[word] = (
                SHOWN % (word, shown_flags(flags) if flags else 0, len(data), data),
                0,
                flags,
                cas,
                expiry,
                values,
            )
        return rows

    def _values(self, cells: Cells) -> tuple[Cell, ...]:
        values: list[Cell] = [*cells[1 : self._end]]
        for place in self._numbers:
            if values[place] is not None:
                values[place] = int(values[place])  # type: ignore[arg-type]  # of ZEROFILL, SQL shows more digits
        return tuple(values)

    def among(self, words: Iterable[bytes]) -> str:
        """Return the condition of the rows of some simple words."""
        if self.is_number:
            keys = b", ".join(words).decode()
        else:
            begin = self._begin_key
            keys = ", ".join([f"{begin}{word.hex()}'" for word in words])
        return f" WHERE {self._sql.key} IN ({keys})"


def _shows_ascii(column: Column) -> bool:
    """Return whether SQL shows a cell's bytes as the wire has them, and ASCII is the same in them."""
    if column.kind is Kind.BYTES:
        return column.codec is None
    # CHAR is filled up with spaces on the wire.
    unpadded = column.codec is None or column.codec.from_sql(b"a") == b"a"
    return column.kind is Kind.TEXT and column.charset.unit in (0, 1) and unpadded


def _is_number(column: Column) -> bool:
    return column.kind is Kind.INTEGER and column.codec is None
