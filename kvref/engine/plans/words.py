"""Which commands of a connection may be planned, and which of its words name a row of the mapping in force."""

from __future__ import annotations

from types import UnionType
from typing import Final

from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import Mapping
from kvref.engine.session import Session
from kvref.protocol import commands as c

# Any get and any set, for rules that depend on no row.
_GET: Final = c.Get([], with_cas=False)
_SET: Final = c.Store("set", b"", 0, 0, b"")


def ordinary_mapping(session: Session) -> Mapping | None:
    """Return the mapping in force of a session, None where a get or a set may mean more than one row of it."""
    policies = session.shared.directory.policies
    if policies.of(_GET) is not Policy.TABLE or policies.of(_SET) is not Policy.TABLE:
        return None
    mapping = session.plannable_mapping
    if mapping is None or mapping.fault or mapping.unsearchable or mapping.beginning:
        return None
    return mapping


class Words:
    """The words of all connections with one mapping in force, bound alike and with the same rights.

    Args:
        session: of any of them.
        planned: the kind of command that may be planned.

    Attributes:
        session: with the same rights and mapping.
        name: in front of keys in words that name the mapping, empty until one was seen.
    """

    def __init__(self, session: Session, planned: type | UnionType = object) -> None:
        self.session = self._session = session.clone()  # the other one ends with its connection
        if not session.shared.sticky_mapping:
            self._session.start()  # a name binds nothing, also that of a first command
        self._planned = planned
        self._directory = session.shared.directory
        self.name = b""
        self._generation = self._directory.generation

    def runs(self, command: c.Command) -> bool:
        """Return whether a command may be planned: it is of that kind, for the table, and the listener permits it."""
        if not (isinstance(command, self._planned) and self.leads_to_table(command)):
            return False
        return self._session.access.refusal(command) is None

    def leads_to_table(self, command: c.Command) -> bool:
        """Return whether the cache policies of a command lead to the table."""
        return self._directory.policies.of(command) is Policy.TABLE

    def key_of_bound(self, word: bytes) -> bytes | None:
        name = self.name
        if not (name and word.startswith(name)):
            key = self._session.key_of_bound(word)
            if key is not None:
                self.name = self._session.name_of_bound(word) or name
            return key
        # As `Session.key_of_bound` without a look at each part.
        return (word[len(name) :] or None) if self._directory.generation == self._generation else None
