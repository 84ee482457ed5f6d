"""The whole judge from outside: exit codes, plain pytest, and a working directory that interferes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import kvref

pytestmark = pytest.mark.nightly

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def conform(tmp_path: Path) -> Run:
    """Return a function that runs `kvref conform` in an empty directory."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return kvref("conform", *arguments, folder=tmp_path, environment={**os.environ, **environment}, timeout=500)

    return run


def verdicts(report: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (report / "report.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == "verdict"]


@pytest.mark.timeout(550)
def test_without_an_address_the_embedded_server_conforms(conform: Run, tmp_path: Path) -> None:
    done = conform("--examples", "5")
    assert done.returncode == 0, done.stdout
    assert "no address given: the embedded server" in done.stdout
    assert "profile: kvref" in done.stdout
    judged = verdicts(tmp_path / "kvref-report")
    assert {each["verdict"] for each in judged} == {"holds", "quirk", "unsupported", "not-run"}
    reasons = {each["reason"] for each in judged if each["verdict"] == "not-run"}
    assert reasons == {"needs mysql behind the endpoint"}
    # With settings, for which the server was started again.
    assert {each["verdict"] for each in judged if each["case"] in {"next-batch", "idle-batch"}} == {"holds"}
    exercised = json.loads((tmp_path / "kvref-report" / "report.jsonl").read_text().splitlines()[-1])["exercised"]
    assert all(exercised["key_shapes"]["counts"].values()), "a verb was never sent"
    assert set(exercised["states"]["counts"]["set"]["bound"]) == {"no batch", "write batch", "read batch", "both"}
    assert done.stdout.count("\nexercised: ") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kvref-report"]


@pytest.mark.live
def test_memcached_conforms_without_mappings(conform: Run, memcached: str, tmp_path: Path) -> None:
    done = conform(memcached, "--report", "out", "--examples", "5")
    assert done.returncode == 0, done.stdout
    assert "`bind` answers ERROR: no mappings" in done.stdout
    by_chapter: dict[str, set[str]] = {}
    for each in verdicts(tmp_path / "out"):
        by_chapter.setdefault(each["chapter"], set()).add(each["verdict"])
    assert by_chapter["storage"] == {"holds", "quirk", "unsupported"}
    assert by_chapter["mapping"] == by_chapter["bind"] == by_chapter["delimiter"] == {"unsupported"}


@pytest.mark.live
def test_memcached_does_not_conform_to_the_plugin(conform: Run, memcached: str) -> None:
    done = conform(memcached, "--profile", "mysql-8.0", "--only", "KV-CONN-017", "--only", "set-new")
    assert done.returncode == 1
    assert "KV-CONN-017" in done.stdout
    assert r"version x\r\n" in done.stdout


@pytest.mark.live
def test_chapters_are_selected_by_argument_and_option(conform: Run, memcached: str, tmp_path: Path) -> None:
    done = conform(memcached, "arithmetic", "--chapter", "retrieval", "--only", "get*")
    assert done.returncode == 0, done.stdout
    assert {each["chapter"] for each in verdicts(tmp_path / "kvref-report")} == {"retrieval"}
    assert conform("--target", "memcached", "arithmetic", "retrieval").returncode == 0
    assert {each["chapter"] for each in verdicts(tmp_path / "kvref-report")} == {"arithmetic", "retrieval"}


@pytest.mark.live
def test_again_starts_the_target_once_more(conform: Run, tmp_path: Path) -> None:
    words = ("--target", "memcached", "--profile", "mysql-8.0", "--only", "KV-CONN-017", "--report", "the report")
    done = conform(*words, "--repeat", "0")
    assert done.returncode == 1, done.stdout
    (again,) = [line.removeprefix("again: ") for line in done.stdout.splitlines() if line.startswith("again: ")]
    assert again.startswith("kvref replay 'the report/replays/")
    command = [sys.executable, "-m", *shlex.split(again)]
    once_more = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    assert once_more.returncode == 1, once_more.stderr
    assert "1 fails" in once_more.stdout


@pytest.mark.live
def test_settings_of_the_working_directory_have_no_say(conform: Run, memcached: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\npython_files = nothing.py\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('read')\n")
    done = conform(memcached, "--only", "set-new", PYTEST_ADDOPTS="--no-such-option", PYTEST_PLUGINS="no_such_plugin")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_dead_port_cannot_be_judged(conform: Run, unused_port: int, tmp_path: Path) -> None:
    done = conform(f"127.0.0.1:{unused_port}")
    assert done.returncode == 2
    assert f"Error: cannot judge: cannot reach 127.0.0.1:{unused_port}: Connection refused" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.live
def test_plain_pytest_from_anywhere(memcached: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--pyargs", "kvref_conformance", "-p", "kvref_conformance.plugin"]
    command += ["--endpoint", memcached, "-k", "set-new or bind", "--report", "out", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "profile: memcached (`bind` answers ERROR: no mappings)" in done.stdout
    assert "verdicts by chapter" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.live
def test_nothing_judged_is_no_conformance(memcached: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--pyargs", "kvref_conformance", "-p", "kvref_conformance.plugin"]
    command += ["--endpoint", memcached, "-p", "no:cacheprovider", "-k", "bind"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stdout


PROJECT = """
import pytest
@pytest.fixture(params=["one", "two"])
def case(request):
    return request.param
@pytest.fixture
def replay():
    return "played"
def test_z(case, replay):
    assert (case in ("one", "two"), replay) == (True, "played")
def test_a():
    assert False
"""


def test_a_project_may_load_the_plugin_without_an_endpoint(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["kvref_conformance.plugin"]\n')
    # Named as a chapter of the suite.
    (tmp_path / "test_arithmetic.py").write_text(PROJECT)
    (tmp_path / "test_own.py").write_text(OWN_CASE.format(requirement="KV-CORE-041"))
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed, 2 skipped" in done.stdout
    assert "SKIPPED [2] " in done.stdout
    assert "no endpoint: give --endpoint HOST:PORT" in done.stdout
    names = ["test_z[one]", "test_z[two]", "test_a", "test_own[good]", "test_own[odd]"]
    places = [done.stdout.index(f"::{name} ") for name in names]
    assert places == sorted(places)


@pytest.mark.live
def test_a_projects_own_failure_is_no_verdict(memcached: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["kvref_conformance.plugin"]\n')
    (tmp_path / "test_arithmetic.py").write_text(PROJECT)
    (tmp_path / "test_own.py").write_text(OWN_CASE.format(requirement="KV-CORE-041"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--endpoint", memcached, "--report", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 4 passed" in done.stdout
    assert {each["case"]: each["verdict"] for each in verdicts(tmp_path / "out")} == {"good": "holds", "odd": "holds"}


OWN_CASE = """
from kvref_conformance.case import case, send
CASES = (
    case("good", "KV-CORE-041", send("get nothing-here\\r\\n", "END\\r\\n")),
    case("odd", "{requirement}", send("get nothing-here\\r\\n", "END\\r\\n")),
)
def test_own(case, judge):
    judge(case)
"""


@pytest.mark.live
def test_a_fault_of_the_suite_is_no_verdict_on_the_endpoint(memcached: str, tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(OWN_CASE.format(requirement="KV-CORE-999"))
    command = [sys.executable, "-m", "pytest", "-p", "kvref_conformance.plugin", "-p", "no:cacheprovider"]
    command += ["--endpoint", memcached, "--report", "out", "test_own.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stdout
    assert [each["verdict"] for each in verdicts(tmp_path / "out")] == ["holds", "suite-error"]
    assert (tmp_path / "out" / "report.html").is_file()
