"""The user's own list: what a row says of a verdict, and how a run writes it."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from kvref_conformance.judging import own_deviations
from kvref_conformance.judging.own_deviations import OwnDeviations, OwnRow
from kvref_conformance.judging.verdict import DEVIATES, FAILS, HOLDS, NOT_RUN, SUITE_ERROR, UNSUPPORTED, Verdict

TODAY = datetime.date(2026, 11, 22)


def verdict(case: str, word: str, requirement: str = "KV-CORE-001") -> Verdict:
    return Verdict(case, "storage", (requirement,), word, "a sentence", text="a conversation")


def deviations(*rows: OwnRow, profile: str = "kvref", version: str = "1.6.18") -> OwnDeviations:
    return OwnDeviations(Path("mine.toml"), rows, profile, version, TODAY)


ROW = OwnRow("case", "set-*", "no set", "https://example.org/7")


def test_what_is_named_and_fails_deviates() -> None:
    found = deviations(ROW).judged(verdict("set-new", FAILS))
    assert (found.verdict, found.reason) == (DEVIATES, "no set https://example.org/7")
    assert found.text == "a conversation"


def test_what_is_named_and_holds_fails() -> None:
    found = deviations(ROW).judged(verdict("set-new", HOLDS))
    assert found.verdict == FAILS
    assert found.text == "unexpected pass of case set-new: mine.toml says 'no set'; remove case = 'set-*'"


@pytest.mark.parametrize("word", [DEVIATES, NOT_RUN, UNSUPPORTED, SUITE_ERROR])
def test_other_verdicts_stay(word: str) -> None:
    assert deviations(ROW).judged(verdict("set-new", word)) == verdict("set-new", word)


@pytest.mark.parametrize("word", [HOLDS, FAILS])
def test_what_is_not_named_stays(word: str) -> None:
    assert deviations(ROW).judged(verdict("get-missing", word)) == verdict("get-missing", word)


@pytest.mark.parametrize(("glob", "word"), [("KV-CORE-*", DEVIATES), ("KV-CORE-001", DEVIATES), ("KV-BIND-*", FAILS)])
def test_a_row_may_name_requirements(glob: str, word: str) -> None:
    row = OwnRow("requirement", glob, "not yet")
    assert deviations(row).judged(verdict("set-new", FAILS)).verdict == word


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ({"profiles": ("kvref", "memcached")}, DEVIATES),
        ({"profiles": ("memcached",)}, FAILS),
        ({"version": "1.6.*"}, DEVIATES),
        ({"version": "1.5.*"}, FAILS),
        ({"until": TODAY}, DEVIATES),
        ({"until": TODAY - datetime.timedelta(days=1)}, FAILS),
    ],
)
def test_conditions(condition: dict[str, object], word: str) -> None:
    row = replace(ROW, **condition)  # type: ignore[arg-type]
    assert deviations(row).judged(verdict("set-new", FAILS)).verdict == word


def test_a_row_whose_day_is_over_is_a_complaint() -> None:
    late = replace(ROW, until=datetime.date(2026, 11, 21))
    assert deviations(late).complaints() == ["mine.toml: case = 'set-*' was to count until 2026-11-21: no set"]
    assert not deviations(replace(late, profiles=("memcached",))).complaints()


def test_a_row_that_names_no_case_is_a_complaint() -> None:
    dead = OwnRow("case", "no-such-*", "x")
    assert deviations(ROW, dead).complaints() == ["mine.toml: case = 'no-such-*' names no case: remove it"]


LIST = """# What our server cannot do.
[[deviation]]
case = "set-*"  # all of them
reason = "no set"
link = "https://example.org/7"

[[deviation]]
case = "get-*"
reason = "gets some"
until = 2099-01-01

[[deviation]]
case = "touch-*"
reason = "healed"

[[deviation]]
case = "bind-*"
reason = "elsewhere"
profiles = ["mysql-5.6"]

[[deviation]]
case = "incr-*"
reason = "sometimes"
flaky = true

[[deviation]]
case = "decr-*"
reason = "long ago"
until = 2020-01-01

[[deviation]]
case = "no-such-*"
reason = "renamed"
"""


def test_an_update_keeps_what_holds_true(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(LIST)
    rows = own_deviations.load(file, "kvref", "1", update=True)
    for case, word in (
        ("set-new", FAILS), ("set-again", FAILS), ("get-missing", FAILS), ("get-hit", HOLDS), ("touch-hit", HOLDS),
        ("bind-unknown", FAILS), ("incr-missing", HOLDS), ("decr-missing", FAILS), ("delete-hit", HOLDS),
    ):  # fmt: skip
        rows.judged(verdict(case, word))
    assert rows.update() == f"{file}: 6 deviations, 2 of them new, 4 rows gone"
    text = file.read_text()
    assert text.startswith('# What our server cannot do.\n[[deviation]]\ncase = "set-*"  # all of them\n')
    assert "touch-*" not in text
    assert 'case = "get-missing"\nreason = "gets some"\nuntil = 2099-01-01\n' in text
    again = own_deviations.load(file, "kvref", "1", update=False)
    assert not again.complaints()
    for case in ("set-new", "get-missing", "bind-unknown", "incr-missing", "decr-missing"):
        assert again.judged(verdict(case, FAILS)).verdict == DEVIATES, case
    assert again.judged(verdict("get-missing", FAILS)).reason == "gets some"
    for case in ("get-hit", "touch-hit", "delete-hit", "incr-hit"):
        assert again.judged(verdict(case, HOLDS)).verdict == HOLDS, case
    assert 'profiles = ["mysql-5.6"]' in text
