"""Reports of the suite become a matrix; damaged ones an error."""

from __future__ import annotations

import gzip
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from helpers.reports import lines, text

from kvref_bench.errors import BenchError
from support import matrix

if TYPE_CHECKING:
    from pathlib import Path


def verdict(case: str, requirements: list[str], word: str, **more: Any) -> dict[str, Any]:
    """Make a line of a report."""
    return {"case": case, "requirements": requirements, "verdict": word, **more}


SAID = {"on": "a", "sent": "get a", "got": "END", "note": ""}
ONE = lines(
    verdict("a", ["KV-CORE-001", "KV-MAP-001"], "holds"),
    verdict("b", ["KV-CORE-001"], "deviates", conversation=[SAID]),
)
OTHER = lines(
    verdict("a", ["KV-CORE-001", "KV-MAP-001"], "holds"),
    verdict("c", ["KV-MG-001"], "unsupported"),
)


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write a report, compressed as in the repository."""
    path.write_bytes(gzip.compress(text(lines).encode()))
    return path


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, matrix.Report]:
    write(tmp_path / "one.jsonl.gz", ONE)
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "report.jsonl").write_text(text(OTHER))
    return matrix.read_all(tmp_path)


def test_a_requirement_is_its_worst_case_and_what_no_case_names_was_not_run(
    reports: dict[str, matrix.Report],
) -> None:
    judged = matrix.by_requirement(reports).droplevel("area")
    assert judged["one"].to_dict() == {"KV-CORE-001": "deviates", "KV-MAP-001": "holds", "KV-MG-001": "not-run"}
    assert judged["other"].to_dict() == {"KV-CORE-001": "holds", "KV-MAP-001": "holds", "KV-MG-001": "unsupported"}


def test_servers_differ_only_where_both_were_judged(reports: dict[str, matrix.Report]) -> None:
    judged = matrix.by_requirement(reports)
    differing = matrix.differing(judged, matrix.furthest(judged))
    assert differing.index.get_level_values("requirement").tolist() == ["KV-CORE-001"]
    said = matrix.conversation_of(reports, differing)
    assert said[["sent", "server", "requirement"]].to_numpy().tolist() == [["get a", "one", "KV-CORE-001"]]


def test_the_sentence_counts_requirements_and_not_cases(reports: dict[str, matrix.Report]) -> None:
    assert matrix.sentence(reports) == "one keeps 1 of 2 judged requirements; other keeps 2 of 2 judged requirements."


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (ONE[:-1], "the report was cut off"),
        ([{**ONE[0], "format": 9}, *ONE[1:]], "format 9"),
        ([], "the file is empty"),
        (ONE[-1:], "not a report"),
    ],
)
def test_a_damaged_report_is_refused_with_its_name(tmp_path: Path, lines: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(BenchError, match=rf"cut\.jsonl\.gz: .*{said}.*run `kvref conform"):
        matrix.read(write(tmp_path / "cut.jsonl.gz", lines))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "cut.jsonl.gz", ONE)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BenchError, match="not a whole report"):
        matrix.read(path)


def test_every_requirement_of_the_specification_has_an_area() -> None:
    folder = files("kvref.specification") / "requirements"
    names = [
        name
        for path in folder.iterdir()
        if path.name.endswith(".toml")
        for name in tomllib.loads(path.read_text(encoding="utf-8"))
        if name.startswith("KV-")
    ]
    assert len(names) > 1000
    assert {matrix.area(name) for name in names} == set(matrix.AREAS)


def test_no_reports_are_no_error(tmp_path: Path) -> None:
    assert matrix.by_requirement(matrix.read_all(tmp_path)).empty
    assert matrix.page({}).png().startswith(b"\x89PNG")
