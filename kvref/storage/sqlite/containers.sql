-- The plugin's own configuration schema (innodb_memcached_config.sql), in SQLite's form.
CREATE TABLE containers (
    name VARCHAR(50) NOT NULL COLLATE {collation} PRIMARY KEY,
    db_schema VARCHAR(250) NOT NULL,
    db_table VARCHAR(250) NOT NULL,
    key_columns VARCHAR(250) NOT NULL,
    value_columns VARCHAR(250),
    flags VARCHAR(250) DEFAULT '0',
    cas_column VARCHAR(250),
    expire_time_column VARCHAR(250),
    unique_idx_name_on_key VARCHAR(250) NOT NULL
);
