"""The published figures are what is printed, and the ratios are made of them."""

from __future__ import annotations

import math
import re

import pytest

from support import articles

pytestmark = pytest.mark.nightly

# Misprints of the articles, and units from the head of a table: the printed number is not the intended one.
MISPRINTS = {"6.800": 6800, "55.000": 55000, "7,00": 7000}
MILLIONS = {"close to 1.2 million": 1_200_000, "1 million rows": 1_000_000, "10 million records": 10_000_000}
WORDS = {"doubled": 2, "more than twice as fast": 2, "around 30%": 1.3}


def value(printed: str) -> float:
    known = MISPRINTS | MILLIONS | WORDS
    if printed in known:
        return float(known[printed])
    scale = 100.0 if "unit: 100 s" in printed else 1000.0 if "K" in printed else 1.0
    found = re.search(r"[\d,]+(?:\.\d+)?", printed)
    assert found is not None, printed
    return float(found[0].replace(",", "")) * scale


def test_each_figure_is_as_printed() -> None:
    figures = articles.figures()
    assert len(figures) == 70
    for row in figures.to_dict("records"):
        assert float(row["value"]) == pytest.approx(value(row["as_printed"])), row
        assert row["title"]
        assert row["source"]


@pytest.mark.parametrize("claim", articles.claims(), ids=lambda claim: f"{claim.scenario}: {claim.what}")
def test_a_ratio_agrees_with_its_relation(claim: articles.Claim) -> None:
    if math.isfinite(claim.published):
        side = {"more": claim.published > 1, "less": claim.published < 1}.get(claim.relation, True)
        assert side
    else:
        assert re.search("[a-z]", claim.as_printed)


def test_rows_of_tables_are_ratios_of_their_figures() -> None:
    figures = articles.figures()
    for scenario, relation in (("set-vs-sproc", "set over stored procedure"), ("get-vs-select", "get over select")):
        rates = figures[(figures["scenario"] == scenario) & (figures["metric"] == "rate")]
        requests = [claim for claim in articles.claims(scenario) if claim.compare == "over"]
        assert [claim.at for claim in requests] == ["8", "32", "128", "512"]
        for claim in requests:
            memcached, sql = rates[rates["at"] == claim.at]["value"].astype(float)
            assert claim.what == f"{relation}, {claim.at} connections"
            assert claim.published == pytest.approx(memcached / sql, abs=5e-5)
    elapsed = figures[(figures["scenario"] == "memslap-set") & (figures["metric"] == "elapsed")]
    seconds = {(row["series"], row["at"]): float(row["value"]) for row in elapsed.to_dict("records")}
    for claim in articles.claims("memslap-set"):
        native, innodb = (seconds[f"{name} memcached", claim.at] for name in ("native", "InnoDB"))
        assert claim.published == pytest.approx(innodb / native, abs=5e-5)


def test_every_table_of_the_articles_is_among_the_claims() -> None:
    tables = articles.figures()[["title", "place"]].drop_duplicates()
    claimed = {(claim.title, claim.place) for claim in articles.claims()}
    for title, place in tables[tables["place"].str.contains("Table|MC")].itertuples(index=False):
        assert (title, place) in claimed
