"""The edition of the specification for one profile: what an implementer of that profile reads, and its JSON.

It has the requirements that apply to the profile with exchanges of their own cases, never a recording of another
version. The recordings of the profile's version are an appendix.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.specification import conformance_levels, deviations, normative, requirements
from kvref_conformance import __version__, corpus
from kvref_conformance.cases import all_cases
from kvref_conformance.export import cases as export
from kvref_conformance.judging.conversation import shown
from kvref_conformance.spec import grammar
from kvref_conformance.spec import normative as tables
from kvref_conformance.spec.entry import VERSIONS
from kvref_conformance.spec.example import example
from kvref_conformance.steps import (
    AwaitReply,
    AwaitSql,
    By,
    Disconnect,
    Eventually,
    Pause,
    Reload,
    Send,
    Sql,
    StartRequest,
    StartSql,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kvref.profiles import Profile
    from kvref.specification.requirements import Chapter, Requirement
    from kvref_conformance.case import Case
    from kvref_conformance.spec.example import Example
    from kvref_conformance.steps import Step

FORMAT: Final = 2
# Chapters of the normative tables in the JSON, by the name of their data.
TABLES: Final = (
    "front_matter",
    "lifecycles",
    "replies",
    "success",
    "binary",
    "data_model",
    "defaults",
    "states",
    "statistics",
)
# A longer exchange, in characters, is in the appendix of its chapter; a case that is longer as JSON is left out.
MAX_EXCHANGE: Final = 122
MAX_CASE: Final = 40_000


@dataclass(frozen=True, slots=True)
class Obligation:
    """A requirement as the reader of one profile sees it.

    Args:
        requirement: it.
        deviates: how the endpoint of the profile is known to break it; empty if it keeps it.
        case: ID of the case whose exchange is shown; empty without one.
        exchange: the set-up and the steps of that case in lines.
    """

    requirement: Requirement
    deviates: str
    case: str
    exchange: tuple[str, ...]

    def is_short(self) -> bool:
        """Return whether the exchange is on the page of its chapter."""
        return sum(map(len, self.exchange)) <= MAX_EXCHANGE


def obligations(chapter: Chapter, profile: str) -> tuple[Obligation, ...]:
    """Return the requirements of a chapter that apply to a profile.

    Args:
        chapter: of the catalogue.
        profile: name of the profile.
    """
    return tuple(_obligation(each, profile) for each in chapter.requirements if each.applies_to(profile))


def _obligation(requirement: Requirement, profile: str) -> Obligation:
    facts = profiles.load(profile)
    cases = [case for case in _cases().get(requirement.id, ()) if _applies(case, facts)]
    rows = deviations.load(profile).rows
    known = [rows[name] for name in (requirement.id, *(case.id for case in cases)) if name in rows]
    deviates = "; ".join(dict.fromkeys(row.reason for row in known))
    exchanges = [(case.id, tuple(_exchange(case, facts))) for case in cases if case.steps]
    name, lines = min(exchanges, key=lambda each: sum(map(len, each[1])), default=("", ()))
    return Obligation(requirement, deviates, name, lines)


@cache
def _cases() -> Mapping[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        for name in case.requirements:
            found.setdefault(name, []).append(case)
    return found


def _applies(case: Case, profile: Profile) -> bool:
    catalogue = requirements.load()
    applies = all(catalogue[name].applies_to(profile.name) for name in case.requirements)
    return applies and (profile.flag("mapping.supported") or not case.needs_mappings())


def _exchange(case: Case, profile: Profile) -> Iterator[str]:
    """Yield the set-up of a case and its steps in lines: `>` is sent, `<` is the reply."""
    if case.shape is not None:
        shape = case.shape
        columns = (shape.key, shape.values, shape.flags, shape.cas, shape.expiry, shape.index)
        cells = ", ".join("NULL" if each is None else each for each in columns)
        yield f"table {{t}} ({shape.columns}), mapping {{m}}: {cells}"
    if case.setup is not None:
        yield f"configuration {_setup(case)}"
    if case.settings:
        yield f"settings {', '.join(f'{name}={value}' for name, value in case.settings.items())}"
    if not case.bind and profile.flag("mapping.supported"):
        yield "no connection begins with `bind`"
    for step in case.steps:
        yield from _lines(step, profile)


def _setup(case: Case) -> str:
    setup = case.setup
    assert setup is not None
    parts = [f"table_map_delimiter {setup.delimiter!r}", f"separator {setup.separator!r}"]
    parts += [f"{name} {value!r}" for name, value in setup.others]
    parts += ["policies " + " ".join(row) for row in setup.policies if set(row[1:]) != {"innodb_only"}]
    parts += ["containers " + ", ".join(f"{name}: {table}" for name, table in setup.containers or ())] * bool(
        setup.containers
    )
    return ", ".join(parts)


def _lines(step: Step, profile: Profile) -> Iterator[str]:
    match step:
        case Send():
            yield f"{_on(step.on)}> {shown(''.join(step.packets))}"
            yield f"{_on(step.on)}< {_allowed(step.allow, profile)}{' (closes)' if step.closes else ''}"
        case StartRequest():
            yield f"{_on(step.on)}> {shown(''.join(step.packets))} (waits)"
        case AwaitReply():
            yield f"{_on(step.on)}< {_allowed(step.allow, profile)}"
        case Sql():
            rows = "" if step.rows is None else f": {', '.join(map(repr, step.rows)) or 'no row'}"
            yield f"SQL {step.on}{' ' if step.on else ''}{step.statement}{rows}{' (refused)' if step.refused else ''}"
        case StartSql():
            yield f"SQL {step.on} {step.statement} (waits)"
        case AwaitSql():
            yield f"SQL {step.on} ends{' (refused)' if step.refused else ''}"
        case Eventually():
            yield from _lines(step.step, profile)
        case Disconnect():
            yield f"{_on(step.on)}(connection closed by the client)"
        case Reload():
            yield "(the configuration is read again)"
        case Pause():
            yield f"(pause of {step.seconds:g} s)"


def _on(name: str) -> str:
    """Return the name of a connection in front of a line; the first one needs none."""
    return "" if name == "a" else f"{name} "


def _allowed(allow: tuple[str, ...] | By, profile: Profile) -> str:
    texts = allow.of(profile) if isinstance(allow, By) else allow
    return " or ".join(shown(text) or "(no reply)" for text in texts)


def pages(profile: str) -> Mapping[str, str]:
    """Return the Markdown of an edition by file name: an index, a page a chapter and a table, and the appendices.

    Args:
        profile: name of the profile.
    """
    made = {f"{each.name}.md": f"# {each.title}\n\n{each.about}\n\n{each.body}" for each in tables.chapters(profile)}
    rows = []
    for chapter in requirements.chapters():
        found = obligations(chapter, profile)
        if found:
            made[f"{chapter.name}.md"] = _page(chapter, found, profile)
            level = conformance_levels.of_chapter(chapter.name)
            longer = _exchanges(chapter, found)
            if longer:
                made[_appendix(chapter)] = longer
            linked = f"[exchanges]({_appendix(chapter)})" if longer else ""
            rows.append((f"[{chapter.title}]({chapter.name}.md)", level, str(len(found)), linked))
    made["recordings.md"] = _recordings(profile)
    index = [f"# memcached over SQL tables: the profile {profile}", f"Edition of kvref {__version__}."]
    index += [
        "## Tables",
        tables.table(
            ("chapter", "subject"), [(f"[{t.title}]({t.name}.md)", t.about) for t in tables.chapters(profile)]
        ),
    ]
    index += [
        "## Requirements",
        tables.table(("chapter", "level of conformance", "requirements", "longer exchanges"), rows),
    ]
    index += [
        "Appendices: the longer exchanges of each chapter, and [recordings of the endpoint](recordings.md).",
        "[Front matter](front_matter.md) has scope, terms, conformance and notation: read it first.",
    ]
    return {"index.md": "\n\n".join(index) + "\n", **made}


def _page(chapter: Chapter, found: tuple[Obligation, ...], profile: str) -> str:
    parts = [f"# {chapter.title}", chapter.about]
    shown_at: dict[tuple[str, ...], str] = {}
    for each in found:
        requirement = each.requirement
        longer = f" [Exchange]({_appendix(chapter)}#{requirement.id})" if each.exchange and not each.is_short() else ""
        name = f'<a id="{requirement.id}"></a>**{requirement.id}**'
        parts.append(f"{name} ({requirement.level}). {requirement.statement_for(profile)}{longer}")
        if each.deviates:
            parts.append(f"Known deviation: {each.deviates}.")
        if each.exchange and each.is_short():
            first = shown_at.setdefault(each.exchange, requirement.id)
            parts.append(_block(each.exchange) if first == requirement.id else f"Exchange: that of {first}.")
    return "\n\n".join(parts) + "\n"


def _block(lines: Iterable[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _appendix(chapter: Chapter) -> str:
    return f"exchanges/{chapter.name}.md"


def _exchanges(chapter: Chapter, found: tuple[Obligation, ...]) -> str:
    """Return the exchanges that are too long for the page of a chapter, with links back to it; empty without any."""
    by_exchange: dict[tuple[str, ...], list[str]] = {}
    for each in found:
        if each.exchange and not each.is_short():
            by_exchange.setdefault(each.exchange, []).append(each.requirement.id)
    parts = []
    for lines, names in by_exchange.items():
        linked = (f'<a id="{name}"></a>[{name}](../{chapter.name}.md#{name})' for name in names)
        parts.append(f"## {', '.join(linked)}\n\n{_block(lines)}")
    return "\n\n".join([f"# {chapter.title}: longer exchanges", *parts]) + "\n" if parts else ""


def _recordings(profile: str) -> str:
    """Return the evidence of the profile's version: each recording once, with the replies of that version alone."""
    version = VERSIONS[profile]
    if not version:
        return "# Recordings\n\nThis profile has none of its own: it follows those of the endpoints that it extends.\n"
    listed = [each for chapter in requirements.chapters() for each in chapter.requirements]
    applying = [each for each in listed if each.applies_to(profile)]
    cited = dict.fromkeys(name for each in applying for name in each.evidence if not name.startswith("live:"))
    found = [example(name, corpus.find(name)) for name in cited]
    parts = [_recording(each, version) for each in found if version in each.versions]
    return "\n\n".join([f"# Recordings of {version}", *parts]) + "\n"


