"""The verbs of both protocols and what their requests have: a key, several, a range; a read or a write of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, AnyStr, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER: Final = "other"
BINARY: Final = "binary "
OTHER_BINARY: Final = f"{BINARY}{OTHER}"
# No server accepts a longer length of a data block.
MAX_DIGITS: Final = 9
CR_LF: Final = b"\r\n"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb.

    Args:
        name: as sent; an opcode of the binary protocol by its name, with `binary ` before it.
        key: position of the first key after the verb; 0 if it has none.
        several: it takes several keys.
        ranged: it reads rows, so that a range can replace a key.
        encoded: it has a flag for keys in base64.
        data: position of the length of a data block after the verb; 0 if there is none.
        batch: how it counts in a batch: read, write, or empty if it does not count.
        beyond: the plugin does not have it.
    """

    name: str
    key: int = 1
    several: bool = False
    ranged: bool = False
    encoded: bool = False
    data: int = 0
    batch: str = ""
    beyond: bool = False

    def keys_of(self, words: Sequence[AnyStr]) -> tuple[AnyStr, ...]:
        """Return the keys of a line; () if the verb has none."""
        return tuple(words[self.key :] if self.several else words[self.key : self.key + 1]) if self.key else ()

    def block(self, words: Sequence[AnyStr]) -> int:
        """Return the length of the data block behind a line, with its line end; 0 if there is none."""
        return block(words[self.data]) if self.data and len(words) > self.data else 0

    @property
    def stateful(self) -> bool:
        """Return whether what it does depends on the mapping in force and on the open batch."""
        return bool(self.batch) or self.name in STATEFUL


def block(digits: str | bytes) -> int:
    """Return the length of a data block that a line announces, with its line end; 0 if it announces none."""
    known = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) + len(CR_LF) if known else 0


STATEFUL: Final = frozenset({"bind", "flush_all", f"{BINARY}flush", f"{BINARY}flushq"})
_STORING: Final = "set add replace append prepend"
_COUNTING: Final = "delete incr decr"


def _quiet(names: str) -> str:
    return " ".join(f"{name} {name}q" for name in names.split())


def _made() -> list[Verb]:
    text = [Verb(name, several=True, ranged=True, batch="read") for name in ("get", "gets", "bget")]
    text += [Verb(name, 2, several=True, ranged=True, batch="write", beyond=True) for name in ("gat", "gats")]
    text += [Verb(name, data=4, batch="write") for name in f"{_STORING} cas".split()]
    text += [Verb(name, batch="write") for name in _COUNTING.split()]
    text += [Verb("touch", batch="write", beyond=True)]
    text += [Verb("mg", ranged=True, encoded=True, batch="read", beyond=True)]
    text += [Verb("ms", encoded=True, data=2, batch="write", beyond=True)]
    text += [Verb(name, encoded=True, batch="write", beyond=True) for name in ("md", "ma")]
    text += [Verb("me", encoded=True, beyond=True), Verb("mn", 0, beyond=True), Verb("bind")]
    text += [Verb(name, 0) for name in ("flush_all", "stats", "version", "verbosity", "quit", OTHER)]
    names = {
        _quiet("get getk"): {"ranged": True, "batch": "read"},
        _quiet(f"{_STORING} {_COUNTING}"): {"batch": "write"},
        "touch": {"batch": "write", "beyond": True},
        _quiet("gat gatk"): {"ranged": True, "batch": "write", "beyond": True},
    }
    binary = [Verb(f"{BINARY}{name}", **facts) for each, facts in names.items() for name in each.split()]  # type: ignore[arg-type]
    keyless = f"{_quiet('flush quit')} noop version stat verbosity {OTHER}"
    return [*text, *binary, *(Verb(f"{BINARY}{name}", 0) for name in keyless.split())]


VERBS: Final = {verb.name: verb for verb in _made()}
