"""Conversations that do not replay on kvref over SQLite: rows of `not_replayed.toml`, each with a class and a reason.

The list is strict: a conversation that is listed and replays all the same fails the run, as does a row that fits none.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref_conformance import transcripts
from kvref_conformance.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# Of the servers that kvref can be compared with.
VERSIONS: Final = ("8.0.33", "5.6.14")
CRASH: Final = "crash"
RACE: Final = "race"
LATER: Final = "later"
CLASSES: Final[Mapping[str, str]] = {
    CRASH: "the plugin, or the whole server, ends; kvref goes on. What comes before that end replays",
    "uninitialised": "the plugin answers memory that nobody wrote",
    "storage-bytes": "the plugin shows or writes InnoDB's own bytes of a type, which SQLite does not store",
    "own-process": "the answer tells of the plugin's own process or libraries",
    "no-sqlite-form": "the set-up or what SQL does beside the commands has no form in SQLite",
    RACE: "two things happen at the same time and SQLite lets either win; these may replay",
    LATER: "the feature is not built yet; these are not even tried",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Args:
        conversations: citations or globs of them, `core:range-09?`.
        versions: recorded versions it holds for; empty: all.
        cause: one of CLASSES.
        reason: what does not replay, and why.
    """

    conversations: tuple[str, ...]
    versions: tuple[str, ...]
    cause: str
    reason: str

    def fits(self, citation: str, version: str) -> bool:
        """Tell whether it lists a conversation for a version."""
        return version in (self.versions or (version,)) and any(
            fnmatchcase(citation, glob) for glob in self.conversations
        )


def load() -> tuple[Row, ...]:
    """Load the list of the package.

    Raises:
        SuiteError: as `parse`.
    """
    return parse(files(__package__).joinpath("not_replayed.toml").read_text(encoding="utf-8"))


def parse(text: str) -> tuple[Row, ...]:
    """Read the list.

    Raises:
        SuiteError: no TOML; a row with a field missing, unknown or empty, or of an unknown class.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"not_replayed.toml: {error}") from error
    if unknown := table.keys() - {"row"}:
        raise SuiteError(f"not_replayed.toml: unknown {', '.join(sorted(unknown))}; it holds [[row]]")
    return tuple(_row(entry) for entry in table.get("row", []))


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
    rows = load()
    lines = ["| set | version | recorded | replay | listed |", "|---|---|---|---|---|"]
    for name in transcripts.SETS:
        for version in VERSIONS:
            citations = [f"{name}:{key}" for key, each in transcripts.load(name).items() if version in each.versions()]
            listed = sum(find(rows, citation, version) is not None for citation in citations)
            lines.append(f"| {name} | {version} | {len(citations)} | {len(citations) - listed} | {listed} |")
    for cause, meaning in CLASSES.items():
        lines += ["", f"**{cause}**: {meaning}.", ""]
        lines += [_line(row) for row in rows if row.cause == cause]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    only = f" ({', '.join(row.versions)})" if row.versions else ""
    return f"* `{'`, `'.join(row.conversations)}`{only}: {row.reason}"


def _row(entry: Mapping[str, Any]) -> Row:
    fields = entry.keys() - {"versions"}
    if fields != {"conversations", "class", "reason"} or not all(entry.values()):
        raise SuiteError(f"not_replayed.toml: a row has conversations, class, reason and maybe versions: {dict(entry)}")
    if entry["class"] not in CLASSES:
        raise SuiteError(f"not_replayed.toml: no class {entry['class']!r}: choose one of {', '.join(CLASSES)}")
    return Row(tuple(entry["conversations"]), tuple(entry.get("versions", ())), entry["class"], entry["reason"])
