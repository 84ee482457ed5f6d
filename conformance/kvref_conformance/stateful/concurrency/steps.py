"""The steps of a history: requests on three memcached connections, statements of a SQL observer.

Mappings, tables and keys have the same names in every history; `player.py` has their names at the endpoint. Only keys
with an odd number are used. The even keys between them always exist: the gap up to the next row, which a transaction
locks in addition to the row that it looked up, then contains no other odd key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECTIONS: Final = ("a", "b", "c")
TABLES: Final = {"m1": "t1", "m1b": "t1", "m2": "t2"}
KEYS: Final = ("k1", "k3", "k5")
FENCES: Final = ("k0", "k2", "k4", "k6")
# Who holds the locks of an open SQL transaction, and who waits with a statement that commits itself.
SQL: Final = "sql"
AUTOCOMMIT: Final = "SQL"


@dataclass(frozen=True, slots=True)
class Open:
    """Connect and bind a mapping."""

    on: str
    mapping: str

    def __str__(self) -> str:
        return f"{self.on}: connect, bind {self.mapping}"


@dataclass(frozen=True, slots=True)
class Close:
    """End a connection: by `quit`, or by closing this side."""

    on: str
    quits: bool

    def __str__(self) -> str:
        return f"{self.on}: {'quit' if self.quits else 'close'}"


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a mapping, by `bind` or by `get @@mapping`; one that does not exist is not bound."""

    on: str
    mapping: str
    word: bool

    def __str__(self) -> str:
        return f"{self.on}: {'get @@' if self.word else 'bind '}{self.mapping}"


@dataclass(frozen=True, slots=True)
class Get:
    """Read keys; `mapping` is bound by the word, where there is one key and a mapping is named."""

    on: str
    keys: tuple[str, ...]
    cas: bool = False
    mapping: str = ""

    def __str__(self) -> str:
        return f"{self.on}: {'gets' if self.cas else 'get'} {_prefix(self.mapping)}{' '.join(self.keys)}"


@dataclass(frozen=True, slots=True)
class Store:
    """Any storage verb; cas sends the number that this connection has seen last, or, stale, one that no row has."""

    on: str
    verb: str
    key: str
    value: str
    flags: int = 0
    silent: bool = False
    mapping: str = ""
    stale: bool = False

    def __str__(self) -> str:
        number = "" if self.verb != "cas" else " <wrong number>" if self.stale else " <number seen>"
        words = f"{self.verb} {_prefix(self.mapping)}{self.key} {self.flags} 0 {len(self.value)}{number}"
        return f"{self.on}: {words}{' noreply' if self.silent else ''} · {self.value}"


@dataclass(frozen=True, slots=True)
class Incr:
    """Count up."""

    on: str
    key: str
    amount: int

    def __str__(self) -> str:
        return f"{self.on}: incr {self.key} {self.amount}"


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a key."""

    on: str
    key: str
    silent: bool = False

    def __str__(self) -> str:
        return f"{self.on}: delete {self.key}{' noreply' if self.silent else ''}"


@dataclass(frozen=True, slots=True)
class Flush:
    """Empty the table of the bound mapping; the rows between the keys are put back over SQL."""

    on: str

    def __str__(self) -> str:
        return f"{self.on}: flush_all"


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


Locking: TypeAlias = Get | Store | Incr | Delete
Request: TypeAlias = Locking | Bind | Flush
Statement: TypeAlias = Look | Change | End
Step: TypeAlias = Open | Close | Request | Statement


def request(step: Step, names: Mapping[str, str], number: int) -> bytes:
    """Return what is sent for a step on a connection.

    Args:
        step: one that is no statement.
        names: of the mappings at the endpoint.
        number: that a `cas` sends.
    """

    def word(key: str, mapping: str) -> str:
        return f"@@{names[mapping]}.{key}" if mapping else key

    match step:
        case Open():
            text = f"bind {names[step.mapping]}"
        case Close():
            text = "quit"
        case Bind():
            text = f"{'get @@' if step.word else 'bind '}{names.get(step.mapping, 'no-such-mapping')}"
        case Get():
            text = f"{'gets' if step.cas else 'get'} {' '.join(word(key, step.mapping) for key in step.keys)}"
        case Store():
            cas, silent = f" {number}" if step.verb == "cas" else "", " noreply" if step.silent else ""
            line = f"{step.verb} {word(step.key, step.mapping)} {step.flags} 0 {len(step.value)}{cas}{silent}"
            text = f"{line}\r\n{step.value}"
        case Incr():
            text = f"incr {step.key} {step.amount}"
        case Delete():
            text = f"delete {step.key}{' noreply' if step.silent else ''}"
        case _:
            text = "flush_all"
    return f"{text}\r\n".encode()


def _prefix(mapping: str) -> str:
    return f"@@{mapping}." if mapping else ""
