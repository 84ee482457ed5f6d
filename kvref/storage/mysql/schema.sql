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
