-- The plugin's own configuration schema and demo rows (innodb_memcached_config.sql), in SQLite's form.
-- utf8mb4's default collation ignores case; NOCASE is SQLite's nearest that any client can read.
BEGIN;
CREATE TABLE IF NOT EXISTS cache_policies (
    policy_name VARCHAR(40) PRIMARY KEY,
    get_policy VARCHAR(12) NOT NULL CHECK (get_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    set_policy VARCHAR(12) NOT NULL CHECK (set_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    delete_policy VARCHAR(12) NOT NULL CHECK (delete_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    flush_policy VARCHAR(12) NOT NULL CHECK (flush_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled'))
);
CREATE TABLE containers (
    name VARCHAR(50) NOT NULL COLLATE NOCASE PRIMARY KEY,
    db_schema VARCHAR(250) NOT NULL,
    db_table VARCHAR(250) NOT NULL,
    key_columns VARCHAR(250) NOT NULL,
    value_columns VARCHAR(250),
    flags VARCHAR(250) DEFAULT '0',
    cas_column VARCHAR(250),
    expire_time_column VARCHAR(250),
    unique_idx_name_on_key VARCHAR(250) NOT NULL
);
CREATE TABLE IF NOT EXISTS config_options (
    name VARCHAR(50) NOT NULL PRIMARY KEY,
    value VARCHAR(50)
);
CREATE TABLE IF NOT EXISTS demo_test (
    c1 VARCHAR(32) NOT NULL COLLATE NOCASE PRIMARY KEY,
    c2 VARCHAR(1024),
    c3 INT,
    c4 BIGINT UNSIGNED,
    c5 INT
);
INSERT OR IGNORE INTO cache_policies VALUES ('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only');
INSERT OR IGNORE INTO config_options VALUES ('separator', '|'), ('table_map_delimiter', '.');
INSERT OR IGNORE INTO containers VALUES ('aaa', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY');
INSERT OR IGNORE INTO demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0);
COMMIT;
