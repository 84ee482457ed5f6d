"""A difference becomes small: what is not needed goes, what is needed stays."""

from __future__ import annotations

from dataclasses import replace

from kvref_conformance.corpus.conversation import Talk
from kvref_conformance.differential.exclusions import sent
from kvref_conformance.differential.generate import Script, script_of, world_of
from kvref_conformance.differential.shapes import Ground
from kvref_conformance.differential.shrink import shrink, shrink_world

GROUND = Ground("8.0.33", frozenset())


def script(*lines: str, rows: tuple[str, ...] = ()) -> Script:
    return Script(0, world_of(1, 0, GROUND), tuple(Talk("a", line) for line in lines), rows)


def said(script: Script) -> list[bytes]:
    return [sent(step) for step in script.steps if isinstance(step, Talk)]


def test_steps_commands_and_words_that_are_not_needed_go() -> None:
    lines = [f"get k{number}\r\n" for number in range(20)]
    lines[7] = "bind m1\r\nget x y needed z\r\nincr n 1\r\n"
    lines[15] = "set other 0 0 3\r\nabc\r\n"
    small = shrink(
        script(*lines), lambda each: b"needed" in b"".join(said(each)) and any(b"other" in line for line in said(each))
    )
    assert said(small) == [b"get needed\r\n", b"set other 0 0 0\r\n\r\n"]


def test_a_data_block_keeps_its_length_right() -> None:
    small = shrink(script("set k 0 0 9\r\nabcQdefgh\r\nget k\r\n"), lambda each: b"Q" in b"".join(said(each)))
    assert said(small) == [b"set k 0 0 1\r\nQ\r\n"]


def test_rows_go_but_the_emptying_of_tables_stays() -> None:
    rows = ("DELETE FROM test.t", "INSERT INTO test.t VALUES (1)", "INSERT INTO test.t VALUES (2)")
    small = shrink(script("get k\r\n", rows=rows), lambda each: rows[2] in each.rows)
    assert small.rows == (rows[0], rows[2])


def test_what_does_not_differ_any_more_is_not_taken() -> None:
    whole = script("get a\r\n", "get b\r\n")
    assert shrink(whole, lambda each: each.steps == whole.steps) == whole


def test_a_world_loses_mappings_and_their_tables() -> None:
    world = next(world for number in range(0, 5000, 100) if len((world := world_of(3, number, GROUND)).containers) > 4)
    whole = script_of(3, 0, 5, GROUND, world)
    whole = replace(whole, rows=world.fill(singly=True))
    needed = world.usable[0]
    small = shrink_world(whole, lambda each: needed in each.world.containers)
    assert small.world.containers == (needed,)
    assert small.world.tables == (needed.table,)
    assert small.rows == small.world.fill(singly=True)
