"""The binary protocol: frames with the replies they should have, and the reading of other replies.

memcached's `doc/protocol-binary.txt`; what the plugin answers instead: binary page, sections 1 to 5. Several keys are
requested as libmemcached does: a `getkq` for each and a final `noop`.

A reply contains a cas number that cannot be predicted, so most replies of a point with cas numbers go through the
reader; for a single frame it compares all other bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref_bench.load.records import Answer
from kvref_bench.workload.commands import GETTING, PIECE, expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.records import Exchange
    from kvref_bench.workload.commands import Fits, Item, Kinds

HEADER: Final = struct.Struct(">BBHBBHIIQ")
REQUEST: Final = 0x80
REPLY: Final = 0x81
GET: Final = 0x00
GETKQ: Final = 0x0D
SASL: Final = 0x21
_NOOP: Final = 0x0A
_OPCODES: Final = {
    "get": GET, "gets": GET, "set": 0x01, "add": 0x02, "replace": 0x03, "delete": 0x04, "incr": 0x05,
    "decr": 0x06, "append": 0x0E, "prepend": 0x0F, "touch": 0x1C,
}  # fmt: skip
_EXTRAS: Final = {
    # By 1, from 0 on; all ones: nothing is made of a key that is not there.
    **dict.fromkeys(("incr", "decr"), struct.pack(">QQI", 1, 0, 0xFFFFFFFF)),
    "touch": bytes(4),
}
_STATUS: Final = {"miss": 0x01, "not_found": 0x01, "exists": 0x02}
_TEXTS: Final = {0x01: b"Not found", 0x02: b"Data exists for key.", 0x05: b"Not stored."}
_NOT_STORED: Final = {"set": 0x05, "add": 0x02, "replace": 0x01, "append": 0x05, "prepend": 0x05}
_SUCCESS: Final = {
    "get": "hit", "gets": "hit", "delete": "deleted", "incr": "counted", "decr": "counted", "touch": "touched",
}  # fmt: skip
_FAILURES: Final = {
    **{verb: {_NOT_STORED[verb]: "not_stored"} for verb in ("add", "replace", "append", "prepend")},
    **{verb: {0x01: "not_found", 0x02: "exists", 0x05: "not_stored"} for verb in ("set",)},
    **{verb: {0x01: "not_found"} for verb in ("delete", "incr", "decr", "touch")},
    **{verb: {0x01: "miss"} for verb in GETTING},
}


class Frame(NamedTuple):
    """A request or a reply.

    size: bytes behind the header.
    """

    opcode: int
    status: int
    opaque: int
    key: bytes
    value: bytes
    size: int


class Binary:
    """Encodes commands of the binary protocol; expiry: seconds, of storage commands."""

    def __init__(self, expiry: int = 0) -> None:
        self._extras = _EXTRAS | dict.fromkeys(("set", "add", "replace"), struct.pack(">II", 0, expiry))

    def ask(self, verb: str, items: Sequence[Item], place: int = 0, /) -> tuple[bytes, bytes]:
        """Encode a command and the reply it should have; see `Codec`."""
        if len(items) > 1:
            requests = [frame(REQUEST, GETKQ, each.name, opaque=place + at) for at, each in enumerate(items)]
            got = [
                frame(REPLY, GETKQ, each.name, bytes(4), each.value, opaque=place + at)
                for at, each in enumerate(items)
                if each.there
            ]
            last = place + len(items) - 1
            return b"".join([*requests, frame(REQUEST, _NOOP, opaque=last)]), b"".join(
                [*got, frame(REPLY, _NOOP, opaque=last)]
            )
        [item] = items
        opcode = _OPCODES[verb]
        value = b"" if verb not in _NOT_STORED else PIECE if verb in ("append", "prepend") else item.value
        request = frame(REQUEST, opcode, item.name, self._extras.get(verb, b""), value, opaque=place)
        outcome = expected(verb, there=item.there)
        status = _NOT_STORED[verb] if outcome == "not_stored" else _STATUS.get(outcome, 0)
        if status:
            return request, frame(REPLY, opcode, value=_TEXTS[status], opaque=place, status=status)
        if outcome == "hit":
            return request, frame(REPLY, opcode, b"", bytes(4), item.value, opaque=place)
        return request, frame(REPLY, opcode, value=bytes(8) if outcome == "counted" else b"", opaque=place)

    def reader(self, kinds: Kinds, fits: Fits) -> BinaryReader:
        """Return what reads other replies; see `Codec`."""
        return BinaryReader(kinds, fits)


class BinaryReader:
    """Reads replies that differ from the expected ones."""

    def __init__(self, kinds: Kinds, fits: Fits) -> None:
        self._kinds = kinds
        self._fits = fits

    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        """Return the outcomes of the replies to an exchange, or None while they are not complete."""
        reply = exchange.reply
        if len(exchange.kinds) == 1 and data[:16] == reply[:16] and data[24:] == reply[24:]:
            return Answer(exchange.kinds)
        verbs = [self._kinds.all[each].verb for each in exchange.kinds]
        replies = frames(data)
        if replies is None:
            return Answer(tuple(self._kinds.number(each, "error") for each in verbs), (data,))
        return self._walk(frames(exchange.request) or (), verbs, replies, data)

    def _walk(
        self, requests: Sequence[Frame], verbs: Sequence[str], replies: Sequence[Frame], data: bytes
    ) -> Answer | None:
        kinds: list[int] = []
        wrong: list[bytes] = []
        place = end = 0
        verb = iter(verbs)
        for each in requests:
            if place == len(replies):
                return None
            found = replies[place]
            mine = (found.opcode, found.opaque) == (each.opcode, each.opaque)
            if each.opcode == GETKQ and not mine:
                kinds.append(self._kinds.number(next(verb), "miss"))
                continue
            place += 1
            end += HEADER.size + found.size
            if each.opcode == _NOOP:
                good = mine and found.status == 0
            else:
                asks = next(verb)
                outcome = self._outcome(asks, each, found) if mine else "error"
                good = outcome != "error"
                kinds.append(self._kinds.number(asks, outcome))
            if not good:
                wrong.append(data[end - HEADER.size - found.size : end])
        if end < len(data):
            wrong.append(data[end:])
        return Answer(tuple(kinds), tuple(wrong))

    def _outcome(self, verb: str, request: Frame, found: Frame) -> str:
        if found.status:
            return _FAILURES[verb].get(found.status, "error")
        if verb not in GETTING:
            return _SUCCESS.get(verb, "stored")
        named = found.key == (request.key if request.opcode == GETKQ else b"")
        return "hit" if named and self._fits(request.key, found.value) else "error"


def frame(  # noqa: PLR0913 - the fields of a frame
    magic: int, opcode: int, key: bytes = b"", extras: bytes = b"", value: bytes = b"", *, opaque: int = 0,
    status: int = 0, cas: int = 0,
) -> bytes:  # fmt: skip
    """Encode a frame."""
    size = len(extras) + len(key) + len(value)
    return b"".join((
        HEADER.pack(magic, opcode, len(key), len(extras), 0, status, size, opaque, cas), extras, key, value
    ))  # fmt: skip


def frames(data: bytes) -> tuple[Frame, ...] | None:
    """Take whole frames apart; None where a byte begins none."""
    whole: list[Frame] = []
    place = 0
    while place < len(data):
        if data[place] not in (REQUEST, REPLY):
            return None
        if len(data) < place + HEADER.size:
            break
        _, opcode, keys, extras, _, status, size, opaque, _ = HEADER.unpack_from(data, place)
        body = place + HEADER.size
        if len(data) < body + size:
            break
        key = body + extras
        value = key + keys
        whole.append(Frame(opcode, status, opaque, data[key:value], data[value : body + size], size))
        place = body + size
    return tuple(whole)
