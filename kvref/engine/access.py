"""What the connections of one listener may do: which mappings they see, and whether they may write or flush."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kvref.engine.mapping import Mapping, Naming
from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError

# The words of memcached started with -F.
NO_FLUSH: Final = ClientError("flush_all not allowed")
READ_ONLY: Final = ClientError("this listener is read-only")
NO_DETAIL: Final = ClientError("stats detail not allowed: it tells keys of mappings that this listener does not have")
ONE_MAPPING: Final = ClientError("not allowed on a listener that is limited to mappings")


@dataclass(frozen=True, slots=True)
class Access:
    """Rights of the connections of a listener.

    Args:
        mappings: names of the containers they see, as if there were no others; none: all of them. Keys without a
            mapping belong to the default mapping where it is among them, else to the first.
        read_only: no row is written, and nothing that other connections see is set.
        flush: flush_all is carried out.
    """

    mappings: tuple[str, ...] = ()
    read_only: bool = False
    flush: bool = True

    def shows(self, mapping: Mapping, naming: Naming) -> bool:
        """Tell whether there is this mapping for them."""
        return not self.mappings or naming.fold(mapping.name) in map(naming.fold, self.mappings)

    def refusal(self, command: c.Command) -> ClientError | None:
        """Return the reply to a command that they may not give, None to any other one."""
        withheld = command.needs & ~self._rights
        if c.Right.FLUSH in withheld:
            return NO_FLUSH
        if c.Right.ALL_MAPPINGS in withheld:
            return NO_DETAIL if isinstance(command, c.Stats) else ONE_MAPPING
        return READ_ONLY if withheld else None

    @property
    def _rights(self) -> c.Right:
        rights = c.NO_RIGHT if self.read_only else c.Right.WRITE
        if self.flush:
            rights |= c.Right.FLUSH
        return rights if self.mappings else rights | c.Right.ALL_MAPPINGS

    def cleared(self, command: c.Command) -> c.Command:
        """Return a command without what it would write beside its answer."""
        if self.read_only and isinstance(command, c.Refused) and command.removes:
            return replace(command, removes=b"")
        return command


UNLIMITED: Final = Access()
