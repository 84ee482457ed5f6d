"""The configuration tables and the demo table, created where they are missing."""

import sqlite3

POLICY = "\"ENUM('innodb_only','cache_only','caching','disabled')\" NOT NULL"
VALUES = "('innodb_only', 'cache_only', 'caching', 'disabled')"

CONTAINERS = """
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
CREATE TABLE IF NOT EXISTS demo_test (
    c1 VARCHAR(32) NOT NULL COLLATE NOCASE PRIMARY KEY,
    c2 VARCHAR(1024),
    c3 INT,
    c4 BIGINT UNSIGNED,
    c5 INT
);
INSERT OR IGNORE INTO demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0);
INSERT INTO containers VALUES ('aaa', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY');
"""

OPTIONS = """
CREATE TABLE config_options (
    name VARCHAR(50) NOT NULL PRIMARY KEY,
    value VARCHAR(50)
);
INSERT INTO config_options VALUES ('separator', '|'), ('table_map_delimiter', '.');
"""

POLICIES = f"""
CREATE TABLE cache_policies (
    policy_name VARCHAR(40) PRIMARY KEY,
    get_policy {POLICY} CHECK (get_policy IN {VALUES}),
    set_policy {POLICY} CHECK (set_policy IN {VALUES}),
    delete_policy {POLICY} CHECK (delete_policy IN {VALUES}),
    flush_policy {POLICY} CHECK (flush_policy IN {VALUES})
);
INSERT INTO cache_policies VALUES ('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only');
"""

COUNTER = """
CREATE TABLE IF NOT EXISTS cas_counter (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL
);
INSERT OR IGNORE INTO cas_counter VALUES (1, 0);
"""


def create_missing(connection: sqlite3.Connection) -> None:
    """Create the tables of the configuration that do not exist, with their default rows."""
    rows = connection.execute("SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    present = {row[0] for row in rows}
    for name, script in (("containers", CONTAINERS), ("config_options", OPTIONS), ("cache_policies", POLICIES),
                         ("cas_counter", COUNTER)):
        if name not in present:
            connection.executescript("BEGIN;" + script + "COMMIT;")
