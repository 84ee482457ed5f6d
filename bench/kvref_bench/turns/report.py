"""What measurements in turns become: points in one JSON document with their machine, and tables in Markdown."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvref import documents
from kvref_bench.errors import BenchError
from kvref_bench.runs import machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

VERSION: Final = 1

Document = dict[str, Any]
# One measurement: what was measured (server, verb, share of writes), the same in repetitions, and figures; None: not
# known.
Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    name: of a part of the place, or of a figure. title: above it. form: of `format`.
    of: how the figures of repetitions become one; None: a part of the place.
    """

    name: str
    title: str
    form: str = ""
    of: Any = None


def begin(settings: Mapping[str, Any], **more: Any) -> Document:
    """Make a document of this machine and this kvref, without points."""
    # The servers are booted by this Python, from where it finds kvref.
    kvref = subprocess.run([sys.executable, "-m", "kvref", "--version"], capture_output=True, text=True, check=True)
    return {
        "version": VERSION,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.public(machine.machine()),
        "kvref": kvref.stdout.strip(),
        "runtime": machine.runtime(),
        "tool": machine.public(machine.tool(sys.argv)),
        "settings": dict(settings),
        **more,
    }


def write(document: Document, path: Path) -> None:
    """Write a document. Raises BenchError where the file cannot be written."""
    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path, *keys: str) -> Document:
    """Read a document that has one of the lists. Raises BenchError where it has none, or is of another version."""
    try:
        found = documents.read_json(path)
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("version") != VERSION or not any(key in found for key in keys):
        raise BenchError(f"{path} holds no {' or '.join(keys)} of version {VERSION}: measure again")
    return found


def spread(numbers: Sequence[float]) -> dict[str, float]:
    """Return the median, the smallest and the largest of some numbers."""
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers)}


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [f"| {' | '.join(each)} |" for each in (head, *lines)]
    return "\n".join([rows[0], f"|{'---|' * len(head)}", *rows[1:]]) + "\n"


def table(points: Sequence[Point], columns: Sequence[Column]) -> str:
    """Return a line for each place, in the order of the points, with the figures of its repetitions."""
    place = [column.name for column in columns if column.of is None]
    same: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        same.setdefault(tuple(point[name] for name in place), []).append(point)
    lines = [[_cell(column, each) for column in columns] for each in same.values()]
    return grid([column.title for column in columns], lines)


def _cell(column: Column, same: Sequence[Point]) -> str:
    values = [each[column.name] for each in same]
    return "" if None in values else format((column.of or min)(values), column.form)


def markers(name: str) -> tuple[str, str]:
    """Return the lines between which a page has the table of `bench/results/NAME.json`."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def insert(text: str, table: str, name: str) -> str:
    """Put a table between the two markers of a name in a text. Raises BenchError where it has none."""
    first, last = markers(name)
    before, begun, rest = text.partition(first)
    _, ended, after = rest.partition(last)
    if not (begun and ended):
        raise BenchError(f"no place for the table: put a line {first} and a line {last}")
    return f"{before}{first}\n{table}{last}{after}"
