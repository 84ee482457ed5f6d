"""The bytes of a client cut into requests of either protocol: where each ends, its words and its keys.

Sources: memcached `protocol.txt` (a line ends with LF, words are separated by blanks, a data block follows where the
verb has one) and `protocol_binary.txt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref_conformance.wire.frames import HEADER, NAMES, REQUEST, SIZE
from kvref_conformance.wire.verbs import VERBS

UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Request:
    """A request, which may have arrived in part.

    Args:
        name: first word of the line, or name of the opcode; UNKNOWN for an opcode without one.
        words: of the line; () for a frame.
        keys: of the verb, as sent; the key of a frame, whatever its opcode.
        head: bytes of the line with its end, or of the frame up to its value.
        size: bytes with the data block or the body.
        magic: of a frame.
        opcode: of a frame.
    """

    name: str
    words: tuple[bytes, ...]
    keys: tuple[bytes, ...]
    head: int
    size: int
    magic: int = 0
    opcode: int = 0


def text_request(data: bytes | bytearray, start: int = 0, *, beyond: bool = True) -> Request | None:
    """Return the request whose line begins at a place, None if its line has not ended.

    Args:
        data: what has arrived.
        start: where the line begins.
        beyond: the server has the verbs that the plugin lacks, and so their data blocks.
    """
    end = data.find(b"\n", start)
    if end < 0:
        return None
    words = tuple(word for word in bytes(data[start:end]).removesuffix(b"\r").split(b" ") if word)
    name = words[0].decode("latin-1") if words else ""
    verb, head = VERBS.get(name), end + 1 - start
    if verb is None:
        return Request(name, words, (), head, head)
    block = verb.block(words) if beyond or not verb.beyond else 0
    return Request(name, words, verb.keys_of(words), head, head + block)


def frame_request(data: bytes | bytearray, start: int = 0) -> Request | None:
    """Return the frame that begins at a place, None if its header has not arrived; arguments as of `text_request`."""
    if len(data) < start + SIZE:
        return None
    magic, opcode, keylen, extlen, _, _, length, _, _ = HEADER.unpack_from(data, start)
    body = start + SIZE
    key = bytes(data[body + extlen : body + min(extlen + keylen, length)])
    name = NAMES.get(opcode, UNKNOWN) if magic == REQUEST else UNKNOWN
    return Request(name, (), (key,) if key else (), SIZE + extlen + keylen, SIZE + length, magic, opcode)
