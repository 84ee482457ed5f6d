"""The locks match pyproject.toml on each supported Python, with hashes and without an index address."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from supply.locked import CI, ROOT, licences

FILES = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text()) for folder in (".", "conformance", "bench")]
PROJECTS = {file["project"]["name"]: file["project"] for file in FILES}
LOCKS = ("dev", "conformance")
PYTHONS = ("3.11", "3.12", "3.13")


def requests(extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, with those of what it names of this repository, and of serving and building."""
    texts = [f"kvref[{extra}]", *(each for file in FILES for each in file["build-system"]["requires"])]
    while texts:
        wanted = Requirement(texts.pop())
        if wanted.name in PROJECTS:
            project = PROJECTS[wanted.name]
            texts += project["dependencies"]
            texts += [each for name in wanted.extras for each in project["optional-dependencies"][name]]
        else:
            yield wanted


def in_force(lock: str, python: str) -> dict[str, str]:
    """Return the version of each package that a lock has for a Python on Linux."""
    where = {"python_version": python, "python_full_version": f"{python}.7", "sys_platform": "linux"}
    there = [pin for pin in licences.pins(lock) if pin.marker is None or pin.marker.evaluate(where)]
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in there}
    assert len(versions) == len(there), "one version of each"
    return versions


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_what_is_required(lock: str, python: str) -> None:
    versions = in_force(lock, python)
    for wanted in requests(lock):
        if wanted.marker is not None and not wanted.marker.evaluate({"python_version": python, "extra": ""}):
            continue
        found = versions.get(canonicalize_name(wanted.name))
        assert found is not None, f"{wanted} is not locked: run .ci/lock"
        assert wanted.specifier.contains(found), f"{wanted} is locked as {found}: run .ci/lock"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_locks_agree(python: str) -> None:
    assert in_force("conformance", python).items() <= in_force("dev", python).items()


@pytest.mark.parametrize("lock", [*LOCKS, "audit", "hadolint"])
def test_a_lock_has_hashes_and_names_no_host(lock: str) -> None:
    text = (CI / f"requirements-{lock}.txt").read_text()
    assert licences.pins(lock)
    for entry in re.split(r"\n(?=[a-z])", text):
        assert re.match(r"[\w.-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry
    assert not re.search(r"://|--(extra-)?index|--find-links", text)
