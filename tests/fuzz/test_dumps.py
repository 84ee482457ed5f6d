"""Whatever a dump says, `kvref doctor` reads it, or refuses it in one line with the file; long ones end soon."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Final

import pytest
from doctor.test_dump import CONFIGURATION, row
from hypothesis import example, given
from hypothesis import strategies as st

from fuzz.test_files import REFUSALS
from kvref import profiles
from kvref.doctor.dump.script import MAX_STATEMENT
from kvref.doctor.dump.source import open_dump
from kvref.doctor.examine import examine
from kvref.errors import StoreError, printable

CONFIGURED: Final = f"""-- Server version\t8.0.33
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `innodb_memcache`;
USE `innodb_memcache`;
{CONFIGURATION}{row("a", "shop.t")}{row("b", "shop.u", "v", "u")}
CREATE DATABASE `shop`; USE `shop`;
"""
DUMP: Final = f"""{CONFIGURED}
CREATE TABLE `t` (`k` varchar(9) NOT NULL, `v` text, `h` int /*!80023 INVISIBLE */, g int GENERATED ALWAYS AS (f(')', (1))) STORED,
 PRIMARY KEY (`k`));
CREATE TABLE `u` (`id` int NOT NULL AUTO_INCREMENT, `k` varchar(9) COLLATE utf8mb4_bin NOT NULL DEFAULT 'x', `v` text,
 `w` decimal(10,2) DEFAULT (1 + 1), `e` enum('a','b'), `b` bit(3), PRIMARY KEY (`id`), UNIQUE KEY `u` (`k`(3) DESC), KEY `i` ((lower(`k`))),
 FULLTEXT KEY `f` (`v`), CONSTRAINT `c` CHECK ((char_length(`k`) > 1)), CONSTRAINT `r` FOREIGN KEY (`k`) REFERENCES `t` (`k`)) ENGINE=InnoDB;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER `r` BEFORE INSERT ON `t` FOR EACH ROW BEGIN SET @a = 1; SET @b = 2; END */;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED DEFINER=`r`@`l` SQL SECURITY DEFINER VIEW `w` AS select 1 */;
