"""Two profiles side by side: what users notice, facts, and a page for each chapter with requirements that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import code, link, page, prose, table
from kvref import profiles
from kvref.profiles import vocabulary
from kvref.specification import requirements
from kvref.specification.deviations import defects
from kvref.specification.terminal import DEVIATES, OTHERWISE
from kvref_conformance.spec.entry import sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvref_conformance.spec.entry import Entry, Section, View

FOLDER: Final = "reference/differences"
PAIRS: Final = (
    ("mysql-5.6", "mysql-8.0"),
    ("mysql-8.0", "kvref"),
    ("mysql-5.6", "kvref"),
    ("memcached", "kvref"),
)


def pages() -> Mapping[str, str]:
    """Return for each pair a page of what users notice and a page for each chapter that differs, with their index."""
    chapters = sections(requirements.load())
    made: dict[str, str] = {}
    for pair in PAIRS:
        made |= _pair(*pair, chapters)
    rows = [(f"[`{old}` and `{new}`]({_name((old, new))}/index.md)",) for old, new in PAIRS]
    names = "\n".join(f"{_name(pair)}/index" for pair in PAIRS)
    made[f"{FOLDER}/index.md"] = page(
        "Differences between profiles",
        "The first page of two profiles shows what users notice. A page for each chapter has the requirements that do "
        "not apply to both alike.",
        table(("page",), rows),
        f"```{{toctree}}\n:hidden:\n\n{names}\n```",
        anchor="differences",
    )
    return made


def _name(pair: Sequence[str]) -> str:
    return "-and-".join(pair)


def _pair(old: str, new: str, chapters: Sequence[Section]) -> Mapping[str, str]:
    """Return the pages of two profiles by path."""
    folder = f"{FOLDER}/{_name((old, new))}"
    made: dict[str, str] = {}
    listed = []
    for chapter in chapters:
        rows = list(_rows(old, new, chapter.entries))
        if rows:
            made[f"{folder}/{chapter.name}.md"] = page(
                f"{prose(chapter.title)}: {old} and {new}",
                f"{len(rows)} of {len(chapter.entries)} requirements differ.",
                table(("requirement", code(old), code(new)), rows),
            )
            listed.append((f"[{prose(chapter.title)}]({chapter.name}.md)", f"{len(rows)} requirements"))
    facts = _facts(old, new)
    harm = list(_harm(old, new))
    made[f"{folder}/facts.md"] = page(
        f"Facts: {old} and {new}",
        f"{len(facts)} facts differ.",
        table(("fact", "meaning", code(old), code(new)), facts),
    )
    names = "\n".join(path.rpartition("/")[2].removesuffix(".md") for path in made)
    made[f"{folder}/index.md"] = page(
        f"Differences between {old} and {new}",
        "Defects that only one of the two has; then all differences by chapter.",
        "## What you notice",
        f"{len(harm)} defects of one of the two that the other does not have."
        if harm
        else "Neither has a defect that the other does not have.",
        table(("defect", "what happens", "in", "requirement"), harm),
        "## All differences",
        table(("page", "what differs"), [("[Facts](facts.md)", f"{len(facts)} facts"), *listed]),
        f"```{{toctree}}\n:hidden:\n\n{names}\n```",
    )
    return made


def _harm(old: str, new: str) -> Iterator[tuple[str, ...]]:
    """Yield the defects that one of two profiles has, crashes first, as they are listed."""
    for defect in defects.load():
        found = [name for name in (old, new) if name in defect.profiles]
        if len(found) == 1:
            yield defect.kind, prose(defect.reason), code(found[0]), link(defect.requirement)


def _facts(old: str, new: str) -> list[tuple[str, ...]]:
    first, second = profiles.load(old), profiles.load(new)
    return [
        (f"`{key}`", prose(row["means"]), code(first[key]), code(second[key]))
        for key, row in vocabulary().items()
        if first[key] != second[key]
    ]


def _rows(old: str, new: str, entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        views = {view.profile: view for view in entry.views}
        first, second = views[old], views[new]
        if _compared(first) != _compared(second):
            what = f"{link(entry.requirement.id)} {prose(entry.requirement.statement)}"
            yield what, _cell(first), _cell(second)


def _compared(view: View) -> tuple[object, ...]:
    """Return what distinguishes two views: the state, and for a deviation its reason."""
    return (view.state, view.reason) if view.state == DEVIATES else (view.state,)


def _cell(view: View) -> str:
    if view.state == OTHERWISE:
        return "does not apply"
    shown = "; ".join(f"{code(sent)} → {code(got)}" for sent, got in view.answers[:1])
    if view.state == DEVIATES:
        return f"**deviates:** {prose(view.reason)} {shown}"
    return f"applies {shown}"
