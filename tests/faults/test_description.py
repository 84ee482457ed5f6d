"""Every fault has a test, every test a fault, and each is described for an operator."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from faults.description import Fault, described

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