def _recording(found: Example, version: str) -> str:
    lines = [f"given {line}" for line in found.given]
    for step in found.exchanges:
        lines.append(f"{step.on} > {step.sent}")
        lines += [f"< {each.text}" for each in step.answers if version in (each.versions or found.versions)]
    return f"## {found.citation}: {found.title}\n\n{_block(lines)}"


def as_json(profile: str) -> str:
    """Return the edition as JSON, as `edition.schema.json` has it.

    Args:
        profile: name of the profile.
    """
    literal = json.loads(export.as_json(requirements.load(), profile))
    made = {
        "format": FORMAT,
        "version": __version__,
        "profile": profile,
        "catalogue": requirements.digest(),
        "levels": [
            {"name": each.name, "builds_on": list(each.builds_on), "chapters": list(each.chapters)}
            for each in conformance_levels.load().values()
        ],
        "chapters": [_chapter(chapter, profile, literal["cases"]) for chapter in requirements.chapters()],
        "mappings": literal["mappings"],
        "columns": literal["columns"],
        "grammar": grammar.of_profile(profile),
        **{name: _table(name, profile) for name in TABLES},
    }
    return json.dumps(made, indent=1) + "\n"


def _table(name: str, profile: str) -> dict[str, Any]:
    """Return a normative table of a profile, without the tests of kvref that show a transition."""
    made = normative.of_profile(name, profile)
    for machine in made.get("machine", ()):
        for row in machine["transitions"]:
            row["proof"] = [each for each in row["proof"] if "::" not in each]
    return made


def _chapter(chapter: Chapter, profile: str, cases: list[dict[str, Any]]) -> dict[str, Any]:
    found = obligations(chapter, profile)
    own = {each.requirement.id for each in found}
    return {
        "name": chapter.name,
        "title": chapter.title,
        "about": chapter.about,
        "requirements": [
            {
                "id": each.requirement.id,
                "level": each.requirement.level,
                "title": each.requirement.title,
                "statement": each.requirement.statement_for(profile),
                "sources": list(each.requirement.sources),
                "evidence": list(each.requirement.evidence),
                **({"contradicts": list(each.requirement.contradicts)} if each.requirement.contradicts else {}),
                **({"deviates": each.deviates} if each.deviates else {}),
            }
            for each in found
        ],
        "cases": [case for case in cases if case["requirements"][0] in own and len(json.dumps(case)) <= MAX_CASE],
    }
