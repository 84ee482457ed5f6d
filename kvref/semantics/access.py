"""What the connections of one listener may do: which mappings they see, and whether they may write or flush."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kvref.semantics.mapping import Mapping, Naming
from kvref.wire import commands as c
from kvref.wire.replies import ClientError

# The words of memcached started with -F.
NO_FLUSH: Final = ClientError("flush_all not allowed")
READ_ONLY: Final = ClientError("this listener is read-only")
NO_DETAIL: Final = ClientError("stats detail not allowed: it tells keys of mappings that this listener does not have")
_WRITES: Final = (
    c.Store, c.Arithmetic, c.Delete, c.Touch, c.GetAndTouch, c.MetaSet, c.MetaDelete, c.MetaArithmetic, c.FlushAll,
)  # fmt: skip


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
        if isinstance(command, c.FlushAll) and not self.flush:
            return NO_FLUSH
        if self.mappings and isinstance(command, c.Stats) and command.words[:1] == [b"detail"]:
            return NO_DETAIL
        if not self.read_only:
            return None
        gives_time = isinstance(command, c.MetaGet) and not (command.exptime is None and command.vivify is None)
        return READ_ONLY if gives_time or isinstance(command, _WRITES) or _sets_for_all(command) else None

    def cleared(self, command: c.Command) -> c.Command:
        """Return a command without what it would write beside its answer."""
        if self.read_only and isinstance(command, c.Refused) and command.removes:
            return replace(command, removes=b"")
        return command


def _sets_for_all(command: c.Command) -> bool:
    """Tell whether a command changes what the whole server counts, or how it answers."""
    match command:
        case c.Stats(words=[b"reset", *_] | [b"detail", b"on" | b"off", *_]):
            return True
        case c.VBucket(verb=verb):
            return verb != "get"
        case _:
            return False


UNLIMITED: Final = Access()
