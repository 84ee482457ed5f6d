"""The specification: one page a chapter, an index by ID, and the register of contradictions."""

from __future__ import annotations

from collections import Counter
from html import escape
from textwrap import dedent
from typing import TYPE_CHECKING, Final

from generators.markup import bullets, code, folded, folded_markdown, indexed, link, page, pre, prose, table
from kvref.specification import conformance_levels, requirements
from kvref.specification.requirements import LEVELS
from kvref.specification.terminal import DEVIATES, OTHERWISE
from kvref_conformance.spec import normative
from kvref_conformance.spec.entry import sections
from kvref_conformance.spec.page import introduction, tested_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref_conformance.spec.entry import Entry, Section, View
    from kvref_conformance.spec.example import Example
    from kvref_conformance.spec.normative import NormativeChapter

FOLDER: Final = "reference/specification"
STATES: Final = {DEVIATES: "deviates", OTHERWISE: "does not apply"}


def pages() -> Mapping[str, str]:
    """Return the pages of all chapters and what leads to them."""
    chapters = sections(requirements.load())
    made = {f"{FOLDER}/{chapter.name}.md": _chapter(chapter) for chapter in chapters}
    made[f"{FOLDER}/index.md"] = _index(chapters)
    made[f"{FOLDER}/by-id.md"] = _by_id(chapters)
    made[f"{FOLDER}/contradictions.md"] = _contradictions(chapters)
    made["reference/generated/conformance_levels.txt"] = _levels()
    made |= {f"{FOLDER}/{each.name}.md": _normative(each) for each in normative.chapters()}
    return made


def _index(chapters: tuple[Section, ...]) -> str:
    entries = [entry for chapter in chapters for entry in chapter.entries]
    levels = Counter(entry.requirement.level for entry in entries)
    counts = ", ".join(f"{levels[level]} {level}" for level in LEVELS if levels[level])
    levels_of = {each.name: conformance_levels.of_chapter(each.name) for each in chapters}
    by_level = {
        level: [
            f"[{prose(each.title)}]({each.name}.md) ({len(each.entries)}): {prose(each.about)}"
            for each in chapters
            if levels_of[each.name] == level
        ]
        for level in conformance_levels.load()
    }
    tables = [each.name for each in normative.chapters()]
    names = "\n".join(["by-id", "contradictions", *tables, *(each.name for each in chapters)])
    return page(
        "The specification",
        f"{len(entries)} requirements: {counts}. Every requirement is one obligation with a stable ID, the profiles it "
        "applies to, the cases that judge it, and recorded conversations as evidence.",
        "To find a requirement by its ID, see [all requirements by ID](by-id.md) or use the search. "
        "[What contradicts the texts](contradictions.md) lists where the plugin differs from its manual.",
        "## Introduction",
        *_introduction(),
        "## Levels of conformance",
        "A chapter belongs to one level. An implementation conforms to a level if it keeps the requirements of the "
        "level and of those that it builds on. A level does not apply to an endpoint to which no requirement of the "
        "chapters that define it applies. "
        "See [Conform to a part](../../how-to/judge-a-server.md#conform-to-a-part).",
        _levels(),
        "## Normative tables",
        table(
            ("chapter", "subject"), [(f"[{each.title}]({each.name}.md)", each.about) for each in normative.chapters()]
        ),
        "## Chapters",
        "The number of requirements is in parentheses.",
        *(part for level, items in by_level.items() for part in (f"### Level {level}", bullets(items))),
        f"```{{toctree}}\n:hidden:\n\n{names}\n```",
        anchor="specification",
    )


def _levels() -> str:
    rows = [
        (code(each.name), prose(each.about), ", ".join(map(code, each.builds_on)) or "none")
        for each in conformance_levels.load().values()
    ]
    return table(("level", "subject", "builds on"), rows)


def _normative(chapter: NormativeChapter) -> str:
    # The site has no renderer for Mermaid.
    body = chapter.body.replace("```mermaid", "```text")
    return page(chapter.title, chapter.about, body, anchor=f"normative-{chapter.name.replace('_', '-')}")


def _introduction() -> Iterator[str]:
    for block in introduction().strip("\n").split("\n\n"):
        yield f"```text\n{dedent(block)}\n```" if block.startswith("    ") else prose(block)


def _by_id(chapters: tuple[Section, ...]) -> str:
    """Return a page with the number of each requirement, by prefix, which leads to it; its title is shown on hover."""
    groups: dict[str, dict[str, list[str]]] = {}
    for chapter in chapters:
        for entry in chapter.entries:
            prefix, _, number = entry.requirement.id.rpartition("-")
            href = f"{chapter.name}.html#{entry.requirement.id}"
            cell = f'<a href="{href}" title="{escape(entry.requirement.title)}">{number}</a>'
            groups.setdefault(prefix, {}).setdefault(chapter.name, []).append(cell)
    parts = []
    for prefix, found in sorted(groups.items()):
        parts.append(f"## {prefix}")
        parts += [
            f"[{prose(_title(chapters, name))}]({name}.md): {' '.join(sorted(found[name], key=_number))}"
            for name in found
        ]
    return page(
        "All requirements by ID",
        "A requirement keeps its ID; the number of a removed requirement is not used again. A number leads to its "
        "requirement.",
        *parts,
    )


