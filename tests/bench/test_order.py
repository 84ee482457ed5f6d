"""The order of a run's points: interleaved, complete, and nothing left out in silence."""

from __future__ import annotations

from dataclasses import replace

from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.order import Turn, arrange, estimate
from kvref_bench.runs.records import Peer
from kvref_bench.scenario.records import Scenario, Series, Table

KEYS, VALUES = Keys(10), Values()
GET = Work(KEYS, VALUES, {"get": 1.0})
BATCH = "daemon_memcached_r_batch_size"
PLUGIN = Peer("plugin", "plugin", "8.0.33", address="127.0.0.1:1", sql="mysql://root@127.0.0.1:2/")
NATIVE = Peer("native", "memcached", "1.6.18", address="127.0.0.1:3")
SCENARIO = Scenario(
    name="any", version=1, title="Any", question="Is it in order?", source="none",
    table=Table("items", "bench", KEYS, VALUES),
    series=(Series("get", "memcached", GET), Series("select", "sql", replace(GET, protocol="mysql"), settings={})),
    sessions=(1, 8), repetitions=2, settings={BATCH: (1, 10)}, warmup=1, measure=2, cooldown=3,
)  # fmt: skip


def short(turn: Turn) -> tuple[int, int | None, int, str, str, float | None]:
    return (
        turn.repetition, turn.settings.get(BATCH), turn.sessions, turn.series.name, turn.server, turn.share,
    )  # fmt: skip


def test_repetitions_then_settings_then_sessions_then_lines_in_turn() -> None:
    order = arrange(replace(SCENARIO, repetitions=1), [PLUGIN], frozenset({"plugin"}))
    assert [short(turn) for each in order.rounds for turn in each.turns] == [
        (0, 1, 1, "get", "plugin", None),
        (0, 1, 8, "get", "plugin", None),
        (0, 10, 1, "get", "plugin", None),
        (0, 10, 8, "get", "plugin", None),
        (0, None, 1, "select", "plugin", None),
        (0, None, 8, "select", "plugin", None),
    ]
    assert estimate(SCENARIO, order) == 6 * 6


def test_what_a_server_cannot_do_is_reported() -> None:
    order = arrange(SCENARIO, [NATIVE], frozenset())
    assert {(turn.series.name, turn.settings.get(BATCH)) for each in order.rounds for turn in each.turns} == {
        ("get", None)
    }
    as_it_is = "it cannot be started with settings; measured once, as it is"
    assert order.left == (
        f"left out: get on native {BATCH}=1: {as_it_is}",
        f"left out: get on native {BATCH}=10: {as_it_is}",
        "left out: select on native: no SQL server is known behind it: give --sql mysql://...",
    )


def test_series_of_tables_and_of_commits_need_one() -> None:
    series = (replace(SCENARIO.series[0], needs_table=True),)
    [left] = arrange(replace(SCENARIO, series=series), [NATIVE], frozenset()).left
    assert left == "left out: get on native: native memcached has no table"
    [left] = arrange(replace(SCENARIO, kind="lag", series=SCENARIO.series[:1]), [NATIVE], frozenset()).left
    assert left == "left out: get on native: what SQL sees is not known: give --sql"
    sql = replace(PLUGIN, address=None)
    [left] = arrange(replace(SCENARIO, series=SCENARIO.series[:1]), [sql], frozenset()).left
    assert left == "left out: get on plugin: it has no memcached address"
