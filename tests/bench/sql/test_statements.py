"""Prepared statements with live servers: each verb, each kind of reply."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load.records import Kind
from kvref_bench.load.work import Clock, Task
from kvref_bench.sql import login, plan_of

from .conftest import NUMBERS, WORDS
from .talk import Talk, work

if TYPE_CHECKING:
    from kvref_bench.scenario.records import Table

    from .conftest import Sut

pytestmark = [pytest.mark.live, pytest.mark.nightly]

SELECT = {"get": "SELECT v FROM words WHERE k = :key"}
HIT, MISS, ERROR = Kind("get", "hit"), Kind("get", "miss"), Kind("get", "error")


@pytest.mark.parametrize("depth", [1, 5])
@pytest.mark.parametrize("table", [WORDS, NUMBERS], ids=["text", "int"])
def test_every_get_is_foreseen(sut: Sut, table: Table, depth: int) -> None:
    select = {"get": f"SELECT v FROM {table.name} WHERE k = :key"}
    found = Talk(sut.server.dsn, table, select, depth=depth, missing=0.3).run()
    assert found.foreseen == 60
    assert found.unexpected == []
    assert set(found.kinds) == {HIT, MISS}
    assert found.kinds.total() == 60 * depth


def test_rows_of_a_procedure_are_read_like_rows(sut: Sut) -> None:
    found = Talk(sut.server.dsn, WORDS, {"get": "CALL words_get(:key, 0)"}, depth=2, missing=0.3).run()
    assert (found.foreseen, set(found.kinds)) == (60, {HIT, MISS})


def test_over_the_unix_socket(sut: Sut) -> None:
    found = Talk(f"mysql://root@localhost/?unix_socket={sut.server.socket}", WORDS, SELECT).run()
    assert found.kinds == {HIT: 60}


@pytest.mark.parametrize("depth", [1, 5])
def test_the_procedure_that_sets_writes(sut: Sut, depth: int) -> None:
    found = Talk(sut.server.dsn, WORDS, {"set": "CALL words_set(:key, :value)"}, depth=depth, missing=0.5).run()
    assert (found.kinds, found.unexpected) == ({Kind("set", "stored"): 60 * depth}, [])
    [[rows, written]] = sut.run("SELECT COUNT(*), SUM(cas > 1) FROM words")
    assert isinstance(rows, int)
    assert rows > 200
    assert written
    assert Talk(sut.server.dsn, WORDS, SELECT).run().kinds == {HIT: 60}


def test_learning_replies_leaves_the_rows_as_they_are(sut: Sut) -> None:
    before = sut.run("SELECT * FROM words ORDER BY k")
    Talk(sut.server.dsn, WORDS, {"set": "CALL words_set(:key, :value)", "delete": "DELETE FROM words WHERE k = :key"})
    assert sut.run("SELECT * FROM words ORDER BY k") == before


@pytest.mark.parametrize("depth", [1, 5])
def test_an_update_says_whether_there_is_a_row(sut: Sut, depth: int) -> None:
    # :value first, :key twice.
    update = {"set": "UPDATE numbers SET v = :value WHERE k = :key AND k = :key"}
    found = Talk(sut.server.dsn, NUMBERS, update, depth=depth, missing=0.3).run()
    assert set(found.kinds) == {Kind("set", "stored"), Kind("set", "not_found")}
    assert found.unexpected == []


@pytest.mark.parametrize("depth", [1, 4])
def test_insert_and_delete(sut: Sut, depth: int) -> None:
    statements = {
        "add": "INSERT INTO numbers (v, k) VALUES (:value, :key)",
        "delete": "DELETE FROM numbers WHERE k = :key",
    }
    found = Talk(sut.server.dsn, NUMBERS, statements, depth=depth, missing=0.3).run(200)
    assert {tuple(each) for each in found.kinds} == {
        ("add", "stored"), ("add", "not_stored"), ("delete", "deleted"), ("delete", "not_found"),
    }  # fmt: skip
    assert found.unexpected == []
    [[rows]] = sut.run("SELECT COUNT(*) FROM numbers")
    assert rows == 200 + found.kinds[Kind("add", "stored")] - found.kinds[Kind("delete", "deleted")]


def test_reads_and_writes_in_one_write(sut: Sut) -> None:
    statements = {**SELECT, "set": "UPDATE words SET v = :value, cas = cas + 1 WHERE k = :key"}
    found = Talk(sut.server.dsn, WORDS, statements, depth=6).run()
    assert set(found.kinds) == {HIT, Kind("set", "stored")}
    assert found.unexpected == []


def test_a_wrong_value_and_null_are_errors_and_a_deleted_row_is_a_miss(sut: Sut) -> None:
    prepared = Talk(sut.server.dsn, WORDS, SELECT)
    sut.run("UPDATE words SET v = CONCAT(v, 'x')")
    found = prepared.run()
    assert found.kinds == {ERROR: 60}
    assert len(found.unexpected) == 60
    sut.run("UPDATE words SET v = NULL")
    assert prepared.run().kinds == {ERROR: 60}
    sut.run("DELETE FROM words")
    found = prepared.run()
    assert (found.kinds, found.unexpected) == ({MISS: 60}, [])


def test_an_empty_table_is_read_reply_by_reply(sut: Sut) -> None:
    sut.run("DELETE FROM words")
    prepared = Talk(sut.server.dsn, WORDS, SELECT)
    assert prepared.run().kinds == {MISS: 60}
    sut.peer.prepare(WORDS)
    assert prepared.run().kinds == {HIT: 60}


def test_a_row_that_stays_locked_is_an_error_with_the_servers_words(sut: Sut) -> None:
    sut.run("SET GLOBAL innodb_lock_wait_timeout = 1")
    prepared = Talk(sut.server.dsn, WORDS, {"set": "UPDATE words SET v = :value WHERE k = :key"})
    with closing(login.parse(sut.server.dsn).connect("kvref_bench")) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM words FOR UPDATE")
        found = prepared.run(1)
    sut.run("SET GLOBAL innodb_lock_wait_timeout = 50")
    assert found.kinds == {Kind("set", "error"): 1}
    assert b"Lock wait timeout exceeded" in found.unexpected[0]


def test_connections_that_number_statements_otherwise(sut: Sut) -> None:
    for depth in (1, 3):
        prepared = Talk(sut.server.dsn, WORDS, {**SELECT, "set": "CALL words_set(:key, :value)"}, depth=depth)
        # MariaDB goes on counting where it uses the state of an ended connection again, one after the other here.
        for _ in range(3):
            found = prepared.run()
            assert set(found.kinds) == {HIT, Kind("set", "stored")}
            assert found.unexpected == []


UNFIT = {
    "nowhere' doesn't exist": "SELECT v FROM nowhere WHERE k = :key",
    "has no :key": "SELECT v FROM words",
    "answers 1 rows": "SELECT k, v FROM words WHERE k = :key",
    "one column of text": "SELECT cas FROM words WHERE k = :key",
    "answers [0-9]+ rows": "SELECT v FROM words WHERE k >= :key",
    "1318 Incorrect number of arguments": "CALL words_get(:key)",
}


def test_statements_that_cannot_be_measured(sut: Sut) -> None:
    for words, statement in UNFIT.items():
        with pytest.raises(BenchError, match=words):
            Talk(sut.server.dsn, WORDS, {"get": statement})


def test_a_login_that_is_refused(sut: Sut) -> None:
    with pytest.raises(BenchError, match="Access denied"):
        Talk(sut.server.dsn.replace("root@", "nobody:secret@"), WORDS, SELECT)
    with pytest.raises(BenchError, match="Can't connect"):
        Talk("mysql://root@127.0.0.1:1/", WORDS, SELECT)


def test_many_keys_in_a_statement_are_refused() -> None:
    several = replace(work(WORDS, SELECT), multiget=2)
    with pytest.raises(BenchError, match="multiget"):
        plan_of(Task("mysql://root@127.0.0.1:1/", several, Clock(0, 1), "", "", 0, 1))
