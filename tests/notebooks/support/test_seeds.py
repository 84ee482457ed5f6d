"""Our ratios compared with the articles': the side of 1 on which they are, or the reason why it is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import scenarios as made

from support import articles, gather, ratios, seeds
from support.seeds import Row

pytestmark = pytest.mark.nightly


GET, SELECT = made.series("get"), made.series("select", "sql")


@pytest.mark.parametrize(
    ("relation", "low", "high", "verdict"),
    [
        ("more", 1.01, 2.0, "yes"), ("more", 0.5, 0.99, "no"), ("more", 0.9, 1.5, "cannot tell"),
        ("more", 1.0, 1.5, "cannot tell"), ("less", 0.5, 0.99, "yes"), ("less", 1.01, 2.0, "no"),
        ("less", 0.9, 1.1, "cannot tell"), ("same", 0.92, 1.09, "yes"), ("same", 1.11, 1.5, "no"),
        ("same", 0.5, 0.9, "no"), ("same", 0.95, 1.2, "cannot tell"), ("not less", 0.95, 3.0, "yes"),
        ("not less", 0.5, 0.9, "no"), ("not less", 0.8, 1.2, "cannot tell"),
    ],
)  # fmt: skip
def test_a_direction_is_the_side_of_one(relation: str, low: float, high: float, verdict: str) -> None:
    assert seeds.direction(relation, low, high) == verdict


def rows(root: Path, scenario: str, what: str) -> list[Row]:
    claims = [claim for claim in articles.claims(scenario) if claim.what == what]
    assert claims
    return seeds.compare(claims, gather.places(scenario, root))


def get_vs_select(root: Path, *, get: dict[str, object] | None = None, select: dict[str, object] | None = None) -> Row:
    points = made.measured("get", made.PLUGIN, 8, 3000, **(get or {}))
    points += made.measured("select", made.PLUGIN, 8, 1000, **(select or {}))
    made.write(root / "r1", "get-vs-select", [GET, SELECT], [made.PLUGIN], points)
    (row,) = rows(root, "get-vs-select", "get over select, 8 connections")
    return row


def test_ours_is_the_ratio_of_medians_on_one_server(tmp_path: Path) -> None:
    row = get_vs_select(tmp_path)
    assert row.server == "plugin 8.0.33"
    assert row.ours is not None
    assert row.ours.value == pytest.approx(3.0)
    assert 2.8 < row.ours.low <= 3.0 <= row.ours.high < 3.2
    assert (row.direction, row.why) == ("yes", "interval above 1")
    other = rows(tmp_path, "get-vs-select", "get over select, 512 connections")
    assert [(each.direction, each.why) for each in other] == [("cannot tell", "512 sessions were not measured")]


def test_a_client_at_its_limit_makes_the_ratio_a_bound(tmp_path: Path) -> None:
    row = get_vs_select(tmp_path / "a", get={"client": 0.97})
    assert (row.bound, row.direction) == ("at least", "yes")
    row = get_vs_select(tmp_path / "b", select={"client": 0.97})
    assert (row.bound, row.direction) == ("at most", "cannot tell")
    row = get_vs_select(tmp_path / "c", get={"client": 0.97}, select={"client": 0.97})
    assert (row.ours, row.direction) == (None, "cannot tell")
    assert row.why == "the client was at its limit on both sides"


def test_fewer_than_five_repetitions_prove_nothing(tmp_path: Path) -> None:
    row = get_vs_select(tmp_path, get={"repetitions": 4})
    assert row.ours is not None
    assert (row.ours.known, row.direction) == (False, "cannot tell")
    assert row.why == "4 usable repetitions on both sides; an interval needs 5"


def test_native_memcached_is_set_over_each_server_with_a_table(tmp_path: Path) -> None:
    points = made.measured("set", made.MEMCACHED, 4, 9000, verb="set")
    points += made.measured("set", made.KVREF, 4, 300, verb="set") + made.measured("set", made.OLD, 4, 9000, verb="set")
    line = made.series("set", verb="set")
    made.write(tmp_path / "r1", "memslap-set", [line], [made.MEMCACHED, made.KVREF, made.OLD], points)
    found = rows(tmp_path, "memslap-set", "native memcached over InnoDB, 4 threads")
    assert [(row.server, row.direction) for row in found] == [("kvref-sqlite", "yes"), ("plugin 5.6.14", "cannot tell")]
    assert found[0].ours is not None
    assert found[0].ours.value == pytest.approx(30, rel=0.01)
    # What kvref does is no word on what the article says of InnoDB.
    assert [row.counted for row in found] == [False, True]
    assert not ratios.answer(found).known


def test_one_setting_differs_and_the_others_are_at_their_lowest(tmp_path: Path) -> None:
    batches = made.series("get, batches and isolation", settings={"daemon_memcached_r_batch_size": (1, 100)})
    points = made.measured("get", made.OLD, 32, 7000)
    for batch, level, rate in ((1, 0, 1000), (100, 0, 2000), (1, 2, 5000), (100, 2, 300)):
        settings = {"daemon_memcached_r_batch_size": batch, "innodb_api_trx_level": level}
        points += made.measured(batches.name, made.OLD, 32, rate, settings=settings)
    made.write(tmp_path / "r1", "ro-1m-int", [GET, batches], [made.OLD], points)
    (row,) = rows(tmp_path, "ro-1m-int", "several reads in one transaction over one read (previous code)")
    assert row.ours is not None
    assert row.ours.value == pytest.approx(2.0)
    (row,) = rows(tmp_path, "ro-1m-int", "isolation level 2 over 0")
    assert row.ours is not None
    assert row.ours.value == pytest.approx(5.0)
    assert row.direction == "no"


def test_more_sessions_are_the_nearest_measured_ones(tmp_path: Path) -> None:
    points = [
        point for n, rate in ((1, 500), (8, 2000), (64, 900)) for point in made.measured("select", made.OLD, n, rate)
    ]
    made.write(tmp_path / "r1", "random-user-capacity", [SELECT], [made.OLD], points)
    (row,) = rows(tmp_path, "random-user-capacity", "10 clients over 1 (select)")
    assert row.ours is not None
    assert (row.ours.value, row.direction) == (pytest.approx(4.0), "yes")
    (row,) = rows(tmp_path, "random-user-capacity", "30 clients over 1 (select)")
    assert row.why == "30 sessions were not measured"


def test_remote_runs_are_kept_apart(tmp_path: Path) -> None:
    for name, kind, rate in (("r1", "local", 4000), ("r2", "namespace", 1000)):
        points = made.measured("get", made.MEMCACHED, 4, rate)
        made.write(tmp_path / name, "memslap-get", [GET], [made.MEMCACHED], points, network={"kind": kind})
    (row,) = rows(tmp_path, "memslap-get", "native memcached, remote over local")
    assert row.ours is not None
    assert (row.ours.value, row.direction) == (pytest.approx(0.25), "yes")


def test_the_answer_counts_claims_by_what_the_servers_say(tmp_path: Path) -> None:
    rates = {8: (3000, 1000), 32: (1000, 3000)}
    points = [point for n, (get, _) in rates.items() for point in made.measured("get", made.PLUGIN, n, get)]
    points += [point for n, (_, sql) in rates.items() for point in made.measured("select", made.PLUGIN, n, sql)]
    points += made.measured("get", made.OLD, 8, 1000) + made.measured("select", made.OLD, 8, 3000)
    made.write(tmp_path / "r1", "get-vs-select", [GET, SELECT], [made.PLUGIN, made.OLD], points)
    claims = [claim for claim in articles.claims("get-vs-select") if claim.compare == "over"]
    reply = ratios.answer(seeds.compare(claims, gather.places("get-vs-select", tmp_path)))
    assert reply.sentence == (
        "Of 4 published ratios 2 can be judged: 0 point the same way as ours on every server, "
        "1 (get over select, 2012) the other way, 1 (get over select, 2012) differ by server."
    )
    assert reply.limits[0] == "2 of the ratios: the tables give the reasons."


def test_without_runs_each_claim_has_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gather.VARIABLE, str(tmp_path))
    found, _ = ratios.everything()
    assert sorted(articles.claims().index(row.claim) for row in found) == list(range(len(articles.claims())))
    assert {row.direction for row in found} == {"cannot tell"}
    reply = ratios.answer(found)
    assert not reply.known
    assert "kvref bench run get-vs-select" in reply.sentence


def test_the_table_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    row = get_vs_select(tmp_path)
    text = ratios.table([row]).to_csv(index=False)
    assert text == (
        "the article's row,printed,its ratio,our server,our ratio,direction agrees,because\n"
        '"get over select, 8 connections",1.56,1.56,plugin 8.0.33,3.00 (3.00 to 3.00),yes,interval above 1\n'
    )
