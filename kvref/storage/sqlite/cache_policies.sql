-- The plugin's own configuration schema (innodb_memcached_config.sql), in SQLite's form.
CREATE TABLE cache_policies (
    policy_name VARCHAR(40) PRIMARY KEY,
    get_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (get_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    set_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (set_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    delete_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (delete_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    flush_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (flush_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled'))
);
INSERT INTO cache_policies VALUES ('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only');
