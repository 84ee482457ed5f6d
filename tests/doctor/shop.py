"""A configuration with rows of every kind, as statements for a live server, and what is to be said of each row."""

from __future__ import annotations

from typing import Final

STATEMENTS: Final = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.items (id INT PRIMARY KEY AUTO_INCREMENT, sku VARCHAR(20) NOT NULL, a VARCHAR(10), b INT UNSIGNED,"
    " note VARCHAR(5) NOT NULL DEFAULT 'x', low CHAR(3) CHARACTER SET latin1 COLLATE latin1_bin, e ENUM('a;b','c'),"
    " UNIQUE KEY sku (sku), UNIQUE KEY part (a(3)), FULLTEXT KEY ft (note)) ENGINE = InnoDB",
    "CREATE TABLE shop.child (c INT PRIMARY KEY, sku VARCHAR(20), CONSTRAINT ck CHECK (c > 0 AND sku <> ')'),"
    " FOREIGN KEY (sku) REFERENCES shop.items (sku) ON DELETE CASCADE) ENGINE = InnoDB",
    "CREATE TABLE test.isam (k VARCHAR(9) PRIMARY KEY, v TEXT) ENGINE = MyISAM",
    "CREATE TABLE test.parts (k VARCHAR(9) PRIMARY KEY, v TEXT) ENGINE = InnoDB PARTITION BY KEY () PARTITIONS 2",
    "CREATE TABLE test.gen (k VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, v CHAR(9),"
    " g INT GENERATED ALWAYS AS (LENGTH(v)) VIRTUAL) ENGINE = InnoDB",
    "CREATE TABLE test.numbers (k INT PRIMARY KEY AUTO_INCREMENT, v INT, f INT, c BIGINT UNSIGNED, e INT UNSIGNED) ENGINE = InnoDB",
    "CREATE VIEW test.seen AS SELECT * FROM test.demo_test",
    "CREATE TRIGGER shop.t1 BEFORE INSERT ON shop.items FOR EACH ROW BEGIN SET NEW.a = 'a;b'; SET NEW.b = 1; END",
    r"INSERT INTO shop.items (sku, low) VALUES ('it''s; \\', '-- ')",
    "INSERT INTO innodb_memcache.containers VALUES"
    " ('items', 'shop', 'items', 'sku', 'a|b', '0', '0', '0', 'sku'),"
    " ('prefix', 'shop', 'items', 'a', 'b', '0', '0', '0', 'part'),"
    " ('isam', 'test', 'isam', 'k', 'v', '0', '0', '0', 'PRIMARY'),"
    " ('parts', 'test', 'parts', 'k', 'v', '0', '0', '0', 'PRIMARY'),"
    " ('gen', 'test', 'gen', 'k', 'v', '0', '0', '0', 'PRIMARY'),"
    " ('numbers', 'test', 'numbers', 'k', 'v', 'f', 'c', 'e', 'PRIMARY'),"
    " ('seen', 'test', 'seen', 'c1', 'c2', '0', '0', '0', 'PRIMARY'),"
    " ('nope', 'test', 'nope', 'c1', 'c2', '0', '0', '0', 'PRIMARY'),"
    " ('null', 'test', 'demo_test', 'c1', 'c2', '0', NULL, '0', 'PRIMARY'),"
    " ('child', 'shop', 'child', 'c', 'sku', '0', '0', '0', 'PRIMARY')",
)
CLEAN_UP: Final = (
    "DROP DATABASE shop",
    "DROP TABLE test.isam, test.parts, test.gen, test.numbers",
    "DROP VIEW test.seen",
    "DELETE FROM innodb_memcache.containers WHERE name <> 'aaa'",
)
# The reason for each unusable row, with the beginning of its text in profile mysql-8.0.
FAULTS: Final = {
    "gen": "contains virtual columns: g",
    "isam": "is a table of engine myisam",
    "nope": "there is no table test.nope",
    "null": "cas_column has an invalid null value",
    "parts": "is partitioned",
    "seen": "is a view",
}
FOUND: Final = {
    "aaa": {"text-key", "narrow-key", "unicode-key", "key-ignores-case", "flags-signed-int", "cas-unsigned-bigint"},
    "items": {
        "primary-key-beside", "several-with-integer", "unmapped-nullable", "unmapped-not-null-with-default", "triggers",
        "fulltext", "others-refer-to-it", "others-cascade", "table-mapped-again",
    },
    "numbers": {"integer-key", "auto-increment-key", "integer-value", "expiry-beyond-31-bits"},
    "prefix": {"secondary-index", "primary-key-beside"},
    "child": {"checks", "refers-to-others", "no-options", "value-last-in-table"},
}  # fmt: skip
ENDS: Final = {
    "items": ["KV-TABLE-015", "KV-TYPE-036"], "prefix": ["KV-TABLE-015", "KV-TYPE-036"], "numbers": ["KV-TYPE-036"],
    "aaa": [], "child": [],
}  # fmt: skip
