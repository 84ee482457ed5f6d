"""The binary protocol: frames with the replies they should have, and the reading of other replies.

memcached's `doc/protocol-binary.txt`; what the plugin answers instead: binary page, sections 1 to 5. Several keys are
requested as libmemcached does: a `getkq` for each and a final `noop`.

A reply contains a cas number that cannot be predicted, so most replies of a point with cas numbers go through the
reader; for a single frame it compares all other bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref_bench.workload.commands import GETTING, PIECE, Read, expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.workload.commands import Fits, Item

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
    """The binary protocol; expiry: seconds, of storage commands."""

    unpredictable = slice(16, 24)  # the cas number

    def __init__(self, expiry: int = 0) -> None:
        self._extras = _EXTRAS | dict.fromkeys(("set", "add", "replace"), struct.pack(">II", 0, expiry))

    def encode(self, verb: str, items: Sequence[Item], place: int = 0, /) -> tuple[bytes, bytes]:
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

    def replies(self, request: bytes, verbs: tuple[str, ...], data: bytes, fits: Fits) -> Iterator[Read | None]:
        """Yield what each reply to an exchange says; see `Codec`."""
        found = frames(data)
        if found is None:
            yield Read(("error",) * len(verbs), len(data), (data,))
            return
        left, verb, end = list(reversed(found)), iter(verbs), 0
        for each in frames(request) or ():
            if not left:
                yield None
                return
            mine = (left[-1].opcode, left[-1].opaque) == (each.opcode, each.opaque)
            if each.opcode == GETKQ and not mine:
                next(verb)
                yield Read(("miss",), end)
                continue
            reply, begin = left.pop(), end
            end += HEADER.size + reply.size
            if each.opcode == _NOOP:
                yield Read((), end, () if mine and reply.status == 0 else (data[begin:end],))
                continue
            named = next(verb)
            outcome = _outcome(named, each, reply, fits) if mine else "error"
            yield Read((outcome,), end, () if outcome != "error" else (data[begin:end],))


def _outcome(verb: str, request: Frame, reply: Frame, fits: Fits) -> str:
    if reply.status:
        return _FAILURES[verb].get(reply.status, "error")
    if verb not in GETTING:
        return _SUCCESS.get(verb, "stored")
    named = reply.key == (request.key if request.opcode == GETKQ else b"")
    return "hit" if named and fits(request.key, reply.value) else "error"


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
