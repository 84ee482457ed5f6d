"""Two profiles side by side: what users notice, facts, and a page for each chapter with requirements that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import bullets, code, link, page, prose, shortened, table
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
        found = _differing(old, new, chapter.entries)
        if count := sum(map(len, found.values())):
            made[f"{folder}/{chapter.name}.md"] = page(
                f"{prose(chapter.title)}: {old} and {new}",
                f"{count} of {len(chapter.entries)} requirements differ. "
                "The ID of a requirement leads to its recorded exchanges.",
                *(part for title, items in found.items() if items for part in (f"## {title}", bullets(items))),
            )
            listed.append(f"[{prose(chapter.title)}]({chapter.name}.md): {count} requirements")
    facts = _facts(old, new)
    harm = _harm(old, new)
    made[f"{folder}/facts.md"] = page(
        f"Facts: {old} and {new}",
        f"{sum(map(len, facts.values()))} facts differ.",
        *(part for group, items in facts.items() for part in (f"## {group}", bullets(items))),
    )
    names = "\n".join(path.rpartition("/")[2].removesuffix(".md") for path in made)
    made[f"{folder}/index.md"] = page(
        f"Differences between {old} and {new}",
        "All differences by chapter, then the defects that only one of the two has.",
        "## Differences by chapter",
        bullets([f"[Facts](facts.md): {sum(map(len, facts.values()))} facts", *listed]),
        "## Defects",
        f"{sum(map(len, harm.values()))} defects of one of the two that the other does not have."
        if harm
        else "Neither has a defect that the other does not have.",
        *(part for kind, items in harm.items() for part in (f"### {kind.capitalize()}", bullets(items))),
        f"```{{toctree}}\n:hidden:\n\n{names}\n```",
    )
    return made


def _harm(old: str, new: str) -> Mapping[str, list[str]]:
    """Return the defects that one of two profiles has, by kind, crashes first."""
    found: dict[str, list[str]] = {}
    for defect in defects.load():
        having = [name for name in (old, new) if name in defect.profiles]
        if len(having) == 1:
            item = f"{code(having[0])}: {prose(defect.reason)} ({link(defect.requirement)})"
            found.setdefault(defect.kind, []).append(item)
    return found


def _facts(old: str, new: str) -> Mapping[str, list[str]]:
    """Return the facts that differ, by the first part of their names."""
    first, second = profiles.load(old), profiles.load(new)
    found: dict[str, list[str]] = {}
    for key, row in vocabulary().items():
        if first[key] != second[key]:
            values = f"{code(old)}: {code(first[key])}; {code(new)}: {code(second[key])}"
            item = f"`{key}`: {prose(row['means'])}\\\n{values}"
            found.setdefault(key.partition(".")[0], []).append(item)
    return found


def _differing(old: str, new: str, entries: Sequence[Entry]) -> Mapping[str, list[str]]:
    """Return the requirements of a chapter that differ, by the profile that they apply to."""
    only_old, only_new, both = f"Only {code(old)}", f"Only {code(new)}", "Both, with a deviation"
    found: dict[str, list[str]] = {only_old: [], only_new: [], both: []}
    for entry in entries:
        views = {view.profile: view for view in entry.views}
        first, second = views[old], views[new]
        if _compared(first) == _compared(second):
            continue
        applying = [view for view in (first, second) if view.state != OTHERWISE]
        group = both if len(applying) > 1 else only_old if applying[0] is first else only_new
        found[group].append("\\\n".join(_lines(entry, applying)))
    return found


def _compared(view: View) -> tuple[object, ...]:
    """Return what distinguishes two views: the state, and for a deviation its reason."""
    return (view.state, view.reason) if view.state == DEVIATES else (view.state,)


def _lines(entry: Entry, applying: Sequence[View]) -> Iterator[str]:
    """Yield the statement of a requirement, then a line for each deviation, and its exchange."""
    yield f"{link(entry.requirement.id)} {prose(entry.requirement.statement)}"
    for view in applying:
        if view.state == DEVIATES:
            shown = "; ".join(f"{code(shortened(sent))} → {code(shortened(got))}" for sent, got in view.answers[:1])
            yield f"**{code(view.profile)} deviates:** {prose(view.reason)} {shown}".rstrip()
