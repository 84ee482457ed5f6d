"""What the connections of one listener may do: which mappings they see, and whether they may write or flush."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from kvref.engine.mapping import Mapping, Naming
from kvref.protocol import commands as c
from kvref.protocol.command_table import needs
from kvref.protocol.replies import ClientError, Line

# The words of memcached started with -F.
NO_FLUSH: Final = ClientError("flush_all not allowed")
# Those of memcached started with -X.
NO_DUMP: Final = Line(b"ERROR metadump not allowed")
READ_ONLY: Final = ClientError("this listener is read-only")
NO_DETAIL: Final = ClientError("stats detail not allowed: it tells keys of mappings that this listener does not have")
NO_CLIENTS: Final = ClientError("stats conns not allowed on a listener that is limited")
ONE_MAPPING: Final = ClientError("not allowed on a listener that is limited to mappings")


@dataclass(frozen=True, slots=True)
class Access:
    """Rights of the connections of a listener.

    Args:
        mappings: names of the containers they see, as if there were no others; none: all of them. Keys without a
            mapping belong to the default mapping where it is among them, else to the first.
        read_only: no row is written, and nothing that other connections see is set.
        flush: flush_all is carried out.
        list_keys: all keys of a table may be listed; None: unless anything else is withheld.

    Attributes:
        rights: what all of that permits.
    """

    mappings: tuple[str, ...] = ()
    read_only: bool = False
    flush: bool = True
    list_keys: bool | None = None
    rights: c.Right = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rights = c.NO_RIGHT if self.read_only else c.Right.WRITE
        if self.flush:
            rights |= c.Right.FLUSH
        if not self.mappings:
            rights |= c.Right.ALL_MAPPINGS
        whole = rights == c.EVERY_RIGHT & ~(c.Right.LIST_KEYS | c.Right.LIST_CLIENTS)
        if whole:
            rights |= c.Right.LIST_CLIENTS
        lists = whole if self.list_keys is None else self.list_keys
        object.__setattr__(self, "rights", rights | c.Right.LIST_KEYS if lists else rights)

    def includes(self, mapping: Mapping, naming: Naming) -> bool:
        """Return whether there is this mapping for them."""
        return not self.mappings or naming.fold(mapping.name) in map(naming.fold, self.mappings)

    def refusal(self, command: c.Command) -> ClientError | Line | None:
        """Return the reply to a command that they may not give, None to any other one."""
        withheld = needs(command) & ~self.rights
        if c.Right.FLUSH in withheld:
            return NO_FLUSH
        if c.Right.ALL_MAPPINGS in withheld:
            return NO_DETAIL if isinstance(command, c.Stats) else ONE_MAPPING
        if c.Right.WRITE in withheld:
            return READ_ONLY
        if c.Right.LIST_CLIENTS in withheld:
            return NO_CLIENTS
        return NO_DUMP if withheld else None

    def cleared(self, command: c.Command) -> c.Command:
        """Return a command without the removal of a row that a rejected set would cause."""
        if self.read_only and isinstance(command, c.Refused) and command.removes:
            return replace(command, removes=b"")
        return command


UNLIMITED: Final = Access()
