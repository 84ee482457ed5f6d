"""The template language of the cases."""

from __future__ import annotations

import pytest

from kvref_conformance.wire.template import Names


@pytest.fixture
def names() -> Names:
    return Names({"m1": "one", "w1": "test/t1"}, lambda name: f"fresh-{name}")


def test_a_name_that_stands_for_nothing_is_an_error(names: Names) -> None:
    with pytest.raises(KeyError, match="m9"):
        names.render("get {m9}")


def test_text_around_holes_is_literal(names: Names) -> None:
    assert names.match("a.b <number>", "a.b 12")
    assert not names.match("a.b <number>", "axb 12")
    assert not names.match("a.b <number>", "a.b 12 ")
    assert not names.match("a.b <number>", "a.b x")


def test_a_number_is_remembered(names: Names) -> None:
    assert names.match("n <cas a>\r\n", "n 17\r\n")
    assert names.render("cas {a}") == "cas 17"
    assert names.match("n {a}", "n 17")
    assert not names.match("n {a}", "n 18")


def test_stats_have_no_names_that_are_elsewhere(names: Names) -> None:
    template = "<stats>STAT pid <text>\r\n<stats>STAT uptime 2\r\n<stats>END\r\n"
    assert names.match(template, "STAT pid 1\r\nSTAT uptime 2\r\nEND\r\n")
    assert names.match(
        template, "STAT a 1\r\nSTAT pid 1\r\nSTAT b 1\r\nSTAT b 2\r\nSTAT uptime 2\r\nSTAT c 1\r\nEND\r\n"
    )
    assert not names.match(template, "STAT uptime 2\r\nSTAT pid 1\r\nEND\r\n")
    assert not names.match(template, "STAT pid 1\r\nSTAT uptime 2\r\nSTAT pid 1\r\nEND\r\n")
    assert not names.match(template, "STAT pid 1\r\nEND\r\n")


def test_a_name_that_stands_twice_in_an_answer_is_twice_the_same(names: Names) -> None:
    assert not names.match("<cas a> <cas a>", "1 2")
    assert names.match("<cas a> <cas a> <new cas b>", "1 1 2")
    assert names.match("{a} {b}", "1 2")
    assert not names.match("<cas c> <new cas d>", "5 5")


def test_fields_of_a_frame_end_with_the_field(names: Names) -> None:
    assert names.match("version ok value=<value>", "version ok value=1 2")
    assert not names.match("version ok value=<value>", "version ok value=1; noop ok")
    assert names.match("<pairs>stat ok", "stat ok key=a value=1; stat ok key=b value=; stat ok")
    assert names.match("<pairs>stat ok", "stat ok")
    wanted = "<pairs>stat ok key=b value=1; <pairs>stat ok"
    for place in range(3):
        pairs = ["stat ok key=a value=2; ", "stat ok key=c value=3; "]
        pairs.insert(place, "stat ok key=b value=1; ")
        assert names.match(wanted, "".join(pairs) + "stat ok")
    assert not names.match(wanted, "stat ok key=a value=1; stat ok")
    assert not names.match(wanted, "stat ok key=b value=2; stat ok key=b value=1; stat ok")
