"""Mutants of the cache policies and the memory cache."""

from __future__ import annotations

from mutant import mutant, of_fact, put

from kvref.semantics.cache import Cache
from kvref.semantics.policies import Policies, Policy

of_fact("ends_sums_with_a_line", "cache.sum", "with-line-end")
of_fact("cuts_what_is_appended_to", "cache.append", "cuts-two-bytes")


@mutant
def follows_no_policy() -> None:
    """Every command goes to the table."""
    put(Policies, "of", lambda self, command: Policy.TABLE)


@mutant
def keeps_the_cache_over_a_reload() -> None:
    """What was cached is answered under other policies too."""
    put(Cache, "restart", lambda self, started: None)
