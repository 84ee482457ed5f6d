CREATE TABLE IF NOT EXISTS innodb_memcache.containers (
    name VARCHAR(50) NOT NULL PRIMARY KEY,
    db_schema VARCHAR(250) NOT NULL,
    db_table VARCHAR(250) NOT NULL,
    key_columns VARCHAR(250) NOT NULL,
    value_columns VARCHAR(250),
    flags VARCHAR(250) NOT NULL DEFAULT '0',
    cas_column VARCHAR(250),
    expire_time_column VARCHAR(250),
    unique_idx_name_on_key VARCHAR(250) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
