"""Facts of a profile for the two grammars, resolved once: parsers read attributes, never fact keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref.profiles import Profile

MAX_KEY: Final = 250  # bytes, of the protocol
MAX_LINE: Final = 1 << 20  # bytes of a get line, which has no limit in the plugin, unless it is set otherwise


@dataclass(frozen=True, slots=True)
class WireRules:
    """Grammar facts of one profile.

    Args:
        checks_data_end: the data block must end in CR LF (`text.data_end`).
        swallows_refused: the data of a refused storage line is thrown away (`text.refused_data`).
        nul_ends_line: a NUL byte drops the rest of the line instead of refusing it (`text.nul`).
        lone_noreply_silent: `verbosity noreply` is not answered (`text.lone_noreply`).
        version_words_ignored: `version` may have words behind it (`text.version_words`).
        quit_words_ignored: `quit` may have words behind it (`text.quit_words`).
        names_bad_verbosity: a level that is no number is CLIENT_ERROR (`text.bad_verbosity`).
        closes_on_http: an HTTP request line closes the connection (`text.foreign_protocols`).
        closes_on_foreign: so do the first bytes of TLS, SSH, RESP and PROXY.
        wide_length: low-32-bits, error or error-from-2-31 (`text.wide_length`).
        longest_length: largest length of a data block in bytes (`text.longest_length`).
        negative_exptime: stored, error or expired (`expiry.negative`).
        wide_exptime: low-32-bits or error (`expiry.from_2_31`).
        wide_flags_wrap: flags keep their low 32 bits (`store.flags_from_2_32`).
        bad_delay_ignored: a delay that is no number counts as 0 (`flush.bad_delay`).
        value_limit: largest value in bytes, None without limit.
        limit_counts_key: the key's length counts towards it.
        swallows_too_large_noreply: the data of a storage line with noreply that is refused as too large is thrown away
            (`text.too_large_noreply`); without noreply every profile does.
        too_large_set_removes: a set beyond it removes the row (`text.too_large_set`).
        beyond_plugin: touch, gat, gats, the meta commands, cache_memlimit, refresh_certs and lru_crawler
            are there (`verbs.beyond_plugin`).
        names_unknown_opcode: the reply to one has a text (`binary.unknown_opcode`).
        short_body_is_unknown: a body shorter than key and extras is answered as an unknown opcode is
            (`binary.short_body`).
        answers_reply_magic: a noop with the magic of a reply is answered (`binary.reply_magic`).
        key_limit: bytes of the longest key.
        line_limit: bytes of the longest line.
        signed_times: times of binary requests are signed (`binary.time`).
        tls: a listener of the server has TLS.
    """

    checks_data_end: bool
    swallows_refused: bool
    nul_ends_line: bool
    lone_noreply_silent: bool
    version_words_ignored: bool
    quit_words_ignored: bool
    names_bad_verbosity: bool
    closes_on_http: bool
    closes_on_foreign: bool
    wide_length: str
    longest_length: int
    negative_exptime: str
    wide_exptime: str
    wide_flags_wrap: bool
    bad_delay_ignored: bool
    value_limit: int | None
    limit_counts_key: bool
    swallows_too_large_noreply: bool
    too_large_set_removes: bool
    beyond_plugin: bool
    names_unknown_opcode: bool
    short_body_is_unknown: bool
    answers_reply_magic: bool
    signed_times: bool
    key_limit: int = MAX_KEY
    line_limit: int = MAX_LINE
    tls: bool = False

    @property
    def takes_fast_path(self) -> bool:
        """Return whether plain commands may take the fast path, which is for the usual limits only."""
        return self.key_limit == MAX_KEY and self.line_limit >= MAX_LINE


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
        profile: whose facts count.
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
        "1048520-with-key": 1048520,
        "1048576": 1 << 20,
    }
    limit = profile["cache.value_limit" if for_cache else "text.value_limit"]
    own_engine = for_cache and limit == "1048520-with-key"
    return WireRules(
        checks_data_end=profile["text.data_end"] == "checked",
        swallows_refused=profile["text.refused_data"] == "swallowed",
        nul_ends_line=profile["text.nul"] == "ends-line",
        lone_noreply_silent=profile["text.lone_noreply"] == "silent",
        version_words_ignored=profile["text.version_words"] == "ignored",
        quit_words_ignored=profile["text.quit_words"] == "ignored",
        names_bad_verbosity=profile["text.bad_verbosity"] == "bad-format",
        closes_on_http=profile["text.foreign_protocols"] != "answered",
        closes_on_foreign=profile["text.foreign_protocols"] == "close",
        wide_length=str(profile["text.wide_length"]),
        longest_length=profile.number("text.longest_length"),
        negative_exptime=str(profile["expiry.negative"]),
        wide_exptime=str(profile["expiry.from_2_31"]),
        wide_flags_wrap=profile["store.flags_from_2_32"] == "low-32-bits",
        bad_delay_ignored=profile["flush.bad_delay"] == "ignored",
        value_limit=limits[limit],
        swallows_too_large_noreply=profile["text.too_large_noreply"] == "swallowed",
        limit_counts_key=limit == "1048520-with-key",
        too_large_set_removes=own_engine or (oversized_set_removes and profile["text.too_large_set"] == "removes-row"),
        beyond_plugin=profile.flag("verbs.beyond_plugin"),
        names_unknown_opcode=profile["binary.unknown_opcode"] == "text",
        short_body_is_unknown=profile["binary.short_body"] == "unknown-command",
        answers_reply_magic=profile["binary.reply_magic"] == "noop-answered",
        signed_times=profile["binary.time"] == "signed",
        key_limit=key_limit,
        line_limit=line_limit,
        tls=tls,
    )
