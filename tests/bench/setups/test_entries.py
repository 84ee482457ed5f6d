"""The entries of `setups.toml`: each is valid, and together they have every option of `kvref serve`."""

from __future__ import annotations

from collections import Counter

import click
import pytest

from kvref.cli import main
from kvref.server.settings import SETTINGS
from kvref_bench.setups.entries import DEMO, STORES, VERBS, Setup, chosen, left_out, setups
from kvref_bench.workload.check import check

# Options by which each set-up is configured.
MEANS = {"--listen", "--config", "--profile", "--set", "--help"}


def configured() -> set[str]:
    """Return the settings and the options of `kvref serve` that set-ups have."""
    words = {
        word.partition("=")[0] for each in setups() for word in each.options if word.startswith("--") or "=" in word
    }
    listeners = {f"--{key.replace('_', '-')}" for each in setups() for key in each.listener if key != "address"}
    return (words | listeners) - MEANS


def test_the_demo_table_is_the_first_and_names_are_unique_in_each_store() -> None:
    assert setups()[0].name == DEMO
    for store in STORES:
        names = Counter(each.name for each in setups() if store in each.stores)
        assert names.most_common(1)[0][1] == 1, store


@pytest.mark.parametrize("setup", setups(), ids=lambda setup: f"{setup.name}-{'-'.join(setup.stores)}")
def test_an_entry_can_be_measured(setup: Setup) -> None:
    assert set(setup.stores) <= set(STORES)
    assert setup.stores
    assert setup.what
    assert setup.limit >= 1
    for store in setup.stores:
        table = setup.made(store, 200)
        assert (table.keys.count, table.mapping) == (200, "default")
    for verb in VERBS:
        work = setup.requests(200, verb)
        check(work)
        assert (work.sessions, work.depth) == (8, 16)


def test_every_setting_and_option_is_in_a_set_up_or_left_out_with_a_reason() -> None:
    serve = main.get_command(click.Context(main), "serve")
    assert serve is not None
    options = [{*each.opts, *each.secondary_opts} for each in serve.params]
    known = [*(names for names in options if not names & MEANS), *({name} for name in SETTINGS)]
    assert configured() | set(left_out()) <= set().union(*known)
    assert not configured() & set(left_out())
    assert [names for names in known if not names & (configured() | set(left_out()))] == []
    assert all(left_out().values())


def test_set_ups_are_chosen_by_name() -> None:
    assert {store: [each.what for each in of] for store, of in chosen("trigger", tuple(STORES)).items()} == {
        "sqlite": ["a trigger after each update"], "mysql": ["a trigger before each update"],
    }  # fmt: skip
    assert [each.name for each in chosen("tls,demo", ("mysql",))["mysql"]] == ["demo", "tls"]
