"""Pages that show two profiles side by side: requirements that one keeps and the other does not, or keeps otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import code, link, page, prose, table
from kvref import profiles
from kvref.profiles import vocabulary
from kvref.specification import requirements
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
    """Return a page for each pair, and their index."""
    chapters = sections(requirements.load())
    made = {f"{FOLDER}/{_name(pair)}.md": _page(*pair, chapters) for pair in PAIRS}
    rows = [(f"[`{old}` and `{new}`]({_name((old, new))}.md)",) for old, new in PAIRS]
    names = "\n".join(map(_name, PAIRS))
    made[f"{FOLDER}/index.md"] = page(
        "Differences between profiles",
        "Each page compares two profiles: first their facts, then the requirements of the specification that do not "
        "apply to both alike.",
        table(("page",), rows),
        f"```{{toctree}}\n:hidden:\n\n{names}\n```",
        anchor="differences",
    )
    return made


def _name(pair: Sequence[str]) -> str:
    return "-and-".join(pair)


def _page(old: str, new: str, chapters: Sequence[Section]) -> str:
    parts = []
    count = 0
    for chapter in chapters:
        rows = list(_rows(old, new, chapter.entries))
        count += len(rows)
        if rows:
            parts += [f"## {prose(chapter.title)}", table(("requirement", code(old), code(new)), rows)]
    facts = _facts(old, new)
    return page(
        f"Differences between {old} and {new}",
        f"{len(facts)} facts and {count} requirements differ.",
        "## Facts",
        table(("fact", "meaning", code(old), code(new)), facts),
        *parts,
    )


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
