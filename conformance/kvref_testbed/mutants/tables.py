"""Mutants of tables and configuration: columns, widths, NULL, collations, rows of `containers`."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from kvref.engine import session, values
from kvref.engine.items import storage
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Row
from kvref.engine.plans.plan import ABSENT, EXPIRY, FLAGS, HIT
from kvref.engine.plans.store import Storage
from kvref.protocol import hits
from kvref.protocol.replies import Status
from kvref.storage.config import catalog, containers
from kvref.storage.planned_rows import Overlay
from kvref.storage.sqlite import rows as sqlite_rows
from kvref.storage.sqlite import statements as sqlite_statements
from kvref.storage.sqlite.planned_rows import SQLiteRows
from kvref_testbed.mutants.mutant import breaks, put, put_decisions, put_fact


@breaks("KV-COL-015")
def cuts_long_values() -> None:
    """A value longer than its column is cut and stored."""
    put_fact("store.long_value", "cut")


@breaks("KV-LIMIT-007")
def cuts_long_keys() -> None:
    """A key longer than its column is cut."""
    put_fact("store.long_key", "cut")


@breaks("KV-COL-011")
def cuts_values_at_any_byte_of_the_separator() -> None:
    """A separator of several bytes is a set of separators."""
    put_fact("columns.separator", "set-of-bytes")


@breaks("KV-COL-009")
def drops_surplus_parts() -> None:
    """The parts of a value beyond the last column are dropped."""
    put_fact("columns.surplus", "dropped")


@breaks("KV-TABLE-002")
def clears_unmapped_columns() -> None:
    """A write clears the columns that the mapping does not name."""
    put_fact("store.unmapped_columns", "null")


@breaks("KV-KEY-057")
def refuses_binary_keys() -> None:
    """A VARBINARY key column is refused."""
    put_fact("containers.binary_key", "refused")


@breaks("KV-TYPE-025")
def keeps_low_bits_of_numbers() -> None:
    """A number out of its column's range is stored by its low bits."""
    put_fact("store.integer_text", "low-bits")


@breaks("KV-SQL-015")
def renames_keys() -> None:
    """A write under another spelling of an equal key rewrites the key."""
    put_fact("store.renames_key", value=True)


@breaks("KV-TABLE-010")
def hides_why_the_table_refused() -> None:
    """A row that the table refuses is NOT_STORED, without a cause."""
    put_fact("store.refused_by_table", "not-stored")


@breaks("KV-TYPE-037")
def cuts_text_of_another_character_set() -> None:
    """A value is cut where it is not text in its column's character set."""
    put_fact("store.malformed_text", "cut")


@breaks("KV-COL-019")
def clears_columns_at_append() -> None:
    """`append` extends the first value column and clears the others."""
    put_fact("append.columns", "first")


@breaks("KV-FLAG-007")
def refuses_null_options() -> None:
    """A row of `containers` with NULL for an option column is refused."""
    put_fact("containers.null_option", "refused")


@breaks("KV-COL-037")
def takes_a_column_for_two_purposes() -> None:
    """A row of `containers` may name one column for two purposes."""
    put_fact("containers.contradiction", "accepted")


@breaks("KV-CAS-016")
def takes_a_narrow_cas_column() -> None:
    """A cas column may be narrower than 64 bits."""
    put_fact("containers.narrow_cas", "mapped")


@breaks("KV-COL-001")
def joins_columns_backwards() -> None:
    """`get` shows the value columns in reverse."""
    join = values.join_value
    put(session, "join_value", lambda cells, separator: join(tuple(reversed(cells)), separator))


@breaks("KV-NULL-001")
def shows_null_as_a_word() -> None:
    """NULL is answered as the text NULL."""
    to_bytes = values.to_bytes
    put(values, "to_bytes", lambda cell: b"NULL" if cell is None else to_bytes(cell))


@breaks("KV-NULL-013")
def stores_nothing_as_null() -> None:
    """A value of no bytes is stored as NULL."""
    value_cell = values.value_cell
    value_reader = values.value_reader
    put(values, "value_cell", lambda column, data, rules: value_cell(column, data, rules) if data else None)

    def reader(column: Any, rules: Any) -> Any:
        read = value_reader(column, rules)

        def of(data: bytes) -> Any:
            if data:
                return read(data)
            raise values.RefusedError(Status.NOT_STORED)  # a reader raises it as the verb does

        return of

    put(values, "value_reader", reader)

    def null(decide: Any) -> Any:
        def decided(self: Any, row: Any, word: bytes, command: Any) -> Any:
            reply, new, parameters = decide(self, row, word, command)
            return reply, new, parameters if command[3] or parameters is None else (None, *parameters[1:])

        return decided

    put_decisions(null, Storage.set)


