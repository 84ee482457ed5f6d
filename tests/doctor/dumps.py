"""Scripts as people have them, and what is to be said of the rows of `containers`; each is also loaded into servers."""

from __future__ import annotations

from typing import Final, NamedTuple

COLUMNS: Final = (
    "name VARCHAR(50) NOT NULL PRIMARY KEY, db_schema VARCHAR(250) NOT NULL, db_table VARCHAR(250) NOT NULL, key_columns VARCHAR(250) NOT NULL,"
    " value_columns VARCHAR(250), flags VARCHAR(250) NOT NULL DEFAULT '0', cas_column VARCHAR(250), expire_time_column VARCHAR(250),"
    " unique_idx_name_on_key VARCHAR(250) NOT NULL"
)
POLICY: Final = "ENUM('innodb_only','cache_only','caching','disabled') NOT NULL"
CONFIGURATION: Final = f"""
CREATE DATABASE innodb_memcache CHARACTER SET utf8mb4;
USE innodb_memcache;
CREATE TABLE containers ({COLUMNS}) ENGINE=InnoDB;
CREATE TABLE config_options (name VARCHAR(50) NOT NULL PRIMARY KEY, value VARCHAR(50)) ENGINE=InnoDB;
INSERT INTO config_options VALUES ('separator', '|'), ('table_map_delimiter', '.');
CREATE TABLE cache_policies (policy_name VARCHAR(40) PRIMARY KEY, get_policy {POLICY}, set_policy {POLICY}, delete_policy {POLICY}, flush_policy {POLICY});
INSERT INTO cache_policies VALUES ('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only');
INSERT INTO `innodb_memcache`.`containers` VALUES ('shop', 'shop', 'items', 'sku', 'title', '0', '0', '0', 'PRIMARY');
"""
SHOP: Final = "CREATE DATABASE shop CHARACTER SET utf8mb4;\nUSE shop\n"
ITEMS: Final = "CREATE TABLE items (sku VARCHAR(40) NOT NULL PRIMARY KEY, title VARCHAR(200)) ENGINE=InnoDB;\n"
BARE: Final = "CREATE TABLE `items` (`sku` varchar(40) NOT NULL, `title` varchar(200)) ENGINE=InnoDB;\n"
UNQUOTED: Final = CONFIGURATION.replace("`", "")


class Dump(NamedTuple):
    """A script, the state of each row, and a part of the first row's fault."""

    text: str
    states: dict[str, str]
    fault: str = ""
    mariadb: bool = True  # MariaDB runs it too


USABLE, BAD, OPEN = ({"shop": state} for state in ("usable", "unusable", "cannot tell"))


def after(text: str, states: dict[str, str], fault: str = "", *, mariadb: bool = True) -> Dump:
    """Return a script that ends with statements about the table items."""
    return Dump(f"{CONFIGURATION}{SHOP}{ITEMS}{text}", states, fault, mariadb)


def row(name: str, table: str = "items", index: str = "PRIMARY") -> str:
    return f"('{name}', 'shop', '{table}', 'sku', 'title', '0', '0', '0', '{index}')"


