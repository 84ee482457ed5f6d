"""Bytes that were sent on one connection, taken apart into requests; nothing of a value is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref_conformance.wire.frames import HEADER, NAMES, REQUEST
from kvref_conformance.wire.verbs import BINARY, OTHER, OTHER_BINARY, VERBS, Verb

# Maximum length of an unfinished line or frame that is kept until the rest arrives: more than any key with its line.
LONGEST: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Args:
        verb: verb of the request.
        keys: its keys, one character each byte; () if there are none.
        encoded: the key is in base64.
    """

    verb: Verb
    keys: tuple[str, ...] = ()
    encoded: bool = False


class TextReader:
    """Reads requests of the text protocol.

    Args:
        meta: the endpoint has meta commands, so that an `ms` has a data block.
    """

    def __init__(self, *, meta: bool) -> None:
        self._meta = meta
        self._rest = ""
        self._skipped = 0

    def read(self, data: bytes, *, more: bool) -> list[Request]:
        """Return the requests that begin in these bytes.

        Args:
            data: what is sent next.
            more: the last request may go on in the next bytes; else it ended here, whatever length it announced.
        """
        text, place, found = self._rest + data.decode("latin-1"), 0, []
        while True:
            taken = min(self._skipped, len(text) - place)
            place, self._skipped = place + taken, self._skipped - taken
            end = text.find("\n", place)
            if end < 0:
                break
            words = [word for word in text[place:end].removesuffix("\r").split(" ") if word]
            place = end + 1
            if words:
                found.append(_text_request(words))
                self._skipped = self._block(found[-1].verb, words)
        self._rest = text[place : place + LONGEST] if more else ""
        self._skipped = self._skipped if more else 0
        return found

    def _block(self, verb: Verb, words: list[str]) -> int:
        return 0 if verb.beyond and not self._meta else verb.block(words)


def _text_request(words: list[str]) -> Request:
    verb = VERBS.get(words[0], VERBS[OTHER])
    encoded = verb.encoded and "b" in words[max(verb.key, verb.data) + 1 :]
    return Request(verb, verb.keys_of(words), encoded)


class BinaryReader:
    """Reads requests of the binary protocol."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipped = 0

    def read(self, data: bytes, *, more: bool) -> list[Request]:
        """Return the requests that begin in these bytes; arguments as of `TextReader.read`."""
        taken = min(self._skipped, len(data))
        rest, found = self._rest + data[taken:], []
        self._skipped -= taken
        while len(rest) >= HEADER.size:
            magic, opcode, keylen, extlen, _, _, length, _, _ = HEADER.unpack_from(rest)
            key_end = HEADER.size + extlen + keylen
            if len(rest) < min(key_end, HEADER.size + length) and more:
                break
            found.append(_binary_request(magic, opcode, rest[HEADER.size + extlen : key_end]))
            self._skipped = max(0, HEADER.size + length - len(rest))
            rest = rest[HEADER.size + length :]
        self._rest = rest[:LONGEST] if more else b""
        self._skipped = self._skipped if more else 0
        return found


def _binary_request(magic: int, opcode: int, key: bytes) -> Request:
    verb = VERBS.get(f"{BINARY}{NAMES.get(opcode, OTHER)}", VERBS[OTHER_BINARY])
    if magic != REQUEST:
        verb = VERBS[OTHER_BINARY]
    return Request(verb, (key.decode("latin-1"),) if verb.key and key else ())
