"""The facts of every profile, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import bullets, code, folded_markdown, page, prose
from kvref import profiles
from kvref.profiles import vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref.profiles import Profile

ORDER: Final = ("kvref", "mysql-8.0", "mysql-5.6", "memcached")
ABOUT = (
    "A *fact* is one property that differs between endpoints. Each profile has a value for every fact, with a status "
    "(*observed* on the wire, *documented*, *source-read*, or *decided* for kvref), and evidence or a reason. "
    "The files are in {src}`kvref/profiles`."
)


def pages() -> Mapping[str, str]:
    """Return the page of all facts."""
    loaded = {name: profiles.load(name) for name in ORDER}
    groups: dict[str, list[str]] = {}
    for key, row in vocabulary().items():
        values = "; ".join(f"{code(name)}: {code(loaded[name][key])}" for name in ORDER)
        groups.setdefault(key.partition(".")[0], []).append(f"`{key}`: {prose(row['means'])}\\\n{values}")
    # A list, because a phone shows two of six columns; folded, because the page has several hundred facts.
    parts = [
        part
        for group, items in sorted(groups.items())
        for part in (f"(facts-{group})=\n## {group}", folded_markdown(_counted(items), bullets(items)))
    ]
    reasons = [f"`{key}`: {reason}" for key, reason in _reasons(loaded["kvref"])]
    parts += [
        "## Why the default profile differs from MySQL 8.0",
        folded_markdown(_counted(reasons), bullets(reasons)),
    ]
    made = page("Facts of the profiles", ABOUT, *parts, anchor="facts")
    return {"reference/generated/facts.md": made}


def _counted(items: Sequence[str]) -> str:
    return f"{len(items)} facts" if len(items) > 1 else "1 fact"


def _reasons(profile: Profile) -> list[tuple[str, str]]:
    return [
        (fact.key, prose(fact.reason)) for fact in profile.facts.values() if fact.origin == profile.name and fact.reason
    ]