INSERT INTO `t` VALUES ('a');
"""
WORDS: Final = re.findall(r"\w+|\W", DUMP)
ODD: Final = (
    "(", ")", "((((" * 30, "'", '"', "`", ";", "/*", "*/", "--", "\n", "\0", "\udcff", "é", "\x1b[2J", "9" * 5000, "0x", "0xZZ", "_binary ", "-",
    "NULL", "DEFAULT", " AS (", "CHECK (", "DEFAULT (", "PRIMARY KEY", "KEY ()", "UNIQUE", "REFERENCES", "LIKE", "TEMPORARY", "SELECT", "COLLATE",
    "CHARACTER SET", "varchar()", "varchar(max)", "enum()", "bit(9999999999)", "SERIAL", "timestamp", "1e999", ",", ".", "x" * 300, "not " * 100,
)  # fmt: skip
CHANGES: Final = st.lists(
    st.tuples(st.integers(0, len(WORDS) - 1), st.booleans(), st.sampled_from((*ODD, "", *WORDS))),
    min_size=1,
    max_size=4,
)
# Parts that nest, or have no end, or are many: the time may grow with their length only.
LONG: Final = (
    "INSERT INTO containers VALUES (", "CREATE TABLE t (a int DEFAULT ", "CREATE TABLE t (a int, KEY (", "CREATE TABLE t (a int CHECK (", "CREATE ",
    "INSERT INTO t VALUES (", "-- Host: ", "DELIMITER ", "CREATE TABLE t ", "",
)  # fmt: skip
PARTS: Final = (
    "(", "1/", "not ", "- ", "case when ", "f(", "select (", "'", "'\\", "`", '"', "/*", "/* ", "/**/", "/*!", "#\n", "-- \n", "-- Host: ", " ", "\n",
    "`a`@`b` ", "VIEW `", "TRIGGER ` ", "REFERENCES ", "CHECK ((", " AS ", "DEFAULT (", "('a'),", "x int,", ";", "$", "|", "INSERT ", "USE ", "\\",
)  # fmt: skip
REPEATED: Final = 3_000


def look(folder: Path, dump: str) -> None:
    file = folder / "x.sql"
    file.write_bytes(dump.encode("utf-8", "surrogateescape"))
    try:
        with open_dump(file) as source:
            examine(source, profiles.load("mysql-8.0"))
    except REFUSALS as refusal:
        if len(printable(str(refusal), keep="\n").splitlines()) != 1:
            raise AssertionError(str(refusal)) from refusal


def test_the_dump_that_is_changed_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text(DUMP)
    with open_dump(tmp_path / "x.sql") as source:
        report = examine(source, profiles.load("mysql-8.0"))
    assert [each.verdict.state for each in report.rows] == ["usable", "unusable"]
    assert "the expression of index i" in report.rows[1].verdict.fault


@example([(162, False, "`"), (162, False, "`")])  # an empty name in place of a width
@given(CHANGES)
def test_a_changed_dump_is_read_or_refused_in_one_line(changes: list[tuple[int, bool, str]]) -> None:
    words = list(WORDS)
    for position, instead, text in changes:
        words[position] = text if instead else text + words[position]
    with tempfile.TemporaryDirectory() as folder:
        look(Path(folder), "".join(words))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.nightly] if number % 4 else []) for number, part in enumerate(PARTS)]
)
def test_long_dumps_end(tmp_path: Path, part: str) -> None:
    for head in LONG:
        for tail in ("", "1" + ")" * REPEATED + ");"):
            look(tmp_path, f"{CONFIGURED}{head}{part * REPEATED}{tail}")


def test_a_statement_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text(f"A;\n\n /* comment */ CREATE TABLE t (\n{'x int,' * (MAX_STATEMENT // 6)});")
    with (
        pytest.raises(StoreError, match=r"dump .*x\.sql, line 3: a statement of more than 1048576 characters: .*leave"),
        open_dump(tmp_path / "x.sql"),
    ):
        pass


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT INTO containers (name) VALUES (1/1)", "line 2: .*its rows are not literals as mysqldump writes them"),
        (
            "INSERT INTO containers (name) VALUES (((SELECT 'a')))",
            "line 2: .*its rows are not literals as mysqldump writes them",
        ),
        (f"INSERT INTO containers VALUES ({'(' * 100}1{')' * 100})", "line 2: .*nested more than 64 levels deep"),
        (f"INSERT INTO containers VALUES ({'1/' * 100}1)", "line 2: .*nested more than 64 levels deep"),
        ("CREATE TABLE t (`a` NOT NULL)", "line 2: .*a column without a type"),
        ("CREATE TABLE t (a int, FOREIGN KEY (a))", "line 2: .*a foreign key that refers to no table"),
        ("INSERT INTO containers VALUES ('a', 'b')", "line 2: .*2 values for 9 columns"),
        ("INSERT INTO cache_policies VALUES ('\udcff')", "line 2: .*it has bytes that are not UTF-8"),
        ("CREATE TABLE t (a int, KEY ())", "line 2: .*an index without columns"),
        ("CREATE TABLE t (a varchar(" + "9" * 5000 + "))", ""),
    ],
)
def test_what_cannot_be_read_names_its_line(tmp_path: Path, statement: str, reason: str) -> None:
    (tmp_path / "x.sql").write_bytes(
        f"{CONFIGURED.partition(chr(10))[2].replace(chr(10), ' ')}\n{'USE innodb_memcache;' * ('INTO' in statement)}{statement};".encode(
            "utf-8", "surrogateescape"
        )
    )
    with open_dump(tmp_path / "x.sql") as source:
        assert re.search(reason, " ".join(source.notes))
