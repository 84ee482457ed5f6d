"""What the model goes by: settings of the endpoint, and facts of the profile in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref.profiles import Profile

TIMEOUT: Final = "innodb_lock_wait_timeout"
_FIXES: Final[dict[str, Literal["any", "first", "none"]]] = {
    "any-command": "any",
    "first-write-too": "first",
    "first-read": "none",
}
_UNKNOWN: Final = {"empty": "0x81", "text": '0x81 "Unknown command"'}


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings.

    Args:
        writes: daemon_memcached_w_batch_size.
        reads: daemon_memcached_r_batch_size.
        level: innodb_api_trx_level.
        gives_up: a request that waits for a lock is left to its timeout; else the lock is given back before.
    """

    writes: int
    reads: int
    level: int
    gives_up: bool

    @classmethod
    def of(cls, settings: Mapping[str, int]) -> Limits:
        """Read them by the plugin's names."""
        return cls(
            settings.get("daemon_memcached_w_batch_size", 1),
            settings.get("daemon_memcached_r_batch_size", 1),
            settings.get("innodb_api_trx_level", 0),
            TIMEOUT in settings,
        )

    @property
    def reads_lock(self) -> bool:
        """Return whether a read waits for who has written the row (rbatch-070)."""
        return self.level == 3 and self.reads == 1


# Each command commits itself.
ONE_BY_ONE: Final = Limits(1, 1, 0, gives_up=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """Facts.

    Args:
        failure_discards: a failed write takes the pending writes of its connection back.
        switch_keeps_count: the commit before another mapping is bound leaves the counts.
        counts_each_key: a get of several keys is that many reads.
        counts_ended_gets: a get is a read if its last word is a key.
        fresh_level_1: level 1 reads what is committed at each read.
        sees_deletes: rows that others deleted are missing at once at every level.
        first_write_renews: the first write behind reads ends the transaction of these, not their count.
        writes_fix: a write that begins a transaction fixes its snapshot as a read does: any, or the first one of the
            connection since it bound the mapping.
        flush_commits: flush_all commits the batches of all connections.
        wait_is_error: a lock not got in time is said so.
        waits: a request that meets a lock waits for as long as is set.
        row_keeps_flags: append and prepend leave the row's flags.
        makes_up_numbers: incr of a missing key answers any number.
        bound_named: the answer to a switch word names the table bound, not the default mapping's.
        strict_numbers: incr and decr refuse a text that is no number.
        decr_pads: a shorter number is filled up with blanks.
        all_switch: delete, incr and decr read `@@` too.
        full_stops: texts of some statuses of the binary protocol end in a full stop.
        unknown_opcode: status and text of the reply to an unknown opcode.
    """

    failure_discards: bool
    switch_keeps_count: bool
    counts_each_key: bool
    counts_ended_gets: bool
    fresh_level_1: bool
    sees_deletes: bool
    first_write_renews: bool
    writes_fix: Literal["any", "first", "none"]
    flush_commits: bool
    wait_is_error: bool
    waits: bool
    row_keeps_flags: bool
    makes_up_numbers: bool
    bound_named: bool
    strict_numbers: bool
    decr_pads: bool
    all_switch: bool
    full_stops: bool
    unknown_opcode: str

    @classmethod
    def of(cls, profile: Profile) -> Rules:
        """Return the rules of a profile."""
        return cls(
            failure_discards=profile["batch.failed_write"] == "discards",
            switch_keeps_count=profile.flag("batch.switch_keeps_count"),
            counts_each_key=profile["batch.multiget_counts"] == "keys",
            counts_ended_gets=profile["batch.multiget_counts"] == "ended",
            fresh_level_1=profile["isolation.level_1"] == "fresh",
            sees_deletes=profile["isolation.deleted"] == "seen",
            first_write_renews=profile["isolation.first_write"] == "renews",
            writes_fix=_FIXES[str(profile["isolation.snapshot"])],
            flush_commits=profile["flush.other_batches"] == "committed",
            wait_is_error=profile["lock.wait_over"] == "error",
            waits=profile["lock.wait"] == "setting",
            row_keeps_flags=profile["append.flags_and_expiry"] == "row",
            makes_up_numbers=profile["arith.missing_key"] == "garbage",
            bound_named=profile["mapping.switch_word_names"] == "bound",
            strict_numbers=profile["arith.text"] == "error",
            decr_pads=profile.flag("arith.decr_pads"),
            all_switch=profile["mapping.switching_verbs"] == "all",
            full_stops=profile["binary.texts"] == "full-stop",
            unknown_opcode=_UNKNOWN[str(profile["binary.unknown_opcode"])],
        )