@breaks("KV-TYPE-006")
def counts_bytes_for_characters() -> None:
    """The width of a text column counts bytes."""
    put(
        values,
        "too_wide",
        lambda column, cell: (
            column.width is not None and len(cell.encode() if isinstance(cell, str) else cell) > column.width
        ),
    )


@breaks("KV-FLAG-001")
def reads_flags_from_the_expiry() -> None:
    """Flags are answered from another column."""

    def crossed(row: Any) -> Any:
        if not row[HIT]:
            return row
        _, word, *_ = row[HIT].split(b" ", 2)
        return hits.shown(word, row[EXPIRY] or 0, hits.data_of(row[HIT])), *row[1:]

    def crossing(decide: Any) -> Any:
        def decided(self: Any, row: Any, word: bytes, command: Any) -> Any:
            reply, new, parameters = decide(self, row, word, command)
            return reply, None if new is None else crossed(new), parameters

        return decided

    def crossed_rows(self: Any, words: Any, *, written: bool) -> Overlay:
        overlay = read_many(self, words, written=written)
        overlay.rows = {key: crossed(row) for key, row in overlay.rows.items()}
        return overlay

    put_decisions(crossing, Storage.set)
    read_many = SQLiteRows.read_many
    put(SQLiteRows, "read_many", crossed_rows)
    item = session.Session.item
    put(session.Session, "item", lambda self, word, row: item(self, word, replace(row, flags=row.expiry)))


@breaks("KV-SEQ-002")
def forgets_the_fourth_part() -> None:
    """Of a value over four columns the last part is dropped."""
    split_value = values.split_value

    def forgetful(mapping: Mapping, data: bytes, separator: bytes, rules: Any) -> tuple[Any, ...]:
        cells = split_value(mapping, data, separator, rules)
        return (*cells[:3], None) if len(cells) == 4 else cells

    put(values, "split_value", forgetful)


@breaks("KV-CORE-060")
def takes_keys_by_their_first_letters() -> None:
    """A text key finds and deletes the first row that begins like it."""
    statements = sqlite_statements.Statements.__init__

    def prefixed(self: Any, mapping: Mapping) -> None:
        statements(self, mapping)
        if mapping.key.high == 0:
            self.remove = re.sub(r" WHERE (.+) = \?$", r" WHERE substr(\1, 1, length(?1)) = ?1", self.remove)

    put(sqlite_statements.Statements, "__init__", prefixed)


@breaks("KV-RANGE-023")
def compares_bounds_by_bytes() -> None:
    """The bounds of a range compare without the column's collation."""
    scan = sqlite_statements.Statements.scan
    put(
        sqlite_statements.Statements,
        "scan",
        lambda self, signs, *, descending: scan(self, signs, descending=descending).replace(
            " ?", " ? COLLATE BINARY", len(signs)
        ),
    )


@breaks("KV-KEY-044")
def takes_any_index() -> None:
    """A row of `containers` may name an index that is not unique, on any column, or none at all."""
    put(containers, "key_index", lambda table, key, index, profile: (index, (key.name,)))


@breaks("KV-FLAG-008")
def takes_any_option_column() -> None:
    """A text column may hold the flags."""
    option = containers.option_column

    def lenient(table: Any, name: str | None, what: str, mend: Any) -> Any:
        column = table.columns.get(name)
        return column if column is not None else option(table, name, what, mend)

    put(containers, "option_column", lenient)


@breaks("KV-FLAG-005")
def finds_option_columns_in_any_case() -> None:
    """`F` in `containers` is the column `f`."""
    option = containers.option_column

    def folded(table: Any, name: str | None, what: str, mend: Any) -> Any:
        spelled = next((known for known in table.columns if name and known.lower() == name.lower()), name)
        return option(table, spelled, what, mend)

    put(containers, "option_column", folded)


