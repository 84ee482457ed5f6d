"""Known deviations: where an endpoint is recorded to break a requirement. A row must fail, and fail as recorded.

One file a profile; PROFILE-over-DATABASE.toml is about an endpoint that reaches its tables through SQL, and
PROFILE-VERSION.toml about releases from that one on, where the profile states an earlier one. `extends` includes
the rows of another file, `without` drops some of them by case or requirement. A row names a case (or a
requirement, for every case of it) and has the recorded exchanges in the template language of the cases; a case that
passes, or breaks in another way than recorded, fails the run. What must never be sent, and what a case shows as a
quirk, is in `defects.toml` (`defects.py`).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kvref.errors import SuiteError
from kvref.specification.requirements import check_evidence, toml_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_VERSION = re.compile(r"\d+(\.\d+)*", re.ASCII)
_FLAGS = ("unset", "stays_open")
ROW_FIELDS = {"reason", "evidence", "conversation"}


@dataclass(frozen=True, slots=True)
class Deviation:
    """One row.

    Args:
        subject: case id or requirement id.
        conversation: pairs (sent, got), templates; a failing exchange must be one of them.
        unset: the answer is memory that was never set, or depends on which shards have the rows; an endpoint of the
            profile may keep the requirement instead.
        stays_open: the connection is not closed where the case expects it.
    """

    subject: str
    reason: str
    evidence: tuple[str, ...]
    conversation: tuple[tuple[str, str], ...]
    unset: bool = False
    stays_open: bool = False


class Deviations:
    """The rows of one profile, looked up by case."""

    def __init__(self, rows: Iterable[Deviation]) -> None:
        self.rows = {row.subject: row for row in rows}

    def of(self, case: str, requirements: Iterable[str]) -> Deviation | None:
        """Return the row of a case, else of one of its requirements, else None."""
        return next((self.rows[name] for name in (case, *requirements) if name in self.rows), None)

    def without_case(self, cases: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
        """Return the subjects that no case of the suite, given by id and requirements, has: rows that never fail."""
        known = {name for case, requirements in cases for name in (case, *requirements)}
        return sorted(self.rows.keys() - known)


@cache
def load(profile: str, over_sql: str = "", version: str = "") -> Deviations:
    """Return the rows of a profile; a profile without a file has none.

    Args:
        over_sql: the database that the endpoint reaches through SQL, where the plugin acts behind SQL's back:
            mysql, mariadb, galera or vitess. A profile without a file for it has its usual rows.
        version: of the endpoint, for example 1.6.45; the rows of the newest release that is not newer than it count.
    """
    over = f"{profile}-over-{over_sql}"
    return of_file(over if over in names() else _release(profile, version))


@cache
def of_file(name: str) -> Deviations:
    """Return the rows of one of `names()`, or of a profile without a file, which has none; raises as `parse`."""
    return parse(name, _text)


def names() -> list[str]:
    """Return the names of the files, without `defects`, sorted."""
    found = (path.name.removesuffix(".toml") for path in files(__package__).iterdir() if path.name.endswith(".toml"))
    return sorted(set(found) - {"defects"})


def _release(profile: str, version: str) -> str:
    releases = {_numbers(name.removeprefix(f"{profile}-")): name for name in names() if name.startswith(f"{profile}-")}
    known = [each for each in releases if each and each <= _numbers(version)]
    return releases[max(known)] if known else profile


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


def _text(profile: str) -> str:
    path = files(__package__).joinpath(f"{profile}.toml")
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def parse(profile: str, text_of: Callable[[str], str]) -> Deviations:
    """Return the rows of a profile's file. Raises SuiteError for the first fault.

    Args:
        text_of: returns the TOML text of a profile's file, empty if there is none.
    """
    table = toml_of(f"deviations/{profile}.toml", text_of(profile))
    if unknown := table.keys() - {"extends", "without", "deviation"}:
        raise SuiteError(f"deviations/{profile}.toml: unknown {', '.join(sorted(unknown))}")
    rows = dict(parse(table["extends"], text_of).rows) if "extends" in table else {}
    for subject in table.get("without", []):
        if rows.pop(subject, None) is None:
            raise SuiteError(f"deviations/{profile}.toml: `without` names {subject!r}, which has no row")
    for entry in table.get("deviation", []):
        row = _row(f"deviations/{profile}.toml", entry)
        if row.subject in rows:
            raise SuiteError(f"deviations/{profile}.toml: two rows for {row.subject}")
        rows[row.subject] = row
    return Deviations(rows.values())


def cases_of(requirement: str) -> tuple[str, ...]:
    """Return the ids of the cases that judge a requirement, as far as a row of some profile names them."""
    return tuple(case for case, requirements in _named_cases().items() if requirement in requirements)


@cache
def _named_cases() -> dict[str, Any]:
    return tomllib.loads(files("kvref.specification").joinpath("deviation_cases.toml").read_text(encoding="utf-8"))


def of_requirement(requirement: str, profile: str) -> list[Deviation]:
    """Return the rows of a profile that name a requirement or a case of it."""
    rows = load(profile).rows
    return [rows[name] for name in (requirement, *cases_of(requirement)) if name in rows]


def reason(rows: Iterable[Deviation]) -> str:
    """Return the reasons of rows in one text, each once."""
    return "; ".join(dict.fromkeys(row.reason for row in rows))


def subjects() -> frozenset[str]:
    """Return what the rows of all files name: ids of cases and of requirements."""
    return frozenset().union(*(of_file(name).rows for name in names()))


def _row(where: str, entry: Mapping[str, Any]) -> Deviation:
    subjects = [entry[name] for name in ("case", "requirement") if name in entry]
    if len(subjects) != 1:
        raise SuiteError(f"{where}: a row names either a case or a requirement: {entry}")
    where = f"{where}, {subjects[0]}"
    fields = entry.keys() - {"case", "requirement", *_FLAGS}
    if fields != ROW_FIELDS:
        raise SuiteError(f"{where}: fields {sorted(ROW_FIELDS ^ fields)} are missing or unknown")
    for flag in _FLAGS:
        if entry.get(flag, True) is not True:
            raise SuiteError(f"{where}: `{flag}` is true or is not there")
    if not all(entry[name] for name in ROW_FIELDS):
        raise SuiteError(f"{where}: a row needs a reason, evidence and the recorded conversation")
    check_evidence(where, entry["evidence"])
    pairs = entry["conversation"]
    if any(len(pair) != 2 for pair in pairs):
        raise SuiteError(f"{where}: a conversation is a list of [sent, got]")
    answers = tuple((sent, got) for sent, got in pairs)
    flags = {flag: flag in entry for flag in _FLAGS}
    return Deviation(subjects[0], entry["reason"], tuple(entry["evidence"]), answers, **flags)
