"""One report as a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvref.errors import SuiteError, printable
from kvref.specification import report
from kvref.specification.report import ReportError
from kvref_conformance.reports.levels import LevelVerdict
from kvref_conformance.wire.template import caught

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Step:
    """One exchange of a conversation.

    Args:
        on: connection, or `sql`.
        sent: what was sent; bytes are latin-1 characters.
        got: what was received.
        note: how it ended, if not by a reply.
        same: the parts that are equal in another run with the same result: both texts with names and holes in place of
            the keys and numbers of the run; None in a report of an older format.
        opening: binds the case's mapping, which is only sent to an endpoint with mappings; never compared.
    """

    on: str
    sent: str
    got: str
    note: str
    same: tuple[str, str, str, str] | None = field(repr=False)
    opening: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended there; steps are () where the report has no conversation."""

    case: str
    chapter: str
    requirements: tuple[str, ...]
    verdict: str
    reason: str
    duration: float
    text: str
    steps: tuple[Step, ...]

    def whole(self) -> tuple[object, ...] | None:
        """Return the conversation up to keys and cas numbers, with the steps that are never compared.

        Returns:
            None if it is unknown.
        """
        if self.same() is None:
            return None
        return tuple((step.same, caught(step.same[2], step.got)) for step in self.steps if step.same is not None)

    def same(self) -> tuple[tuple[str, str, str, str], ...] | None:
        """Return the conversation without the parts that differ by run; None if it is unknown."""
        compared = [step.same for step in self.steps if not step.opening]
        common = tuple(same for same in compared if same is not None)
        return common if common and len(common) == len(compared) else None

    def place(self, number: int) -> int:
        """Return the index among all steps of the one that is that many behind the first compared one."""
        compared = [index for index, step in enumerate(self.steps) if not step.opening]
        return compared[number] if number < len(compared) else len(self.steps)


@dataclass(frozen=True, slots=True)
class Column:
    """One endpoint judged.

    Args:
        name: heading.
        header: of the report.
        outcomes: by case.
        complaints: problems of the endpoint other than its cases.
        exit_code: of the run.
        path: of report.jsonl, or of the same in gzip.
        levels: of conformance, as `LevelVerdict.as_json` returns them; empty in older reports.
    """

    name: str
    header: Mapping[str, Any]
    outcomes: Mapping[str, Outcome]
    complaints: tuple[str, ...]
    exit_code: int
    path: Path
    levels: tuple[Mapping[str, Any], ...]

    def about(self) -> str:
        """Say in a line who was judged, by what and when."""
        parts = [f"VERSION {self.header['version']}", f"as {self.header['profile']}"]
        parts += [f"over {self.header['database']}"] if self.header["database"] else []
        return ", ".join([*parts, str(self.header["started"])[:10]])

    def level_verdicts(self) -> list[LevelVerdict]:
        """Return the verdicts by level of conformance; empty in older reports."""
        return [LevelVerdict.from_json(level) for level in self.levels]

    def totals(self) -> Counter[str]:
        """Count its cases by verdict."""
        return Counter(outcome.verdict for outcome in self.outcomes.values())


def read_all(given: Iterable[str]) -> list[Column]:
    """Read reports, one column each, in the order given.

    Args:
        given: `[NAME=]PATH`: report.jsonl, the same in gzip, or its folder. Without a name it is that of the file, or
            of the folder where the file is called report.jsonl.

    Raises:
        SuiteError: one cannot be read, or two have one name.
    """
    columns = [read(Path(path), name) for name, path in map(_split, given)]
    for name, count in Counter(column.name for column in columns).items():
        if count > 1:
            raise SuiteError(f"{count} reports are called {name!r}: name them, as in `new={name}/report.jsonl`")
    return columns


def read(path: Path, name: str = "") -> Column:
    """Read a report.

    Args:
        path: `report.jsonl`, the same in gzip, or its folder.
        name: heading; empty for that of the file or folder.

    Raises:
        SuiteError: as `report.read`.
    """
    try:
        found = report.read(path)
    except ReportError as error:
        raise SuiteError(str(error)) from error
    file = found.path
    outcomes = [_outcome(line) for line in found.verdicts]
    own = file.resolve().parent.name if file.name.startswith("report.jsonl") else file.name.split(".")[0]
    return Column(
        name or own,
        {key: printable(value) if isinstance(value, str) else value for key, value in found.header.items()},
        {outcome.case: outcome for outcome in outcomes},
        tuple(map(printable, found.footer["complaints"])),
        found.footer["exit_code"],
        file,
        tuple(found.footer.get("conformance_levels", ())),
    )


def _split(word: str) -> tuple[str, str]:
    name, equals, path = word.partition("=")
    return (name, path) if equals and "/" not in name else ("", word)


def _outcome(line: Mapping[str, Any]) -> Outcome:
    return Outcome(
        printable(line["case"]),
        printable(line["chapter"]),
        tuple(line["requirements"]),
        line["verdict"],
        printable(line["reason"]),
        line["duration"],
        printable(line.get("text", ""), keep="\n"),
        tuple(map(_step, line.get("conversation", ()))),
    )


def _step(exchange: Mapping[str, Any]) -> Step:
    on, sent, got, note = (exchange[name] for name in ("on", "sent", "got", "note"))
    note = printable(note)
    if "written" not in exchange:
        return Step(on, sent, got, note, None)
    template, fits = exchange["written"]
    same = (on, template or sent, fits or got, note)
    return Step(on, sent, got, note, same, exchange.get("opening", False))
