"""Which rows a batch over a database server may lock together with others."""

from __future__ import annotations

from kvref.server.executors.mysql.command import Transaction
from kvref.server.executors.mysql.row_locks import RowLocks


def test_a_row_is_free_unless_another_transaction_has_locked_it() -> None:
    locks, one, two = RowLocks(), Transaction(), Transaction()
    locks.take(one, ["a", "b"])
    assert locks.is_free(one, "a")
    assert not locks.is_free(two, "a")
    locks.take(two, ["b", "c"])  # after a wait: it has the row now
    locks.release(one)
    assert locks.is_free(two, "a")
    assert not locks.is_free(one, "b")
    locks.release(two)
    locks.release(two)
    assert locks.is_free(one, "b")


def test_locks_of_others_are_unknown_until_they_are_named_or_end() -> None:
    locks, one, two = RowLocks(), Transaction(), Transaction()
    assert locks.are_known(one)
    locks.take_unknown(one)
    assert locks.are_known(one)
    assert not locks.are_known(two)
    assert locks.are_identified(two)
    assert not locks.are_identified(one)
    locks.identify(one, "a")
    assert locks.are_known(two)
    assert not locks.is_free(two, "a")
    locks.take_unknown(one)
    locks.take_unknown(two)
    assert not locks.are_known(one)
    locks.release(two)
    assert locks.are_known(one)
    locks.release(one)
    assert locks.are_known(two)
