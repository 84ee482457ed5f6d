"""Conversations that do not replay on kvref: rows of a list for SQLite and one for InnoDB, with a class and a reason.

The list is strict: a listed conversation that does replay fails the run, and so does a row that matches none.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from kvref.errors import SuiteError
from kvref_conformance import corpus
from kvref_conformance.data.tables import rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

SQLITE: Final = "not_replayed.toml"
INNODB: Final = "not_replayed_innodb.toml"
INNODB_TARGETS: Final = ("kvref-mysql-8.0", "kvref-mariadb", "kvref-mysql-9.7")
# Of the servers that kvref can be compared with.
VERSIONS: Final = ("8.0.33", "5.6.14")
CRASH: Final = "crash"
RACE: Final = "race"
LATER: Final = "later"
CLASSES: Final[Mapping[str, str]] = {
    CRASH: "the plugin, or the whole server, ends; kvref continues. The part before that replays",
    "uninitialised": "the plugin answers uninitialized memory",
    "storage-bytes": "the plugin shows or writes InnoDB's own bytes of a type, which SQL does not store",
    "own-process": "the answer describes the plugin's own process or libraries",
    "no-sqlite-form": "the setup, or the SQL that runs between the commands, has no equivalent in SQLite",
    "sql-acts": "SQL applies to a row what the plugin bypasses: triggers, CHECK, AUTO_INCREMENT, generated columns",
    "sql-refuses": "the plugin stores values that SQL rejects: malformed text, and values out of range of the type",
    "sql-locks": "kvref is a SQL client: it waits for table locks, and keeps no table open",
    "decided": "the plugin leaves a transaction open without end, which kvref ends",
    "not-served": "kvref refuses such a table",
    "other-database": "the database rejects the tables, or its SQL has another result",
    RACE: "a race with several possible results; these may replay",
    LATER: "the feature is not implemented; these are not run",
}


# `class` is not a name of Python.
_Entry = TypedDict(
    "_Entry",
    {
        "conversations": tuple[str, ...],
        "class": str,
        "reason": str,
        "versions": NotRequired[tuple[str, ...]],
        "targets": NotRequired[tuple[str, ...]],
    },
)


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Args:
        conversations: citations or globs of them, `core:range-09?`.
        versions: recorded versions it holds for; empty: all.
        cause: one of CLASSES.
        reason: what does not replay, and why.
        targets: names of the targets it holds for; empty: all that the list is of.
    """

    conversations: tuple[str, ...]
    versions: tuple[str, ...]
    cause: str
    reason: str
    targets: tuple[str, ...] = ()

    def fits(self, citation: str, version: str) -> bool:
        """Return whether it lists a conversation for a version."""
        return version in (self.versions or (version,)) and any(
            fnmatchcase(citation, glob) for glob in self.conversations
        )


def load(target: str = "") -> tuple[Row, ...]:
    """Load a list of the package.

    Args:
        target: name of kvref over a SQL server; empty: kvref over SQLite.

    Raises:
        SuiteError: as `parse`.
    """
    return _of(_list(INNODB if target else SQLITE), target)


def _list(name: str) -> tuple[Row, ...]:
    return parse(files(__package__).joinpath(name).read_text(encoding="utf-8"), name)


def parse(text: str, name: str = SQLITE) -> tuple[Row, ...]:
    """Read a list.

    Args:
        text: TOML.
        name: of its file, for errors.

    Raises:
        SuiteError: as `tables.rows_of`; or a row of an unknown class.
    """
    return tuple(_row(entry, name) for entry in rows_of(text, name, "row", _Entry))


def find(rows: Iterable[Row], citation: str, version: str) -> Row | None:
    """Return the row that lists a conversation for a version, None where none does."""
    return next((row for row in rows if row.fits(citation, version)), None)


def idle(rows: Iterable[Row], recorded: Collection[tuple[str, str]]) -> list[str]:
    """Return the globs that fit nothing.

    Args:
        rows: of the list.
        recorded: every pair of citation and version there is.
    """
    return [
        f"{glob} ({version or 'any version'})"
        for row in rows
        for version in row.versions or ("",)
        for glob in row.conversations
        if not any(fnmatchcase(citation, glob) and version in {"", v} for citation, v in recorded)
    ]


def page() -> str:
    """Return the section of README.md that counts and names what is listed, as Markdown."""
    return _section(_list(SQLITE), [""])


def innodb_page() -> str:
    """Return the same of kvref over InnoDB, counted by target."""
    return _section(_list(INNODB), INNODB_TARGETS)


def _section(rows: Sequence[Row], listed_for: Sequence[str]) -> str:
    heads = ["set", "version", "recorded"]
    for target in listed_for:
        heads += [f"replay {target}".strip(), "listed"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in corpus.SETS:
        for version in VERSIONS:
            citations = [f"{name}:{key}" for key, each in corpus.load(name).items() if version in each.versions()]
            cells = [name, version, str(len(citations))]
            for target in listed_for:
                of_target = _of(rows, target)
                listed = sum(find(of_target, citation, version) is not None for citation in citations)
                cells += [str(len(citations) - listed), str(listed)]
            lines.append(f"| {' | '.join(cells)} |")
    for cause, meaning in CLASSES.items():
        found = [_line(row) for row in rows if row.cause == cause]
        lines += ["", f"**{cause}**: {meaning}.", "", *found] if found else []
    return "\n".join(lines) + "\n"


def _of(rows: Iterable[Row], target: str) -> tuple[Row, ...]:
    return tuple(row for row in rows if not row.targets or target in row.targets)


def _line(row: Row) -> str:
    only = f" ({', '.join((*row.versions, *row.targets))})" if row.versions or row.targets else ""
    return f"* `{'`, `'.join(row.conversations)}`{only}: {row.reason}"


def _row(entry: Mapping[str, Any], name: str) -> Row:
    if entry["class"] not in CLASSES:
        raise SuiteError(f"{name}: no class {entry['class']!r}: choose one of {', '.join(CLASSES)}")
    versions, targets = (tuple(entry.get(field, ())) for field in ("versions", "targets"))
    return Row(tuple(entry["conversations"]), versions, entry["class"], entry["reason"], targets)
