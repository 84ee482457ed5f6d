"""What a run says of the machine, the tool, the servers and their verdicts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import points as made
from helpers import reports

from kvref_bench.errors import BenchError
from kvref_bench.runs import document, machine, verdict
from kvref_bench.runs.records import Peer
from kvref_conformance.judging.verdict import BROKEN, DEVIATES, FAILS, HOLDS, Tally, Verdict
from kvref_conformance.reports import jsonl

pytestmark = pytest.mark.programs  # git says what is measured

HEADER = replace(reports.HEADER, version="8.0.33", profile="mysql-8.0", started="2026-01-02T03:04:05Z")


def report(folder: Path, *verdicts: Verdict) -> Path:
    """Write a report as `kvref conform` does."""
    jsonl.write(folder / "report.jsonl", HEADER, Tally([*verdicts]))
    return folder


def test_a_report_that_holds(tmp_path: Path) -> None:
    found = verdict.read(
        report(tmp_path, Verdict("a", "storage", ("KV-1",), HOLDS), Verdict("b", "storage", ("KV-2",), DEVIATES))
    )
    assert found["conforms"] is True
    assert (found["profile"], found["version"], found["date"]) == ("mysql-8.0", "8.0.33", "2026-01-02T03:04:05Z")
    assert found["sha256"] == document.digest(tmp_path / "report.jsonl")
    assert verdict.words(found) == "conforms (profile mysql-8.0, 2026-01-02T03:04:05Z: 1 holds, 1 deviates)"


def test_a_report_with_failures_names_the_requirements(tmp_path: Path) -> None:
    rows = [Verdict("a", "storage", ("KV-2", "KV-1"), FAILS), Verdict("b", "storage", ("KV-1",), FAILS)]
    found = verdict.read(report(tmp_path, *rows))
    assert found["failed"] == ["KV-1", "KV-2"]
    assert verdict.words(found).startswith("does not conform (")
    assert verdict.words(found).endswith("2 fails; failed requirements: KV-1, KV-2)")


@pytest.mark.parametrize("word", sorted(BROKEN))
def test_whatever_is_broken_counts(tmp_path: Path, word: str) -> None:
    found = verdict.read(report(tmp_path, Verdict("a", "storage", ("KV-1",), word)))
    assert (found["failed"], found["conforms"]) == (["KV-1"], False)


def test_without_a_report_a_run_says_so(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.point())
    judged = document.read(run)["servers"][0]["judged"]
    assert judged == "no conformance report: nothing says that this endpoint answers correctly"


def test_a_sql_server_is_nothing_to_judge() -> None:
    assert document.server(Peer("m", "mysql", "8.0.33", sql="mysql://h/"), 0)["judged"].startswith("SQL only")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "report.jsonl: the file is empty: run `kvref conform --report DIR` again"),
        ("{}\nnonsense\n", "report.jsonl: not a whole report: line 2: "),
        ('{"kind": "verdict"}\n', 'not a report: line 1 is not a header but {"kind": "verdict"}'),
        ('{"kind": "header", "format": 2}\n', "line 1: report format 2, this release reads 1"),
        ('{"kind": "header", "format": 1}\n', "the report was cut off: line 1, the last one, is not a footer"),
    ],
)
def test_a_damaged_report_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "report.jsonl").write_text(content)
    with pytest.raises(BenchError, match=re.escape(message)):
        verdict.read(tmp_path)


def test_a_report_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"report\.jsonl: No such file .*: give report\.jsonl of `kvref conform"):
        verdict.read(tmp_path)


def test_facts_of_the_machine() -> None:
    facts = machine.machine()
    assert facts["cores"] >= 1
    assert facts["cpu_model"]
    assert facts["memory"] > 1 << 20
    assert len(facts["hostname_hash"]) == 12
    assert machine.runtime()["numpy"]
    first, second = machine.reading(), machine.reading()
    assert second.user + second.system >= first.user + first.system > 0


def test_the_tool_names_its_commit() -> None:
    facts = machine.tool(["kvref"])
    assert facts["version"]
    checkout = any((each / ".git").exists() for each in Path(machine.__file__).parents)
    assert (facts["git_commit"] is not None) == checkout


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/home/someone/data/mysql.sock", "mysql.sock"),
        ("mysql://root@localhost/?unix_socket=/run/x/mysql.sock", "mysql://root@localhost/?unix_socket=mysql.sock"),
        ("sqlite:////home/someone/kvref.db", "sqlite:///kvref.db"),
        ("127.0.0.1:11211", "127.0.0.1:11211"),
        ("file:/var/lib/x", "file:x"),
        ("https://dev.mysql.com/doc/refman/", "https://dev.mysql.com/doc/refman/"),
        (["--endpoint", {"a": ("/one/two/",)}], ["--endpoint", {"a": [""]}]),
        ("a=mysql://bench:se:cret@10.0.0.5:3306/", "a=mysql://bench@10.0.0.5:3306/"),
        ("mysql://bench@10.0.0.5:3306/", "mysql://bench@10.0.0.5:3306/"),
        (5, 5),
    ],
)
def test_passwords_and_folders_of_this_machine_stay_here(given: Any, kept: Any) -> None:
    assert machine.public(given) == kept


def test_a_server_is_described_without_its_machine() -> None:
    peer = Peer("a", "plugin", "8.0.33", variables={"hostname": "secret", "datadir": "/var/lib/mysql/", "port": "3306"})
    assert document.server(peer, 10)["variables"] == {"datadir": "", "port": "3306"}


def test_what_is_known_at_the_end_is_written(tmp_path: Path) -> None:
    from kvref_bench.runs.folder import RunWriter  # noqa: PLC0415

    writer = RunWriter(tmp_path, made.header(network={"kind": "loopback"}))
    writer.add(made.point())
    prepared = Peer("a", "plugin", "8.0.33", ddl="CREATE TABLE t (k INT)")
    writer.close("Ctrl-C", calibration={"ceiling": 1.0}, notes=["last"], peers=[prepared])
    info = document.read(tmp_path)
    assert (info["stopped"], info["calibration"], info["notes"]) == ("Ctrl-C", {"ceiling": 1.0}, ["last"])
    assert (info["servers"][0]["ddl"], info["servers"][0]["rows"]) == ("CREATE TABLE t (k INT)", 1000)
    assert len(info["machine"]["loadavg_after"]) == 3
    assert info["warnings"][0].startswith("1 of 1 points have fewer than 5 valid repetitions")


def test_a_header_that_breaks_the_schema_is_not_written(tmp_path: Path) -> None:
    header = made.header()
    header["servers"] = []
    with pytest.raises(BenchError, match=r"run\.json: servers: \[\] should be non-empty"):
        document.write(tmp_path, header)


def test_the_document_is_json(tmp_path: Path) -> None:
    json.dumps(made.header(), allow_nan=False)
