"""The catalogue of requirements: one TOML file a chapter, strict to load, numbers never reused.

A requirement is one sentence with one obligation. What it applies to is a list of profiles; how an endpoint is known to
break it is in `kvref.specification.deviations`, never here. `kvref_conformance.spec` shows the catalogue to people.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEVELS: Final = ("MUST", "SHOULD", "MAY", "QUIRK")
# How a terminal shows a level (rich).
STYLES: Final = {"MUST": "bold green", "SHOULD": "green", "MAY": "cyan", "QUIRK": "bold yellow"}
ID: Final = re.compile(r"KV-[A-Z]+-\d{3}")
# Where a recording lies: transcripts/<set>.jsonl, or a conversation run with that release.
EVIDENCE: Final = re.compile(r"((core|columns|tx|more):[a-z]+|binary:bin-[a-z]+)-\d{3}|live:[a-z]+-[\d.]+")
# The order of the chapters: from the protocol to what needs tables and configuration.
CHAPTERS: Final = (
    "storage",
    "retrieval",
    "delete_flush",
    "arithmetic",
    "expiry",
    "cas",
    "multiget",
    "connection",
    "between",
    "limits",
    "stats",
    "crawler",
    "touch",
    "meta_get",
    "meta_set",
    "meta_delete",
    "meta_arithmetic",
    "meta_commands",
    "mapping",
    "delimiter",
    "mapped_multiget",
    "bind",
    "default_mapping",
    "ranges",
    "behind_sql",
    "columns",
    "separator",
    "key_column",
    "value_column",
    "optional_columns",
    "nulls",
    "table",
    "order",
    "containers",
    "configuration",
    "reload",
    "write_batch",
    "read_batch",
    "isolation",
    "locks",
    "idle_commit",
    "binlog",
    "batch_settings",
    "cache_policies",
    "binary_frames",
    "binary_lengths",
    "binary_get",
    "binary_store",
    "binary_quiet",
    "binary_commands",
    "binary_arithmetic",
    "binary_mapping",
    "binary_ranges",
    "binary_stat",
    "concurrency",
    "commands",
    "schemas",
    "arguments",
)
TEXTS: Final = ("title", "statement", "level")
LISTS: Final = ("profiles", "sources", "evidence")
OPTIONAL_LISTS: Final = ("contradicts", "tests")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One obligation.

    Args:
        id: KV-AREA-NNN.
        level: one of LEVELS.
        profiles: names of the profiles it applies to; ("*",) is all of them.
        sources: manual sections, articles, functions, bug numbers that state it.
        evidence: recordings of endpoints that meet or violate it.
        contradicts: of a QUIRK: the manual section, article, protocol sentence, function or SQL promise against it.
        tests: pytest ids of tests outside the suite that check it.
        untestable: why neither a case nor a test can check it; empty if one does.
        instead: statements by profile, for an edition of one: where other profiles need a narrower condition or allow
            more, and this profile has one rule.
    """

    id: str
    chapter: str
    title: str
    statement: str
    level: str
    profiles: tuple[str, ...]
    sources: tuple[str, ...]
    evidence: tuple[str, ...]
    contradicts: tuple[str, ...]
    tests: tuple[str, ...]
    untestable: str
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)

    def statement_for(self, profile: str) -> str:
        """Return the statement as the edition of a profile has it."""
        return self.instead.get(profile, self.statement)

    @property
    def area(self) -> str:
        """Return the middle of the id: KV-MAP-001 is in MAP."""
        return self.id.split("-")[1]

    def applies_to(self, profile: str) -> bool:
        return self.profiles == ("*",) or profile in self.profiles

    def __str__(self) -> str:
        return f"{self.id} [{self.level}] {self.statement}"


@dataclass(frozen=True, slots=True)
class Chapter:
    """One file of the catalogue; `about` is one or two sentences for a reader who begins there."""

    name: str
    title: str
    about: str
    requirements: tuple[Requirement, ...]


