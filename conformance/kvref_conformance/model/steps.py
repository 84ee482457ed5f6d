"""The steps that the model takes: commands, connections that open and close, SQL statements.

`encodings.py` has the bytes of a command in each protocol.
Words, names of mappings and of tables are those of the endpoint. Texts are bytes, one character each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

# Who holds the locks of an open SQL transaction, and who waits with a statement that commits itself.
SQL: Final = "sql"
AUTOCOMMIT: Final = "SQL"
STORES: Final = ("set", "add", "replace", "append", "prepend")
# Protocols of a command: meta commands are sent on connections of the text protocol.
TEXT: Final = "text"
BINARY: Final = "binary"
META: Final = "meta"


@dataclass(frozen=True, slots=True)
class Open:
    """Connect, and bind a mapping if there is one."""

    on: str
    mapping: str = ""
    protocol: str = TEXT

    def __str__(self) -> str:
        return f"{self.on}: connect{f', bind {self.mapping}' if self.mapping else ''}"


@dataclass(frozen=True, slots=True)
class Close:
    """End a connection: by `quit`, or by closing this side."""

    on: str
    quits: bool = False

    def __str__(self) -> str:
        return f"{self.on}: {'quit' if self.quits else 'close'}"


@dataclass(frozen=True, slots=True)
class Command:
    """A request of a client, whatever the protocol.

    Args:
        on: name of the connection.
        protocol: how it is written; a connection with binary commands has no others.
    """

    on: str
    protocol: str = field(default=TEXT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Bind(Command):
    """Bind a mapping, known or unknown, by `bind`."""

    name: str


@dataclass(frozen=True, slots=True)
class Get(Command):
    """Read items; a word may name a mapping alone.

    Args:
        words: several in the text protocol only.
        cas: the reply has the cas number, which it has in the binary protocol in any case.
        expiry: new expiry time of the items; None: they keep theirs.
        silent: a miss is not answered, except in the text protocol.
        named: the reply repeats the word, as it does in the text protocol in any case.
    """

    words: tuple[str, ...]
    cas: bool = False
    expiry: int | None = None
    silent: bool = False
    named: bool = False


@dataclass(frozen=True, slots=True)
class Store(Command):
    """Any storage verb.

    Args:
        verb: of the text protocol; `cas` sends the number that this connection has seen last.
        word: key, or mapping and key.
        value: to store.
        flags: to store; the binary protocol sends none with append and prepend.
        expiry: as sent.
        silent: not answered; in the binary protocol and by meta commands only a success is not.
        stale: `cas` sends a number that no row has.
    """

    verb: str
    word: str
    value: str
    flags: int = 0
    expiry: int = 0
    silent: bool = False
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Count(Command):
    """`incr` or `decr`; `initial` is stored if there is no item, None: nothing is. The text protocol has no initial."""

    verb: str
    word: str
    amount: str
    silent: bool = False
    initial: int | None = None


@dataclass(frozen=True, slots=True)
class Delete(Command):
    """Delete a key."""

    word: str
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Touch(Command):
    """Give an item another expiry time; silent in the text protocol only."""

    word: str
    expiry: int
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Unknown(Command):
    """Send what is not a command."""


@dataclass(frozen=True, slots=True)
class Flush(Command):
    """Empty the table of the bound mapping; the rows between the keys are put back over SQL."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read every row over SQL, what is committed or, dirty, what is there."""

    dirty: bool = False

    def __str__(self) -> str:
        return f"SQL: SELECT of all rows at {'READ UNCOMMITTED' if self.dirty else 'READ COMMITTED'}"


@dataclass(frozen=True, slots=True)
class Change:
    """Insert, update or delete a row over SQL: committed at once, or within a transaction, begun where none is open."""

    verb: str
    table: str
    key: str
    value: str = ""
    within: bool = False

    def __str__(self) -> str:
        place = f"{self.verb.upper()} {self.table} {self.key} {self.value}".rstrip()
        return f"SQL: {place}{', in a transaction' if self.within else ''}"


@dataclass(frozen=True, slots=True)
class End:
    """Commit the open SQL transaction or roll it back."""

    commit: bool

    def __str__(self) -> str:
        return f"SQL: {'COMMIT' if self.commit else 'ROLLBACK'}"


Locking: TypeAlias = Get | Store | Count | Delete | Touch
Request: TypeAlias = Locking | Bind | Flush | Unknown
Statement: TypeAlias = Read | Change | End
Step: TypeAlias = Open | Close | Request | Statement
