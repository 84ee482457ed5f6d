"""The bytes of a client cut into requests of either protocol: where each ends, its words and its keys.

Sources: memcached `protocol.txt` (a line ends with LF, words are separated by blanks, a data block follows where the
verb has one) and `protocol_binary.txt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref_conformance.wire.frames import HEADER, NAMES, REQUEST, SIZE
from kvref_conformance.wire.verbs import BINARY, OTHER, OTHER_BINARY, VERBS, Verb

UNKNOWN: Final = "unknown"
# Maximum length of an unfinished line or frame that is kept until the rest arrives: more than any key with its line.
LONGEST: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Request:
    """A request, which may have arrived in part.

    Args:
        name: first word of the line, or name of the opcode; UNKNOWN for an opcode without one.
        words: of the line; () for a frame.
        keys: of the verb, as sent; the key of a frame, whatever its opcode.
        head: bytes of the line with its end, or of the frame up to its value.
        size: bytes with the data block or the body.
        magic: of a frame; -1: of a line.
        opcode: of a frame.
    """

    name: str
    words: tuple[bytes, ...]
    keys: tuple[bytes, ...]
    head: int
    size: int
    magic: int = -1
    opcode: int = 0

    @property
    def verb(self) -> Verb:
        """Return its verb, OTHER or OTHER_BINARY if it has none of the list."""
        if self.magic < 0:
            return VERBS.get(self.name, VERBS[OTHER])
        return VERBS.get(f"{BINARY}{self.name}", VERBS[OTHER_BINARY])

    @property
    def key_texts(self) -> tuple[str, ...]:
        """Return the keys, one character each byte; () if the verb has no key, whatever a frame has."""
        return tuple(key.decode("latin-1") for key in self.keys) if self.verb.key else ()

    @property
    def encoded(self) -> bool:
        """Return whether the key is in base64."""
        return self.verb.encoded and b"b" in self.words[max(self.verb.key, self.verb.data) + 1 :]


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


def cut(buffer: bytearray, request: Request | None) -> bytes | None:
    """Take the request that a buffer begins with off it, and return its bytes; None if they have not all arrived."""
    if request is None or len(buffer) < request.size:
        return None
    data = bytes(buffer[: request.size])
    del buffer[: request.size]
    return data


class Reader:
    """Reads the requests of one connection without their values.

    Args:
        binary: they are frames.
        meta: the endpoint has meta commands, so that an `ms` has a data block.
    """

    def __init__(self, *, binary: bool, meta: bool = True) -> None:
        self._binary = binary
        self._meta = meta
        self._rest = b""
        self._skipped = 0

    def read(self, data: bytes, *, more: bool) -> list[Request]:
        """Return the requests that begin in these bytes.

        Args:
            data: what is sent next.
            more: the last request may go on in the next bytes; else it ended here, whatever length it announced.
        """
        text, place, found = self._rest + data[self._skipped :], 0, []
        self._skipped = max(0, self._skipped - len(data))
        while (request := self._at(text, place)) is not None:
            if more and len(text) < place + min(request.head, request.size):
                break
            if self._binary or request.words:
                found.append(request)
            place += request.size
        self._rest = text[place : place + LONGEST] if more else b""
        self._skipped = self._skipped + max(0, place - len(text)) if more else 0
        return found

    def _at(self, data: bytes, place: int) -> Request | None:
        return frame_request(data, place) if self._binary else text_request(data, place, beyond=self._meta)
