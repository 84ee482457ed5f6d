"""Facts of a profile for the two grammars, resolved once: parsers read attributes, never fact keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref.profiles import Profile, fact_is, resolve, resolved

MAX_KEY: Final = 250  # bytes, of the protocol
MAX_LINE: Final = 1 << 20  # bytes of a get line, which has no limit in the plugin, unless it is set otherwise


@dataclass(frozen=True, slots=True)
class WireRules:
    """Grammar facts of one profile, which facts.toml explains, and what settings of the server make of them.

    Args:
        value_limit: largest value in bytes, None without limit.
        limit_counts_key: the key's length counts towards it.
        too_large_set_removes: a set beyond it removes the row.
        key_limit: bytes of the longest key.
        line_limit: bytes of the longest line.
        tls: a listener of the server has TLS.
    """

    value_limit: int | None
    limit_counts_key: bool
    too_large_set_removes: bool
    checks_data_end: bool = fact_is("text.data_end", "checked")
    swallows_refused: bool = fact_is("text.refused_data", "swallowed")
    nul_ends_line: bool = fact_is("text.nul", "ends-line")
    lone_noreply_silent: bool = fact_is("text.lone_noreply", "silent")
    version_words_ignored: bool = fact_is("text.version_words", "ignored")
    quit_words_ignored: bool = fact_is("text.quit_words", "ignored")
    names_bad_verbosity: bool = fact_is("text.bad_verbosity", "bad-format")
    closes_on_http: bool = resolved(lambda profile: profile["text.foreign_protocols"] != "answered")
    closes_on_foreign: bool = fact_is("text.foreign_protocols", "close")
    wide_length: str = resolved(lambda profile: str(profile["text.wide_length"]))
    longest_length: int = resolved(lambda profile: profile.number("text.longest_length"))
    negative_exptime: str = resolved(lambda profile: str(profile["expiry.negative"]))
    wide_exptime: str = resolved(lambda profile: str(profile["expiry.from_2_31"]))
    wide_flags_wrap: bool = fact_is("store.flags_from_2_32", "low-32-bits")
    bad_delay_ignored: bool = fact_is("flush.bad_delay", "ignored")
    swallows_too_large_noreply: bool = fact_is("text.too_large_noreply", "swallowed")
    beyond_plugin: bool = resolved(lambda profile: profile.flag("verbs.beyond_plugin"))
    names_unknown_opcode: bool = fact_is("binary.unknown_opcode", "text")
    short_body_is_unknown: bool = fact_is("binary.short_body", "unknown-command")
    answers_reply_magic: bool = fact_is("binary.reply_magic", "noop-answered")
    signed_times: bool = fact_is("binary.time", "signed")
    key_limit: int = MAX_KEY
    line_limit: int = MAX_LINE
    tls: bool = False


def wire_rules(
    profile: Profile,
    item_size_max: int,
    *,
    for_cache: bool = False,
    key_limit: int = MAX_KEY,
    line_limit: int = MAX_LINE,
    oversized_set_removes: bool = True,
    tls: bool = False,
) -> WireRules:
    """Resolve the grammar facts of a profile.

    Args:
        item_size_max: the server's setting in bytes, used where the profile says `setting`.
        for_cache: what is stored goes into the memory cache, alone or too (more:policy-111, more:policy-167).
        key_limit: bytes of the longest key, at most the protocol's.
        line_limit: bytes of the longest line.
        oversized_set_removes: a set that is too large removes its row where the profile says so.
        tls: a listener of the server has TLS.
    """
    limits: dict[object, int | None] = {
        "none": None,
        "setting": item_size_max,
        "1048517-with-key": 1048517,
        "1048520-with-key": 1048520,
    }
    limit = profile["cache.value_limit" if for_cache else "text.value_limit"]
    own_engine = for_cache and limit == "1048520-with-key"
    return WireRules(
        **resolve(WireRules, profile),
        value_limit=limits[limit],
        limit_counts_key=str(limit).endswith("-with-key"),
        too_large_set_removes=own_engine or (oversized_set_removes and profile["text.too_large_set"] == "removes-row"),
        key_limit=key_limit,
        line_limit=line_limit,
        tls=tls,
    )
