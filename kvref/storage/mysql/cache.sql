CREATE DATABASE IF NOT EXISTS kvref;
CREATE TABLE IF NOT EXISTS kvref.{name} (
    cache_key VARBINARY(250) NOT NULL PRIMARY KEY,
    value LONGBLOB,
    flags INT UNSIGNED,
    cas BIGINT UNSIGNED,
    expires BIGINT,
    KEY expires (expires)
) ENGINE = InnoDB;
INSERT INTO innodb_memcache.containers VALUES
    ('{name}', 'kvref', '{name}', 'cache_key', 'value', 'flags', 'cas', 'expires', 'PRIMARY');
