"""The document of pairs and its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.pairs import document
from kvref_bench.pairs.measure import Measured, Settings
from kvref_bench.pairs.rows import rows
from kvref_bench.turns import report
from kvref_bench.turns.cpus import Split
from kvref_bench.turns.loaded import Done

pytestmark = pytest.mark.programs

BEGIN, END = report.markers("pairs")
SETTINGS = Settings(Split(frozenset({0}), frozenset({1})), pairs=3, seconds=2)
MULTIGET = next(row for row in rows() if row.name == "multiget")


def done(rate: float, cpu: float, client: float = 0.5) -> Done:
    return Done("kvref_bench", rate, 2.0, client, {"one": cpu / 2, "other": cpu / 2}, 0.1)


def made(*pairs: tuple[Done, Done]) -> report.Document:
    empty = document.begin(SETTINGS)
    document.add(empty, Measured(MULTIGET, list(pairs)))
    return empty


def test_ratios_are_of_pairs() -> None:
    [row] = made((done(200, 4), done(100, 8)), (done(90, 4), done(60, 4)), (done(90, 6), done(30, 4)))["rows"]
    assert row["ratio"] == {"median": 2.0, "min": 1.5, "max": 3.0}
    assert row["cpu_ratio"] == {"median": 1.0, "min": 0.5, "max": 1.5}
    assert row["reached"]
    assert not row["generator_is_limit"]
    slower = made((done(140, 4), done(100, 8)))["rows"][0]
    assert (slower["ratio"]["median"], slower["reached"]) == (1.4, False)


def test_a_table_shows_each_row() -> None:
    reported = document.table(made((done(200_000, 4), done(100_000, 8)), (done(90_000, 4), done(60_000, 4))))
    head, rule, line = reported.splitlines()[:3]
    assert head.count("|") == rule.count("|") == line.count("|")
    expected = (
        "| multiget | get of 100 keys, 64 connections, kvref over SQLite | plugin | 1.5 | 1.75 | 1.50 to 2.00 | yes "
        "| 145,000 keys | 80,000 keys | 4.0 : 6.0 | 0.75 | - | kvref_bench 50% : 50% |"
    )
    assert line == expected
    assert "3 pairs of 2 s in alternating order, 100,000 keys" in reported
    assert "servers on processor 0, generator on 1." in reported


def test_a_table_has_the_instructions_of_both_servers() -> None:
    ours = replace(done(200, 4), instructions={"kvref": 4_000.0, "mysqld": 2_345.6})
    theirs = replace(done(100, 8), instructions={"mysqld": 9_000.0})
    assert "| 6,346 : 9,000 |" in document.table(made((ours, theirs)))
    assert "| - |" in document.table(made((ours, done(100, 8))))


def test_a_generator_that_was_the_limit_is_marked() -> None:
    busy = made((done(200, 4), done(100, 8, client=0.95)))
    assert busy["rows"][0]["generator_is_limit"]
    assert "| 2.00\\* |" in document.table(busy)


def test_a_document_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    written = made((done(200, 4), done(100, 8)))
    report.write(written, path)
    assert document.table(report.read(path, "rows")) == document.table(written)
    for text, words in (
        ("{", "is not JSON: Expecting property name"),
        ("[]", "no rows of version 1"),
        ('{"version": 2, "rows": []}', "measure again"),
    ):
        path.write_text(text)
        with pytest.raises(BenchError, match=words):
            report.read(path, "rows")


def test_a_table_is_put_between_its_markers() -> None:
    written = made((done(200, 4), done(100, 8)))
    once = report.insert(f"a\n{BEGIN}{END}\nb\n", document.table(written), "pairs")
    assert once == f"a\n{BEGIN}\n{document.table(written)}{END}\nb\n"
    assert report.insert(once, document.table(written), "pairs") == once
    for text in ("a", BEGIN, f"{END}{BEGIN}"):
        with pytest.raises(BenchError, match="no place for the table"):
            report.insert(text, document.table(written), "pairs")
