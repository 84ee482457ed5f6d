"""The binary protocol: requests cut out of bytes, and replies in frames that a fault can change.

Source: BinaryProtocolRevamped of memcached's wiki.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.clients.store import EXISTS, MAX_KEY, NOT_A_NUMBER, NOT_FOUND, NOT_STORED, STORED
from kvref_conformance.clients.text import Command
from kvref_conformance.wire import frames
from kvref_conformance.wire.frames import OPCODES, REPLY
from kvref_conformance.wire.requests import cut, frame_request

if TYPE_CHECKING:
    from kvref_conformance.clients.store import Item, Store

_WITH_KEY: Final = frozenset(OPCODES[name] for name in ("getk", "getkq", "gatk", "gatkq"))
# Opcodes whose verb of the text protocol has another name.
_VERBS: Final = {"getk": "get", "gatk": "gat", "flush": "flush_all", "stat": "stats"}
_STATUS: Final = {STORED: 0, NOT_FOUND: 1, EXISTS: 2, NOT_STORED: 5, NOT_A_NUMBER: 6}
_WORDS: Final = {
    0: b"", 1: b"Not found", 2: b"Data exists for key.", 4: b"Invalid arguments", 5: b"Not stored.",
    6: b"Non-numeric server-side value for incr or decr", 0x20: b"Auth failure", 0x81: b"Unknown command",
}  # fmt: skip
_NEVER: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Frame:
    """A reply; `total`, `key_length` and `extras_length` are added to the actual lengths in the header, down to 0."""

    opcode: int
    opaque: bytes
    status: int = 0
    cas: int = 0
    extras: bytes = b""
    key: bytes = b""
    value: bytes = b""
    magic: int = REPLY
    datatype: int = 0
    total: int = 0
    key_length: int = 0
    extras_length: int = 0

    def render(self) -> bytes:
        """Return the bytes to send."""
        total = max(0, len(self.extras + self.key + self.value) + self.total)
        lengths = len(self.key) + self.key_length, len(self.extras) + self.extras_length, total
        return frames.Frame(
            self.opcode, self.status, self.extras, self.key, self.value, self.cas, self.opaque, self.magic,
            self.datatype, lengths,
        ).render()  # fmt: skip


def take(buffer: bytearray) -> Command | None:
    """Cut the next request off the front of a buffer; None while it is not complete."""
    request = frame_request(buffer)
    data = cut(buffer, request)
    if request is None or data is None:
        return None
    verb, quiet = request.name.removesuffix("q"), request.name.endswith("q")
    return Command(_VERBS.get(verb, verb), (b"0x%02x" % request.opcode,), data, quiet, request.keys)


def key_and_value(command: Command) -> tuple[bytes, bytes]:
    """Return key and value of a request."""
    (request,) = frames.frames(command.data)
    return request.key, request.value


def failed(command: Command, status: int) -> Frame:
    """Return the error frame for a request."""
    (request,) = frames.frames(command.data)
    return _failed(Frame(request.opcode, request.opaque), status)


def answer(command: Command, store: Store) -> list[Frame]:
    """Execute a request and return its frames; none where a quiet opcode has none."""
    (request,) = frames.frames(command.data)
    extras, key, value, cas = request.extras, request.key, request.value, request.cas
    verb, quiet = command.verb, command.quiet
    frame = Frame(request.opcode, request.opaque)
    if len(key) > MAX_KEY:
        return [_failed(frame, 4)]
    if verb in {"get", "gat"}:
        return _got(frame, store.get(key), key, quiet=quiet)
    if verb in {"set", "add", "replace", "append", "prepend"}:
        flags = int.from_bytes(extras[:4], "big")
        status = store.store(verb, key, value, flags, cas)
        # A request of the binary protocol distinguishes why add and replace fail.
        missed = {"add": EXISTS, "replace": NOT_FOUND}.get(verb, status) if status == NOT_STORED else status
        return _done(frame, missed, store.get(key), quiet=quiet)
    if verb in {"incr", "decr"}:
        return _counted(frame, store, command, key, extras)
    if verb == "delete":
        return _done(frame, store.delete(key, cas), None, quiet=quiet)
    if verb == "touch":
        item = store.get(key)
        return _done(frame, NOT_FOUND if item is None else STORED, item, quiet=quiet)
    return _others(frame, verb, store, quiet=quiet)


def _others(frame: Frame, verb: str, store: Store, *, quiet: bool) -> list[Frame]:
    if verb == "flush_all":
        store.clear()
    if verb in {"sasl_list", "version"}:
        return [_with(frame, b"PLAIN" if verb == "sasl_list" else b"1.6.99")]
    if verb == "sasl_auth":
        return [_with(frame, b"Authenticated")]
    if verb == "stats":
        return [Frame(frame.opcode, frame.opaque, key=b"pid", value=b"1"), frame]
    if verb in {"unknown", "sasl_step"}:
        return [_failed(frame, 0x81)]
    return [] if quiet else [frame]


def _with(frame: Frame, value: bytes) -> Frame:
    return Frame(frame.opcode, frame.opaque, value=value)


def _failed(frame: Frame, status: int) -> Frame:
    return Frame(frame.opcode, frame.opaque, status, value=_WORDS[status])


def _got(frame: Frame, item: Item | None, key: bytes, *, quiet: bool) -> list[Frame]:
    if item is None:
        return [] if quiet else [_failed(frame, 1)]
    shown = key if frame.opcode in _WITH_KEY else b""
    return [Frame(frame.opcode, frame.opaque, 0, item.cas, struct.pack(">I", item.flags), shown, item.value)]


def _done(frame: Frame, status: str, item: Item | None, *, quiet: bool) -> list[Frame]:
    if status != STORED:
        return [_failed(frame, _STATUS[status])]
    return [] if quiet else [Frame(frame.opcode, frame.opaque, cas=0 if item is None else item.cas)]


def _counted(frame: Frame, store: Store, command: Command, key: bytes, extras: bytes) -> list[Frame]:
    delta, initial, expiry = struct.unpack(">QQI", extras[:20].ljust(20, b"\0"))
    sign = 1 if command.verb == "incr" else -1
    result = store.count(key, sign * delta, None if expiry == _NEVER else initial)
    if isinstance(result, str):
        return [_failed(frame, _STATUS[result])]
    if command.quiet:
        return []
    item = store.get(key)
    return [Frame(frame.opcode, frame.opaque, cas=item.cas if item else 0, value=struct.pack(">Q", result))]
