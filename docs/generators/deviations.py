"""Known deviations and defects of every endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import REQUIREMENT, code, link, page, prose, shortened, table
from kvref.specification import deviations
from kvref.specification.deviations import defects

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = "reference/deviations"


def pages() -> Mapping[str, str]:
    """Return a page for each list of deviations, the page of defects, and their index."""
    loaded = {name: deviations.of_file(name) for name in deviations.names()}
    made = {f"{FOLDER}/{name}.md": _page(name, found) for name, found in loaded.items()}
    rows = [(f"[`{name}`]({name}.md)", _subject(name), str(len(found.rows))) for name, found in loaded.items()]
    made[f"{FOLDER}/defects.md"] = _defects()
    made[f"{FOLDER}/index.md"] = page(
        "Known deviations",
        "A *deviation* is a documented failure: the endpoint breaks a requirement exactly as recorded. A deviation "
        "that no longer fails, or fails in another way, fails the run. kvref over SQLite has no deviations in its "
        "default profile. [Defects of the plugin](defects.md) lists crashes, garbage and lost writes.",
        table(("list", "endpoint", "deviations"), rows),
        "```{toctree}\n:hidden:\n\ndefects\n" + "\n".join(loaded) + "\n```",
        anchor="deviations",
    )
    return made


def _subject(name: str) -> str:
    profile, _, database = name.partition("-over-")
    if name.startswith("memcached-"):
        return f"memcached from {name.removeprefix('memcached-')} on, judged with `--profile memcached`"
    if not database:
        return f"the plugin, and kvref over SQLite with `--profile {profile}`"
    return f"kvref with `--profile {profile}` over {_DATABASES[database]}"


_DATABASES: Final = {"mysql": "MySQL", "mariadb": "MariaDB", "galera": "a Galera cluster", "vitess": "Vitess"}


def _page(name: str, found: deviations.Deviations) -> str:
    rows = [
        (
            link(row.subject) if REQUIREMENT.fullmatch(row.subject) else code(row.subject),
            prose(row.reason),
            "; ".join(f"{code(shortened(sent))} → {code(shortened(got))}" for sent, got in row.conversation[:2]),
            ", ".join(row.evidence),
        )
        for row in found.rows.values()
    ]
    head = ("case or requirement", "behavior", "recorded exchange", "evidence")
    return page(f"Deviations of {name}", f"{len(rows)} deviations of {_subject(name)}.", table(head, rows))


def _defects() -> str:
    parts: list[str] = []
    for kind, meaning in defects.KINDS.items():
        rows = [
            (link(each.requirement), ", ".join(each.profiles), prose(each.reason), ", ".join(each.evidence))
            for each in defects.load()
            if each.kind == kind
        ]
        parts += [f"## {kind.capitalize()}", f"{meaning.capitalize()}.", table(_DEFECT_HEAD, rows)]
    return page(
        "Defects of the plugin",
        "What the plugin does to its users beyond an unusual reply. The suite never sends what crashes a server.",
        *parts,
    )


_DEFECT_HEAD: Final = ("requirement", "profiles", "what happens", "evidence")
