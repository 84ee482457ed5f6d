"""A project of others runs the suite with three lines in its conftest; what is installed disturbs no other project."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

SERVER = """
import contextlib, re, subprocess, sys
@contextlib.contextmanager
def server():
    words = [sys.executable, "-m", "kvref", "serve", "--listen", "127.0.0.1:0"]
    with open("starts", "a") as file:
        file.write("x")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if found := re.search(r"listening on (\\S+)", line):
                    break
            yield found[1]
        finally:
            process.kill()
"""
FUNCTION = """
import pytest, server
@pytest.fixture(scope="session")
def conformance_endpoint(): return server.server
"""
ADDRESS = """
import pytest, server
@pytest.fixture(scope="session")
def conformance_endpoint():
    with server.server() as address: yield address
"""
OWN = """
import pytest
@pytest.mark.parametrize("number", range(4))
def test_own(number): pass
"""
# Names that the suite has too.
OTHERS = """
import pytest
def pytest_addoption(parser):
    for name in ("--endpoint", "--seed", "--report", "--profile", "--level"):
        parser.addoption(name, default="own")
@pytest.fixture
def run(pytestconfig): return pytestconfig.option.endpoint
@pytest.fixture
def case(): return pytestconfig.option.seed
"""
SUITE = ["--pyargs", "kvref_conformance", "--chapter", "delete_flush", "--allow-destructive"]


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "test_own.py").write_text(OWN)
    return tmp_path


def test_the_entry_point_is_installed() -> None:
    (found,) = entry_points(group="pytest11", name="kvref")
    assert found.value == "kvref_conformance.pytest_entry", "run: bash .ci/setup dev"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
@pytest.mark.parametrize("conftest", [FUNCTION, ADDRESS])
def test_three_lines_of_a_conftest_give_the_endpoint(project: Path, conftest: str, workers: list[str]) -> None:
    (project / "conftest.py").write_text(conftest)
    done = pytest_in(project, *workers, *SUITE, "test_own.py", "--report", "report")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "delete_flush" in done.stdout
    assert " holds, " in done.stdout
    assert (project / "starts").read_text() == "x", "one server, for one process judges"
    assert (project / "report" / "report.html").is_file()


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_an_endpoint_that_deviates_fails_the_run(project: Path, workers: list[str]) -> None:
    (project / "server.py").write_text(SERVER.replace('"127.0.0.1:0"', '"127.0.0.1:0", "--no-flush"'))
    (project / "conftest.py").write_text(FUNCTION)
    done = pytest_in(project, *workers, *SUITE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED" in done.stdout
    assert " fails, " in done.stdout


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_cases_without_an_endpoint_cannot_be_judged(project: Path, workers: list[str]) -> None:
    done = pytest_in(project, *workers, *SUITE)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot judge: no endpoint" in done.stdout


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_project_that_does_not_name_the_suite_is_not_disturbed(project: Path, workers: list[str]) -> None:
    (project / "conftest.py").write_text(OTHERS)
    (project / "test_touch.py").write_text(
        "import sys\n"
        "def test_run(run):\n"
        "    assert run == 'own'\n"
        "    assert not {'kvref_conformance.plugin', 'hypothesis_jsonschema', 'pymysql'} & set(sys.modules)\n"
    )
    done = pytest_in(project, "-W", "error", *workers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
    assert "conformance" not in done.stdout.partition("plugins:")[2].partition("\n")[2]  # that line lists distributions
