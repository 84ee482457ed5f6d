"""What a new connection of the store is told beside what `mysql_login.py` tells every one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def prepare(say: Callable[[str], list[tuple[Any, ...]]], *, brief: bool, checks_act: bool) -> int:
    """Set what the store's statements expect of a session; returns how many bytes one of them may have.

    Args:
        say: carries out a statement and returns its rows.
        brief: it waits no longer than a second for any lock.
        checks_act: CHECK constraints do.
    """
    ((longest,),) = say("SELECT @@max_allowed_packet")
    if brief:
        say("SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
    if not checks_act and "MariaDB" in str(say("SELECT VERSION()")):
        say("SET SESSION check_constraint_checks = OFF")  # MySQL has no such switch
    if say("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
        # A write takes the newest row, whatever the snapshot shows (iso-024); MariaDB would refuse it.
        say("SET SESSION innodb_snapshot_isolation = OFF")
    return int(longest)
