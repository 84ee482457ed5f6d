"""Facts of a profile for the semantics, resolved once: verbs read attributes, never fact keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import kvref
from kvref.profiles import Profile

# The memcached whose commands the default profile has, in front of kvref's own release.
MEMCACHED_LEVEL = "1.6.0"


def _resolved(of: Callable[[Profile], object]) -> Any:
    """Declare an attribute with the function that returns its value in a profile."""
    return field(metadata={"of": of})


def _is(fact: str, value: str) -> Any:
    """Declare an attribute that says whether a fact has this value."""
    return _resolved(lambda profile: profile[fact] == value)


def _release(profile: Profile) -> str:
    release = str(profile["identity.version"])
    return f"{MEMCACHED_LEVEL}+{kvref.__version__}-kvref" if release == "own" else release


@dataclass(frozen=True, slots=True)
class Rules:
    """Facts of one profile that decide what a command means."""

    release: str = _resolved(_release)
    all_verbs_switch: bool = _is("mapping.switching_verbs", "all")
    shortest_word: int = _resolved(lambda profile: profile.number("mapping.shortest_word"))
    names_bound_table: bool = _is("mapping.switch_word_names", "bound")
    each_word_switches: bool = _is("mapping.words_in_one_get", "each")
    delimiter_is_string: bool = _is("mapping.delimiter", "string")
    refuses_empty_key: bool = _is("mapping.empty_key", "error")
    cuts_keys: bool = _is("store.long_key", "cut")
    cuts_values: bool = _is("store.long_value", "cut")
    malformed_text: str = _resolved(lambda profile: str(profile["store.malformed_text"]))
    surrogates_are_text: bool = _is("store.surrogates", "text")
    signed_keys: bool = _is("store.key_number", "signed-64")
    refusal_is_error: bool = _is("store.refused_by_table", "error")
    renames_key: bool = _resolved(lambda profile: profile.flag("store.renames_key"))
    clears_unmapped: bool = _is("store.unmapped_columns", "null")
    wraps_integers: bool = _is("store.integer_text", "low-bits")
    separator_is_string: bool = _is("columns.separator", "string")
    drops_surplus: bool = _is("columns.surplus", "dropped")
    append_takes_request: bool = _is("append.flags_and_expiry", "request")
    append_joined: bool = _is("append.columns", "joined")
    counts_leading_number: bool = _is("arith.text", "leading-number")
    # An uninitialised number is never imitated: that profile refuses too, and stores nothing as it did.
    saturates: bool = _is("arith.beyond_64_bits", "largest")
    narrow_delta: bool = _is("arith.delta", "low-32-bits")
    cuts_results: bool = _is("arith.long_result", "cut")
    longest_relative: int = _resolved(lambda profile: profile.number("expiry.longest_relative"))
    hides_expired: bool = _is("expiry.hides_from", "every-verb")
    negative_is_over: bool = _is("expiry.negative", "expired")
    found_in_last_second: bool = _is("expiry.second", "found")
    # Where values are cut, or taken by their low bits, the fact is about lines that announce too much, as in 5.6.
    refused_set_removes: bool = _resolved(
        lambda profile: profile["text.too_large_set"] == "removes-row" and profile["store.long_value"] == "error"
    )
    ignores_delay: bool = _is("flush.delay", "ignored")
    ranges: bool = _resolved(lambda profile: profile.flag("range.supported"))
    lossy_ranges: bool = _is("range.answers", "lossy")
    first_store_opens_default: bool = _is("mapping.first_store", "opens-default")
    unfit_table_is_error: bool = _is("table.unfit", "error")
    flush_tells_failure: bool = _is("flush.not_done", "error")
    lock_wait_is_error: bool = _is("lock.wait_over", "error")
    flush_on_reference: str = _resolved(lambda profile: str(profile["flush.referenced_rows"]))
    cas_misses_unfit_key: bool = _is("cas.unfit_key", "not-found")
    answers_refused_sum: bool = _is("arith.refused_by_table", "answered")
    integers_from_zero: bool = _is("arith.integer_column", "from-zero")
    answers_missing_key: bool = _is("arith.missing_key", "garbage")
    bounds_append: bool = _is("text.value_limit", "setting")
    reload_silences: bool = _is("reload.open_connections", "silent")
    failure_discards: bool = _is("batch.failed_write", "discards")
    unfit_key_fails: bool = _is("batch.unfit_key", "fails")
    switch_keeps_count: bool = _resolved(lambda profile: profile.flag("batch.switch_keeps_count"))
    counts_each_key: bool = _is("batch.multiget_counts", "keys")
    counts_ended_gets: bool = _is("batch.multiget_counts", "ended")
    write_renews_snapshot: bool = _is("isolation.first_write", "renews")
    cache_holds_rows: bool = _is("cache.holds", "what-was-committed")
    cache_ends_sums: bool = _is("cache.sum", "with-line-end")
    cache_cuts_append: bool = _is("cache.append", "cuts-two-bytes")
    cache_expires_from_start: bool = _is("cache.expiry", "from-start")
    cache_shifts_time: bool = _is("cache.table_time", "shifted-by-uptime")
    every_write_fixes_snapshot: bool = _is("isolation.snapshot", "any-command")
    first_write_fixes_snapshot: bool = _is("isolation.snapshot", "first-write-too")
    flush_commits_others: bool = _is("flush.other_batches", "committed")
    beyond_plugin: bool = _resolved(lambda profile: profile.flag("verbs.beyond_plugin"))
    dumps_empty_classes: bool = _is("stats.cachedump", "empty")
    checks_every_cas: bool = _is("binary.cas_checked_by", "every-write")
    keeps_created_expiry: bool = _is("binary.created_expiry", "kept")

    def is_over(self, expiry: int | None, now: int) -> bool:
        """Return whether an item is expired.

        Args:
            expiry: UNIX second in its row; 0, None (NULL) and negative ones never come (exp-006, exp-019).
            now: UNIX time in whole seconds.
        """
        return expiry is not None and 0 < expiry < self.expired_before(now)

    def expired_before(self, now: int) -> int:
        """Return the UNIX second before which positive expiry times are over, at a UNIX time in whole seconds."""
        return now if self.found_in_last_second else now + 1


def rules(profile: Profile) -> Rules:
    """Resolve the semantic facts of a profile."""
    return Rules(**{each.name: each.metadata["of"](profile) for each in fields(Rules)})
