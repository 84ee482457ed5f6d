CREATE DATABASE IF NOT EXISTS innodb_memcache;
CREATE TABLE IF NOT EXISTS innodb_memcache.cache_policies (
    policy_name VARCHAR(40) NOT NULL PRIMARY KEY,
    get_policy ENUM('innodb_only', 'cache_only', 'caching', 'disabled') NOT NULL,
    set_policy ENUM('innodb_only', 'cache_only', 'caching', 'disabled') NOT NULL,
    delete_policy ENUM('innodb_only', 'cache_only', 'caching', 'disabled') NOT NULL,
    flush_policy ENUM('innodb_only', 'cache_only', 'caching', 'disabled') NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
    SELECT 'cache_policy' AS policy_name, 'innodb_only' AS get_policy, 'innodb_only' AS set_policy,
        'innodb_only' AS delete_policy, 'innodb_only' AS flush_policy;
CREATE TABLE IF NOT EXISTS innodb_memcache.config_options (
    name VARCHAR(50) NOT NULL PRIMARY KEY,
    value VARCHAR(50)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
    SELECT 'separator' AS name, '|' AS value UNION ALL SELECT 'table_map_delimiter', '.';
CREATE DATABASE IF NOT EXISTS test;
CREATE TABLE IF NOT EXISTS test.demo_test (
    c1 VARCHAR(32) NOT NULL PRIMARY KEY,
    c2 VARCHAR(1024),
    c3 INT,
    c4 BIGINT UNSIGNED,
    c5 INT
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
    SELECT 'AA' AS c1, 'HELLO, HELLO' AS c2, 8 AS c3, 0 AS c4, 0 AS c5;
CREATE TABLE innodb_memcache.containers (
    name VARCHAR(50) NOT NULL PRIMARY KEY,
    db_schema VARCHAR(250) NOT NULL,
    db_table VARCHAR(250) NOT NULL,
    key_columns VARCHAR(250) NOT NULL,
    value_columns VARCHAR(250),
    flags VARCHAR(250) NOT NULL DEFAULT '0',
    cas_column VARCHAR(250),
    expire_time_column VARCHAR(250),
    unique_idx_name_on_key VARCHAR(250) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
    SELECT 'aaa' AS name, 'test' AS db_schema, 'demo_test' AS db_table, 'c1' AS key_columns, 'c2' AS value_columns,
        'c3' AS flags, 'c4' AS cas_column, 'c5' AS expire_time_column, 'PRIMARY' AS unique_idx_name_on_key;
