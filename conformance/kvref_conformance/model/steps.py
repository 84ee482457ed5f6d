"""The steps that the model takes: commands of the text protocol, connections that open and close, SQL statements.

Words, names of mappings and of tables are those of the endpoint. Texts are bytes, one character each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

# Who holds the locks of an open SQL transaction, and who waits with a statement that commits itself.
SQL: Final = "sql"
AUTOCOMMIT: Final = "SQL"
STORES: Final = ("set", "add", "replace", "append", "prepend")
UNKNOWN_VERB: Final = "no-such-verb"


@dataclass(frozen=True, slots=True)
class Open:
    """Connect, and bind a mapping if there is one."""

    on: str
    mapping: str = ""

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
class Bind:
    """Bind a mapping, known or unknown, by `bind`."""

    on: str
    name: str

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Get:
    """Read by `get`, `gets` (with cas) or `gat` (with an expiry time); a word may name a mapping alone."""

    on: str
    words: tuple[str, ...]
    cas: bool = False
    expiry: int | None = None

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Store:
    """Any storage verb; `cas` sends the number that this connection has seen last, or, stale, one that no row has."""

    on: str
    verb: str
    word: str
    value: str
    flags: int = 0
    expiry: int = 0
    silent: bool = False
    stale: bool = False

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Count:
    """`incr` or `decr`."""

    on: str
    verb: str
    word: str
    amount: str
    silent: bool = False

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a key."""

    on: str
    word: str
    silent: bool = False

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Touch:
    """Give an item another expiry time."""

    on: str
    word: str
    expiry: int
    silent: bool = False

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Send a line that is no command."""

    on: str

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Flush:
    """Empty the table of the bound mapping; the rows between the keys are put back over SQL."""

    on: str

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, slots=True)
class Look:
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
Statement: TypeAlias = Look | Change | End
Step: TypeAlias = Open | Close | Request | Statement


def request(step: Request, number: int | str = 0) -> str:
    """Return what is sent for a command.

    Args:
        step: the command.
        number: the cas number that a `cas` sends.
    """
    match step:
        case Bind():
            return f"bind {step.name}\r\n"
        case Get():
            verb = "gets" if step.cas else "get" if step.expiry is None else f"gat {step.expiry}"
            return f"{verb} {' '.join(step.words)}\r\n"
        case Store():
            cas = f" {number}" if step.verb == "cas" else ""
            line = f"{step.verb} {step.word} {step.flags} {step.expiry} {len(step.value)}{cas}{_tail(step)}"
            return f"{line}\r\n{step.value}\r\n"
        case Count():
            return f"{step.verb} {step.word} {step.amount}{_tail(step)}\r\n"
        case Delete():
            return f"delete {step.word}{_tail(step)}\r\n"
        case Touch():
            return f"touch {step.word} {step.expiry}{_tail(step)}\r\n"
        case Unknown():
            return f"{UNKNOWN_VERB}\r\n"
    return "flush_all\r\n"


def shown(step: Request) -> str:
    """Return a command as a line for a reader."""
    number = "<wrong number>" if isinstance(step, Store) and step.stale else "<number seen>"
    return f"{step.on}: {request(step, number).strip()}".replace("\r\n", " · ")


def _tail(step: Store | Count | Delete | Touch) -> str:
    return " noreply" if step.silent else ""
