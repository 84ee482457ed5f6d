"""Commands where only the packages of their own extra are installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What the extra `conformance` has beyond `doctor`, and what only `doctor` has, as modules.
OF_JUDGE = ("pytest", "_pytest", "pluggy", "hypothesis", "platformdirs", "tomlkit")
OF_DOCTOR = ("jinja2", "markupsafe", "jsonschema", "pymysql", "sqlglot")
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
    assert kvref((*OF_JUDGE, *OF_DOCTOR), "init", "--store", dsn).returncode == 0
    return dsn


def test_doctor_needs_nothing_of_the_judge(store: str) -> None:
    done = kvref(OF_JUDGE, "doctor", "--store", store, "--profile", "kvref")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rows of containers: 1 usable" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["KV-SEQ-001"], "any-order-of-commands"),
        (["KV-SEQ-002"], "any-table"),
        (["--contradictions"], "KV-"),
        (["--coverage"], "KV-SEQ-005 MUST cases=1"),
        (["--markdown", "--chapter", "mapping"], "KV-MAP-001"),
        (["--html", "-", "--chapter", "mapping"], "KV-MAP-001"),
        (["--cases", "-", "--chapter", "mapping"], '"KV-MAP-001"'),
    ],
)
def test_spec_needs_nothing_of_the_judge(arguments: list[str], text: str) -> None:
    done = kvref(OF_JUDGE, "spec", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert text in done.stdout


@pytest.mark.parametrize("command", ["doctor", "spec"])
def test_the_missing_extra_is_named(command: str) -> None:
    done = kvref((*OF_JUDGE, *OF_DOCTOR), command)
    assert done.returncode == 2
    assert done.stderr.endswith(": pip install 'kvref[doctor]'\n")


def test_conform_names_its_own() -> None:
    done = kvref(OF_JUDGE, "conform")
    assert done.returncode == 2
    assert done.stderr.endswith(": pip install 'kvref[conformance]'\n")
