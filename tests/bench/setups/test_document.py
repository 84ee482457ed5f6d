"""The document of set-ups and its table."""

from __future__ import annotations

import pytest

from kvref_bench.pairs.measure import Settings
from kvref_bench.setups import document
from kvref_bench.setups.entries import left_out, setups
from kvref_bench.setups.measure import Measured
from kvref_bench.turns.cpus import Split
from kvref_bench.turns.loaded import Done

pytestmark = pytest.mark.programs

SETTINGS = Settings(Split(frozenset({0}), frozenset({1})), pairs=2, seconds=2, keys=1000)
BY_NAME = {each.name: each for each in setups()}


def done(cpu: float) -> Done:
    return Done("kvref_bench", 1.0, 2.0, 0.5, {"kvref": cpu, "mysqld": 100 * cpu}, cpu / 10)


def lines(name: str, store: str, *pairs: tuple[float, float, float, float]) -> list[str]:
    """Return the lines of the table of a set-up; pairs: of get and set, the set-up's cost and the demo table's."""
    made = document.begin(SETTINGS)
    costs = [{"get": (done(a), done(b)), "set": (done(c), done(d))} for a, b, c, d in pairs]
    document.add(made, Measured(BY_NAME[name], store, costs))
    return document.table(made).splitlines()


def test_ratios_are_of_pairs_and_of_kvref_alone() -> None:
    title, _, head, rule, line, *others = lines("integer-key", "mysql", (3, 2, 10, 10), (4, 4, 12, 10), (5, 2, 9, 10))
    assert title == "Over MySQL 8.0.33:"
    assert head.count("|") == rule.count("|") == line.count("|")
    assert line == ("| integer-key | key `INT` | 4.0 | 1.50 | 1.00 to 2.50 | 10.0 | 1.00 | 0.90 to 1.20 | 1.5 | yes |")
    assert "Load average: 0.2 to 1.2." in "".join(others)


@pytest.mark.parametrize(
    ("name", "pair", "reached"),
    [
        ("integer-key", (3, 2, 10, 10), "yes"),
        ("integer-key", (3.1, 2, 10, 10), "no"),
        ("integer-key", (1, 1, 16, 10), "no"),
        ("read-batch", (10, 10, 10, 10), "yes"),
        ("read-batch", (11, 10, 10, 10), "no"),
    ],
)
def test_a_batch_has_another_limit(name: str, pair: tuple[float, float, float, float], reached: str) -> None:
    assert lines(name, "sqlite", pair)[4].endswith(f"| {BY_NAME[name].limit:g} | {reached} |")


def test_a_document_lacks_what_was_added_since() -> None:
    made = document.begin(SETTINGS)
    for each in setups():
        for store in each.stores:
            if each.name != "tls":
                document.add(made, Measured(each, store, skipped="no reason"))
    assert document.absent(made) == "Not measured yet: tls (sqlite), tls (mysql).\n"
    document.add(made, Measured(BY_NAME["tls"], "mysql", skipped="no reason"))
    assert document.absent(made) == "Not measured yet: tls (sqlite).\n"


def test_what_is_not_measured_is_listed_with_the_reason() -> None:
    made = document.begin(SETTINGS)
    document.add(made, Measured(BY_NAME["tls"], "sqlite", skipped="'openssl' is not installed\nmore"))
    shown = document.table(made).splitlines()
    assert "* tls (sqlite): 'openssl' is not installed" in shown
    for name, reason in left_out().items():
        assert f"* `{name}`: {reason}" in shown
    assert "2 pairs of 2 s in alternating order, 8 connections with 16 commands in flight, 1,000 keys" in "".join(shown)
