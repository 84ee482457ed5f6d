"""Mutants of the cache policies and the memory cache."""

from __future__ import annotations

from kvref.engine.cache.memory import Cache, Policies, Policy
from kvref_testbed.mutants.mutant import breaks, put, put_fact


@breaks("KV-POLICY-021")
def ends_sums_with_a_line() -> None:
    """`incr` and `decr` store a line end behind the sum in the memory cache."""
    put_fact("cache.sum", "with-line-end")


@breaks("KV-POLICY-022")
def cuts_what_is_appended_to() -> None:
    """`append` in the memory cache loses the last two bytes of what was there."""
    put_fact("cache.append", "cuts-two-bytes")


@breaks("KV-POLICY-038")
def follows_no_policy() -> None:
    """Every command goes to the table."""
    put(Policies, "of", lambda self, command: Policy.TABLE)


@breaks("KV-POLICY-044")
def keeps_the_cache_over_a_reload() -> None:
    """What was cached is answered under other policies too."""
    put(Cache, "restart", lambda self, started: None)
