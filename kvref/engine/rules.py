"""Facts of a profile for the semantics, resolved once: verbs read attributes, never fact keys."""

from __future__ import annotations

from dataclasses import dataclass

import kvref
from kvref.profiles import Profile, fact_is, resolve, resolved

# The memcached whose commands the default profile has, in front of kvref's own release.
MEMCACHED_LEVEL = "1.6.0"


def _release(profile: Profile) -> str:
    release = str(profile["identity.version"])
    return f"{MEMCACHED_LEVEL}+{kvref.__version__}-kvref" if release == "own" else release


@dataclass(frozen=True, slots=True)
class Rules:
    """Facts of one profile that decide what a command means."""

    release: str = resolved(_release)
    all_verbs_switch: bool = fact_is("mapping.switching_verbs", "all")
    shortest_word: int = resolved(lambda profile: profile.number("mapping.shortest_word"))
    names_bound_table: bool = fact_is("mapping.switch_word_names", "bound")
    each_word_switches: bool = fact_is("mapping.words_in_one_get", "each")
    delimiter_is_string: bool = fact_is("mapping.delimiter", "string")
    refuses_empty_key: bool = fact_is("mapping.empty_key", "error")
    cuts_keys: bool = fact_is("store.long_key", "cut")
    cuts_values: bool = fact_is("store.long_value", "cut")
    malformed_text: str = resolved(lambda profile: str(profile["store.malformed_text"]))
    surrogates_are_text: bool = fact_is("store.surrogates", "text")
    signed_keys: bool = fact_is("store.key_number", "signed-64")
    refusal_is_error: bool = fact_is("store.refused_by_table", "error")
    renames_key: bool = resolved(lambda profile: profile.flag("store.renames_key"))
    clears_unmapped: bool = fact_is("store.unmapped_columns", "null")
    wraps_integers: bool = fact_is("store.integer_text", "low-bits")
    separator_is_string: bool = fact_is("columns.separator", "string")
    drops_surplus: bool = fact_is("columns.surplus", "dropped")
    append_takes_request: bool = fact_is("append.flags_and_expiry", "request")
    append_joined: bool = fact_is("append.columns", "joined")
    counts_leading_number: bool = fact_is("arith.text", "leading-number")
    # An uninitialised number is never imitated: that profile refuses too, and stores nothing as it did.
    saturates: bool = fact_is("arith.beyond_64_bits", "largest")
    narrow_delta: bool = fact_is("arith.delta", "low-32-bits")
    cuts_results: bool = fact_is("arith.long_result", "cut")
    longest_relative: int = resolved(lambda profile: profile.number("expiry.longest_relative"))
    writes_check_expiry: bool = fact_is("expiry.hides_from", "every-verb")
    negative_is_expired: bool = fact_is("expiry.negative", "expired")
    found_in_last_second: bool = fact_is("expiry.second", "found")
    # Where values are cut, or taken by their low bits, the fact is about lines that announce too much, as in 5.6.
    refused_set_removes: bool = resolved(
        lambda profile: profile["text.too_large_set"] == "removes-row" and profile["store.long_value"] == "error"
    )
    ignores_delay: bool = fact_is("flush.delay", "ignored")
    ranges: bool = resolved(lambda profile: profile.flag("range.supported"))
    lossy_ranges: bool = fact_is("range.answers", "lossy")
    first_store_opens_default: bool = fact_is("mapping.first_store", "opens-default")
    unfit_table_is_error: bool = fact_is("table.unfit", "error")
    flush_reports_failure: bool = fact_is("flush.not_done", "error")
    lock_wait_is_error: bool = fact_is("lock.wait_over", "error")
    flush_on_reference: str = resolved(lambda profile: str(profile["flush.referenced_rows"]))
    cas_misses_unfit_key: bool = fact_is("cas.unfit_key", "not-found")
    answers_refused_sum: bool = fact_is("arith.refused_by_table", "answered")
    integers_from_zero: bool = fact_is("arith.integer_column", "from-zero")
    answers_missing_key: bool = fact_is("arith.missing_key", "garbage")
    bounds_append: bool = fact_is("text.value_limit", "setting")
    reload_silences: bool = fact_is("reload.open_connections", "silent")
    failure_discards: bool = fact_is("batch.failed_write", "discards")
    unfit_key_fails: bool = fact_is("batch.unfit_key", "fails")
    switch_preserves_count: bool = resolved(lambda profile: profile.flag("batch.switch_keeps_count"))
    counts_each_key: bool = fact_is("batch.multiget_counts", "keys")
    counts_ended_gets: bool = fact_is("batch.multiget_counts", "ended")
    write_renews_snapshot: bool = fact_is("isolation.first_write", "renews")
    cache_holds_rows: bool = fact_is("cache.holds", "what-was-committed")
    cache_ends_sums: bool = fact_is("cache.sum", "with-line-end")
    cache_cuts_append: bool = fact_is("cache.append", "cuts-two-bytes")
    cache_expires_from_start: bool = fact_is("cache.expiry", "from-start")
    cache_shifts_time: bool = fact_is("cache.table_time", "shifted-by-uptime")
    every_write_fixes_snapshot: bool = fact_is("isolation.snapshot", "any-command")
    first_write_fixes_snapshot: bool = fact_is("isolation.snapshot", "first-write-too")
    flush_commits_others: bool = fact_is("flush.other_batches", "committed")
    beyond_plugin: bool = resolved(lambda profile: profile.flag("verbs.beyond_plugin"))
    counts_by_beginning: bool = fact_is("stats.prefixes", "beginning")
    dumps_empty_classes: bool = fact_is("stats.cachedump", "empty")
    checks_every_cas: bool = fact_is("binary.cas_checked_by", "every-write")
    stores_created_expiry: bool = fact_is("binary.created_expiry", "kept")

    def is_expired(self, expiry: int | None, now: int) -> bool:
        """Return whether an expiry, a UNIX second, is over; 0, NULL and negative ones never are (columns:exp-006)."""
        return expiry is not None and 0 < expiry < self.expired_before(now)

    def expired_before(self, now: int) -> int:
        """Return the UNIX second before which positive expiry times are over, at a UNIX time in whole seconds."""
        return now if self.found_in_last_second else now + 1


def rules(profile: Profile) -> Rules:
    return Rules(**resolve(Rules, profile))