def _number(cell: str) -> str:
    """Return the number that a link of the page by ID shows."""
    return cell[-len("000</a>") :]


def _title(chapters: tuple[Section, ...], name: str) -> str:
    (title,) = (each.title for each in chapters if each.name == name)
    return title


def _contradictions(chapters: tuple[Section, ...]) -> str:
    """Return the page of requirements that a text contradicts, folded by chapter."""
    number, parts = 0, []
    for chapter in chapters:
        entries = [each for each in chapter.entries if each.requirement.contradicts]
        if entries:
            number += len(entries)
            title = f"{len(entries)} requirement{'s' if len(entries) > 1 else ''}"
            parts += [f"## {prose(chapter.title)}", folded_markdown(title, bullets(map(_contradiction, entries)))]
    return page(
        "What contradicts the texts",
        f"{number} requirements state observed behavior that a text contradicts: the MySQL "
        "manual, an article, memcached's `protocol.txt`, the plugin's own source, or a promise of SQL. The observed "
        "behavior counts.",
        *parts,
    )


def _contradiction(entry: Entry) -> str:
    requirement = entry.requirement
    texts = "; ".join(map(prose, requirement.contradicts))
    return f"{link(requirement.id)} {prose(requirement.statement)}\\\n*Contradicts:* {texts}"


def _chapter(chapter: Section) -> str:
    parts = [part for entry in chapter.entries for part in _entry(entry)]
    return page(prose(chapter.title), prose(chapter.about), *parts, anchor=f"chapter-{chapter.name}")


def _entry(entry: Entry) -> Iterator[str]:
    """Yield the text of a requirement, then who keeps it, then its evidence, folded."""
    requirement = entry.requirement
    yield f'<a id="{requirement.id}"></a>'
    yield indexed(requirement.id)
    yield f"({requirement.id.lower()})=\n## {requirement.id}: {prose(requirement.title)}"
    yield f"**{requirement.level}.** {prose(requirement.statement)}"
    yield _applies(entry)
    yield folded("Profiles, evidence and cases", "\n".join(_evidence(entry)))


def _applies(entry: Entry) -> str:
    names = [view.profile for view in entry.views if view.state != OTHERWISE]
    broken = [view.profile for view in entry.views if view.state == DEVIATES]
    text = f"Applies to: {', '.join(map(code, names)) or 'no profile'}."
    return f"{text} Known deviation: {', '.join(map(code, broken))}." if broken else text


def _evidence(entry: Entry) -> Iterator[str]:
    rows = "".join(map(_view, entry.views))
    yield f"<table><thead><tr><th>profile</th><th>state</th><th>exchange</th></tr></thead><tbody>{rows}</tbody></table>"
    yield "<ul>"
    for name, words in _notes(entry):
        yield f"<li><strong>{name}:</strong> {escape(words)}</li>"
    yield "</ul>"
    if entry.example is not None:
        yield f"<p>Recording {escape(entry.example.citation)}: {escape(entry.example.title)}</p>"
        yield pre("\n".join(_lines(entry.example)))


def _view(view: View) -> str:
    exchanges = "<br>".join(
        f"<code>{escape(sent)}</code> → <code>{escape(got)}</code>" for sent, got in view.answers[:2]
    ).replace("\n", "<br>")
    reason = f"{escape(view.reason)}<br>" if view.reason else ""
    state = STATES.get(view.state, "applies")
    return f"<tr><td>{view.profile}</td><td>{state}</td><td>{reason}{exchanges}</td></tr>"


def _notes(entry: Entry) -> Iterator[tuple[str, str]]:
    requirement = entry.requirement
    for defect in entry.defects:
        yield defect.kind, f"{', '.join(defect.profiles)}: {defect.reason}"
    if requirement.contradicts:
        yield "Contradicts", "; ".join(requirement.contradicts)
    yield "Sources", "; ".join(requirement.sources)
    yield "Evidence", ", ".join(requirement.evidence)
    yield "Judged by", tested_by(entry)


def _lines(example: Example) -> Iterator[str]:
    for line in example.given:
        yield f"{'given':>12}   {line}"
    for exchange in example.exchanges:
        yield f"{exchange.on:>12} > {exchange.sent}"
        for answer in exchange.answers:
            yield f"{' '.join(answer.versions):>12} < {answer.text}"
