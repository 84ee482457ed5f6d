"""The table of one mapping: whether its rows can be used as SQL has them, and the statement that reads some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kvref.engine.mapping import Column, Kind
from kvref.engine.mapping import Mapping as TableMapping
from kvref.engine.plans.plan import CachedRow
from kvref.engine.values import shown_flags
from kvref.protocol.hits import SHOWN
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import RowIdentities
from kvref.storage.mysql.statements import Statements, literal

_ANY: Final = 64 << 10  # bytes of a key without a width, more than any client sends


class Version:
    """A version of all table definitions; `live` is False once they must be read again."""

    __slots__ = ("live",)

    def __init__(self) -> None:
        self.live = True


class MappedTable:
    """The table of one mapping, as it is now; the key of the mapping finds one row.

    A plain word is ASCII and short enough for the key column, so that it is the key as SQL has it.

    Attributes:
        whole: the cells of SQL text are all of a row with a plain word as its key.
        select: what reads its rows, without the condition.
    """

    def __init__(self, mapping: TableMapping, sql: Statements, identities: RowIdentities, version: Version) -> None:
        self.mapping = mapping
        self._sql = sql
        key, value = mapping.key, mapping.values[0]
        self.version = version
        self._max_key = _ANY if key.width is None else key.width
        options = mapping.options.values()
        self._takes_words = identities.known and key.kind is not Kind.INTEGER and _shows_ascii(key)
        self.whole = (
            self._takes_words
            and len(mapping.values) == 1
            and _shows_ascii(value)
            and all(each is None or _is_number(each) for each in options)
        )
        self.select = sql.select
        names = [each.name for each in sql.columns]
        self._flags, self._cas, self._expiry = [0 if each is None else names.index(each.name) for each in options]
        self._begin_key = literal(key, b"").removesuffix("'") if key.kind is not Kind.INTEGER else ""

    def takes_word(self, word: bytes) -> bool:
        """Return whether a word is a plain one: the key as the table's column has it, but for its letter case."""
        return self._takes_words and len(word) <= self._max_key and word.isascii()

    def takes_words(self, words: Collection[bytes]) -> bool:
        """Return whether each of some words, at least one, is a plain one."""
        return self._takes_words and max(map(len, words)) <= self._max_key and b"".join(words).isascii()

    def rows(self, found: Mapping[bytes, Cells]) -> dict[bytes, CachedRow]:
        """Return rows from the cells that were found for plain words; only if `whole`."""
        flags_at, cas_at, expiry_at = self._flags, self._cas, self._expiry  # 0: not mapped
        rows: dict[bytes, CachedRow] = {}
        for word, cells in found.items():
            data = cells[1] or b""
            flag_bits, number, time = cells[flags_at], cells[cas_at], cells[expiry_at]
            flags = None if flag_bits is None or not flags_at else int(flag_bits)
            cas = None if number is None or not cas_at else int(number)
            expiry = None if time is None or not expiry_at else int(time)
            rows[word] = (
                SHOWN % (word, shown_flags(flags) if flags else 0, len(data), data),
                0,
                flags,
                cas,
                expiry,
                None,
            )
        return rows

    def among(self, words: Iterable[bytes]) -> str:
        """Return the condition of the rows of some plain words."""
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
