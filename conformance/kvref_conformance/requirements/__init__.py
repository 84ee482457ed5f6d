"""The catalogue of requirements: one TOML file a chapter, strict to load, numbers never reused.

A requirement is one sentence with one obligation. What it applies to is a list of profiles; how an endpoint is known to
break it stands in `kvref_conformance.deviations`, never here.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref_conformance.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS: Final = ("MUST", "SHOULD", "MAY", "QUIRK")
ID: Final = re.compile(r"KV-[A-Z]+-\d{3}")
# Where a recording lies: transcripts/<set>.jsonl, or a conversation held with that release.
EVIDENCE: Final = re.compile(r"(core|columns|tx|binary):[a-z]+-\d{3}|live:[a-z]+-[\d.]+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One obligation.

    Args:
        id: KV-AREA-NNN.
        chapter: the file it stands in.
        title: a few words for tables.
        statement: the sentence; one obligation.
        level: one of LEVELS.
        profiles: names of the profiles it applies to; ("*",) is all of them.
        sources: manual sections, articles, functions, bug numbers that state it.
        evidence: recordings that show it kept or broken.
    """

    id: str
    chapter: str
    title: str
    statement: str
    level: str
    profiles: tuple[str, ...]
    sources: tuple[str, ...]
    evidence: tuple[str, ...]

    def applies_to(self, profile: str) -> bool:
        """Tell whether the requirement applies to the profile of that name."""
        return self.profiles == ("*",) or profile in self.profiles

    def __str__(self) -> str:
        return f"{self.id} [{self.level}] {self.statement}"


@cache
def load() -> Mapping[str, Requirement]:
    """Load the catalogue by id.

    Raises:
        SuiteError: as `parse`.
    """
    texts = {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for entry in sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }
    return parse(texts)


def parse(texts: Mapping[str, str]) -> dict[str, Requirement]:
    """Read requirement files.

    Args:
        texts: TOML text by chapter.

    Raises:
        SuiteError: an id that stands in two files or is malformed, a field that is missing, unknown or empty, an
            unknown level or profile, evidence that names no recording. (The same id twice in one file is no TOML.)
    """
    catalogue: dict[str, Requirement] = {}
    for chapter, text in texts.items():
        try:
            rows = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SuiteError(f"requirements/{chapter}.toml: {error}") from error
        for identifier, row in rows.items():
            if identifier in catalogue:
                raise SuiteError(f"{identifier} stands in {catalogue[identifier].chapter}.toml and in {chapter}.toml")
            catalogue[identifier] = _requirement(chapter, identifier, row)
    return catalogue


def _requirement(chapter: str, identifier: str, row: dict[str, Any]) -> Requirement:
    where = f"requirements/{chapter}.toml, {identifier}"
    if not ID.fullmatch(identifier):
        raise SuiteError(f"{where}: an id looks like KV-AREA-NNN")
    wanted = {field.name for field in fields(Requirement)} - {"id", "chapter"}
    if wanted != row.keys():
        raise SuiteError(f"{where}: fields {sorted(wanted ^ row.keys())} are missing or unknown")
    for name in wanted:
        kind = str if name in {"title", "statement", "level"} else list
        if not row[name] or not isinstance(row[name], kind):
            raise SuiteError(f"{where}: {name} must be a {kind.__name__} that is not empty")
    if row["level"] not in LEVELS:
        raise SuiteError(f"{where}: level {row['level']!r} is none of {', '.join(LEVELS)}")
    if unknown := set(row["profiles"]) - {"*", *profiles.names()}:
        raise SuiteError(f"{where}: no profile {', '.join(sorted(unknown))}")
    for evidence in row["evidence"]:
        if not EVIDENCE.fullmatch(evidence):
            raise SuiteError(f"{where}: evidence {evidence!r} names no recording (core:map-001, live:memcached-1.6.18)")
    lists = {name: tuple(row[name]) for name in ("profiles", "sources", "evidence")}
    return Requirement(identifier, chapter, row["title"], row["statement"], row["level"], **lists)
