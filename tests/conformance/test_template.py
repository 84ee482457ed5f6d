"""The template language of the cases."""

from __future__ import annotations

import pytest

from kvref_conformance.wire.template import Names, names_in


@pytest.fixture
def names() -> Names:
    return Names({"m1": "one", "w1": "test/t1"}, lambda name: f"fresh-{name}")


def test_names_are_replaced_and_fresh_keys_stay(names: Names) -> None:
    assert names.render("get @@{m1}.{k} {k2} {k}") == "get @@one.fresh-k fresh-k2 fresh-k"


def test_names_are_put_back_into_an_answer() -> None:
    names = Names({"m": "xa", "m1": "z12m1", "w1": "test/kvc_z12m1", "a": "417"}, lambda name: f"z12{name}")
    names.render("{k} {k2}")
    answer = "VALUE @@z12m1.z12k2 417 14\r\ntest/kvc_z12m1 xa\r\nVALUE z12k 0\r\n"
    assert names.put_back(answer) == "VALUE @@{m1}.{k2} 417 14\r\n{w1} xa\r\nVALUE {k} 0\r\n"


def test_a_key_is_filled_up_and_a_length_is_counted(names: Names) -> None:
    assert names.render("{k:12}|{#w1}|{v~5}") == "fresh-kxxxxx|7|vvvvv"


def test_a_name_that_stands_for_nothing_is_an_error(names: Names) -> None:
    with pytest.raises(KeyError, match="m9"):
        names.render("get {m9}")


def test_text_around_holes_is_literal(names: Names) -> None:
    assert names.match("a.b <number>", "a.b 12")
    assert not names.match("a.b <number>", "axb 12")
    assert not names.match("a.b <number>", "a.b 12 ")
    assert not names.match("a.b <number>", "a.b x")


def test_text_ends_at_the_line(names: Names) -> None:
    assert names.match("CLIENT_ERROR <text>\r\n", "CLIENT_ERROR so what\r\n")
    assert not names.match("CLIENT_ERROR <text>\r\n", "CLIENT_ERROR so\r\nERROR\r\n")


def test_a_number_is_remembered(names: Names) -> None:
    assert names.match("n <cas a>\r\n", "n 17\r\n")
    assert names.render("cas {a}") == "cas 17"
    assert names.match("n {a}", "n 17")
    assert not names.match("n {a}", "n 18")


def test_a_new_number_differs_from_the_remembered_ones(names: Names) -> None:
    assert names.match("<cas a>", "17")
    assert not names.match("<new cas b>", "17")
    assert names.match("<new cas b>", "18")
    assert names.render("{b}") == "18"


def test_stats_are_lines(names: Names) -> None:
    assert names.match("<stats>END\r\n", "STAT pid 1\r\nSTAT uptime 2\r\nEND\r\n")
    assert names.match("<stats>END\r\n", "END\r\n")


def test_stats_have_no_names_that_are_elsewhere(names: Names) -> None:
    template = "<stats>STAT pid <text>\r\n<stats>STAT uptime 2\r\n<stats>END\r\n"
    assert names.match(template, "STAT pid 1\r\nSTAT uptime 2\r\nEND\r\n")
    assert names.match(
        template, "STAT a 1\r\nSTAT pid 1\r\nSTAT b 1\r\nSTAT b 2\r\nSTAT uptime 2\r\nSTAT c 1\r\nEND\r\n"
    )
    assert not names.match(template, "STAT uptime 2\r\nSTAT pid 1\r\nEND\r\n")
    assert not names.match(template, "STAT pid 1\r\nSTAT uptime 2\r\nSTAT pid 1\r\nEND\r\n")
    assert not names.match(template, "STAT pid 1\r\nEND\r\n")


def test_names_in_a_template_are_listed() -> None:
    assert names_in("get @@{m1}.{k:33} {#w1} {v~5}") == {"m1", "k", "w1"}


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
