"""An independent implementation stays small enough to read."""

from __future__ import annotations

import pytest
from helpers.example_packages import EXAMPLES

MOST_LINES = 2000


@pytest.mark.parametrize(("folder", "pattern"), [("go", "*.go"), ("python", "*.py")])
def test_an_implementation_has_at_most_two_thousand_lines(folder: str, pattern: str) -> None:
    files = list((EXAMPLES / "implementations" / folder).glob(pattern))
    assert len(files) > 5
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= MOST_LINES
