"""A file of the user's own: what an endpoint is known not to keep. A row must fail, or it fails the run.

[[deviation]]
case = "bind-*"                         # a glob; or requirement = "KV-BIND-*"
reason = "bind is not there yet"
link = "https://example.org/issues/7"   # all below may be left out
profiles = ["kvref"]                    # the row counts only where it is judged by one of these
version = "1.6.*"                       # ... and where VERSION fits
until = 2027-03-31                      # ... and up to that day; then it is a complaint
flaky = true                            # it may hold as well
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import tomlkit
from tomlkit.items import AoT, Table

from kvref import documents, profiles
from kvref.documents import MAX_TOML_BYTES
from kvref_conformance.cases import all_cases
from kvref_conformance.errors import CannotJudge
from kvref_conformance.judging.verdict import BROKEN, DEVIATES, FAILS, NON_STRICT, PASSING, base

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from kvref_conformance.judging.verdict import Verdict

BREAKS: Final = BROKEN | {NON_STRICT}
SUBJECTS: Final = ("case", "requirement")
KINDS: Final[Mapping[str, type]] = {
    "case": str,
    "requirement": str,
    "reason": str,
    "link": str,
    "profiles": list,
    "version": str,
    "until": datetime.date,
    "flaky": bool,
}


@dataclass(frozen=True, slots=True)
class OwnRow:
    """A row of the file.

    Args:
        subject: what it names: `case` or `requirement`.
        glob: which of them.
        reason: why the endpoint does not keep it.
        link: where more is said; may be empty.
        profiles: it counts for these; empty: for all.
        version: it counts where VERSION fits this glob; empty: everywhere.
        until: the last day on which it counts; None: there is none.
        flaky: the cases may hold.
    """

    subject: str
    glob: str
    reason: str
    link: str = ""
    profiles: tuple[str, ...] = ()
    version: str = ""
    until: datetime.date | None = None
    flaky: bool = False

    def fits(self, case: str, requirements: Iterable[str]) -> bool:
        """Return whether it names a case, by its id or a requirement of it."""
        names = [case] if self.subject == "case" else list(requirements)
        return any(fnmatchcase(name, self.glob) for name in names)

    def counts(self, profile: str, version: str) -> bool:
        """Return whether it counts for an endpoint."""
        wanted = not self.profiles or profile in self.profiles
        return wanted and (not self.version or fnmatchcase(version, self.version))

    def __str__(self) -> str:
        return f"{self.subject} = {self.glob!r}"


class OwnDeviations:
    """The rows of a file during a run.

    Args:
        path: the file.
        rows: all of it.
        profile: of the endpoint.
        version: what it says behind VERSION.
        today: a row counts up to its day.
    """

    def __init__(self, path: Path, rows: Iterable[OwnRow], profile: str, version: str, today: datetime.date) -> None:
        self._path = path
        self._rows = list(rows)
        suite = [(case.id, case.requirements) for case in all_cases()]
        self._dead = [row for row in self._rows if not any(row.fits(*names) for names in suite)]
        here = [row for row in self._rows if row.counts(profile, version)]
        self._expired = [row for row in here if row.until is not None and row.until < today]
        self._here = [row for row in here if row not in self._expired]
        self._today = today
        # By row: what the cases that it names came to.
        self._seen: dict[OwnRow, list[Verdict]] = defaultdict(list)
        self._unnamed: list[Verdict] = []

    def names(self, verdict: Verdict) -> bool:
        """Return whether a row names the case."""
        return self._row(verdict) is not None

    def judged(self, verdict: Verdict) -> Verdict:
        """Return the verdict on a case in the light of the file.

        What is broken and named deviates; what holds and is named fails, unless it is flaky.
        """
        word = verdict.verdict
        if word not in PASSING | BREAKS:
            return verdict
        row = self._row(verdict)
        if row is None:
            if word in BROKEN and base(verdict.case) == verdict.case:
                self._unnamed.append(verdict)
            return verdict
        self._seen[row].append(verdict)
        if word in BREAKS:
            return replace(verdict, verdict=DEVIATES, reason=" ".join(filter(None, (row.reason, row.link))))
        if row.flaky:
            return verdict
        text = f"unexpected pass of case {verdict.case}: {self._path.name} says {row.reason!r}; remove {row}"
        return replace(verdict, verdict=FAILS, reason=text, text=text)

    def _row(self, verdict: Verdict) -> OwnRow | None:
        return next((row for row in self._here if row.fits(base(verdict.case), verdict.requirements)), None)

    def complaints(self) -> list[str]:
        """Return what is wrong with the file: rows whose day is over, and such as name no case of the suite."""
        reports = [f"{self._path.name}: {row} was to count until {row.until}: {row.reason}" for row in self._expired]
        return reports + [f"{self._path.name}: {row} names no case: remove it" for row in self._dead]

    def update(self) -> str:
        """Rewrite the file, so that the same run conforms; return a line about it.

        Rows that are still true, or do not count here, are unchanged, including comments. A row of which some cases
        hold is replaced by one for each case that fails, under the same conditions; a row of which none fails, or that
        names no case at all, is removed.
        """
        document = tomlkit.parse(self._path.read_text(encoding="utf-8")) if self._path.exists() else tomlkit.document()
        old = document.get("deviation", tomlkit.aot())
        rows, gone = tomlkit.aot(), 0
        for row, table in zip(self._rows, old, strict=True):
            verdicts = self._seen.get(row, [])
            failing = list(dict.fromkeys(base(each.case) for each in verdicts if each.verdict in BREAKS))
            over = row in self._expired or row in self._dead
            if not over and (all(each.verdict in BREAKS for each in verdicts) or row.flaky):
                rows.append(table)
                continue
            gone += 1
            for case in failing:
                rows.append(_row({"case": case} | {name: table[name] for name in table if name not in SUBJECTS}))
        for verdict in self._unnamed:
            reason = " ".join(verdict.reason.split())
            rows.append(_row({"case": verdict.case, "reason": f"fails since {self._today} or before: {reason}"}))
        document["deviation"] = rows
        self._path.write_text(tomlkit.dumps(document), encoding="utf-8")
        return f"{self._path}: {len(rows)} deviations, {len(self._unnamed)} of them new, {gone} rows gone"


def load(path: Path, profile: str, version: str, *, update: bool) -> OwnDeviations:
    """Read the file.

    Args:
        path: of it.
        profile: of the endpoint.
        version: what it says behind VERSION.
        update: it may be missing, since the run writes it.

    Raises:
        CannotJudge: it is missing or malformed.
    """
    rows: list[OwnRow] = []
    if path.exists() or not update:
        try:
            text = documents.read_text(path, MAX_TOML_BYTES)
            documents.toml_of(text)
            document = tomlkit.parse(text)
        except OSError as error:
            raise CannotJudge(f"{path}: {error.strerror}: --update-deviations makes the file") from error
        except ValueError as error:
            raise CannotJudge(f"{path}: {error}") from error
        if unknown := document.keys() - {"deviation"}:
            raise CannotJudge(f"{path}: unknown {', '.join(sorted(unknown))}: the file has [[deviation]] only")
        entries = document.get("deviation", tomlkit.aot())
        if not isinstance(entries, AoT):
            raise CannotJudge(f"{path}: deviation = ...: each row begins with a line [[deviation]]")
        rows = [_read(path, number, entry) for number, entry in enumerate(entries.unwrap(), 1)]
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return OwnDeviations(path, rows, profile, version, today)


def _read(path: Path, number: int, entry: Mapping[str, Any]) -> OwnRow:
    where = f"{path}, deviation {number}"
    for name, value in entry.items():
        if name not in KINDS:
            raise CannotJudge(f"{where}: unknown {name!r}: a row has {', '.join(KINDS)}")
        if type(value) is not KINDS[name] or value in ("", []):
            raise CannotJudge(f"{where}: {name} = {value!r}: not a {KINDS[name].__name__} that says something")
    if unknown := [each for each in entry.get("profiles", ()) if each not in profiles.names()]:
        known = ", ".join(profiles.names())
        raise CannotJudge(f"{where}: profiles has {unknown[0]!r}: the names of profiles are {known}")
    subjects = [name for name in SUBJECTS if name in entry]
    if len(subjects) != 1 or "reason" not in entry:
        raise CannotJudge(f"{where}: a row has a case or a requirement, and a reason")
    rest = {name: value for name, value in entry.items() if name not in subjects}
    return OwnRow(subjects[0], entry[subjects[0]], **{**rest, "profiles": tuple(entry.get("profiles", ()))})


def _row(fields: Mapping[str, Any]) -> Table:
    made = tomlkit.table()
    for name, value in fields.items():
        made.add(name, value)
    return made
