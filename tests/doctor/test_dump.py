"""A dump is read without a server: what matters is made, what does not is passed over, and what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kvref.cli import main

CONTAINERS = (
    "`name` varchar(50) NOT NULL", "`db_schema` varchar(250) NOT NULL", "`db_table` varchar(250) NOT NULL",
    "`key_columns` varchar(250) NOT NULL", "`value_columns` varchar(250) DEFAULT NULL",
    "`flags` varchar(250) NOT NULL DEFAULT '0'", "`cas_column` varchar(250) DEFAULT NULL",
    "`expire_time_column` varchar(250) DEFAULT NULL", "`unique_idx_name_on_key` varchar(250) NOT NULL", "PRIMARY KEY (`name`)",
)  # fmt: skip
CONFIGURATION = f"""
CREATE TABLE `containers` ({", ".join(CONTAINERS)}) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE `config_options` (`name` varchar(50) NOT NULL, `value` varchar(50), PRIMARY KEY (`name`)) ENGINE=InnoDB;
INSERT INTO `config_options` VALUES ('separator','|'),('table_map_delimiter','.');
CREATE TABLE `cache_policies` (`policy_name` varchar(40) NOT NULL, PRIMARY KEY (`policy_name`)) ENGINE=InnoDB;
INSERT INTO `cache_policies` VALUES ('cache_policy');
"""


def row(name: str, table: str, value: str = "v", index: str = "PRIMARY") -> str:
    schema, _, only = table.partition(".")
    return f"INSERT INTO `containers` VALUES ('{name}','{schema}','{only}','k','{value}','0','0','0','{index}');\n"


def record(folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    (folder / "x.sql").write_text(text)
    result = CliRunner().invoke(
        main, ["doctor", str(folder / "x.sql"), "--profile", "mysql-8.0", "--json", "-", *arguments]
    )
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code
    return found


def test_single_databases_dumped_one_after_the_other(tmp_path: Path) -> None:
    found = record(
        tmp_path,
        f"-- Host: localhost    Database: innodb_memcache\n{CONFIGURATION}{row('a', 'shop.t')}{row('b', 'shop.gone')}"
        "-- Host: localhost    Database: shop\nCREATE TABLE `t` (`k` varchar(9) NOT NULL, `v` text, PRIMARY KEY (`k`));\n"
        "INSERT INTO `t` VALUES ('a','b;');\nCREATE PROCEDURE p() SELECT 1;\nLOCK TABLES `t` WRITE;\nUNLOCK TABLES;",
    )
    states = {each["name"]: each["state"] for each in found["rows"]}
    assert states == {"a": "usable", "b": "cannot tell"}
    assert found["exit_code"] == 2
    assert found["notes"] == ["skipped, as no mapping depends on it: CREATE PROCEDURE p() SELECT 1"]


def test_a_whole_database_has_no_other_tables(tmp_path: Path) -> None:
    dump = f"CREATE DATABASE `innodb_memcache`;\nUSE `innodb_memcache`;\n{CONFIGURATION}{row('a', 'shop.gone')}CREATE DATABASE `shop`;"
    found = record(tmp_path, dump)
    assert found["rows"][0]["fault"] == "container 'a': there is no table shop.gone: create it or correct the row"
    assert found["exit_code"] == 1


def test_a_table_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    dump = (
        f"{CONFIGURATION}{row('a', 'shop.odd')}{row('b', 'shop.t')}USE `shop`;"
        "CREATE TABLE `odd` (`k` varchar(9) COLLATE klingon_ci NOT NULL, `v` text, PRIMARY KEY (`k`));"
        "CREATE TABLE `other` (`k` NOTHING KNOWN HERE (;"
        "CREATE TABLE `t` (`k` varchar(9) NOT NULL, `v` text, `h` int /*!80023 INVISIBLE */, PRIMARY KEY (`k`));"
    )
    found = record(tmp_path, dump)
    assert [each["state"] for each in found["rows"]] == ["cannot tell", "usable"]
    assert "shop.odd cannot be read from the dump" in found["rows"][0]["fault"]
    assert [note.split(" cannot")[0] for note in found["notes"]] == ["table shop.odd", "table shop.other"]
    assert "unmapped-nullable" in {each["feature"] for each in found["rows"][1]["findings"]}


def test_what_sqlite_does_not_hold(tmp_path: Path) -> None:
    dump = (
        f"{CONFIGURATION}{row('part', 'shop.t', index='u')}{row('whole', 'shop.t', index='w')}USE `shop`;"
        "CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, `k` varchar(9) NOT NULL, `v` text, PRIMARY KEY (`id`),"
        " UNIQUE KEY `u` (`k`(3)), UNIQUE KEY `w` (`k`), FULLTEXT KEY `f` (`v`),"
        " CONSTRAINT `c` CHECK ((char_length(`k`) > 1)));"
        "DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER `r` BEFORE INSERT ON `t` FOR EACH ROW"
        " BEGIN SET @a = 1; SET @b = 2; END */;;\nDELIMITER ;"
    )
    part, whole = record(tmp_path, dump)["rows"]
    assert (part["state"], whole["state"]) == ("usable", "usable")  # [index-012]
    found = {each["feature"]: each["where"] for each in whole["findings"]}
    assert (found["fulltext"], found["checks"], found["triggers"]) == (["f"], ["c"], ["r"])


@pytest.mark.parametrize(
    ("version", "profile", "notes"),
    [
        ("5.6.14", "mysql-8.0", ["the server is MySQL 5.6.14, and this is profile mysql-8.0: --profile mysql-5.6 matches its plugin"]),
        ("5.7.44", "mysql-8.0", ["the server is MySQL 5.7.44, and this is profile mysql-8.0: no profile matches its plugin: check with both"]),
        ("5.6.14", "mysql-5.6", []),
        ("5.6.14", "kvref", []),
    ],
)  # fmt: skip
def test_the_profile_of_another_version(tmp_path: Path, version: str, profile: str, notes: list[str]) -> None:
    text = f"-- Server version\t{version}-log\nUSE innodb_memcache;\n{CONFIGURATION}"
    assert record(tmp_path, text, "--profile", profile)["notes"] == notes


def test_a_narrow_cas_column_of_a_dump(tmp_path: Path) -> None:
    columns = (
        "`k` int PRIMARY KEY, `v` text, `c` smallint unsigned NOT NULL DEFAULT '7', `n` decimal(20,0) DEFAULT NULL"
    )
    rows = "".join(row(each, "d.t").replace("'0','0','0'", f"'0','{each}','0'") for each in "cn")
    text = f"USE `innodb_memcache`;{CONFIGURATION}{rows}USE `d`;\nCREATE TABLE `t` ({columns}) ENGINE=InnoDB;\n"
    found = {each["name"]: each["fault"] for each in record(tmp_path, text, "--profile", "kvref")["rows"]}
    alter = ": ALTER TABLE `d`.`t` MODIFY"
    assert found["c"].endswith(f"{alter} `c` BIGINT UNSIGNED NOT NULL DEFAULT 7")
    assert found["n"].endswith(f"{alter} `n` BIGINT UNSIGNED")
    plugin = record(tmp_path, text, "--profile", "mysql-8.0")["rows"][0]
    assert (plugin["state"], plugin["kvref"]["rule"]) == ("usable", "narrow-cas")
    assert "KV-CAS-017" in {each["id"] for f in plugin["findings"] for each in f["requirements"]}


def test_a_dump_without_rows(tmp_path: Path) -> None:
    text = "".join(f"{line}\n" for line in CONFIGURATION.splitlines() if not line.startswith("INSERT"))
    (tmp_path / "x.sql").write_text(f"USE innodb_memcache;\n{text}")
    found = CliRunner().invoke(main, ["doctor", str(tmp_path / "x.sql")])
    assert (found.exit_code, "has no row of innodb_memcache: make it without --no-data" in found.output) == (2, True)
