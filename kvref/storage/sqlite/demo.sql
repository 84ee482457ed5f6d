-- The plugin's demo table and row.
CREATE TABLE IF NOT EXISTS demo_test (
    c1 VARCHAR(32) NOT NULL COLLATE {collation} PRIMARY KEY,
    c2 VARCHAR(1024),
    c3 INT,
    c4 BIGINT UNSIGNED,
    c5 INT
);
INSERT OR IGNORE INTO demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0);
INSERT INTO containers VALUES ('aaa', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY');
