"""The table of a whole run: kept as JSON, compared with another run, and shown in the documentation with its notes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from kvref_conformance.data.marks import between
from kvref_conformance.data.tables import rows
from kvref_conformance.interop.play import CANNOT, NOT_RUN, WORKS, WRONG, Cell, Played
from kvref_conformance.interop.rows import HERE, clients, features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATH: Final = HERE / "result.json"
# The endpoints by name, as `kvref target list` has them, and their heads.
ENDPOINTS: Final = {"kvref-sqlite": "kvref over SQLite", "mysql-8.0-plugin": "plugin", "memcached": "memcached"}
MARKS: Final = ("<!-- clients: written by kvref interop -->\n", "<!-- end of clients -->\n")
SIGNS: Final = {WORKS: "✓", WRONG: "✗", CANNOT: "-", NOT_RUN: "?"}
_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a run said.

    date: ISO date.
    endpoints: version by name.
    played: by client and endpoint.
    machine: versions of what is neither client nor endpoint, by name.
    """

    date: str
    endpoints: dict[str, str]
    played: dict[str, dict[str, Played]]
    machine: dict[str, str]

    def as_json(self) -> str:
        """Return the text of result.json, a line for each client and endpoint."""
        rows = ",\n".join(
            json.dumps([client, endpoint, _row(played)], ensure_ascii=False)
            for client, by_endpoint in self.played.items()
            for endpoint, played in by_endpoint.items()
        )
        head = {"date": self.date, "endpoints": self.endpoints, "machine": self.machine}
        return f'{json.dumps(head)[:-1]}, "played": [\n{rows}\n]}}\n'


def parse(text: str) -> Matrix:
    """Read the text of result.json."""
    row: dict[str, Any] = json.loads(text)
    played: dict[str, dict[str, Played]] = {}
    for client, endpoint, one in row["played"]:
        cells = {key: Cell(*cell) for key, cell in one["cells"].items()}
        played.setdefault(client, {})[endpoint] = Played(one["version"], one["runtime"], cells)
    return Matrix(row["date"], row["endpoints"], played, row["machine"])


def _row(played: Played) -> dict[str, Any]:
    # A cell that works has nothing more to say.
    cells = {key: [cell.outcome, cell.why] if cell.why else [cell.outcome] for key, cell in played.cells.items()}
    return {"version": played.version, "runtime": played.runtime, "cells": cells}


def recorded() -> Matrix:
    """Return the last full run that was written down."""
    return parse(PATH.read_text(encoding="utf-8"))


def differences(matrix: Matrix, record: Matrix) -> list[str]:
    """Say of each cell of a run, full or not, that is otherwise than recorded what it is now and was."""
    return [
        line
        for client, by_endpoint in matrix.played.items()
        for endpoint, played in by_endpoint.items()
        for line in unlike(client, endpoint, played, record)
    ]


def unlike(client: str, endpoint: str, played: Played, record: Matrix) -> list[str]:
    """Say so of the cells of one client at one endpoint."""
    before = record.played.get(client, {}).get(endpoint, Played()).cells
    found = []
    for feature, cell in played.cells.items():
        was = before.get(feature)
        if was is None or was.outcome != cell.outcome:
            text = f"recorded: {was.outcome} {was.why}".rstrip() if was else "not recorded"
            found.append(f"{client}, {endpoint}, {feature}: {cell.outcome} {cell.why} ({text})")
    return found


@dataclass(frozen=True, slots=True)
class Note:
    """Why cells are wrong; see notes.toml. Names are globs."""

    clients: tuple[str, ...]
    endpoints: tuple[str, ...]
    features: tuple[str, ...]
    text: str

    def fits(self, client: str, endpoint: str, feature: str) -> bool:
        """Return whether it is about this cell."""
        pairs = ((client, self.clients), (endpoint, self.endpoints), (feature, self.features))
        return all(any(fnmatchcase(name, glob) for glob in globs) for name, globs in pairs)


class _Note(TypedDict):
    features: tuple[str, ...]
    text: str
    clients: NotRequired[tuple[str, ...]]
    endpoints: NotRequired[tuple[str, ...]]


def notes() -> list[Note]:
    """Return the notes in their order."""
    return [
        Note(
            tuple(row.get("clients", ("*",))),
            tuple(row.get("endpoints", ("*",))),
            tuple(row["features"]),
            " ".join(row["text"].split()),
        )
        for row in rows(HERE / "notes.toml", "note", _Note)
    ]


def unexplained(matrix: Matrix, known: Sequence[Note]) -> list[str]:
    """Name the cells that are wrong without a note, and the notes that are about no wrong cell."""
    wrong = [
        (client, endpoint, feature)
        for client, by_endpoint in matrix.played.items()
        for endpoint, played in by_endpoint.items()
        for feature, cell in played.cells.items()
        if cell.outcome == WRONG
    ]
    without = [", ".join(cell) for cell in wrong if _number(cell, known) is None]
    used = {_number(cell, known) for cell in wrong}
    return without + [f"idle note: {note.text}" for number, note in enumerate(known) if number not in used]


def _number(cell: tuple[str, str, str], known: Sequence[Note]) -> int | None:
    return next((number for number, note in enumerate(known) if note.fits(*cell)), None)


def table(matrix: Matrix, known: Sequence[Note]) -> str:
    """Return the table of the documentation, its legend and its notes."""
    columns = features()
    names = " / ".join(f"{head} {matrix.endpoints[name]}" for name, head in ENDPOINTS.items())
    lines = [
        f"{matrix.date}. One sign: the same result with all three; three signs: {names}.",
        "✓ works, ✗ otherwise, - the client has no such call.",
        "",
        f"| client | {' | '.join(each.title for each in columns.values())} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for client in clients().values():
        cells = [_cell(matrix.played[client.id], client.id, feature, known) for feature in columns]
        lines.append(f"| {client.title} | {' | '.join(cells)} |")
    lines += ["", *(f"{number}. {note.text}" for number, note in enumerate(known, 1)), "", _versions(matrix)]
    return "\n".join(lines) + "\n"


def _cell(played: Mapping[str, Played], client: str, feature: str, known: Sequence[Note]) -> str:
    signs = []
    for endpoint in ENDPOINTS:
        cell = played[endpoint].cells[feature]
        number = _number((client, endpoint, feature), known) if cell.outcome == WRONG else None
        signs.append(SIGNS[cell.outcome] + ("" if number is None else str(number + 1).translate(_RAISED)))
    return signs[0] if len(set(signs)) == 1 else " ".join(signs)


def _versions(matrix: Matrix) -> str:
    by_runtime: dict[str, list[str]] = {}
    for client in clients().values():
        one = next(iter(matrix.played[client.id].values()))
        language = one.runtime.split()[0]
        library = f"{client.name.removeprefix(language).strip()} {one.version}"
        names = by_runtime.setdefault(one.runtime, [])
        names += [library] if library not in names else []
    parts = [f"{runtime}: {', '.join(names)}" for runtime, names in by_runtime.items()]
    parts += [f"{name} {version}" for name, version in matrix.machine.items()]
    return f"Versions: {'; '.join(parts)}."


def filled(page: str, matrix: Matrix, known: Sequence[Note]) -> str:
    """Return a page with the table between MARKS.

    Raises:
        SuiteError: a mark is missing.
    """
    return between(page, MARKS, table(matrix, known))
