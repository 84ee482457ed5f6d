"""The generator: the same from the same seed, every kind of thing, and nothing that a rule of care keeps out."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kvref_conformance.corpus.templates import bytes_of, sent
from kvref_conformance.differential import exclusions
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.generate import IN_ONE_WORLD, Script, script_of, world_of
from kvref_conformance.steps import Send, Sql

pytestmark = pytest.mark.nightly

CONFIGURATIONS = {
    "mysql-8.0": Configuration("8.0.33", exclusions.rules_for(["mysql-8.0"])),
    "mysql-5.6": Configuration("5.6.14", exclusions.rules_for(["mysql-5.6"])),
}
SEEDS = ((3, 0), (-(1 << 40), 30_000), (7, 12_345), (1 << 40, 99))
ANY = pytest.mark.parametrize(
    ("seed", "number", "plugin"), [(*each, plugin) for each in SEEDS for plugin in CONFIGURATIONS]
)
STEPS = 30


def drawn(seed: int, number: int, plugin: str) -> Script:
    configuration = CONFIGURATIONS[plugin]
    return script_of(seed, number, STEPS, configuration, world_of(seed, number, configuration))


@ANY
def test_the_same_seed_gives_the_same_conversation_whatever_was_drawn_before(
    seed: int, number: int, plugin: str
) -> None:
    first = drawn(seed, number, plugin)
    drawn(seed + 1, number + 1, plugin)
    assert drawn(seed, number, plugin) == first


@ANY
def test_a_conversation_says_nothing_that_care_keeps_out(seed: int, number: int, plugin: str) -> None:
    script = drawn(seed, number, plugin)
    assert len(script.steps) > STEPS // 2
    world = script.world
    assert exclusions.are_safe(
        script.steps, CONFIGURATIONS[plugin].rules, secondary=world.secondary, delimiter=world.delimiter
    )
    integers = any(column.kind == "integer" for each in script.world.usable for column in each.values)
    verbs = b"\n".join(bytes_of(step) for step in script.steps if isinstance(step, Send))
    if integers:
        assert not re.search(rb"(?m)^prepend ", verbs)
    if not all(each.table.is_closed for each in script.world.usable if each.table) and plugin == "mysql-8.0":
        assert not re.search(rb"(?m)^(incr|decr) \S+ \d+$", verbs)


@pytest.mark.long
@pytest.mark.parametrize("plugin", CONFIGURATIONS)
def test_every_kind_of_thing_is_drawn(plugin: str) -> None:
    configuration = CONFIGURATIONS[plugin]
    worlds = [world_of(5, number * IN_ONE_WORLD, configuration) for number in range(60)]
    scripts = [
        script_of(5, number, STEPS, configuration, worlds[number // IN_ONE_WORLD])
        for number in (*range(0, 20 * IN_ONE_WORLD, 17), IN_ONE_WORLD - 1)
    ]
    steps = [step for script in scripts for step in script.steps]
    reply = Counter(bytes_of(step).split(b" ")[0] for step in steps if isinstance(step, Send))
    verbs = {
        b"get",
        b"gets",
        b"bget",
        b"set",
        b"add",
        b"replace",
        b"append",
        b"prepend",
        b"cas",
        b"incr",
        b"decr",
        b"delete",
    }
    assert all(reply[verb] > 10 for verb in verbs)
    assert reply[b"bind"] > 10
    assert any(len(step.packets) > 1 for step in steps if isinstance(step, Send))
    assert any(isinstance(sent(step), list) for step in steps if isinstance(step, Send))
    words = Counter(step.statement.split()[0] for step in steps if isinstance(step, Sql))
    assert words.keys() >= {"INSERT", "UPDATE", "DELETE"}
    assert any(script.changes_containers for script in scripts)
    assert {column.kind for world in worlds for each in world.usable for column in each.values} == {
        "text",
        "bytes",
        "integer",
    }
    assert {each.key.kind for world in worlds for each in world.usable} == {"text", "integer"}
    assert len({each.fault for world in worlds for each in world.containers if each.fault}) > 12
    assert any(world.secondary for world in worlds)
    assert any(each.name == "default" for world in worlds for each in world.usable)
