"""The configuration of a run: the servers' version, protocol and options, and what is not drawn for their sake."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kvref_conformance.differential import exclusions
from kvref_conformance.strategies.palette import EVERYTHING, Palette

# Protocols of the connections of a conversation.
TEXT: Final = "text"
BINARY: Final = "binary"
MIXED: Final = "mixed"
PROTOCOLS: Final = (TEXT, BINARY, MIXED)
# Options of servers on which several writes and reads make a transaction; no background commit ends it.
BATCHES: Final = (
    "--daemon_memcached_w_batch_size=4",
    "--daemon_memcached_r_batch_size=7",
    "--innodb_api_bk_commit_interval=100000",
)
_SHORT_INDEX_BYTES: Final = 767
_VINDEX_CHARSETS: Final = {"": 6.0, "utf8mb4": 5.2, "utf8": 2.6}
_VINDEX_COLLATIONS: Final = {
    "utf8mb4": ("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci"),
    "utf8": ("utf8_general_ci", "utf8_unicode_ci", "utf8_unicode_520_ci"),
    "newer": ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin"),
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a run.

    Args:
        version: version of the MySQL server whose defaults the tables use.
        rules: names of the active rules of `exclusions.toml`.
        protocol: one of PROTOCOLS; mixed: each connection uses one or the other.
        batches: the servers run with `BATCHES`.
    """

    version: str
    rules: frozenset[str]
    protocol: str = TEXT
    batches: bool = False

    @property
    def palette(self) -> Palette:
        """Return everything but what the active rules exclude."""
        charsets = dict(EVERYTHING.charsets)
        if exclusions.WELL_FORMED in self.rules:
            charsets["latin1"] += charsets.pop("ascii")
        integers = EVERYTHING.value_integers
        if exclusions.UNSIGNED_VALUES in self.rules:
            integers = [each for each in integers if "UNSIGNED" not in each or "BIG" in each]
        by_shard = exclusions.KEY_OF_VINDEX in self.rules
        old = self.version.startswith("5.")
        return replace(
            EVERYTHING,
            version=self.version,
            charsets=charsets,
            collations={name: each for name, each in EVERYTHING.collations.items() if not (old and name == "newer")},
            value_integers=integers,
            signed_not_null=exclusions.UNSIGNED_NOT_NULL in self.rules,
            nullable_integer_keys=exclusions.INTEGER_KEY_NULL not in self.rules,
            max_index_bytes=_SHORT_INDEX_BYTES if exclusions.SHORT_INDEX in self.rules else None,
            key_charsets=_VINDEX_CHARSETS if by_shard else None,
            key_collations=_VINDEX_COLLATIONS if by_shard else None,
            indexes={
                each: weight for each, weight in EVERYTHING.indexes.items() if not (by_shard and each == "beside")
            },
        )
