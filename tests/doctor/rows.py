"""Rows of containers over one table, wrong in every way the manual names; for SQLite and for servers."""

from __future__ import annotations

COLUMNS = (
    "db_schema",
    "db_table",
    "key_columns",
    "value_columns",
    "flags",
    "cas_column",
    "expire_time_column",
    "unique_idx_name_on_key",
)
PLAIN = dict(zip(COLUMNS, ("test", "t", "k", "v", "f", "c", "e", "PRIMARY"), strict=True))
TABLE = """CREATE TABLE "test.t" (k VARCHAR(32) COLLATE utf8mb4_0900_ai_ci NOT NULL PRIMARY KEY,
    v VARCHAR(40), w VARCHAR(8), f INT, c BIGINT UNSIGNED, e INT, b BLOB, x TEXT, n VARBINARY(9), d REAL) WITHOUT ROWID"""

# A change to a good row, what is said of it, and the requirement that is named.
BAD = [
    (
        {"db_schema": "nope", "db_table": "nope"},
        "there is no table nope.nope: create it or correct the row",
        "KV-CONT-001",
    ),
    ({"db_table": "nope"}, "there is no table test.nope: create it or correct the row", "KV-CONT-002"),
    ({"db_table": ""}, "db_table is empty: name one", "KV-CONT-011"),
    ({"db_table": " t"}, "there is no table test. t", "KV-CONT-012"),
    ({"db_table": None}, "db_table is NULL: name one", "KV-CONT-002"),
    ({"key_columns": "nope"}, "has no key column 'nope': its columns are k, v, w, f, c, e, b, x, n, d", "KV-CONT-003"),
    (
        {"key_columns": "K"},
        "has no key column 'K': its columns are k, v, w, f, c, e, b, x, n, d: write 'k'",
        "KV-CONT-034",
    ),
    ({"key_columns": "k,v"}, "has no key column 'k,v'", "KV-CONT-010"),
    ({"key_columns": ""}, "key_columns is empty: name one", "KV-CONT-009"),
    ({"key_columns": "`k`"}, "write 'k', without blanks, quotes or other letter case", "KV-CONT-013"),
    ({"key_columns": "x"}, "the key column x should be INTEGER, CHAR or VARCHAR", "KV-KEY-019"),
    ({"key_columns": "n"}, "the key column n should be INTEGER, CHAR or VARCHAR", "KV-KEY-018"),
    ({"key_columns": "d"}, "the key column d should be INTEGER, CHAR or VARCHAR", "KV-KEY-020"),
    ({"value_columns": "nope"}, "has no value column 'nope'", "KV-CONT-004"),
    ({"value_columns": "v:w"}, "has no value column 'v:w'", "KV-COL-034"),
    (
        {"value_columns": "v,"},
        "has no value column 'v,': its columns are k, v, w, f, c, e, b, x, n, d: write 'v'",
        "KV-COL-035",
    ),
    ({"value_columns": ""}, "value_columns is empty: name one", "KV-CONT-007"),
    ({"value_columns": None}, "value_columns is NULL: name one", "KV-CONT-008"),
    ({"value_columns": "v,n"}, "the value column n in table test.t should be INTEGER, CHAR or VARCHAR", None),
    ({"flags": "x"}, "the flags x in table test.t should be INTEGER", "KV-FLAG-008"),
    ({"flags": None}, "flags has an invalid NULL value: write '0' for a feature that is not in use", "KV-FLAG-006"),
    ({"cas_column": "x"}, "the cas_column x in table test.t should be INTEGER", "KV-FLAG-008"),
    ({"expire_time_column": None}, "expire_time_column has an invalid NULL value: write '0'", "KV-FLAG-006"),
    ({"unique_idx_name_on_key": ""}, "unique_idx_name_on_key is empty: name one", "KV-CONT-005"),
    (
        {"unique_idx_name_on_key": "nope"},
        "'nope' is not a unique index of table test.t (unique indexes: PRIMARY, both, on_v)",
        "KV-CONT-006",
    ),
    ({"unique_idx_name_on_key": "plain"}, "'plain' is not a unique index of table test.t", "KV-KEY-044"),
    ({"unique_idx_name_on_key": "on_v"}, "index on_v is on v: it must be on the key column k only", "KV-KEY-045"),
    ({"unique_idx_name_on_key": "both"}, "index both is on k, v: it must be on the key column k only", "KV-KEY-048"),
]
# The same table on a server, and columns of the plugin's containers that are NOT NULL.
MYSQL = (
    "CREATE TABLE test.t (k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), w VARCHAR(8), f INT, c BIGINT UNSIGNED, e INT, b BLOB,"
    " x TEXT, n VARBINARY(9), d DOUBLE, UNIQUE KEY on_v (v), UNIQUE KEY `both` (k, v), KEY plain (k)) ENGINE = InnoDB",
)
NOT_NULL = ("db_schema", "db_table", "key_columns", "flags", "unique_idx_name_on_key")
