"""Commands where only the packages of their own extra are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# What the extra `conformance` has beyond `doctor`, and what only `doctor` has, as modules.
OF_JUDGE = ("pytest", "_pytest", "pluggy", "hypothesis", "platformdirs", "tomlkit")
OF_PAGES = ("jinja2", "markupsafe", "jsonschema")
OF_DOCTOR = (*OF_PAGES, "sqlglot")
RUN = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from kvref.cli import main
main(sys.argv[2:])
"""


def kvref(missing: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, ",".join(missing), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    dsn = f"sqlite:///{tmp_path_factory.mktemp('store') / 'x.sqlite'}"
    assert kvref((*OF_JUDGE, *OF_DOCTOR), "init", "--demo", "--store", dsn).returncode == 0
    return dsn


def test_doctor_of_a_store_needs_no_package_of_the_judge_and_none_for_dumps_and_pages(store: str) -> None:
    done = kvref((*OF_JUDGE, *OF_DOCTOR), "doctor", "--store", store, "--profile", "kvref")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rows of containers: 1 usable" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["KV-SEQ-001"], "any-order-of-commands"),
        (["KV-SEQ-002"], "any-table"),
        (["--contradictions"], "KV-"),
        (["--coverage"], "KV-SEQ-005 MUST cases=1"),
        (["--cases", "-", "--chapter", "mapping"], '"KV-MAP-001"'),
    ],
)
def test_spec_needs_no_package_of_the_judge_and_none_for_pages(arguments: list[str], text: str) -> None:
    done = kvref((*OF_JUDGE, *OF_DOCTOR), "spec", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert text in done.stdout


@pytest.mark.parametrize("form", [["--markdown"], ["--html", "-"]])
def test_pages_need_nothing_of_the_judge(form: list[str]) -> None:
    done = kvref(OF_JUDGE, "spec", *form, "--chapter", "mapping")
    assert (done.returncode, done.stderr) == (0, "")
    assert "KV-MAP-001" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["doctor", "dump.sql"], "doctor"),
        (["spec", "--html", "-"], "conformance"),
        (["spec", "--markdown"], "conformance"),
    ],
)
def test_the_missing_extra_is_named(arguments: list[str], extra: str, tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text("")
    done = kvref((*OF_JUDGE, *OF_DOCTOR), *(str(tmp_path / each) if each == "dump.sql" else each for each in arguments))
    assert done.returncode == 2
    assert done.stderr.endswith(f": pip install 'kvref[{extra}]'\n")


def test_conform_names_its_own() -> None:
    done = kvref(OF_JUDGE, "conform")
    assert done.returncode == 2
    assert done.stderr.endswith(": pip install 'kvref[conformance]'\n")
