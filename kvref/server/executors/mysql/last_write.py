"""What a client's connection has written last, so that a secondary answers its gets only once it has that too."""

from __future__ import annotations


class LastWrite:
    """The last write of one client connection, with reads=session.

    A secondary of a group executes transactions in the order of their commits (`replica_preserve_commit_order`, which
    Group Replication requires): the last write is there after all earlier ones.

    Attributes:
        gtid: of its commit; None: the connection has written nothing; "": not known, so that only the primary is
            certain to have it. A write that leaves every column as it is has no GTID, and its row may be younger than
            what a secondary has.
        reached: the connection to a secondary that has executed it.
    """

    __slots__ = ("gtid", "reached")

    def __init__(self) -> None:
        self.gtid: str | None = None
        self.reached: object = None

    def note(self, gtid: str) -> None:
        """Record a commit, or one whose outcome is not known."""
        self.gtid, self.reached = gtid, None
