"""The table of commands: what derives from it agrees with it, and a row cannot lack rights or policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from importlib.util import find_spec, module_from_spec
from itertools import product
from typing import get_args

import pytest
from helpers.harness import Harness

from kvref.engine.cache.memory import Policies, Policy
from kvref.engine.counters import COUNTED, counters_of
from kvref.engine.dispatch import ANSWERS, HANDLERS
from kvref.protocol import command_table as table
from kvref.protocol import commands as c
from kvref.protocol.replies import Number, Status

STORE = c.Store("set", b"k", 0, 0, b"v")
REPLIES = (*Status, Number(1))
COUNTED_COMMANDS = (
    STORE,
    c.Store("cas", b"k", 0, 0, b"v", 1),
    c.Delete(b"k"),
    c.Touch(b"k", 0),
    c.FlushAll(),
    c.Arithmetic(increment=True, word=b"k", delta=1),
    c.Arithmetic(increment=False, word=b"k", delta=1),
)


@pytest.mark.parametrize("attribute", ["beyond_plugin", "needs", "policies"])
def test_a_row_without_an_attribute_is_an_error(attribute: str) -> None:
    whole = {"command": c.Noop, "beyond_plugin": False, "needs": c.NO_RIGHT, "policies": ()}
    assert table.CommandRow(**whole)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=attribute):
        table.CommandRow(**{name: value for name, value in whole.items() if name != attribute})  # type: ignore[arg-type]


def test_each_command_has_one_row_and_one_handler() -> None:
    assert len(table.TABLE) == len(table.ROWS)
    assert table.ROWS.keys() == set(get_args(c.Command)) == HANDLERS.keys() | ANSWERS.keys()


@pytest.mark.parametrize(("command", "line"), [(c.Version, b"version\r\n"), (c.Bind, b"bind aaa\r\n")])
def test_a_row_decides_what_any_command_counts(
    monkeypatch: pytest.MonkeyPatch, harness: Callable[..., Harness], command: type, line: bytes
) -> None:
    row = replace(table.ROWS[command], counters=lambda command, reply, missing_counted: ("cmd_touch",))
    monkeypatch.setitem(table.ROWS, command, row)
    endpoint = harness("kvref")
    endpoint.say(line * 2)
    assert endpoint.shared.counters.cmd_touch == 2


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("kvref.engine.dispatch", "a command that is answered at once cannot have policies"),
        ("kvref.engine.cache.dispatch", "each command with cache policies needs a reply"),
    ],
)
def test_policies_of_a_command_that_has_none_are_an_error_at_import(
    monkeypatch: pytest.MonkeyPatch, module: str, error: str
) -> None:
    row = replace(table.ROWS[c.Noop], policies=(table.PolicyKind.GET,))
    monkeypatch.setitem(table.ROWS, c.Noop, row)
    monkeypatch.setattr(table, "TABLE", (*table.TABLE, row))
    spec = find_spec(module)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(TypeError, match=error):
        spec.loader.exec_module(module_from_spec(spec))


def test_no_verb_and_no_opcode_has_two_rows() -> None:
    forms = [verb for row in table.TABLE for verb in row.text]
    opcodes = [opcode for row in table.TABLE for opcode in row.binary]
    assert len(forms) == len(set(forms))
    assert len(opcodes) == len(set(opcodes))
    assert not table.REFUSED_BEYOND_PLUGIN.keys() & set(forms)


def test_every_kind_of_policy_is_a_column_of_cache_policies() -> None:
    columns = {each.name for each in fields(Policies) if each.init}
    assert {kind.value for kind in table.PolicyKind} == columns


@pytest.mark.parametrize("kind", table.PolicyKind)
def test_one_policy_that_is_not_the_table_s_is_enough_to_ask_for_each_command(kind: table.PolicyKind) -> None:
    assert Policies().table_only
    assert not Policies(**{kind.value: Policy.OFF}).table_only


def test_the_names_that_rows_count_are_counters_of_stats() -> None:
    counted = {
        name
        for command, reply, missing_counted in product(COUNTED_COMMANDS, REPLIES, (False, True))
        if (counters := table.ROWS[type(command)].counters) is not None
        for name in counters(command, reply, missing_counted)
    }
    assert counted < set(COUNTED)
    assert {"cmd_set", "cmd_flush", "cas_badval", "touch_misses", "decr_hits", "incr_misses"} < counted


def test_commands_of_the_metrics_have_counters() -> None:
    assert {name: counters_of(name) for row in table.TABLE for name in row.metrics} == {
        "get": ("get_hits", "get_misses"),
        "set": ("cmd_set",),
        "cas": ("cas_hits", "cas_misses", "cas_badval"),
        "delete": ("delete_hits", "delete_misses"),
        "incr": ("incr_hits", "incr_misses"),
        "decr": ("decr_hits", "decr_misses"),
        "touch": ("touch_hits", "touch_misses"),
        "flush": ("cmd_flush",),
    }
    with pytest.raises(KeyError, match="neither frob_hits nor cmd_frob"):
        counters_of("frob")
