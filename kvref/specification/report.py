"""Read report.jsonl of `kvref conform --report DIR`: every command and notebook that reads a report does so here.

`report.schema.json` describes the lines. A file that does not fit is one error with file, line, value and fix.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import KvrefError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jsonschema import Draft202012Validator

NAME: Final = "report.jsonl"
FORMAT: Final = 1
AGAIN: Final = "run `kvref conform --report DIR` again"
# Verdicts as reports of earlier releases name them.
OLD_VERDICTS: Final = {"not judged": "not-run", "suite error": "suite-error"}
# Of a value in an error.
_MAX_EXCERPT: Final = 60

Line = dict[str, Any]


class ReportError(KvrefError):
    """A file is not a report that this release reads; the text names file, line, value and fix."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that fits `report.schema.json`, with the verdicts named as in this release.

    Args:
        verdicts: the lines between header and footer, one for each case or finding.
        sha256: of the content, after decompression, in hex.
    """

    path: Path
    header: Line
    verdicts: list[Line]
    footer: Line
    sha256: str


def read(path: Path) -> Report:
    """Read report.jsonl, the same in gzip, or its folder.

    Raises:
        ReportError: it cannot be read, was cut off, has another format, or a line does not fit the schema.
    """
    file = path / NAME if path.is_dir() else path
    try:
        content = documents.read_bytes(file)
        lines = documents.json_lines_of(content) if content else []
    except OSError as error:
        raise ReportError(f"{file}: {error.strerror or error}: give {NAME} of `kvref conform --report DIR`") from error
    except DocumentError as error:
        raise ReportError(f"{file}: not a whole report: {error}: {AGAIN}") from error
    try:
        header, *verdicts, footer = _checked(lines)
    except ValueError as error:
        raise ReportError(f"{file}: {error}: {AGAIN}") from error
    return Report(file, header, verdicts, footer, hashlib.sha256(content).hexdigest())


def _checked(lines: list[Any]) -> list[Line]:
    """Return the lines of a report with the verdicts of this release; raises ValueError if they do not fit."""
    if not lines:
        raise ValueError("the file is empty")
    kinds = [line.get("kind") if isinstance(line, dict) else None for line in lines]
    if kinds[0] != "header":
        raise ValueError(f"not a report: line 1 is not a header but {_excerpt(lines[0])}")
    if type(lines[0].get("format")) is not int or lines[0]["format"] != FORMAT:
        raise ValueError(f"line 1: report format {_excerpt(lines[0].get('format'))}, this release reads {FORMAT}")
    if kinds[-1] != "footer" or len(lines) == 1:
        raise ValueError(f"the report was cut off: line {len(lines)}, the last one, is not a footer")
    expected = ["header", *["verdict"] * (len(lines) - 2), "footer"]
    for number, (line, kind) in enumerate(zip(lines, expected, strict=True), 1):
        if fault := _fault(_renamed(line), kind):
            raise ValueError(f"line {number}: {fault}")
    cases = Counter(line["case"] for line in lines[1:-1])
    if twice := [case for case, count in cases.items() if count > 1]:
        number = max(number for number, line in enumerate(lines, 1) if line.get("case") == twice[0])
        raise ValueError(f"line {number}: case {_excerpt(twice[0])} has a verdict before")
    totals = lines[-1]["totals"]
    counted = Counter(line["verdict"] for line in lines[1:-1])
    for word in sorted({*totals, *counted}):
        if counted[word] != totals.get(word, 0):
            text = f"totals.{word}: {totals.get(word, 0)}, but {counted[word]} lines have this verdict"
            raise ValueError(f"line {len(lines)}: {text}")
    return lines


def _renamed(line: Any) -> Any:
    """Return a line with the words of this release in the place of OLD_WORDS; it is changed itself."""
    if isinstance(line, dict):
        if isinstance(line.get("verdict"), str):
            line["verdict"] = OLD_VERDICTS.get(line["verdict"], line["verdict"])
        if isinstance(line.get("totals"), dict):
            line["totals"] = {OLD_VERDICTS.get(word, word): count for word, count in line["totals"].items()}
    return line


def _fault(line: Any, kind: str) -> str:
    """Return where a line does not fit its kind, with the value; "" where it fits."""
    if isinstance(line, dict) and line.get("kind") != kind:
        return f"kind: {_excerpt(line.get('kind'))} is not {_excerpt(kind)}"
    if fault := fault_of(_validator(kind), line):
        return fault
    if kind == "verdict" and not math.isfinite(line["duration"]):
        return f"duration: {line['duration']} is not a number of seconds"
    return ""


def fault_of(validator: Draft202012Validator, value: Any) -> str:
    """Return where decoded JSON does not fit a schema, with the value; "" where it fits."""
    if validator.is_valid(value):  # faster than the search for the best match
        return ""
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - the package is of an extra

    error = best_match(validator.iter_errors(value))
    assert error is not None, "an invalid value has an error"
    path_in_line = error.json_path.removeprefix("$").removeprefix(".")
    where = f"{path_in_line}: " if path_in_line else ""
    expected: Any = error.validator_value
    value = error.instance
    match error.validator:
        case "required":
            return f"{where}no {next(name for name in expected if name not in value)}"
        case "type":
            types = expected if isinstance(expected, str) else " or ".join(expected)
            return f"{where}{_excerpt(value)} is not of type {types}"
        case "enum":
            return f"{where}{_excerpt(value)} is not one of {', '.join(map(str, expected))}"
        case "const":
            return f"{where}{_excerpt(value)} is not {_excerpt(expected)}"
        case _:
            return f"{where}{_excerpt(value)} does not fit {error.validator} {_excerpt(expected)}"


def _excerpt(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}…"


@cache
def _validator(kind: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - the package is of an extra

    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema()["$defs"]})


@cache
def schema() -> Mapping[str, Any]:
    """Return `report.schema.json`, whose `$defs` describe the lines by their kind."""
    found: Mapping[str, Any] = json.loads(files(__package__).joinpath("report.schema.json").read_text(encoding="utf-8"))
    return found
