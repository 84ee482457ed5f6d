"""What a connection has in force and open: the mapping and how it came, the reads and writes not committed yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.wire.requests import Reader

NO_MAPPINGS: Final = "no mappings"
DEFAULT: Final = "default"
BOUND: Final = "bound"
SWITCHED: Final = "switched"
FAILED: Final = "after failed bind"
MAPPING_STATES: Final = {
    NO_MAPPINGS: "the endpoint has no mappings",
    DEFAULT: "nothing was chosen on the connection",
    BOUND: "chosen by bind",
    SWITCHED: "chosen by a word",
    FAILED: "the last bind was refused, and left what was in force",
}
NO_BATCH: Final = "no batch"
WRITE_BATCH: Final = "write batch"
READ_BATCH: Final = "read batch"
BOTH: Final = "both"
BATCH_STATES: Final = {
    NO_BATCH: "nothing waits for a commit",
    WRITE_BATCH: "writes wait for a commit",
    READ_BATCH: "reads do, which hold a snapshot",
    BOTH: "reads and writes do",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """How many reads and writes make a full batch."""

    reads: int = 1
    writes: int = 1

    @classmethod
    def of(cls, settings: Mapping[str, int] | None) -> Limits:
        """Read them by the plugin's names; what is not set, and what is less than 1, is 1."""
        given = settings or {}
        reads, writes = (given.get(f"daemon_memcached_{word}_batch_size", 1) for word in "rw")
        return cls(max(1, reads), max(1, writes))


@dataclass
class Connection:
    """A connection, as far as its requests show its state; a background commit is not visible.

    Args:
        reader: parses what is sent on it.
        mapping: how the mapping was bound, one of MAPPING_STATES.
        name: name of that mapping; empty for the default one.
        reads: number of reads that wait for a commit; `writes` is that of writes.
    """

    reader: Reader
    mapping: str = DEFAULT
    name: str = ""
    reads: int = 0
    writes: int = 0

    def batch(self) -> str:
        """Return one of BATCH_STATES."""
        if self.writes:
            return BOTH if self.reads else WRITE_BATCH
        return READ_BATCH if self.reads else NO_BATCH

    def choose(self, name: str, how: str) -> None:
        """Put a mapping in force, BOUND or SWITCHED; another than before commits."""
        if name != self.name:
            self.commit()
        self.name, self.mapping = name, how

    def count(self, kind: str, number: int, limits: Limits) -> None:
        """Count reads or writes, and commit a full batch."""
        if kind == "read":
            self.reads += number
        else:
            self.writes += number
        if self.reads >= limits.reads or self.writes >= limits.writes:
            self.commit()

    def commit(self) -> None:
        """Begin a new batch."""
        self.reads = self.writes = 0