UNDERSTOOD: Final = {
    "a foreign key without its check": after(
        "SET FOREIGN_KEY_CHECKS=0;\nALTER TABLE items ADD FOREIGN KEY (title) REFERENCES nope (a);\n", USABLE
    ),
    "a foreign key to the table itself": after("ALTER TABLE items ADD FOREIGN KEY (title) REFERENCES items (sku);\n", USABLE),
    "names without quotes": Dump(f"{UNQUOTED}{SHOP}{ITEMS}", USABLE),
    "names in double quotes": Dump(
        f"{CONFIGURATION}{SHOP}SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES');\n"
        'CREATE TABLE "items" ("sku" varchar(40) NOT NULL DEFAULT \'"\', "title" varchar(200)) ENGINE=InnoDB;\nALTER TABLE "items" ADD PRIMARY KEY ("sku");\n'
        "SET sql_mode = DEFAULT;\nINSERT INTO innodb_memcache.containers VALUES (\"b\", 'shop', 'items', 'sku', 'title', '0', '0', '0', 'PRIMARY');\n",
        {"b": "usable", **USABLE},
    ),
    "keys by ALTER TABLE": Dump(f"{CONFIGURATION}{SHOP}{BARE}ALTER TABLE `items`\n  ADD PRIMARY KEY (`sku`);\n", USABLE),
    "keys and counter by ALTER TABLE": Dump(
        f"{CONFIGURATION}{SHOP}CREATE TABLE items (sku int(11) NOT NULL, title text);\nALTER TABLE `items`\n  ADD PRIMARY KEY (`sku`),\n  ADD KEY `t` (`title`(10));\n"
        "ALTER TABLE `items`\n  MODIFY `sku` int(11) NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=5;\nCOMMIT;\n",
        USABLE,
    ),
    "another engine": after("ALTER TABLE items ENGINE=MyISAM;\n", BAD, "engine MyISAM"),
    "another engine and back": after("ALTER TABLE items ENGINE=MyISAM;\nALTER TABLE items ENGINE = InnoDB;\n", USABLE),
    "partitions": after("ALTER TABLE items PARTITION BY KEY (sku) PARTITIONS 4;\n", BAD, "is partitioned"),
    "partitions and none": after("ALTER TABLE items PARTITION BY KEY (sku);\nALTER TABLE items REMOVE PARTITIONING;\n", USABLE),
    "dropped": after("DROP TABLE items;\n", BAD, "there is no table"),
    "dropped with its database": after("DROP DATABASE shop;\n", BAD, "there is no table"),
    "renamed": after("RENAME TABLE items TO things;\n", BAD, "there is no table"),
    "swapped": after("CREATE TABLE other LIKE items;\nALTER TABLE other DROP PRIMARY KEY;\nRENAME TABLE items TO old, other TO items;\n", BAD, "is not a unique index"),
    "created by LIKE": after("RENAME TABLE items TO old;\nCREATE TABLE items (LIKE old);\n", USABLE),
    "a comment about a name": after("CREATE TEMPORARY TABLE b (a INT);\nALTER TABLE items COMMENT='rename to b';\n", USABLE),
    "created again": after("CREATE TABLE IF NOT EXISTS items (a INT);\n", USABLE),
    "JSON": after("ALTER TABLE items ADD j JSON, ADD i JSON NOT NULL;\n", USABLE),
    "an index on an expression": after("ALTER TABLE items ADD UNIQUE KEY `fx` ((upper(`title`)));\n", BAD, "virtual columns", mariadb=False),
    "a virtual column": after("ALTER TABLE items ADD g INT AS (length(title)) VIRTUAL, ADD h INT;\n", BAD, "virtual columns: g"),
    "a virtual column and none": after("ALTER TABLE items ADD g INT AS (length(title)) VIRTUAL;\nALTER TABLE items DROP COLUMN g;\n", USABLE),
    "an index": Dump(
        f"{CONFIGURATION}{SHOP}{BARE}CREATE UNIQUE INDEX k ON items (sku);\nUPDATE innodb_memcache.containers SET unique_idx_name_on_key = 'k';\n", USABLE
    ),
    "no index any more": after("DROP INDEX `PRIMARY` ON items;\n", BAD, "is not a unique index"),
    "another name of the column": after("ALTER TABLE items CHANGE title name VARCHAR(200);\n", BAD, "no value column 'title'"),
    "another type": after("ALTER TABLE items MODIFY sku DATETIME NOT NULL;\n", BAD, "the key column sku should be"),
    "a view": after("RENAME TABLE items TO old;\nCREATE ALGORITHM=MERGE VIEW items AS SELECT * FROM old;\n", BAD, "is a view"),
    "a view and none": after("CREATE VIEW v AS SELECT 1;\nDROP VIEW v;\n", USABLE),
    "a trigger": after("DELIMITER ;;\nCREATE TRIGGER r BEFORE INSERT ON items FOR EACH ROW BEGIN SET @a = 1; SET @b = 2; END;;\nDELIMITER ;\n", USABLE),
    "comments of a version": after("ALTER TABLE items /*!50100 PARTITION BY KEY (sku) */;\n/*!99999 DROP TABLE items */;\n", BAD, "is partitioned"),
    "rows of the configuration": after(
        f"USE innodb_memcache;\nINSERT INTO containers VALUES {row('old', 'none')}, {row('b')};\nDELETE FROM containers WHERE name = 'OLD';\n"
        f"REPLACE INTO containers VALUES {row('b', 'gone')};\nINSERT INTO containers SET name = 'c', db_schema = 'shop', db_table = 'items', key_columns = 'sku',"
        " value_columns = 'title', cas_column = '0', expire_time_column = '0', unique_idx_name_on_key = 'PRIMARY';\n"
        f"INSERT IGNORE INTO containers VALUES {row('c')};\n"
        "UPDATE containers SET value_columns = 'nope' WHERE (name = 'c' OR name IN ('x')) AND db_table = 'items';\n",
        {"b": "unusable", "c": "unusable", **USABLE},
    ),
    "a transaction": after(
        f"SET AUTOCOMMIT = 0;\nSTART TRANSACTION;\nINSERT INTO innodb_memcache.containers VALUES {row('b', 'gone')};\nCOMMIT;\n", {"b": "unusable", **USABLE}
    ),
    "disabled writes": after("UPDATE innodb_memcache.cache_policies SET set_policy = 'disabled';\n", USABLE),
    "what the client does": after("warnings\nALTER TABLE items\n  DROP PRIMARY KEY\\g\nquit\nDROP TABLE nothing;\n", BAD, "is not a unique index"),
}  # fmt: skip
# What may concern the table, and is not understood.
NOT_UNDERSTOOD: Final = (
    "ALTER TABLE items RENAME INDEX `PRIMARY` TO p;\n", "ALTER TABLE items ADD KEY `primary` (title);\n",
    "ALTER TABLE items ADD KEY a (sku), ADD KEY b (title);\nALTER TABLE items RENAME KEY a TO B;\n",
    "ALTER TABLE items ADD FOREIGN KEY (title) REFERENCES nope (a);\n",
    "ALTER TABLE items SOMETHING NEW;\n", "ALTER TABLE items DISCARD TABLESPACE;\n", "ALTER TABLE items ADD w NEWTYPE;\n", "ALTER TABLE items DROP nope;\n",
    "ALTER TABLE items ADD SYSTEM VERSIONING;\n", "ALTER TABLE items COLLATE klingon_ci;\n", "CREATE TABLE items (a INT);\n", "RENAME TABLE other TO items;\n",
    "DROP TABLE items;\nCREATE TABLE items (sku VARCHAR(9) PRIMARY KEY, title TEXT) SELECT 1;\n", "DROP TABLE items;\nCREATE TABLE items SELECT 1 AS sku;\n",
    "DROP TABLE items;\nCREATE TABLE items (sku VARCHAR(9) PRIMARY KEY, title TEXT(100));\n", "CREATE TEMPORARY TABLE items (a INT);\nDROP TABLE items;\n",
    "RENAME TABLE items TO old;\nCREATE TABLE items SELECT * FROM old;\n", "ALTER TABLE items CONVERT TO CHARACTER SET binary;\n",
    "CREATE SEQUENCE items;\n", "ALTER TABLE items ADD COLUMN w INT, ADD COLUMN w INT;\n", "CREATE UNIQUE INDEX u ON items (nope);\n",
    "RENAME TABLE items TO gone;\nALTER TABLE gone ADD w NEWTYPE;\nALTER TABLE gone RENAME TO items;\n",
    "RENAME TABLE items TO gone;\nALTER TABLE gone ADD w NEWTYPE, RENAME AS shop.items;\n",
    "RENAME TABLE items TO gone;\nALTER TABLE gone RENAME `items`, ADD CHECK (1 = 1), SOMETHING NEW;\n",
)  # fmt: skip
# What may concern anything, and is not understood.
NOTHING_UNDERSTOOD: Final = (
    "CALL change_it();\n", "SOURCE other.sql;\n", "source other.sql\n", "\\. other.sql\n", "SET @s = 'DROP TABLE items';\nPREPARE s FROM @s;\nEXECUTE s;\n",
    "ALTER TABLE items COMMENT 'x", "BEGIN NOT ATOMIC DROP TABLE items; END;\n", "XA START 'x';\n", "IMPORT TABLE FROM 'x.sdi';\n", "NONSENSE;\n",
    "SET @s = 'SELECT 1';\nPREPARE s FROM @s;\nEXECUTE s;\n", "SET default_storage_engine = @@x;\n", "SET sql_generate_invisible_primary_key = ON;\n",
    "USE shop CREATE TABLE x (a INT);\n", "SET STATEMENT sql_mode = '' FOR DROP TABLE items;\n", "EXECUTE IMMEDIATE 'DROP TABLE items';\n",
)  # fmt: skip
# What may concern the configuration, and is not understood.
CONFIGURATION_NOT_UNDERSTOOD: Final = (
    "UPDATE innodb_memcache.containers SET db_table = CONCAT('i', 'tems');\n", "DELETE FROM innodb_memcache.containers WHERE name > 'a';\n",
    "LOAD DATA INFILE 'x' INTO TABLE innodb_memcache.containers;\n", "DELETE c FROM innodb_memcache.containers c JOIN items;\n",
    "UPDATE innodb_memcache.cache_policies SET set_policy = 'nothing';\n", "UPDATE innodb_memcache.config_options SET value = REPLACE(value, '|', ':');\n",
    "DELETE FROM innodb_memcache.containers LIMIT 0;\n", "ALTER TABLE innodb_memcache.config_options SOMETHING NEW;\n",
    f"START TRANSACTION;\nINSERT INTO innodb_memcache.containers VALUES {row('b')};\nROLLBACK;\n",
    f"SET autocommit = 0;\nINSERT INTO innodb_memcache.containers VALUES {row('b')};\n",
    f"INSERT INTO innodb_memcache.containers VALUES {row('shop')} ON DUPLICATE KEY UPDATE value_columns = 'nope';\n",
    "CREATE TABLE innodb_memcache.saved SELECT * FROM innodb_memcache.containers;\nINSERT INTO innodb_memcache.containers SELECT * FROM saved;\n",
    "UPDATE innodb_memcache.cache_policies SET set_policy = 'disabled' WHERE NOT set_policy = 'caching';\n",
    "ALTER TABLE innodb_memcache.containers ADD note VARCHAR(9);\n",
    "DROP TABLE innodb_memcache.cache_policies;\nRENAME TABLE items TO innodb_memcache.cache_policies;\n",
)  # fmt: skip
