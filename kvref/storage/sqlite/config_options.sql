-- The plugin's own configuration schema (innodb_memcached_config.sql), in SQLite's form.
CREATE TABLE config_options (
    name VARCHAR(50) NOT NULL PRIMARY KEY,
    value VARCHAR(50)
);
INSERT INTO config_options VALUES ('separator', '|'), ('table_map_delimiter', '.');
