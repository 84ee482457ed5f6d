"""The page of differences from memcached is what the profiles make of it."""

from __future__ import annotations

from generators.memcached import HEAD, PAGE, page


def test_the_committed_page_is_the_generated_one() -> None:
    assert PAGE.read_text() == page(), "run PYTHONPATH=docs python -m generators.memcached"


def test_the_page_names_what_differs() -> None:
    text = page()
    assert text.startswith(HEAD)
    assert "`latin1_bin`" in text
    assert "| `mapping.supported` |" in text
    assert "`True` | `False`" in text


def test_each_difference_has_a_reason() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `") and line.count(" | ") >= 4]
    assert not [row for row in rows if row.endswith("|  |")]
