"""Verdict files: the matrix of several reports as data, from which its pages are made.

`matrix.json` is what `forms.document` returns. CHAPTER.json has the cases of the chapter's requirements: for each case
the outcomes with the endpoints that share them, and the conversations, equal ones once. `matrix.schema.json` describes
both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref.specification.report import fault_of
from kvref_conformance.judging.conversation import shown
from kvref_conformance.judging.verdict import BROKEN, SUITE_ERROR
from kvref_conformance.reports import forms
from kvref_conformance.reports.column import Column
from kvref_conformance.reports.grid import Grid, Row, parting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kvref_conformance.reports.column import Outcome, Step

NAME: Final = "matrix.json"
FIX: Final = "run `bash .ci/part standing`, or `kvref matrix --data DIR` with the reports"
# A conversation as pages show it: connection, sent, got, note of each step.
Conversation = tuple[tuple[str, ...], ...]
# Fields of an outcome that endpoints share.
SHARED: Final = ("verdict", "reason", "conversation", "parts", "text")


@dataclass(frozen=True, slots=True)
class Record:
    """A matrix with what its pages show.

    Args:
        grid: of the endpoints; one that was read from files has no outcomes in its columns.
        chapters: by name of the chapter, what CHAPTER.json has.
        cases: cases by requirement, also of requirements that the catalogue no longer has.
    """

    grid: Grid
    chapters: Mapping[str, Mapping[str, Any]]
    cases: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, grid: Grid) -> Record:
        """Return the record of reports."""
        chapters = {chapter.name: _chapter(grid, rows) for chapter, rows in grid.chapters()}
        return cls(grid, chapters, {row.requirement.id: row.cases for row in grid.rows})

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Read verdict files.

        Args:
            folder: has `matrix.json`.

        Raises:
            SuiteError: a file is missing or does not fit its schema; the text names it, the value and the fix.
        """
        document = _read(folder / NAME, "")
        columns = [_column(folder, each) for each in document["endpoints"]]
        catalogue = requirements.load()
        rows = [
            Row(catalogue[each["id"]], tuple(each["cases"]), each["verdicts"], each["endpoints"])
            for each in document["requirements"]
            if each["id"] in catalogue
        ]
        names = dict.fromkeys(each["chapter"] for each in document["requirements"])
        chapters = {name: _read(folder / f"{name}.json", "chapter") for name in names}
        cases = {each["id"]: each["cases"] for each in document["requirements"]}
        return cls(Grid(columns, rows), chapters, cases)

    def details(self, rows: Iterable[Row], *, conversations: bool = True) -> dict[str, Any]:
        """Return what the page of some requirements of a chapter shows when a line is opened.

        Args:
            rows: of one chapter.
            conversations: with the conversations of the cases.
        """
        wanted = {row.requirement.id: list(row.cases) for row in rows}
        chapter = self.chapters[requirements.load()[next(iter(wanted))].chapter]
        numbers: dict[int, int] = {}

        def renumbered(outcome: Mapping[str, Any]) -> dict[str, Any]:
            if "conversation" not in outcome:
                return dict(outcome)
            number = numbers.setdefault(outcome["conversation"], len(numbers)) if conversations else None
            return _without_defaults({**outcome, "conversation": number})

        cases = {
            case: [renumbered(each) for each in chapter["cases"][case]]
            for case in dict.fromkeys(case for names in wanted.values() for case in names)
        }
        return {
            "endpoints": {column.name: column.about() for column in self.grid.columns},
            "requirements": wanted,
            "cases": cases,
            "conversations": [chapter["conversations"][number] for number in numbers],
        }


def files(grid: Grid) -> dict[str, str]:
    """Return the verdict files of reports by name; a case or a conversation is one line."""
    chapters = {f"{name}.json": _lines(chapter) for name, chapter in Record.of(grid).chapters.items()}
    return {NAME: _lines(forms.document(grid)), **chapters}


def _column(folder: Path, endpoint: Mapping[str, Any]) -> Column:
    complaints, levels = tuple(endpoint["complaints"]), tuple(endpoint["levels"])
    return Column(endpoint["name"], endpoint["header"], {}, complaints, endpoint["exit_code"], folder, levels)


def _read(path: Path, part: str) -> Any:
    """Return a verdict file; `part` is its name in the definitions of the schema, "" for the schema itself."""
    try:
        found = documents.read_json(path)
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror or error}: {FIX}") from error
    except DocumentError as error:
        raise SuiteError(f"{path}: {error}: {FIX}") from error
    if fault := fault_of(_validator(part), found):
        raise SuiteError(f"{path}: {fault}: {FIX}")
    return found


@cache
def _validator(part: str) -> Draft202012Validator:
    schema = json.loads(resources.files(__package__).joinpath("matrix.schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]} if part else schema)


def _dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _lines(document: Mapping[str, Any]) -> str:
    """Return a JSON object with each item of its lists and tables on a line."""
    parts = []
    for name, value in document.items():
        if isinstance(value, dict):
            items = ",\n".join(f"{_dumped(key)}:{_dumped(each)}" for key, each in value.items())
            parts.append(f"{_dumped(name)}:{{\n{items}\n}}")
        elif isinstance(value, list):
            items = ",\n".join(map(_dumped, value))
            parts.append(f"{_dumped(name)}:[\n{items}\n]")
        else:
            parts.append(f"{_dumped(name)}:{_dumped(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def _chapter(grid: Grid, rows: Sequence[Row]) -> dict[str, Any]:
    conversations: dict[Conversation, int] = {}
    cases = {
        case: _outcomes({column.name: column.outcomes.get(case) for column in grid.columns}, conversations)
        for case in dict.fromkeys(case for row in rows for case in row.cases)
    }
    return {"conversations": [*map(list, conversations)], "cases": cases}


def _outcomes(outcomes: Mapping[str, Outcome | None], conversations: dict[Conversation, int]) -> list[dict[str, Any]]:
    """Return the outcomes of a case, equal ones once.

    The keys and cas numbers of a run differ; where nothing else does, not even in a step that is never compared or in
    what a hole of an allowed reply matches, endpoints have one conversation: that of the first.

    Args:
        outcomes: by endpoint; None if its report does not have the case.
        conversations: number of each conversation of the chapter, to which new ones are added.

    Returns:
        The fields SHARED, without empty ones, and `endpoints`. `conversation` is a number; `parts` is the number of the
        step at which it differs from that of the first endpoint that has one.
    """
    seen: dict[object, int] = {}
    first: Outcome | None = None
    made: dict[tuple[object, ...], list[str]] = {}
    for name, outcome in outcomes.items():
        if outcome is None:
            continue
        number = parts = None
        if outcome.steps:
            first = first or outcome
            whole = outcome.whole() or outcome
            if whole not in seen:
                seen[whole] = conversations.setdefault(tuple(map(_step, outcome.steps)), len(conversations))
            number, at = seen[whole], parting(first, outcome)
            parts = None if at is None else outcome.place(at)
        text = outcome.text if outcome.verdict in BROKEN | {SUITE_ERROR} else ""
        made.setdefault((outcome.verdict, outcome.reason, number, parts, text), []).append(name)
    return [
        _without_defaults({"endpoints": names, **dict(zip(SHARED, key, strict=True))}) for key, names in made.items()
    ]


def _without_defaults(outcome: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in outcome.items() if value != "" and value is not None}


def _step(step: Step) -> tuple[str, ...]:
    return step.on, shown(step.sent), shown(step.got), step.note
