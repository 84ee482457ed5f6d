"""The judge on trial: every broken server is failed by a case of the requirement that it breaks, and the whole one is not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from helpers.live import nightly

import kvref_testbed.mutants
from kvref_conformance.verdict import FAILS
from kvref_conformance_cli.self_test import complaints, judged
from kvref_testbed.mutants import CONTROL, DEFAULT_PATH, GROUPS, MUTANTS, OF_SQLITE, SLOW_PATH_ONLY, TOYS, trials_of
from kvref_testbed.mutants.__main__ import main
from kvref_testbed.mutants.changed import SAMPLE

TRIED = sorted(SAMPLE)[::4]
FOLDER = Path(kvref_testbed.mutants.__file__).parent


@pytest.mark.live
@pytest.mark.parametrize(
    "trial",
    # Each landing tries all of the sample, in `.ci/part mutants`.
    [trial if name in TRIED else nightly(trial) for name in MUTANTS for trial in trials_of(name)],
)
def test_a_mutant_is_failed_by_the_requirement_it_breaks(trial: str) -> None:
    requirement = MUTANTS[trial.removesuffix(DEFAULT_PATH)].requirement
    last = judged(trial, {requirement})[-1]
    assert last.verdict == FAILS
    assert requirement in last.requirements


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.parametrize("name", SLOW_PATH_ONLY)
def test_a_mutant_that_is_killed_on_the_default_path_is_tried_there(name: str) -> None:
    assert judged(f"{name}{DEFAULT_PATH}", {MUTANTS[name].requirement})[-1].verdict != FAILS


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.parametrize("path", ["", DEFAULT_PATH])
def test_the_unbroken_server_is_not_failed(path: str) -> None:
    wanted = {each.requirement for each in MUTANTS.values()}
    assert complaints(judged(f"{CONTROL}{path}", wanted), wanted) == []


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.parametrize("trial", [trial for name in sorted(SAMPLE) for trial in trials_of(name, over_sql=True)])
def test_a_mutant_is_failed_over_a_database(trial: str) -> None:
    requirement = MUTANTS[trial.removesuffix(DEFAULT_PATH)].requirement
    assert judged(trial, {requirement}, "kvref-mariadb")[-1].verdict == FAILS


def test_mutants_of_sqlite_are_not_tried_over_a_database() -> None:
    assert MUTANTS.keys() >= OF_SQLITE.keys()
    assert trials_of("locks_no_rows", over_sql=True) == ()
    assert trials_of("locks_no_rows") == ("locks_no_rows", f"locks_no_rows{DEFAULT_PATH}")


def test_the_default_tier_has_mutants_of_each_group() -> None:
    assert all(SAMPLE & {each.name for each in group} for group in GROUPS.values())
    assert MUTANTS.keys() >= SAMPLE
    assert len(TOYS) > len(SAMPLE & set(TOYS)) > 1


def test_every_mutant_is_on_trial() -> None:
    defined = sum(path.read_text().count("\n@breaks(") for path in FOLDER.glob("*.py"))
    assert len(MUTANTS) == sum(map(len, GROUPS.values())) == defined
    assert CONTROL not in MUTANTS


PRIVATE = re.compile(r"_[A-Za-z]\w*")
# Of named tuples, whose fields are any words: they have no underscore to say that they are private.
PUBLIC = {"_replace", "_asdict", "_fields"}
# "FILE: NAME" of what has to stay private though a mutant names it, with the reason.
REMAINING: dict[str, str] = {}


def private_names(source: str) -> set[str]:
    """Return the private names of other modules that a module uses: attributes, imports, and strings for `put`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names.add(name)
            case ast.ImportFrom(module=str(module), names=imported):
                names.update(each.name for each in imported)
                names.update(module.split("."))
    return {name for name in names if PRIVATE.fullmatch(name)} - PUBLIC


def test_no_mutant_stops_a_renaming_of_what_is_private() -> None:
    used = {f"{path.name}: {name}" for path in FOLDER.glob("*.py") for name in private_names(path.read_text())}
    assert used == REMAINING.keys(), "break a fact, a public function of a rule, or bytes at the edge"


def test_no_mutant_names_how_a_store_is_served() -> None:
    """The executors and their fast paths follow rules that mutants break where all of them look."""
    modules = [f"{path.name}: {line}" for path in FOLDER.glob("*.py") for line in path.read_text().splitlines()]
    assert [line for line in modules if "kvref.server.executors" in line] == []


@pytest.mark.parametrize(
    "source",
    [
        'put(store, "_name", 1)',
        "store._name(1)",
        "from store import _name",
        "from store._name import of",
        'setattr(Session, "_name", 1)',
        'for each in ("public", "_name"): put(store, each, 1)',
    ],
)
def test_each_use_of_a_private_name_is_found(source: str) -> None:
    assert private_names(source) == {"_name"}


def test_public_names_are_not_taken_for_private_ones() -> None:
    assert private_names('put(store, "name", row._replace(__init__=store.name))\n_own = "is _name"') == set()


def test_the_page_is_the_one_in_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert (FOLDER / "README.md").read_text() == capsys.readouterr().out, (
        "python -m kvref_testbed.mutants > conformance/kvref_testbed/mutants/README.md"
    )


def test_a_name_that_no_mutant_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["no-such", "serve"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "no mutant 'no-such': `python -m kvref_testbed.mutants` lists them\n"
