"""What the words of a command mean to the model: which mapping they reach, as the facts of the profile have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    from kvref.profiles import Profile


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a word leads.

    Args:
        kind: a key to look up, a switch word without a key, or an unknown mapping.
        mapping: bound afterwards.
        key: looked up there; empty for a switch word.
    """

    kind: Literal["key", "switch", "unknown"]
    mapping: str
    key: str


def reach(profile: Profile, known: Collection[str], bound: str, word: str, *, switching: bool) -> Reach:
    """Resolve one word.

    Args:
        profile: facts.
        known: names of the mappings.
        bound: mapping of the connection.
        word: as sent; `.` is the delimiter.
        switching: the verb reads `@@`.
    """
    if not switching or not is_word(profile, word):
        return Reach("key", bound, word)
    name, _, key = word[2:].partition(".")
    if name not in known:
        return Reach("unknown", bound, "")
    return Reach("key" if key else "switch", name, key)


def is_word(profile: Profile, word: str) -> bool:
    """Return whether a word is read as `@@mapping` at all."""
    return (
        profile.flag("mapping.supported")
        and word.startswith("@@")
        and len(word) >= profile.number("mapping.shortest_word")
    )


def reaches(profile: Profile, known: Collection[str], bound: str, words: list[str]) -> list[Reach]:
    """Resolve the words of one get, in order; the last one's mapping stays bound."""
    found: list[Reach] = []
    looked_up = False
    for word in words:
        if looked_up and is_word(profile, word) and profile["mapping.words_in_one_get"] == "until-looked-up":
            # Once a key was looked up the prefix is only cut off, whatever it names (core:mget-002, mget-011).
            key = word[2:].partition(".")[2]
            step = Reach("key" if key else "switch", bound, key)
        else:
            step = reach(profile, known, bound, word, switching=True)
        looked_up = looked_up or step.kind == "key"
        bound = step.mapping
        found.append(step)
    return found