@cache
def load() -> Mapping[str, Requirement]:
    """Return the catalogue by id; raises as `parse`."""
    return {requirement.id: requirement for chapter in chapters() for requirement in chapter.requirements}


@cache
def chapters() -> tuple[Chapter, ...]:
    """Return the catalogue by chapter, in the order of CHAPTERS; raises as `parse`."""
    folder = files(__package__)
    found = {entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")}
    if found != set(CHAPTERS):
        raise SuiteError(f"requirements: files and CHAPTERS differ in {', '.join(sorted(found ^ set(CHAPTERS)))}")
    return parse({name: folder.joinpath(f"{name}.toml").read_text(encoding="utf-8") for name in CHAPTERS})


@cache
def digest() -> str:
    """Return the SHA-256 of the catalogue's files, in the order of CHAPTERS."""
    folder = files(__package__)
    texts = (folder.joinpath(f"{name}.toml").read_bytes() for name in CHAPTERS)
    return hashlib.sha256(b"".join(texts)).hexdigest()


def parse(texts: Mapping[str, str]) -> tuple[Chapter, ...]:
    """Return the chapters of TOML texts by name. Raises SuiteError for the first fault."""
    home: dict[str, str] = {}
    read = []
    for name, text in texts.items():
        table = toml_of(f"requirements/{name}.toml", text)
        heading = {key: table.pop(key, None) for key in ("title", "about")}
        if not all(isinstance(value, str) and value for value in heading.values()):
            raise SuiteError(f"requirements/{name}.toml: begins with `title` and `about`")
        for identifier in table:
            if identifier in home:
                raise SuiteError(f"{identifier} is in both {home[identifier]}.toml and {name}.toml")
            home[identifier] = name
        rows = tuple(_requirement(name, identifier, row) for identifier, row in table.items())
        read.append(Chapter(name, heading["title"], heading["about"], rows))
    return tuple(read)


def toml_of(where: str, text: str) -> dict[str, Any]:
    """Return the table of a TOML text; raises SuiteError, which names the file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{where}: {error}") from error


def check_evidence(where: str, evidence: Iterable[str]) -> None:
    """Raise SuiteError for evidence that does not name a recording."""
    for each in evidence:
        if not EVIDENCE.fullmatch(each):
            raise SuiteError(f"{where}: evidence {each!r} names no recording (core:map-001, live:memcached-1.6.18)")


def _requirement(chapter: str, identifier: str, row: dict[str, Any]) -> Requirement:
    where = f"requirements/{chapter}.toml, {identifier}"
    if not ID.fullmatch(identifier):
        raise SuiteError(f"{where}: an id looks like KV-AREA-NNN")
    needed = {*TEXTS, *LISTS}
    optional = {*OPTIONAL_LISTS, "untestable", "instead"}
    if not needed <= row.keys() <= needed | optional:
        odd = (needed - row.keys()) | (row.keys() - needed - optional)
        raise SuiteError(f"{where}: fields {sorted(odd)} are missing or unknown")
    for name, value in row.items():
        kind = list if name in {*LISTS, *OPTIONAL_LISTS} else dict if name == "instead" else str
        if not value or not isinstance(value, kind):
            raise SuiteError(f"{where}: {name} must be a {kind.__name__} that is not empty")
    if row["level"] not in LEVELS:
        raise SuiteError(f"{where}: level {row['level']!r} is none of {', '.join(LEVELS)}")
    instead = row.get("instead", {})
    if unknown := {*row["profiles"], *instead} - {"*", *profiles.names()}:
        raise SuiteError(f"{where}: no profile {', '.join(sorted(unknown))}")
    if (row["level"] == "QUIRK") != ("contradicts" in row):
        raise SuiteError(f"{where}: a QUIRK, and nothing else, names the text that it `contradicts`")
    check_evidence(where, row["evidence"])
    given: dict[str, Any] = {name: tuple(row.get(name, ())) for name in (*LISTS, *OPTIONAL_LISTS)}
    given |= {name: row.get(name, "") for name in (*TEXTS, "untestable")}
    return Requirement(identifier, chapter, instead=instead, **given)
