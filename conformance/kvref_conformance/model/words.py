"""What the words of a command mean to the model: which mapping they reach, as the facts of the profile have it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kvref.profiles import Profile
    from kvref_conformance.model.schema import Schema


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a word leads.

    Args:
        kind: a key to look up, a switch word without a key, or an unknown mapping.
        mapping: bound afterwards.
        key: looked up there; empty for a switch word.
    """

    kind: Literal["key", "switch", "unknown"]
    mapping: str
    key: str


@dataclass(frozen=True, slots=True)
class Mappings:
    """The mappings of an endpoint; without any, all keys are in one table.

    Args:
        tables: table of each mapping.
        words: what the word of a mapping without a key may answer, by mapping.
        schemas: columns of tables; a table without takes keys and values as they are.
        delimiter: in force.
    """

    tables: Mapping[str, str] = field(default_factory=lambda: {"": "items"})
    words: Mapping[str, Collection[str]] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    delimiter: str = "."

    @classmethod
    def of(cls, profile: Profile, tables: Mapping[str, str], default: Collection[str], **more: Any) -> Mappings:
        """Return mappings whose words answer as the profile has it.

        Args:
            profile: facts.
            tables: table of each mapping.
            default: words of the mappings that may be the default one; none if all are in `tables`.
            more: other fields.
        """
        bound = {mapping: (f"test/{table}",) for mapping, table in tables.items()}
        if profile["mapping.switch_word_names"] == "bound":
            return cls(tables, bound, **more)
        return cls(tables, dict.fromkeys(tables, default or {word for (word,) in bound.values()}), **more)

    def resolve(self, profile: Profile, bound: str, words: Iterable[str], *, switching: bool = True) -> list[Resolved]:
        """Resolve the words of a command, in order; the last one's mapping stays bound.

        Args:
            profile: facts.
            bound: mapping of the connection.
            words: as sent; several of a get only.
            switching: the verb reads `@@`.
        """
        found: list[Resolved] = []
        has_key = False
        for word in words:
            step = Resolved("key", bound, word)
            if switching and _is_word(profile, word):
                name, _, key = word[2:].partition(self.delimiter)
                kind: Literal["key", "switch"] = "key" if key else "switch"
                if has_key and profile["mapping.words_in_one_get"] == "until-looked-up":
                    # Once a key was looked up the prefix is only cut off, whatever it names (core:mget-002, mget-011).
                    step = Resolved(kind, bound, key)
                else:
                    step = Resolved(kind, name, key) if name in self.tables else Resolved("unknown", bound, "")
            has_key = has_key or step.kind == "key"
            bound = step.mapping
            found.append(step)
        return found


def _is_word(profile: Profile, word: str) -> bool:
    """Return whether a word is read as `@@mapping` at all."""
    return (
        profile.flag("mapping.supported")
        and word.startswith("@@")
        and len(word) >= profile.number("mapping.shortest_word")
    )
