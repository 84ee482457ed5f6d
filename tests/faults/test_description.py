"""Every fault has a test, every test a fault, and the record and its table say what runs found."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest
from faults import survived
from faults.description import FULL, Fault, described

FOLDER = Path(__file__).parent


def tried(file: Path) -> dict[str, list[str]]:
    """Return the ids that each test of a file names in `@of(...)`."""
    found: dict[str, list[str]] = {}
    for each in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
            found[each.name] = [
                argument.value
                for call in each.decorator_list
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "of"
                for argument in call.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            ]
    return found


def test_every_fault_has_one_test_and_every_test_a_fault() -> None:
    tests = {
        name: ids for file in FOLDER.glob("test_*.py") if file != Path(__file__) for name, ids in tried(file).items()
    }
    assert [name for name, ids in tests.items() if not ids] == []
    counted = Counter(each for ids in tests.values() for each in ids)
    assert counted == dict.fromkeys(described(), 1)


@pytest.mark.parametrize("name", described())
def test_a_fault_is_described_for_an_operator(name: str) -> None:
    fault = Fault(**described()[name])
    assert 0 < fault.short < fault.full
    message = fault.record()["expected"]
    assert message[0].isupper()
    assert message.endswith(".")
    assert "\n" not in message


ROW = {
    "fault": "some-fault",
    "expected": "All is there.",
    "seconds": 61.2,
    "cycles": 10,
    "acknowledged": 12345,
    "lost": 0,
}


def test_figures_become_words() -> None:
    record = survived.merged(
        {"rows": []}, [{**ROW, "without_service_s": 0.8, "rejected": 3, "refused": 0}], "2026-11-22"
    )
    head, _, line = survived.table(record).splitlines()
    assert line == (
        f"| some-fault | All is there. | 2026-11-22, {'full' if FULL else 'short'}, 61 s: 10 cycles, 12,345 writes acknowledged, 0 lost,"
        " without service 0.8 s, 3 rejected | yes |"
    )
    assert head.count("|") == line.count("|")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"lost": 1}, "**no**"),
        ({"failed": "it ended"}, "**no**: it ended"),
        ({"not_run": "no root"}, "not tried: no root"),
    ],
)
def test_what_is_not_survived_stands_in_the_table(more: dict[str, object], message: str) -> None:
    assert survived.verdict({**ROW, **more}) == message


def test_a_run_of_some_leaves_the_others() -> None:
    before = {
        "rows": [
            {**ROW, "length": "full", "made": "then"},
            {**ROW, "fault": "kill-sqlite", "length": "full", "made": "then"},
        ]
    }
    after = survived.merged(before, [{**ROW, "cycles": 11}], "now")
    assert [(row["fault"], row["cycles"], row["made"]) for row in after["rows"]] == [
        ("kill-sqlite", 10, "then"),
        ("some-fault", 11, "now"),
    ]
    assert json.loads(json.dumps(after)) == after
