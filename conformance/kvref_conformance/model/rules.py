"""What the model goes by: settings of the endpoint, and facts of the profile in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref.profiles import Profile

TIMEOUT: Final = "innodb_lock_wait_timeout"
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
    def of(cls, settings: Mapping[str, int], profile: Profile) -> Limits:
        """Read them by the plugin's names; what is not set has the default of the profile."""
        return cls(
            settings.get("daemon_memcached_w_batch_size", 1),
            settings.get("daemon_memcached_r_batch_size", 1),
            settings.get("innodb_api_trx_level", profile.number("isolation.default_level")),
            TIMEOUT in settings,
        )

    @property
    def reads_lock(self) -> bool:
        """Return whether a read waits for who has written the row (rbatch-070)."""
        return self.level == 3 and self.reads == 1


# Each command commits itself.
ONE_BY_ONE: Final = Limits(1, 1, 0, gives_up=False)


class Rules:
    """What the facts of a profile mean to the model.

    Args:
        profile: facts in force.
    """

    def __init__(self, profile: Profile) -> None:
        # A failed write takes the pending writes of its connection back.
        self.failure_discards = profile["batch.failed_write"] == "discards"
        # The commit before another mapping is bound leaves the counts.
        self.switch_keeps_count = profile.flag("batch.switch_keeps_count")
        # A get of several keys is that many reads.
        self.counts_each_key = profile["batch.multiget_counts"] == "keys"
        # A get is a read if its last word is a key.
        self.counts_ended_gets = profile["batch.multiget_counts"] == "ended"
        # Level 1 reads what is committed at each read.
        self.fresh_level_1 = profile["isolation.level_1"] == "fresh"
        # Rows that others deleted are missing at once at every level.
        self.sees_deletes = profile["isolation.deleted"] == "seen"
        # The first write behind reads ends the transaction of these, not their count.
        self.first_write_renews = profile["isolation.first_write"] == "renews"
        # Which write fixes the snapshot of the transaction that it begins as a read does: any-command, first-write-too
        # (the connection's first one since it bound the mapping) or first-read (none).
        self.writes_fix = profile["isolation.snapshot"]
        # `flush_all` commits the batches of all connections.
        self.flush_commits = profile["flush.other_batches"] == "committed"
        # A lock that is not acquired in time is reported as an error.
        self.wait_is_error = profile["lock.wait_over"] == "error"
        # A request that meets a lock waits for as long as is set.
        self.waits = profile["lock.wait"] == "setting"
        # `append` and `prepend` leave the row's flags.
        self.row_keeps_flags = profile["append.flags_and_expiry"] == "row"
        # `incr` of a missing key answers any number.
        self.makes_up_numbers = profile["arith.missing_key"] == "garbage"
        # `incr` and `decr` refuse a text that is not a number.
        self.strict_numbers = profile["arith.text"] == "error"
        # A shorter number is filled up with blanks.
        self.decr_pads = profile.flag("arith.decr_pads")
        # `delete`, `incr` and `decr` read `@@` too.
        self.all_switch = profile["mapping.switching_verbs"] == "all"
        # Texts of some statuses of the binary protocol end in a full stop.
        self.full_stops = profile["binary.texts"] == "full-stop"
        # Status and text of the reply to an unknown opcode.
        self.unknown_opcode = _UNKNOWN[str(profile["binary.unknown_opcode"])]
