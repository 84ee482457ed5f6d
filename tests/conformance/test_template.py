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
