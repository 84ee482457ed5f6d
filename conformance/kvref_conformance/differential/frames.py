"""Frames of the binary protocol: put together, cut out of bytes, shown to a reader."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance import frames as wire
from kvref_conformance.frames import REPLY, REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterator

# A command is bytes, with the number of a cas number answered before in between.
Parts = list["bytes | int"]

# Magic, opcode, key length, extras length, data type, vbucket or status, body length, opaque, cas.
_HEADER: Final = struct.Struct(">BBHBBHI4sQ")
SIZE: Final = _HEADER.size
CAS: Final = slice(16, 24)

# Those of the suite, with blanks in their names as in saved differences, and one that only memcached reserved.
OPCODES: Final = {
    **{name.replace("_", " "): opcode for name, opcode in wire.OPCODES.items()},
    "scrub": 0xF0,
}
_NAMES: Final = {opcode: name for name, opcode in OPCODES.items()}
GETS: Final = frozenset(OPCODES[name] for name in ("get", "getq", "getk", "getkq"))
STORES: Final = frozenset(
    OPCODES[name + quiet] for name in ("set", "add", "replace", "append", "prepend") for quiet in ("", "q")
)
FLUSHES: Final = frozenset((OPCODES["flush"], OPCODES["flushq"]))


@dataclass(frozen=True, slots=True)
class Request:
    """A frame to send; its length fields are correct unless others are given.

    Args:
        opcode: opcode of the command.
        key: of any length.
        value: follows the key.
        extras: precede the key.
        cas: cas number of the header.
        heard: instead of `cas`, the n-th cas number received so far; 0: none.
        opaque: returned in the reply.
        vbucket: of the header.
        datatype: of the header.
        magic: first byte.
        lengths: length fields of key, extras and body; None: the actual lengths.
    """

    opcode: int
    key: bytes = b""
    value: bytes = b""
    extras: bytes = b""
    cas: int = 0
    heard: int = 0
    opaque: bytes = bytes(4)
    vbucket: int = 0
    datatype: int = 0
    magic: int = REQUEST
    lengths: tuple[int | None, int | None, int | None] = (None, None, None)

    def parts(self) -> Parts:
        """Return what is sent."""
        body = self.extras + self.key + self.value
        true = (len(self.key), len(self.extras), len(body))
        key, extras, whole = (length if told is None else told for told, length in zip(self.lengths, true, strict=True))
        header = _HEADER.pack(
            self.magic, self.opcode, key, extras, self.datatype, self.vbucket, whole, self.opaque, self.cas
        )
        return [header[: CAS.start], self.heard, body] if self.heard else [header + body]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was sent or received.

    Args:
        opcode: opcode of the command.
        status: status of a reply, the vbucket of a request.
        extras: as long as their length field says; if that is wrong, up to the end of the body.
        key: as long as its length field says; if that is wrong, up to the end of the body.
        value: the rest of the body.
        cas: of the header.
        opaque: of the header.
        whole: all of the body is there.
        magic: first byte.
        datatype: of the header.
        lengths: length fields of key, extras and body.
    """

    opcode: int
    status: int
    extras: bytes
    key: bytes
    value: bytes
    cas: int
    opaque: bytes
    whole: bool
    magic: int
    datatype: int
    lengths: tuple[int, int, int]

    @property
    def name(self) -> str:
        """Return the word for the opcode, or its number."""
        return _NAMES.get(self.opcode, f"0x{self.opcode:02x}")

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return SIZE + self.lengths[2]

    def __str__(self) -> str:
        """Return the frame as a line for a reader; what is zero is left out."""
        told = [self.name if self.magic in {REQUEST, REPLY} else f"magic 0x{self.magic:02x} {self.name}"]
        if self.magic != REQUEST or self.status:
            told.append(f"{'vbucket' if self.magic == REQUEST else 'status'}=0x{self.status:02x}")
        for word, shown in (("extras", self.extras.hex()), ("key", _shown(self.key)), ("value", _shown(self.value))):
            told += [f"{word}={shown}"] if shown else []
        told += [f"cas={self.cas}"] if self.cas else []
        told += [f"opaque={self.opaque.hex()}"] if any(self.opaque) else []
        told += [f"datatype={self.datatype}"] if self.datatype else []
        true = (len(self.key), len(self.extras), len(self.extras) + len(self.key) + len(self.value))
        if true != self.lengths:
            told.append(f"stated lengths={'/'.join(map(str, self.lengths))}")
        return " ".join(told)


def _shown(data: bytes) -> str:
    return ascii(data.decode("latin-1"))[1:-1]


def frames(data: bytes) -> Iterator[Frame]:
    """Cut bytes into frames as their headers tell; the last one may lack some of its body.

    What is less than a header is left out.
    """
    start = 0
    while len(data) >= start + SIZE:
        magic, opcode, key, extras, datatype, status, whole, opaque, cas = _HEADER.unpack_from(data, start)
        body = data[start + SIZE : start + SIZE + whole]
        yield Frame(
            opcode, status, body[:extras], body[extras : extras + key], body[extras + key :], cas, opaque,
            len(body) == whole, magic, datatype, (key, extras, whole),
        )  # fmt: skip
        start += SIZE + whole
