"""The row of `cache_policies` that counts, and what it means to a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from kvref.engine.cache.memory import Policies, Policy
from kvref.errors import ConfigError
from kvref.profiles import Profile

KINDS: Final = ("get", "set", "delete", "flush")
_ROW: Final = "('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only')"


@dataclass(frozen=True, slots=True)
class PolicyCell:
    """One cell of the first row in primary key order.

    Args:
        column: the column's name.
        word: what SQL shows; None for NULL.
        member: its number in the column's ENUM, from 1; None where the column is none, or for NULL.
    """

    column: str
    word: str | None
    member: int | None


class PolicySource(Protocol):
    """A store's configuration, as far as the policies need it."""

    def policies(self) -> list[PolicyCell] | None:
        """Return the first row of `cache_policies` in primary key order; None where table or row is missing."""


def read_policies(catalog: PolicySource, profile: Profile) -> tuple[Policies, list[str]]:
    """Read the policies in force.

    The plugin reads the second to the fifth column, and those of an ENUM only, by the member's number
    (innodb_read_cache_policy; more:policy-141, more:policy-151 to more:policy-157).

    Args:
        catalog: the store.
        profile: decides what a missing row means and which cells count.

    Returns:
        The policies, and one sentence for each that is passed over.

    Raises:
        ConfigError: there is none and the profile does not do without.
    """
    cells = catalog.policies()
    if cells is None:
        if profile["config.missing_row"] == "refused":
            raise ConfigError(
                "cache_policies is missing or empty: the plugin opens no port with it either: give it the row " + _ROW
            )
        return Policies(), [f"cache_policies is missing or empty: innodb_only is used: give it the row {_ROW}"]
    by_name = {cell.column.lower(): cell for cell in cells}
    chosen: list[Policy] = []
    problems: list[str] = []
    for place, kind in enumerate(KINDS, 1):
        if profile["cache.policy_words"] == "enum":
            cell = cells[place] if place < len(cells) else None
            policy = None if cell is None else _of_member(cell)
        else:
            cell = by_name.get(f"{kind}_policy")
            policy = None if cell is None else _of_word(cell)
        if policy is None:
            what = f"has no column for {kind}" if cell is None else f"{cell.column} is {cell.word!r}"
            problems.append(
                f"cache_policies: {what}: innodb_only is used: write one of {_words()} into an ENUM of them"
            )
        chosen.append(policy or Policy.TABLE)
    return Policies(*chosen), problems


def _of_member(cell: PolicyCell) -> Policy | None:
    policies = list(Policy)
    return policies[cell.member - 1] if cell.member is not None and 1 <= cell.member <= len(policies) else None


def _of_word(cell: PolicyCell) -> Policy | None:
    return next((policy for policy in Policy if policy.value == cell.word), None)


def _words() -> str:
    return ", ".join(policy.value for policy in Policy)
