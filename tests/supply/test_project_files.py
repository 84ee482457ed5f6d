"""Files for people who join: they parse, name scripts, paths and versions that exist, and agree with one another."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

import kvref
import kvref_conformance
from kvref.cli import main
from kvref_testbed import targets

pytestmark = pytest.mark.programs

ROOT: Final = Path(__file__).parents[2]
HOST: Final = ROOT / ".github"
PARTS: Final = ("conformance", "bench")
TOX: Final = (ROOT / "tox.ini").read_text(encoding="utf-8")
WORKFLOWS: Final = sorted((HOST / "workflows").glob("*.yml"))
FORMS: Final = sorted((HOST / "ISSUE_TEMPLATE").glob("*.yml"))
PAGES: Final = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
)


def read(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(workflow: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def scripts(text: str) -> set[str]:
    return set(re.findall(r"\.ci/[\w-]+(?:\.\w+)?", text))


def matrix(name: str, job: str, key: str) -> list[str]:
    found: list[str] = read(HOST / "workflows" / f"{name}.yml")["jobs"][job]["strategy"]["matrix"][key]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_scripts_that_exist(path: Path) -> None:
    workflow = read(path)
    assert workflow["name"] == path.stem
    assert workflow["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True]
    assert all(
        job["timeout-minutes"] for job in workflow["jobs"].values() if any("run" in step for step in job["steps"])
    )
    runs = [step["run"] for step in steps(workflow) if "run" in step]
    assert runs
    for run in runs:
        assert scripts(run), f"no script of this repository: {run}"
        for script in scripts(run):
            assert (ROOT / script).is_file(), script
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[\w./]+", step["uses"]) for step in steps(workflow) if "uses" in step)


def test_every_tier_of_tests_has_a_workflow() -> None:
    called = set().union(*(scripts(path.read_text(encoding="utf-8")) for path in WORKFLOWS))
    assert called >= {
        ".ci/lint",
        ".ci/test",
        ".ci/conform",
        ".ci/part",
        ".ci/docs",
        ".ci/nightly",
        ".ci/build",
    }


def test_the_workflows_of_tests_have_the_pythons_of_the_package() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    known = [each.rpartition(" ")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert matrix("tests", "unit", "python") == known
    assert matrix("tests", "default", "python") == [known[0], known[-1]]


def test_the_workflow_of_conformance_has_known_targets() -> None:
    assert set(matrix("conformance", "target", "target")) <= set(targets.names())


def test_the_nightly_workflow_has_every_part() -> None:
    listed = subprocess.run(["bash", ".ci/nightly", "--list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ["packages", *matrix("nightly", "part", "part")] == listed.stdout.split()


def test_every_part_that_is_named_exists_and_is_an_environment_of_tox() -> None:
    listed = subprocess.run(["bash", ".ci/part", "--list"], cwd=ROOT, capture_output=True, text=True, check=True)
    parts = set(listed.stdout.split())
    files = [*WORKFLOWS, *(ROOT / page for page in PAGES), ROOT / ".ci" / "run", *(ROOT / "docs").rglob("*.md")]
    named = {name for path in files for name in re.findall(r"\.ci/part ([a-z-]+)", path.read_text(encoding="utf-8"))}
    assert named <= parts
    assert set(matrix("nightly", "part", "part")) <= parts
    unknown = subprocess.run(["bash", ".ci/part", "gone"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (unknown.returncode, unknown.stderr) == (2, "there is no part gone\n")
    environments = set(re.findall(r"[\w-]+", "".join(re.findall(r"^\[testenv:\{(.+)\}\]$", TOX, re.MULTILINE))))
    # The other three are an installation and pytest with a mark.
    assert environments == parts - {"packages", "tests", "serial"}


def test_the_folder_has_few_commands() -> None:
    commands = {
        path.name
        for path in (ROOT / ".ci").iterdir()
        if not path.suffix and path.name not in ("settings", "__pycache__")
    }
    assert len(commands) <= 10
    assert {"run", "setup", "test", "lint", "conform"} <= commands
    for name in commands:
        subprocess.run(["bash", "-n", f".ci/{name}"], cwd=ROOT, check=True)


@pytest.mark.parametrize("path", [path for path in FORMS if path.stem != "config"], ids=lambda path: path.stem)
def test_an_issue_form_has_what_the_code_host_needs(path: Path) -> None:
    form = read(path)
    assert all(form[name] for name in ("name", "description", "labels"))
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert field["type"] in {"textarea", "input"}
        assert field["attributes"]["label"]


def test_links_of_the_issue_chooser_and_the_package_are_of_one_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    links = read(HOST / "ISSUE_TEMPLATE" / "config.yml")["contact_links"]
    citation = read(ROOT / "CITATION.cff")
    assert {link["url"] for link in links} == {urls["Documentation"], f"{urls['Source']}/security/advisories/new"}
    assert (citation["repository-code"], citation["url"]) == (urls["Source"], urls["Documentation"])
    assert urls["Changelog"] == f"{urls['Source']}/blob/main/CHANGELOG.md"


def test_the_distributions_have_one_version_and_require_it() -> None:
    projects = [tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in (".", *PARTS)]
    assert [each.get("version") for each in projects] == [None, kvref.__version__, kvref.__version__]
    texts = [text for each in projects for text in each["dependencies"]]
    texts += [text for each in projects for extra in each.get("optional-dependencies", {}).values() for text in extra]
    versions = {text.rpartition("==")[2] for text in texts if re.match(r"kvref[^;]*==", text)}
    assert versions == {kvref.__version__}


def test_every_distribution_has_the_licence() -> None:
    for part in PARTS:
        assert (ROOT / part / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_every_program_reports_the_version() -> None:
    assert kvref_conformance.__version__ == kvref.__version__
    assert CliRunner().invoke(main, ["--version"]).output.split()[2].rstrip(",") == kvref.__version__


def test_the_installed_package_has_the_version() -> None:
    for name in ("kvref", "kvref-conformance", "kvref-bench"):
        assert version(name) == kvref.__version__, "run bash .ci/setup dev"


@pytest.mark.parametrize(
    ("tag", "code", "reply"),
    [((), 0, ""), ((f"v{kvref.__version__}",), 0, ""), (("v9.9.9",), 1, f"tag v{kvref.__version__}")],
    ids=["no tag", "its tag", "another tag"],
)
def test_the_files_of_a_release_name_the_version(tag: tuple[str, ...], code: int, reply: str) -> None:
    done = subprocess.run(["bash", ".ci/build", "version", *tag], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, reply in done.stderr) == (code, True), done.stderr


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert next(name for name, _ in headings) == "Unreleased"
    dates = [date for _, date in headings[1:]]
    assert all(dates)
    assert dates == sorted(dates, reverse=True)
    assert set(re.findall(r"^\[(.+?)\]: ", text, re.MULTILINE)) == {name for name, _ in headings}
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    chapters = text.partition("\n## [0.2.0]")[0].split("\n## ")[1:]  # since this form
    changes = [re.findall(r"^\* ((?:.|\n  )+)$", chapter, re.MULTILINE) for chapter in chapters]
    assert any(changes)
    assert max(map(len, changes)) <= 40, "a release has about 35 changes: combine them"
    assert [change for each in changes for change in each if len(change) > 400] == [], (
        "a change is one sentence for users"
    )


def test_the_citation_has_the_fields_of_its_format() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "version", "date-released", "license"} <= citation.keys()
    assert citation["license"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]


def test_hooks_run_tools_of_the_environment() -> None:
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            words = shlex.split(hook["entry"])
            program = words[1] if words[0] == "bash" else words[0]
            assert (ROOT / program).is_file(), program


@pytest.mark.parametrize("page", PAGES)
def test_links_and_paths_of_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert ((ROOT / page).parent / link).exists(), link
    for path in re.findall(r"(?<![\w/.])(?:kvref|tests|docs|\.ci|\.github)/[\w./*-]*\w", text):
        assert list(ROOT.glob(path)), path


def test_no_file_names_the_host_of_a_registry() -> None:
    hosts = re.compile(
        "|".join(re.escape(name) for name in ("py" + "pi.org", "npm" + "js.com", "python" + "hosted.org"))
    )
    files = (
        [ROOT / page for page in PAGES] + WORKFLOWS + FORMS + [ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
    )
    assert [path.name for path in files if hosts.search(path.read_text())] == []
