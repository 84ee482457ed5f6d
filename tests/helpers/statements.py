"""MySQL statements and what the last of them answers: rows, an error number, or nothing.

`conformance/test_translate.py` holds them on SQLite and on MySQL 8.0.33.
"""

from __future__ import annotations

T = "CREATE TABLE test.t (k varchar(32) primary key, v varchar(40), f int) ENGINE=InnoDB"
ROWS = "INSERT INTO test.t VALUES ('b','two',2),('a','one',1)"
ALL = "SELECT * FROM test.t"


CASES = {
    "rows come in the order of the primary key": ([T, ROWS, ALL], [["a", "one", 1], ["b", "two", 2]]),
    "a descending key": (
        [T.replace("varchar(32) primary key", "varchar(9)").replace("f int", "f int, PRIMARY KEY (k DESC)"), ROWS, ALL],
        [["b", "two", 2], ["a", "one", 1]],
    ),
    "keys compare without case and accent": ([T, ROWS, "INSERT INTO test.t VALUES ('Ä','x',3)"], 1062),
    "REPLACE": ([T, ROWS, "REPLACE INTO test.t VALUES ('A','new',9)", ALL], [["A", "new", 9], ["b", "two", 2]]),
    "INSERT IGNORE": ([T, ROWS, "INSERT IGNORE INTO test.t VALUES ('a','x',3)", ALL], [["a", "one", 1], ["b", "two", 2]]),
    "ON DUPLICATE KEY": (
        [T, ROWS, "INSERT INTO test.t VALUES ('a','x',3) ON DUPLICATE KEY UPDATE v=concat(v, VALUES(v))", ALL],
        [["a", "onex", 1], ["b", "two", 2]],
    ),
    "backslashes": ([T, r"INSERT INTO test.t VALUES ('a\\b\'c','\n',1)", ALL], [["a\\b'c", "\n", 1]]),
    "ADD COLUMN": ([T, ROWS, "ALTER TABLE test.t ADD x int DEFAULT 7 AFTER k", ALL], [["a", 7, "one", 1], ["b", 7, "two", 2]]),
    "DROP COLUMN": ([T, ROWS, "ALTER TABLE test.t DROP v", ALL], [["a", 1], ["b", 2]]),
    "CHANGE": ([T, ROWS, "ALTER TABLE test.t CHANGE v w varchar(9)", "SELECT w FROM test.t"], [["one"], ["two"]]),
    "MODIFY FIRST": (
        [T, ROWS, "ALTER TABLE test.t MODIFY f bigint FIRST", ALL],
        [[1, "a", "one"], [2, "b", "two"]],
    ),
    "RENAME": ([T, ROWS, "RENAME TABLE test.t TO test.u", "SELECT k FROM test.u"], [["a"], ["b"]]),
    "a renamed table is gone": ([T, "RENAME TABLE test.t TO test.u", ALL], 1146),
    "LIKE": ([T, ROWS, "CREATE TABLE test.u LIKE test.t", "SELECT * FROM test.u"], []),
    "a dropped column": ([T, "ALTER TABLE test.t DROP f", "SELECT t.f FROM test.t"], 1054),
    "a dropped unique index": (
        [T, "ALTER TABLE test.t ADD UNIQUE KEY u (v)", "ALTER TABLE test.t DROP KEY u", ROWS.replace("two", "one"), ALL],
        [["a", "one", 1], ["b", "one", 2]],
    ),
    "DROP PRIMARY KEY": ([T, ROWS, "ALTER TABLE test.t DROP PRIMARY KEY", "INSERT INTO test.t VALUES ('a','x',3)"], None),
    "a key without its index stays NOT NULL": (
        [T, "ALTER TABLE test.t DROP PRIMARY KEY", "INSERT INTO test.t VALUES (NULL,'x',3)"],
        1048,
    ),
    "RENAME COLUMN": (
        [T, ROWS, "ALTER TABLE test.t RENAME COLUMN k TO kk", "SELECT kk FROM test.t WHERE kk = 'A'"],
        [["a"]],
    ),
    "RENAME INDEX": (
        [T, "ALTER TABLE test.t ADD UNIQUE u (v)", "ALTER TABLE test.t RENAME INDEX u TO w", "ALTER TABLE test.t DROP KEY w"],
        None,
    ),
    "SET DEFAULT": (
        [T, "ALTER TABLE test.t ALTER f SET DEFAULT 7", "INSERT INTO test.t (k) VALUES ('a')", ALL],
        [["a", None, 7]],
    ),
    "DROP DEFAULT": (
        [T.replace("f int", "f int DEFAULT 5"), "ALTER TABLE test.t ALTER f DROP DEFAULT", "INSERT INTO test.t VALUES ('a','x',1)", ALL],
        [["a", "x", 1]],
    ),
    "HEX of a negative number": ([T, "INSERT INTO test.t VALUES ('a','x',-2)", "SELECT HEX(f) FROM test.t"], [["F" * 15 + "E"]]),
    "SERIAL": (
        [T.replace("f int", "f serial"), "INSERT INTO test.t (k) VALUES ('a'), ('b')", "SELECT k, f FROM test.t"],
        [["a", 1], ["b", 2]],
    ),
    "SERIAL is unique": ([T.replace("f int", "f serial"), "INSERT INTO test.t VALUES ('a','x',3),('b','x',3)"], 1062),
    "a unique index": ([T, "CREATE UNIQUE INDEX u ON test.t (v)", ROWS.replace("two", "ONE")], 1062),
    "NOT NULL": ([T.replace("f int", "f int NOT NULL"), "INSERT INTO test.t VALUES ('a','v',NULL)"], 1048),
    "numbers that fill in themselves": (
        [
            "CREATE TABLE test.n (id int AUTO_INCREMENT PRIMARY KEY, v varchar(9))",
            "INSERT INTO test.n (v) VALUES ('a'),('b')",
            "INSERT INTO test.n VALUES (9,'c')",
            "INSERT INTO test.n VALUES (NULL,'d')",
            "DELETE FROM test.n WHERE id > 2",
            "INSERT INTO test.n (v) VALUES ('e')",
            "SELECT * FROM test.n",
        ],
        [[1, "a"], [2, "b"], [11, "e"]],
    ),
    "TRUNCATE begins to count anew": (
        [
            "CREATE TABLE test.n (id int AUTO_INCREMENT PRIMARY KEY, v varchar(9))",
            "INSERT INTO test.n (v) VALUES ('a'),('b')",
            "TRUNCATE TABLE test.n",
            "INSERT INTO test.n (v) VALUES ('c')",
            "SELECT * FROM test.n",
        ],
        [[1, "c"]],
    ),
    "generated columns": (
        [
            "CREATE TABLE test.g (k int PRIMARY KEY, v varchar(9), g varchar(9) AS (concat(v,'!')) STORED)",
            "INSERT INTO test.g VALUES (1,'a',DEFAULT)",
            "SELECT * FROM test.g",
        ],
        [[1, "a", "a!"]],
    ),
    "defaults": (
        [
            "CREATE TABLE test.d (k int PRIMARY KEY, v varchar(9) DEFAULT 'dv', f int NOT NULL DEFAULT 7)",
            "INSERT INTO test.d (k) VALUES (1)",
            "INSERT INTO test.d VALUES (2, DEFAULT, DEFAULT)",
            "SELECT * FROM test.d",
        ],
        [[1, "dv", 7], [2, "dv", 7]],
    ),
    "a view": (
        [T, ROWS, "CREATE VIEW test.w AS SELECT * FROM test.t", "UPDATE test.w SET v='w' WHERE k='A'", "SELECT v FROM test.w"],
        [["w"], ["two"]],
    ),
    "a trigger": (
        [
            T,
            "CREATE TABLE test.lg (n int AUTO_INCREMENT PRIMARY KEY, what varchar(99))",
            "CREATE TRIGGER test.tr AFTER UPDATE ON test.t FOR EACH ROW INSERT INTO test.lg (what) VALUES (concat('upd ',NEW.k))",
            ROWS,
            "UPDATE test.t SET v='x'",
            "SELECT * FROM test.lg",
        ],
        [[1, "upd a"], [2, "upd b"]],
    ),
    "CHECK": ([T.replace("f int", "f int CHECK (f < 9)"), "INSERT INTO test.t VALUES ('a','v',9)"], 3819),
    "a parent that does not exist": (
        [
            "CREATE TABLE test.par (p int PRIMARY KEY)",
            "CREATE TABLE test.ch (c int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES test.par (p) ON DELETE CASCADE)",
            "INSERT INTO test.ch VALUES (1, 5)",
        ],
        1452,
    ),
    "a child goes with its parent": (
        [
            "CREATE TABLE test.par (p int PRIMARY KEY)",
            "CREATE TABLE test.ch (c int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES test.par (p) ON DELETE CASCADE)",
            "INSERT INTO test.par VALUES (5)",
            "INSERT INTO test.ch VALUES (1, 5)",
            "DELETE FROM test.par",
            "SELECT * FROM test.ch",
        ],
        [],
    ),
    "bytes and characters": (
        [
            "CREATE TABLE test.b (k int PRIMARY KEY, l varchar(9) CHARACTER SET latin1, u varchar(9) CHARACTER SET ucs2, b blob)",
            "INSERT INTO test.b VALUES (1, _latin1 0xE9, CONVERT(0xC3A9 USING utf8), 'é')",
            "SELECT HEX(l), LENGTH(l), CHAR_LENGTH(l), HEX(u), LENGTH(u), HEX(b), LENGTH(b), HEX(k), l = u FROM test.b",
        ],
        [["E9", 1, 1, "00E9", 2, "C3A9", 2, "1", 1]],
    ),
    "binary is padded, char is not": (
        [
            "CREATE TABLE test.p (k int PRIMARY KEY, b binary(4), c char(4))",
            "INSERT INTO test.p VALUES (1, 'ab', 'ab  ')",
            "SELECT HEX(b), HEX(c) FROM test.p",
        ],
        [["61620000", "6162"]],
    ),
    "numbers beyond 2^63": (
        [
            "CREATE TABLE test.u (k bigint unsigned PRIMARY KEY)",
            "INSERT INTO test.u VALUES (18446744073709551615),('9223372036854775808'),(7)",
            "SELECT * FROM test.u WHERE k > 7",
        ],
        [[9223372036854775808], [18446744073709551615]],
    ),
    "an unsigned difference": (
        [
            "CREATE TABLE test.u (k bigint unsigned PRIMARY KEY)",
            "INSERT INTO test.u VALUES (7)",
            "SELECT k - 8 FROM test.u",
        ],
        1690,
    ),
    "decimals": (
        [
            "CREATE TABLE test.x (k int PRIMARY KEY, d decimal(10,2), e enum('x','y'), s set('p','q'))",
            "INSERT INTO test.x VALUES (1, '1.5', 'y', 'p,q')",
            "SELECT * FROM test.x",
        ],
        [[1, "1.50", "y", "p,q"]],
    ),
    "functions": (
        [
            T,
            ROWS,
            "SELECT a.k <=> NULL, if(a.f > 1, 'more', 'one'), lpad(a.f, 3, '0'), repeat('x', 3), concat('[', a.v, ']'), ifnull(NULL, 4), left(a.v, 2), right(a.v, 2)"
            " FROM test.t a WHERE a.k='a'",
        ],
        [[0, "one", "001", "xxx", "[one]", 4, "on", "ne"]],
    ),
    "variables": ([T, "SET @x = 5", "SELECT @x + 1"], [[6]]),
    "time": ([T, "SELECT UNIX_TIMESTAMP() > 1500000000, UNIX_TIMESTAMP(NOW(3)) - UNIX_TIMESTAMP() < 2"], [[1, 1]]),
    "a transaction rolled back": ([T, "BEGIN", ROWS, "ROLLBACK", ALL], []),
    "DDL commits": ([T, "BEGIN", ROWS, "CREATE TABLE test.o (k int)", "ROLLBACK", "SELECT k FROM test.t"], [["a"], ["b"]]),
    "no autocommit": ([T, "SET autocommit=0", ROWS, "ROLLBACK", ALL], []),
    "COMMIT of nothing": ([T, "COMMIT", "SELECT 1"], [[1]]),
    "tables": ([T, "SHOW TABLES FROM test"], [["t"]]),
    "a temporary table hides the other": (
        [T, ROWS, "CREATE TEMPORARY TABLE test.t (k int)", "SELECT * FROM test.t"],
        [],
    ),
    "OPTIMIZE": (
        [T, "OPTIMIZE TABLE test.t"],
        [
            ["test.t", "optimize", "note", "Table does not support optimize, doing recreate + analyze instead"],
            ["test.t", "optimize", "status", "OK"],
        ],
    ),
    "a database": (
        ["CREATE DATABASE d2", "CREATE TABLE d2.t (k int)", "DROP DATABASE d2", "CREATE DATABASE d2", "SELECT * FROM d2.t"],
        1146,
    ),
}  # fmt: skip
