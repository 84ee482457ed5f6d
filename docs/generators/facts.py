"""The facts of every profile, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import code, page, prose, table
from kvref import profiles
from kvref.profiles import vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    head = ("fact", "meaning", *(code(name) for name in ORDER))
    groups: dict[str, list[tuple[str, ...]]] = {}
    for key, row in vocabulary().items():
        values = tuple(code(loaded[name][key]) for name in ORDER)
        groups.setdefault(key.partition(".")[0], []).append((f"`{key}`", prose(row["means"]), *values))
    parts = [
        part for group, rows in sorted(groups.items()) for part in (f"(facts-{group})=\n## {group}", table(head, rows))
    ]
    reasons = [
        "## Why the default profile differs from MySQL 8.0",
        table(("fact", "reason"), _reasons(loaded["kvref"])),
    ]
    made = page("Facts of the profiles", ABOUT, *parts, *reasons, anchor="facts")
    return {"reference/generated/facts.md": made}


def _reasons(profile: Profile) -> list[tuple[str, str]]:
    return [
        (f"`{fact.key}`", prose(fact.reason))
        for fact in profile.facts.values()
        if fact.origin == profile.name and fact.reason
    ]
