"""A script is split into statements as the programs `mysql` and `mariadb` split it."""

from __future__ import annotations

import pytest

from kvref.doctor.dump.script import Script, Server, Statement, server_of

MYSQL, MARIADB = Server(), Server((10, 11, 6), mariadb=True)


def needs_rows(written: str) -> bool:
    return "containers" in written


def read(dump: str, server: Server = MYSQL) -> list[Statement]:
    return list(Script(dump, server, needs_rows))


def texts(dump: str, server: Server = MYSQL) -> list[str]:
    return [each.text for each in read(dump, server) if each.text]


@pytest.mark.parametrize(
    ("dump", "found"),
    [
        ("A 1;\n-- ; no\nB 2 # ;\n;", ["A 1", "B 2"]),
        ("A ';' \"';\" `;``;`; B", ["A ';' \"';\" `;``;`", "B"]),
        (r"A 'it\'s;' 'it''s;'; B '\\';", [r"A 'it\'s;' 'it''s;'", r"B '\\'"]),
        ("A /* ; */ 1; /*!50003 B*/ /*!50017 C*/ 2;", ["A   1", "B  C  2"]),
        ("A /* /* ; */ 1;", ["A   1"]),
        ("A /*!99999 /* ; */ B */ 1;", ["A   1"]),
        ("DELIMITER ;;\nA; B;;\nDELIMITER ;\nC;", ["A; B", "C"]),
        ("delimiter //\nA; B / 1//\nDELIMITER ;\nC;", ["A; B / 1", "C"]),
        ("DELIMITER @@\nA; B @ 1@@\n", ["A; B @ 1"]),
        ("INSERT INTO `t` VALUES ('a;b','\\';'),(1);\nINSERT INTO `containers` VALUES (1);", ["INSERT INTO `containers` VALUES (1)"]),
        ("INSERT INTO `d`.`t` VALUES (';');INSERT IGNORE INTO containers VALUES (2);", ["INSERT IGNORE INTO containers VALUES (2)"]),
        ('REPLACE LOW_PRIORITY "t" VALUES (1);INSERT d.containers VALUES (2)', ["INSERT d.containers VALUES (2)"]),
        ("A -- comment\n-1;", ["A  -1"]),
        ("REPLACE INTO `t` VALUES ((((;A;", ["A"]),
        ("/**//**/A/**//**/B;", ["A B"]),
        ("USE shop\n\nCREATE TABLE t;", ["USE shop", "CREATE TABLE t"]),
        ("USE shop; A;\nuse `b c`\nA\nuse d;", ["USE shop", "A", "USE `b c`", "A\nuse d"]),
        ("\\u shop\nA\\G\nB\\g C;", ["USE shop", "A", "B", "C"]),
        ("\\. x.sql\nsource y.sql\nSOURCE z.sql;", ["SOURCE x.sql", "SOURCE y.sql", "SOURCE z.sql"]),
        ("\\- enable\ncharset utf8\nwarnings\nA;\nquit\nB;", ["A"]),
        ("A;exit;B;", ["A"]),
        ("mysqldump: [Warning] Using a password on the command line interface can be insecure.\nA;", ["A"]),
        ("Warning: Using a password can be insecure; yes\n/usr/bin/mariadb-dump: Got error: 1045\nA;", ["A"]),
        ("CREATE TABLE x (a int); warnings\n;", ["CREATE TABLE x (a int)", "warnings"]),
    ],
)  # fmt: skip
def test_statements(dump: str, found: list[str]) -> None:
    assert texts(dump) == found


@pytest.mark.parametrize(
    "dump", ["A 'not closed; B;", "A `", "INSERT INTO t VALUES ('a", "INSERT INTO t VALUES ('a''", "B;A 'x\\'"]
)
def test_a_script_that_ends_within_a_text(dump: str) -> None:
    assert [each.ended for each in read(dump)][-1] is False


@pytest.mark.parametrize("dump", ["A 'x'", "INSERT INTO t VALUES ('a')", "A /* not closed; B;", "A '''';"])
def test_a_script_whose_last_statement_has_no_delimiter(dump: str) -> None:
    assert all(each.ended for each in read(dump))


@pytest.mark.parametrize(
    ("dump", "of_mysql", "of_mariadb"),
    [
        ("/*M!999999\\- enable the sandbox mode */\nA;", ["A"], ["A"]),
        ("/*!999999\\- enable the sandbox mode */ \nA;", ["A"], ["A"]),
        ("A /*M!100616 B */;", ["A"], ["A  B"]),
        ("A /*M!110100 B */;", ["A"], ["A"]),
        ("A /*!80016 B */ /*!80100 C */;", ["A  B"], ["A"]),
        ("A /*!50101 B */ /*! C */;", ["A  B   C"], ["A  B   C"]),
        ("A /*!50708 B */ /*!100100 C */;", ["A  B"], ["A   C"]),
    ],
)
def test_comments_of_a_version(dump: str, of_mysql: list[str], of_mariadb: list[str]) -> None:
    def words(found: list[str]) -> list[str]:
        return [" ".join(each.split()) for each in found]

    assert (words(texts(dump)), words(texts(dump, MARIADB))) == (words(of_mysql), words(of_mariadb))


@pytest.mark.parametrize(
    ("dump", "server"),
    [
        ("A;", Server()),
        ("-- Server version\t5.6.14-log\n", Server((5, 6, 14), known=True)),
        ("-- Server version: 8.0.36\n", Server((8, 0, 36), known=True)),
        ("-- Server version\t10.11.6-MariaDB-0+deb12u1\n", Server((10, 11, 6), mariadb=True, known=True)),
        ("-- Server version\t5.5.5-10.4.32-MariaDB\n", Server((10, 4, 32), mariadb=True, known=True)),
        ("-- MariaDB dump 10.19  Distrib 11.4.2-MariaDB, for x\n", Server((11, 4, 2), mariadb=True, known=True)),
    ],
)  # fmt: skip
def test_the_server_that_a_dump_is_of(dump: str, server: Server) -> None:
    assert server_of(dump) == server
