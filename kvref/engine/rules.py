"""Facts of a profile for the semantics, resolved once: verbs read attributes, never fact keys."""

from __future__ import annotations

from dataclasses import dataclass

import kvref
from kvref.profiles import Profile

# The memcached whose commands the default profile has, in front of kvref's own release.
MEMCACHED_LEVEL = "1.6.0"


@dataclass(frozen=True, slots=True)
class Rules:
    """Facts of one profile that decide what a command means."""

    release: str
    all_verbs_switch: bool
    shortest_word: int
    names_bound_table: bool
    each_word_switches: bool
    delimiter_is_string: bool
    refuses_empty_key: bool
    cuts_keys: bool
    cuts_values: bool
    malformed_text: str
    surrogates_are_text: bool
    signed_keys: bool
    refusal_is_error: bool
    renames_key: bool
    clears_unmapped: bool
    wraps_integers: bool
    separator_is_string: bool
    drops_surplus: bool
    append_takes_request: bool
    append_joined: bool
    counts_leading_number: bool
    saturates: bool
    narrow_delta: bool
    cuts_results: bool
    longest_relative: int
    hides_expired: bool
    negative_is_over: bool
    found_in_last_second: bool
    refused_set_removes: bool
    ignores_delay: bool
    ranges: bool
    lossy_ranges: bool
    first_store_opens_default: bool
    unfit_table_is_error: bool
    flush_tells_failure: bool
    lock_wait_is_error: bool
    flush_on_reference: str
    cas_misses_unfit_key: bool
    answers_refused_sum: bool
    integers_from_zero: bool
    answers_missing_key: bool
    bounds_append: bool
    reload_silences: bool
    failure_discards: bool
    unfit_key_fails: bool
    switch_keeps_count: bool
    counts_each_key: bool
    write_renews_snapshot: bool
    cache_holds_rows: bool
    cache_ends_sums: bool
    cache_cuts_append: bool
    cache_expires_from_start: bool
    cache_shifts_time: bool
    every_write_fixes_snapshot: bool
    first_write_fixes_snapshot: bool
    flush_commits_others: bool
    beyond_plugin: bool
    dumps_empty_classes: bool
    checks_every_cas: bool
    keeps_created_expiry: bool

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
    release = str(profile["identity.version"])
    return Rules(
        release=f"{MEMCACHED_LEVEL}+{kvref.__version__}-kvref" if release == "own" else release,
        all_verbs_switch=profile["mapping.switching_verbs"] == "all",
        shortest_word=profile.number("mapping.shortest_word"),
        names_bound_table=profile["mapping.switch_word_names"] == "bound",
        each_word_switches=profile["mapping.words_in_one_get"] == "each",
        delimiter_is_string=profile["mapping.delimiter"] == "string",
        refuses_empty_key=profile["mapping.empty_key"] == "error",
        cuts_keys=profile["store.long_key"] == "cut",
        cuts_values=profile["store.long_value"] == "cut",
        malformed_text=str(profile["store.malformed_text"]),
        surrogates_are_text=profile["store.surrogates"] == "text",
        signed_keys=profile["store.key_number"] == "signed-64",
        refusal_is_error=profile["store.refused_by_table"] == "error",
        renames_key=profile.flag("store.renames_key"),
        clears_unmapped=profile["store.unmapped_columns"] == "null",
        wraps_integers=profile["store.integer_text"] == "low-bits",
        separator_is_string=profile["columns.separator"] == "string",
        drops_surplus=profile["columns.surplus"] == "dropped",
        append_takes_request=profile["append.flags_and_expiry"] == "request",
        append_joined=profile["append.columns"] == "joined",
        counts_leading_number=profile["arith.text"] == "leading-number",
        # An uninitialised number is never imitated: that profile refuses too, and stores nothing as it did.
        saturates=profile["arith.beyond_64_bits"] == "largest",
        narrow_delta=profile["arith.delta"] == "low-32-bits",
        cuts_results=profile["arith.long_result"] == "cut",
        longest_relative=profile.number("expiry.longest_relative"),
        hides_expired=profile["expiry.hides_from"] == "every-verb",
        # Where values are cut, or taken by their low bits, the fact is about lines that announce too much, as in 5.6.
        refused_set_removes=profile["text.too_large_set"] == "removes-row" and profile["store.long_value"] == "error",
        found_in_last_second=profile["expiry.second"] == "found",
        negative_is_over=profile["expiry.negative"] == "expired",
        ignores_delay=profile["flush.delay"] == "ignored",
        ranges=profile.flag("range.supported"),
        lossy_ranges=profile["range.answers"] == "lossy",
        first_store_opens_default=profile["mapping.first_store"] == "opens-default",
        unfit_table_is_error=profile["table.unfit"] == "error",
        flush_tells_failure=profile["flush.not_done"] == "error",
        lock_wait_is_error=profile["lock.wait_over"] == "error",
        flush_on_reference=str(profile["flush.referenced_rows"]),
        cas_misses_unfit_key=profile["cas.unfit_key"] == "not-found",
        answers_refused_sum=profile["arith.refused_by_table"] == "answered",
        integers_from_zero=profile["arith.integer_column"] == "from-zero",
        answers_missing_key=profile["arith.missing_key"] == "garbage",
        bounds_append=profile["text.value_limit"] == "setting",
        reload_silences=profile["reload.open_connections"] == "silent",
        failure_discards=profile["batch.failed_write"] == "discards",
        unfit_key_fails=profile["batch.unfit_key"] == "fails",
        switch_keeps_count=profile.flag("batch.switch_keeps_count"),
        counts_each_key=profile["batch.multiget_counts"] == "keys",
        write_renews_snapshot=profile["isolation.first_write"] == "renews",
        cache_holds_rows=profile["cache.holds"] == "what-was-committed",
        cache_ends_sums=profile["cache.sum"] == "with-line-end",
        cache_cuts_append=profile["cache.append"] == "cuts-two-bytes",
        cache_expires_from_start=profile["cache.expiry"] == "from-start",
        cache_shifts_time=profile["cache.table_time"] == "shifted-by-uptime",
        every_write_fixes_snapshot=profile["isolation.snapshot"] == "any-command",
        first_write_fixes_snapshot=profile["isolation.snapshot"] == "first-write-too",
        flush_commits_others=profile["flush.other_batches"] == "committed",
        beyond_plugin=profile.flag("verbs.beyond_plugin"),
        dumps_empty_classes=profile["stats.cachedump"] == "empty",
        checks_every_cas=profile["binary.cas_checked_by"] == "every-write",
        keeps_created_expiry=profile["binary.created_expiry"] == "kept",
    )
