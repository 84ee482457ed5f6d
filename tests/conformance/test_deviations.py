"""Deviation files: strict to load, inherited as written, and no row without a case."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvref import profiles
from kvref.errors import SuiteError
from kvref.specification import deviations, requirements
from kvref.specification.deviations import defects
from kvref_conformance.cases import all_cases

ROW = """
[[deviation]]
case = "set-new"
reason = "it does not"
evidence = ["core:verb-009"]
conversation = [["get {k}", "END"]]
"""


def files(**texts: str) -> Callable[[str], str]:
    return lambda name: texts.get(name, "")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('case = "set-new"', "", "either a case or a requirement"),
        ('case = "set-new"', 'case = "set-new"\nrequirement = "KV-CORE-001"', "either a case or a requirement"),
        ('reason = "it does not"', "", "reason"),
        ('reason = "it does not"', 'reason = ""', "needs a reason"),
        ('["core:verb-009"]', "[]", "evidence"),
        ('["core:verb-009"]', '["hearsay"]', "names no recording"),
        ('[["get {k}", "END"]]', "[]", "conversation"),
        ('[["get {k}", "END"]]', '[["get {k}"]]', r"\[sent, got\]"),
        ("reason =", 'colour = "red"\nreason =', "colour"),
        ("[[deviation]]", "[[deviaton]]", "deviaton"),
        ("[[deviation]]", "[[deviation", "a.toml"),
        ("reason =", "unset = false\nreason =", "`unset` is true"),
    ],
)
def test_a_bad_row_is_refused(old: str, new: str, complaint: str) -> None:
    with pytest.raises(SuiteError, match=complaint):
        deviations.parse("a", files(a=ROW.replace(old, new, 1)))


def test_two_rows_for_one_subject_are_refused() -> None:
    with pytest.raises(SuiteError, match="two rows for set-new"):
        deviations.parse("a", files(a=ROW + ROW))


def test_leaving_out_what_is_not_there_is_refused() -> None:
    with pytest.raises(SuiteError, match="no-such"):
        deviations.parse("b", files(a=ROW, b='extends = "a"\nwithout = ["no-such"]\n'))


def test_a_row_that_matches_no_case_is_named() -> None:
    rows = deviations.parse("a", files(a=ROW + ROW.replace("set-new", "set-nwe")))
    assert rows.without_case([("set-new", ("KV-CORE-001",))]) == ["set-nwe"]


@pytest.mark.parametrize("profile", profiles.names())
def test_every_row_of_the_suite_matches_a_case(profile: str) -> None:
    assert deviations.load(profile).without_case((case.id, case.requirements) for case in all_cases()) == []


@pytest.mark.parametrize("profile", ["mysql-8.0", "mysql-5.6"])
@pytest.mark.parametrize("database", ["mysql", "mariadb", "galera"])
def test_an_endpoint_over_sql_has_the_rows_of_its_profile_and_its_own(profile: str, database: str) -> None:
    rows = deviations.load(profile, database)
    usual = deviations.load(profile).rows.keys()
    assert rows.rows.keys() - usual
    assert usual - rows.rows.keys() <= {"KV-BINLOG-007"}  # what only the plugin does
    assert rows.of("triggers-do-not-fire", ())
    assert rows.without_case((case.id, case.requirements) for case in all_cases()) == []


def test_a_profile_that_is_kept_over_sql_has_rows_for_a_cluster_alone() -> None:
    rows = deviations.load("kvref", "galera")
    assert rows.rows.keys() == {"ddl-beside-a-batch-without-mdl", "ddl-beside-a-batch-with-mdl"}
    assert rows.without_case((case.id, case.requirements) for case in all_cases()) == []


def test_a_profile_that_is_kept_over_sql_has_rows_for_what_shards_do_not_share() -> None:
    rows = deviations.load("kvref", "vitess")
    assert rows.without_case((case.id, case.requirements) for case in all_cases()) == []
    assert {each.subject for each in rows.rows.values() if each.unset} == {
        "unique-value", "unique-value-new-key", "row-after-a-refusal", "trailing-blank-of-a-binary-collation", "orphan",
    }  # fmt: skip


def test_our_own_server_and_memcached_have_no_documented_deviation() -> None:
    assert deviations.load("kvref").rows == {}
    assert deviations.load("memcached").rows == {}


def test_releases_of_memcached_from_one_on_have_rows_of_their_own() -> None:
    rows = deviations.load("memcached", version="1.6.45").rows
    assert rows["http-word-alone"].stays_open
    assert deviations.load("memcached", version="1.10").rows == rows
    for other in ("1.6.18", "1.6.44", "", "nodecached-0.2.0"):
        assert deviations.load("memcached", version=other).rows == {}
    known = deviations.load("memcached", version="1.6.45")
    assert known.without_case((case.id, case.requirements) for case in all_cases()) == []


CRASH = """
[[crash]]
requirement = "KV-RANGE-020"
profiles = ["mysql-8.0"]
reason = "it ends"
evidence = ["core:range-077"]
conversation = [["a", "get @>z a"]]
"""
DEFECT = """
[[defect]]
kind = "truncation"
requirement = "KV-TYPE-004"
profiles = ["mysql-5.6", "mysql-8.0"]
reason = "it is cut"
evidence = ["columns:type-155"]
case = "long-value-cut-ascii"
"""


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('[["a", "get @>z a"]]', '[["get @>z a"]]', r"\[connection or sql"),
        ('[["a", "get @>z a"]]', "[]", "a field is empty"),
        ('conversation = [["a", "get @>z a"]]', 'case = "range-empty"', "conversation"),
        ('requirement = "KV-RANGE-020"', 'requirement = "KV-RANGE-999"', "no such requirement"),
        ('["mysql-8.0"]', '["mysql-5.6"]', "does not apply to profile mysql-5.6"),
        ('["core:range-077"]', '["hearsay"]', "names no recording"),
        ('reason = "it ends"', "", "reason"),
        ("[[crash]]", "[[crush]]", "unknown crush"),
        ("[[crash]]", "[[crash", "defects.toml"),
        ('kind = "truncation"', 'kind = "oddity"', "none of crash, garbage"),
        ('case = "long-value-cut-ascii"', "", "case or a conversation"),
    ],
)
def test_a_bad_row_of_a_defect_is_refused(old: str, new: str, complaint: str) -> None:
    with pytest.raises(SuiteError, match=complaint):
        defects.parse((CRASH + DEFECT).replace(old, new, 1))


def test_what_ends_a_server_is_never_sent() -> None:
    catalogue = requirements.load()
    crashes = [row for row in defects.load() if row.kind == defects.CRASH]
    assert crashes
    assert [row.requirement for row in crashes if not catalogue[row.requirement].untestable] == []


def test_a_defect_is_shown_by_a_case_of_its_requirement() -> None:
    by_case = {case.id: case.requirements for case in all_cases()}
    shown = [(row.case, row.requirement) for row in defects.load() if row.case]
    assert [pair for pair in shown if pair[1] not in by_case.get(pair[0], ())] == []
