"""Bytes that were sent on one connection, taken apart into requests; nothing of a value is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.wire.requests import frame_request, text_request
from kvref_conformance.wire.verbs import BINARY, OTHER, OTHER_BINARY, VERBS, Verb

if TYPE_CHECKING:
    from kvref_conformance.wire import requests

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


class Reader:
    """Reads requests of one protocol.

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
        while (request := self._next(text, place)) is not None:
            if more and len(text) < place + min(request.head, request.size):
                break
            if self._binary or request.words:
                found.append(self._made(request))
            place += request.size
        self._rest = text[place : place + LONGEST] if more else b""
        self._skipped = self._skipped + max(0, place - len(text)) if more else 0
        return found

    def _next(self, data: bytes, place: int) -> requests.Request | None:
        return frame_request(data, place) if self._binary else text_request(data, place, beyond=self._meta)

    def _made(self, request: requests.Request) -> Request:
        name, other = (f"{BINARY}{request.name}", OTHER_BINARY) if self._binary else (request.name, OTHER)
        verb = VERBS.get(name, VERBS[other])
        encoded = verb.encoded and b"b" in request.words[max(verb.key, verb.data) + 1 :]
        keys = tuple(key.decode("latin-1") for key in request.keys) if verb.key else ()
        return Request(verb, keys, encoded)