@breaks("KV-MAP-034")
def sees_new_rows_after_a_reload_only() -> None:
    """A row of `containers` inserted while the server runs is unknown until it reads the table again."""
    read, find = catalog.read_directory, catalog.find
    seen: set[str] = set()

    def remembering(rows: Any, profile: Any) -> Any:
        seen.clear()
        seen.update(row.name for row in rows.containers())
        return read(rows, profile)

    def found(rows: Any, profile: Any, naming: Any, name: str, kept: Any = None) -> Any:
        return find(rows, profile, naming, name, kept) if name in seen else (None, f"no container {name!r}")

    put(catalog, "read_directory", remembering)
    put(catalog, "find", found)


@breaks("KV-TYPE-034")
def replaces_rows_of_equal_values() -> None:
    """A value that breaks a unique index takes the other row away."""
    statements = sqlite_statements.Statements.__init__

    def greedy(self: Any, mapping: Mapping) -> None:
        statements(self, mapping)
        self.insert = self.insert.replace("INSERT INTO", "INSERT OR REPLACE INTO")
        self.update = self.update.replace("UPDATE ", "UPDATE OR REPLACE ", 1)

    put(sqlite_statements.Statements, "__init__", greedy)


@breaks("KV-SEP-005")
def ignores_the_option_separator() -> None:
    """Columns are always joined and cut by the bar."""
    join, split = values.join_value, values.split_value
    put(values, "join_value", lambda cells, separator: join(cells, b"|"))
    put(values, "split_value", lambda mapping, data, separator, rules: split(mapping, data, b"|", rules))


@breaks("KV-CAS-006")
def starts_cas_numbers_again_at_a_reload() -> None:
    """The counter of cas numbers restarts when the configuration is reloaded."""
    read = catalog.read_directory
    latest = [count(1)]

    def resetting(rows: Any, profile: Any) -> Any:
        latest[0] = count(1)
        return read(rows, profile)

    put(catalog, "read_directory", resetting)
    put(session.Session, "next_cas", lambda _: next(latest[0]))
    put(storage, "cas_numbers", lambda session, mapping: partial(storage.new_cas, session, mapping))


@breaks("KV-NULL-008")
def forgets_null_flags() -> None:
    """A row whose flags are NULL is not found."""
    lookup, read_many = sqlite_rows.Rows.lookup, SQLiteRows.read_many

    def blind(self: Any, mapping: Any, key: Any) -> Row | None:
        found = lookup(self, mapping, key)
        return None if found is not None and found.flags is None else found

    def blind_to_many(self: Any, words: Any, *, written: bool) -> Overlay:
        overlay = read_many(self, words, written=written)
        overlay.rows = {key: ABSENT if row[FLAGS] is None else row for key, row in overlay.rows.items()}
        return overlay

    put(sqlite_rows.Rows, "lookup", blind)
    put(SQLiteRows, "read_many", blind_to_many)


@breaks("KV-CORE-068")
def keeps_the_low_bits_of_flags() -> None:
    """Flags of 2^32 and more are stored by their low 32 bits, as by the plugin."""
    put_fact("store.flags_from_2_32", "low-32-bits")


@breaks("KV-CORE-069")
def stores_bytes_that_are_no_text() -> None:
    """A value that is invalid in the character set of its column is stored as it is."""
    put_fact("store.malformed_text", "kept")


LEADING = re.compile(rb"[+-]?[0-9]+")


def leading_digits(column: Column, key: bytes, rules: Any) -> Any:
    """Return the cell of a key, or for an integer column of the digits that begin it."""
    digits = LEADING.match(key) if column.kind is Kind.INTEGER else None
    return KEY_CELL(column, digits[0] if digits else key, rules)


KEY_CELL = values.key_cell


@breaks("KV-KEY-059")
def finds_integer_keys_by_their_first_digits() -> None:
    """`12abc` finds the row 12 of an integer key column, as with the plugin."""
    put(session, "key_cell", leading_digits)


@breaks("KV-KEY-060")
def stores_under_the_first_digits_of_a_key() -> None:
    """A set of `12abc` stores the row 12 of an integer key column, as with the plugin."""
    put(values, "key_cell", leading_digits)


@breaks("KV-CONT-040")
def gives_up_at_the_first_wrong_row() -> None:
    """After a row of `containers` that is rejected, no further mapping is found."""
    find = catalog.find
    wrong: set[str] = set()

    def giving_up(rows: Any, profile: Any, naming: Any, name: str, kept: Any = None) -> Any:
        if wrong:
            return None, "a row before it is wrong"
        found = find(rows, profile, naming, name, kept)
        if found[0] is None and any(row.name == name for row in rows.containers()):
            wrong.add(name)
        return found

    put(catalog, "find", giving_up)
