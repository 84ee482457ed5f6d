"""Which commands the fast path may run: what the table of commands, the listener and the cache policies say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from desk import Desk

from kvref.engine.access import UNLIMITED, Access
from kvref.engine.cache.memory import Policies, Policy
from kvref.engine.fast_path import GET, SET, PlainVerbs, ordinary_mapping
from kvref.engine.session import Session
from kvref.protocol import command_table
from kvref.protocol import commands as c

DELETE = c.Delete(b"k")


def runs(endpoint: Desk, access: Access, *commands: c.Command) -> list[bool]:
    session = Session(endpoint.shared, access)
    session.start()
    mapping = ordinary_mapping(session)
    assert mapping is not None
    verbs = PlainVerbs(session, mapping)
    return [verbs.runs(command) for command in commands]


def test_rights_are_those_of_the_table_of_commands(monkeypatch: pytest.MonkeyPatch, desk: Callable[..., Desk]) -> None:
    endpoint = desk("kvref")
    assert runs(endpoint, UNLIMITED, GET, SET, DELETE) == [True, True, True]
    assert runs(endpoint, Access(read_only=True), GET, SET, DELETE) == [True, False, False]
    keeping = Access(flush=False)
    assert runs(endpoint, keeping, GET, SET, DELETE) == [True, True, True]
    row = replace(command_table.ROWS[c.Delete], needs=c.Right.FLUSH)
    monkeypatch.setitem(command_table.ROWS, c.Delete, row)
    assert runs(endpoint, keeping, GET, SET, DELETE) == [True, True, False]


def test_a_policy_for_deletes_takes_them_off_the_fast_path(desk: Callable[..., Desk]) -> None:
    endpoint = desk("kvref")
    endpoint.shared.directory.policies = Policies(delete=Policy.OFF)
    assert runs(endpoint, UNLIMITED, GET, SET, DELETE) == [True, True, False]


@pytest.mark.parametrize("kind", ["get", "set"])
def test_with_a_policy_for_gets_or_sets_there_is_no_fast_path(desk: Callable[..., Desk], kind: str) -> None:
    endpoint = desk("kvref")
    endpoint.shared.directory.policies = Policies(**{kind: Policy.CACHE})
    session = Session(endpoint.shared)
    session.start()
    assert ordinary_mapping(session) is None
