"""Cache policies: what a row of `cache_policies` says for each kind of command."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kvref.protocol import commands as c
from kvref.protocol.command_table import PolicyKind, policy_kinds


class Policy(Enum):
    """Where a command looks; the values are the plugin's words in the order of their ENUM."""

    TABLE = "innodb_only"
    CACHE = "cache_only"
    BOTH = "caching"
    OFF = "disabled"


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies in force, one for each kind of command; they hold for all mappings (policy-042)."""

    get: Policy = Policy.TABLE
    set: Policy = Policy.TABLE
    delete: Policy = Policy.TABLE
    flush: Policy = Policy.TABLE
    table_only: bool = field(init=False, repr=False, compare=False)  # every command goes to its table

    def __post_init__(self) -> None:
        """Note once what most servers have for each command."""
        object.__setattr__(self, "table_only", {getattr(self, kind.value) for kind in PolicyKind} == {Policy.TABLE})

    @property
    def fills_cache(self) -> bool:
        """Return whether what is stored goes into the memory cache."""
        return self.set in (Policy.CACHE, Policy.BOTH)

    @property
    def in_memory(self) -> tuple[str, Policy] | None:
        """Return the first kind of command that meets the memory cache, None where none does."""
        kinds = ((kind.value, getattr(self, kind.value)) for kind in PolicyKind)
        return next(((kind, policy) for kind, policy in kinds if policy in (Policy.CACHE, Policy.BOTH)), None)

    def of(self, command: c.Command) -> Policy:
        """Return where a command looks; TABLE for one that looks for no items."""
        return Policy.TABLE if self.table_only else self.combined(*policy_kinds(command))

    def combined(self, *kinds: PolicyKind) -> Policy:
        """Return the policy of a command of several kinds: the last one decides, unless any of them is OFF."""
        policy = Policy.TABLE
        for kind in kinds:
            policy = getattr(self, kind.value)
            if policy is Policy.OFF:
                break
        return policy
