"""What tables, rows, keys and values are drawn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.strategies.pools import COLLATIONS, NUMBER_KEYS, ODD_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.sql.columns import Column

INTEGERS: Final = (
    "TINYINT", "TINYINT UNSIGNED", "SMALLINT", "SMALLINT UNSIGNED", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED",
)  # fmt: skip
WIDE_INTEGERS: Final = ("INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED")
# Larger than a counter of cas numbers gets in any run, so that no rule has to tell the two apart.
CAS: Final = (0, 1_000_000_001, 2_000_000_000, -5, (1 << 63) - 1, (1 << 64) - 1)
# Far enough from now, in the past or in the future.
TIMES: Final = (0, -1, 1_000_000_000, 2_147_483_647, 4_000_000_000, 1)


@dataclass(frozen=True, slots=True)
class Palette:
    """What is drawn from. A mapping to numbers has weights.

    Args:
        version: version of the MySQL server whose defaults the tables have.
        key_types: types of a text key column.
        key_widths: in characters.
        key_integers: types of an integer key column.
        value_counts: numbers of value columns.
        value_types: types of a value column; `integer` is one of `value_integers`.
        value_widths: in characters or bytes.
        value_integers: types of an integer value column.
        charsets: character sets of text columns; none for the table's default.
        collations: by character set, and `newer` for those that 5.6 does not have.
        options: types of the columns for flags (`f`), cas number (`c`) and expiry time (`e`).
        others: numbers of columns that no mapping names.
        indexes: kinds of index over the key column.
        any_nullability: NOT NULL where it is not usual, and options left out.
        signed_not_null: no NOT NULL column but the key is unsigned.
        nullable_integer_keys: an integer key column that is not the primary key may be NULL.
        max_index_bytes: of a text key column; None for no limit.
        key_charsets: character sets of text key columns; None: `charsets`.
        key_collations: of text key columns; None: `collations`.
        numbers: contents of integer columns, by name; other columns have any.
        letters: of texts in the tables; empty for the texts of the pools.
        odd_keys: keys that are unusual in a text column, as bytes.
        number_keys: keys, or values, that are unusual in an integer column, as bytes.
        wide_letters: of keys about as long as their column.
        keys: kinds of keys.
        malformed: bytes that are not in the column's character set, and separators where no part ends.
    """

    key_types: Mapping[str, float]
    key_widths: Mapping[int, float]
    key_integers: Sequence[str]
    value_counts: Mapping[int, float]
    value_types: Mapping[str, float]
    value_widths: Mapping[int, float]
    value_integers: Sequence[str]
    charsets: Mapping[str, float]
    collations: Mapping[str, Sequence[str]]
    options: Mapping[str, Sequence[str]]
    others: Mapping[int, float]
    indexes: Mapping[str, float]
    any_nullability: bool
    nullable_integer_keys: bool
    numbers: Mapping[str, Sequence[int]]
    letters: str
    odd_keys: Sequence[bytes]
    number_keys: Sequence[bytes]
    wide_letters: str
    keys: Mapping[str, float]
    malformed: bool
    version: str = "8.0.33"
    signed_not_null: bool = False
    max_index_bytes: int | None = None
    key_charsets: Mapping[str, float] | None = None
    key_collations: Mapping[str, Sequence[str]] | None = None

    @property
    def of_keys(self) -> Palette:
        """Return what a key column is drawn from."""
        charsets = self.charsets if self.key_charsets is None else self.key_charsets
        collations = self.collations if self.key_collations is None else self.key_collations
        return replace(self, charsets=charsets, collations=collations)

    def odd_keys_of(self, column: Column) -> Sequence[bytes]:
        """Return the unusual keys of a text column; latin1 has a character for each byte."""
        return () if self.letters and column.charset(self.version) == "latin1" else self.odd_keys


# Everything that two servers can be compared with. Excluded, because a server ends or shows uninitialized memory
# (`not_replayed.toml` of the corpus): MEDIUMINT, DATE, TINYTEXT, TINYBLOB, BINARY, DECIMAL, FLOAT, times, BIT, JSON,
# ENUM, SET, YEAR; cas and expiry columns too narrow for a counter or a time, whose contents depend on the time of the
# run.
EVERYTHING: Final = Palette(
    key_types={"VARCHAR": 5.0, "CHAR": 1},
    key_widths={32: 6.0, 1: 0.5, 2: 1, 3: 1, 4: 1, 5: 1, 8: 2, 16: 2, 64: 1, 100: 1, 191: 0.5, 250: 1},
    key_integers=INTEGERS,
    value_counts={1: 5.0, 2: 3, 3: 2, 4: 1, 5: 0.5, 6: 0.5},
    value_types={
        "VARCHAR": 7.0, "CHAR": 1, "TEXT": 1.5, "LONGTEXT": 0.3, "VARBINARY": 1, "BLOB": 1, "LONGBLOB": 0.3,
        "integer": 2.5,
    },
    value_widths={40: 4.0, 1: 0.5, 2: 1, 3: 1, 5: 1, 6: 2, 10: 2, 20: 2, 126: 1, 200: 2, 1024: 1},
    value_integers=INTEGERS,
    charsets={"": 6.0, "utf8mb4": 5.2, "utf8": 2.6, "latin1": 2.6, "ascii": 0.6},
    collations=COLLATIONS,
    options={"f": INTEGERS, "c": (*WIDE_INTEGERS, "BIGINT UNSIGNED"), "e": WIDE_INTEGERS},
    others={0: 6.0, 1: 2, 2: 1, 3: 0.5},
    indexes={"primary": 8.0, "both": 0.7, "unique": 0.9, "beside": 0.6, "beside, not null": 0.3},
    any_nullability=True,
    nullable_integer_keys=True,
    numbers={"c": CAS, "e": TIMES},
    letters="",
    odd_keys=ODD_KEYS,
    number_keys=NUMBER_KEYS,
    wide_letters="xxxé漢😀",
    keys={"row": 6.0, "other spelling": 1.5, "any": 2, "neighbour": 0.6, "width": 0.6, "odd": 0.6, "number": 0.4},
    malformed=True,
)  # fmt: skip
# What the model knows: the collations that 5.6 and 8.0 both have, in which "e", "é" and "É" are one letter where they
# end in _ci. Excluded is also what ends a plugin server or returns uninitialized memory (`deviations/defects.toml`).
MODELLED: Final = Palette(
    key_types={"VARCHAR": 1.0},
    key_widths={32: 1.0, 1: 1, 2: 1, 5: 1, 60: 1},
    key_integers=("TINYINT", "TINYINT UNSIGNED", "SMALLINT", "INT", "INT UNSIGNED", "BIGINT"),
    value_counts={1: 1.0, 4: 2, 2: 1, 3: 1},
    value_types={"VARCHAR": 1.0, "integer": 1},
    value_widths={40: 1.0, 1: 1, 3: 1, 8: 1},
    value_integers=("TINYINT", "SMALLINT", "INT", "BIGINT"),
    charsets={"utf8mb4": 2.0, "utf8": 3, "latin1": 2},
    collations={
        "utf8mb4": ("utf8mb4_general_ci", "utf8mb4_bin"),
        "utf8": ("utf8_general_ci", "utf8_unicode_ci", "utf8_bin"),
        "latin1": ("latin1_swedish_ci", "latin1_bin"),
    },
    options={"f": ("INT",)},
    others={0: 1.0},
    indexes={"primary": 1.0},
    any_nullability=False,
    nullable_integer_keys=False,
    numbers={"f": range(10)},
    letters="aAbeEéÉ1",
    # Not UTF-8: a key or value that the table cannot show.
    odd_keys=(b"\xff", b"a\xff", b"\xc3", b"b\xe9a"),
    number_keys=(b"001", b"+1", b"005", b"+5", b"5abc", b"5.5", b"abc", b"--5", b"7", b"12ab", b"007"),
    wide_letters="aé",
    keys={"row": 6.0, "other spelling": 1.5, "any": 2, "width": 1.5, "odd": 0.6, "number": 1.5},
    malformed=False,
)
# What a vindex of Vitess hashes as every client sends it.
SHARDED: Final = replace(MODELLED, key_charsets={"utf8mb4": 2.0, "utf8": 3})
