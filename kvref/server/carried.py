"""What a driver over a database server carries: a connection's transaction, and a command on its way."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from kvref.semantics.ports import Cell, Lookup, Operation, Steps
from kvref.storage.mysql_link import Link
from kvref.storage.mysql_places import Spelling
from kvref.wire.replies import Reply


@dataclass(slots=True, eq=False)
class Transaction:
    """One connection's transaction.

    Args:
        link: where it is, also while a command of it runs; None: nowhere.
        written: something is written in it.
        acknowledged: by a command that was answered.
    """

    link: Link | None = None
    written: bool = False
    acknowledged: bool = False

    @property
    def open(self) -> bool:
        """Tell whether there is anything to commit."""
        return self.link is not None and self.link.in_transaction


@dataclass(slots=True, eq=False)
class Command:
    """A command on its way.

    Args:
        transaction: of its connection.
        begin: begins it, or begins it anew.
        done: takes the reply.
        steps: where it stands.
        operation: what it waits for.
        spelling: of the key that it looks up, where it waits with others for that.
        place: of that key.
        written: it has written something in the transaction that it shares.
    """

    transaction: Transaction
    begin: Callable[[], Steps]
    done: Callable[[Reply], None]
    steps: Steps
    operation: Operation
    spelling: Spelling = 0
    place: Hashable = None
    written: bool = False

    @property
    def key(self) -> Cell:
        """Return what it looks up."""
        assert isinstance(self.operation, Lookup)
        return self.operation.key
