"""Tables that the duel inside one process serves as the default mapping."""

from __future__ import annotations

from dataclasses import dataclass

_DROP = "DELETE FROM containers"
_CONTAINERS = "INSERT INTO containers (name, db_schema, db_table, key_columns, value_columns, flags, cas_column, expire_time_column, unique_idx_name_on_key) VALUES"  # noqa: E501


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Args:
        title: what is special about it.
        name: of the table in the file.
        statements: create it and its mapping, behind the demo's.
        rows: statements that fill it.
    """

    title: str
    name: str = "demo_test"
    statements: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


def _table(
    title: str, columns: str, values: str = "v", rows: tuple[str, ...] = (), more: tuple[str, ...] = ()
) -> Table:
    """Return a table `t` whose key is `k` and whose flags, cas and expiry are f, c and e, where it has them."""
    options = [f"'{name}'" if f" {name} " in f" {columns} " else "''" for name in ("f", "c", "e")]
    flags = options[0] if options[0] != "''" else "'0'"
    return Table(
        title,
        "t",
        (
            f"CREATE TABLE t ({columns})",
            *more,
            _DROP,
            f"{_CONTAINERS} ('aaa', 'test', 't', 'k', '{values}', {flags}, {options[1]}, {options[2]}, 'PRIMARY')",
            f"{_CONTAINERS} ('other', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
        ),
        rows,
    )


_ALL = "f INT, c BIGINT UNSIGNED, e INT"
_BLOB = "INSERT INTO t VALUES (x'61', 'blob', 0, 0, 0)"
_TEXT_KEY = "k VARCHAR(32) NOT NULL COLLATE NOCASE PRIMARY KEY"
MEMORY = Table("memory")
TABLES = (
    MEMORY,
    Table("demo", rows=("INSERT INTO demo_test VALUES ('AA', 'HELLO', 8, 0, 0), ('n', '10', 0, 5, 1000000000)",)),
    _table("binary collation", f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(64), {_ALL}"),
    _table("bytes", f"k VARBINARY(20) NOT NULL PRIMARY KEY, v BLOB, {_ALL}"),
    _table("integer key", f"k INT NOT NULL PRIMARY KEY, v VARCHAR(64), {_ALL}",
           rows=("INSERT INTO t VALUES (12, 'twelve', 1, 2, 0), (7, '7', NULL, NULL, NULL)",)),
    _table("integer value", f"{_TEXT_KEY}, v BIGINT, {_ALL}", rows=("INSERT INTO t VALUES ('n', NULL, 0, 0, 0)",)),
    _table("unsigned value", f"{_TEXT_KEY}, v BIGINT UNSIGNED, {_ALL}"),
    _table("two values", f"{_TEXT_KEY}, v VARCHAR(20), w VARCHAR(20), {_ALL}", "v,w",
           ("INSERT INTO t VALUES ('n', '5', NULL, 1, 1, 0)",)),
    _table("text and integer", f"{_TEXT_KEY}, v VARCHAR(20), w INT, {_ALL}", "v,w"),
    _table("latin1 value", f"{_TEXT_KEY}, v VARCHAR(64) COLLATE latin1_bin, {_ALL}",
           rows=("INSERT INTO t VALUES ('a', '\u00e9 \u20ac', 0, 0, 0), ('b', '\u0142', 0, 0, 0), ('n', x'39', 0, 0, 0)",)),  # noqa: E501
    _table("UCS-2 and latin1", f"{_TEXT_KEY}, v VARCHAR(20) COLLATE ucs2_bin, w TEXT COLLATE latin1_bin, {_ALL}", "v,w"),  # noqa: E501
    _table("no options", f"{_TEXT_KEY}, v VARCHAR(64)"),
    _table("no expiry", f"{_TEXT_KEY}, v VARCHAR(64), f INT, c BIGINT UNSIGNED"),
    _table("narrow columns", "k VARCHAR(4) NOT NULL COLLATE NOCASE PRIMARY KEY, v VARCHAR(4), f TINYINT, c BIGINT UNSIGNED, e INT"),  # noqa: E501
    _table("further columns", f"{_TEXT_KEY}, v VARCHAR(64), {_ALL}, x INT DEFAULT 5, y VARCHAR(9)",
           rows=("INSERT INTO t VALUES ('a', 'old', 0, 0, 0, 9, 'y')",)),
    _table("without rowid", f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(64), {_ALL}) WITHOUT ROWID --"),
    _table("trigger", f"{_TEXT_KEY}, v VARCHAR(64), {_ALL}", more=(
        "CREATE TABLE log (k, v)",
        "CREATE TRIGGER noted AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (NEW.k, NEW.v); END",
    )),
    _table("trigger of other rows", f"{_TEXT_KEY}, v VARCHAR(64), {_ALL}", more=(
        "CREATE TRIGGER others AFTER UPDATE ON t WHEN NEW.k <> 'a' BEGIN UPDATE t SET v = NEW.v WHERE k = 'a'; END",
        "CREATE TRIGGER replaced AFTER INSERT ON t BEGIN UPDATE t SET v = upper(v) WHERE k IN (NEW.k, 'b'); END",
        "CREATE TRIGGER ignored BEFORE DELETE ON t WHEN OLD.k = '12' BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER refused BEFORE UPDATE ON t WHEN NEW.v = '41' BEGIN SELECT RAISE(ABORT, 'no 41'); END",
        "CREATE TRIGGER failed AFTER UPDATE ON t WHEN NEW.v = '0' BEGIN SELECT RAISE(FAIL, 'no 0'); END",
    )),
    _table("references", f"{_TEXT_KEY}, v VARCHAR(64) REFERENCES t (k) ON DELETE CASCADE ON UPDATE CASCADE, {_ALL}",
           rows=("INSERT INTO t VALUES ('7', NULL, 1, 1, 0), ('12', '7', 1, 1, 0), ('a', '12', 1, 1, 0)",)),
    _table("key of fixed length", f"k CHAR(9) NOT NULL COLLATE NOCASE PRIMARY KEY, v VARCHAR(64), {_ALL}"),
    _table("check", f"{_TEXT_KEY}, v VARCHAR(64) CHECK (v <> '41'), {_ALL}"),
    _table("not null", f"{_TEXT_KEY}, v VARCHAR(64) NOT NULL, {_ALL}, x INT NOT NULL DEFAULT 3"),
    _table("unique value", f"{_TEXT_KEY}, v VARCHAR(64) UNIQUE, {_ALL}"),
    _table("value of fixed length", f"{_TEXT_KEY}, v CHAR(9), {_ALL}"),
    _table("FLOAT", f"{_TEXT_KEY}, v FLOAT, {_ALL}", rows=("INSERT INTO t VALUES ('a', 1.5, 0, 0, 0)",)),
    _table("flags as text", f"{_TEXT_KEY}, v VARCHAR(64), f VARCHAR(9), c BIGINT UNSIGNED, e INT"),
    _table("keys as BLOB", f"{_TEXT_KEY}, v VARCHAR(64), {_ALL}", rows=(_BLOB,)),
)  # fmt: skip
