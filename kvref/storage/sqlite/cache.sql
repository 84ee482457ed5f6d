-- A table for a cache: keys and values are BLOBs, which SQLite compares as bytes.
CREATE TABLE {name} (
    cache_key VARBINARY(250) NOT NULL PRIMARY KEY,
    value LONGBLOB,
    flags INT UNSIGNED,
    cas BIGINT UNSIGNED,
    expires BIGINT
);
-- Rows that never expire are not in it.
CREATE INDEX {name}_expires ON {name} (expires) WHERE expires > 0;
INSERT INTO containers VALUES
    ('{name}', 'kvref', '{name}', 'cache_key', 'value', 'flags', 'cas', 'expires', 'PRIMARY');
