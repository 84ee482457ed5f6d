"""The binary protocol in words: a frame is a few words, frames are joined by `; `, and bytes are made of them and back.

    set key=shop flags=4 value=one; noop        ->        set ok cas=17; noop ok

Of a request: the opcode by its name or as `0x1f`, then `key`, `flags`, `exp`, `delta`, `initial`, `level` (the extras
that the opcode has), `extras` (other ones, in hexadecimal digits), `cas`, `opaque`, and last `value`, to the end. For
malformed requests: `magic`, `vbucket`, `datatype`, `keylen`, `extlen` (in place of the actual ones), and `longer`, by
how many bytes the announced body is longer than the sent one. `raw` is followed by bytes; in it `%=17=` is a cas number
in its eight bytes.

Of a reply: the opcode, `ok` or the number of the status, each field that is not zero or empty, `number` for the sum of
incr and decr, and the body: behind `value=`, or in quotes where the status is an error.

Bytes outside ASCII and the few signs with a meaning here are written as in a URL: `%0d%0a`, `%3b` for a semicolon, and
in a key `%20` for a blank.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Magic, opcode, key length, extras length, data type, vbucket or status, body length, opaque, cas.
HEADER: Final = struct.Struct(">BBHBBHI4sQ")
SIZE: Final = HEADER.size
CAS: Final = slice(16, 24)
REQUEST: Final = 0x80
REPLY: Final = 0x81
BETWEEN: Final = "; "

_LOUD: Final = "get set add replace delete incr decr quit flush"
_MORE: Final = (
    "getq noop version getk getkq append prepend stat setq addq replaceq deleteq incrq decrq quitq flushq appendq "
    "prependq verbosity touch gat gatq"
)
_LATER: Final = "sasl_list sasl_auth sasl_step gatk gatkq"
OPCODES: Final = {
    **{name: number for number, name in enumerate(_LOUD.split())},
    **{name: number for number, name in enumerate(_MORE.split(), 0x09)},
    **{name: number for number, name in enumerate(_LATER.split(), 0x20)},
}
NAMES: Final = {number: name for name, number in OPCODES.items()}
GETS: Final = frozenset(OPCODES[name] for name in ("get", "getq", "getk", "getkq"))
STORES: Final = frozenset(
    OPCODES[name + quiet] for name in ("set", "add", "replace", "append", "prepend") for quiet in ("", "q")
)
FLUSHES: Final = frozenset((OPCODES["flush"], OPCODES["flushq"]))
STORING: Final = frozenset({"set", "add", "replace", "setq", "addq", "replaceq"})
COUNTING: Final = frozenset({"incr", "decr", "incrq", "decrq"})
# The extras of an opcode: names of fields with their defaults, and how they are packed.
_EXTRAS: Final = {
    **dict.fromkeys(STORING, (">II", (("flags", 0), ("exp", 0)))),
    **dict.fromkeys(COUNTING, (">QQI", (("delta", 1), ("initial", 0), ("exp", 0)))),
    **dict.fromkeys(("touch", "gat", "gatq", "gatk", "gatkq"), (">I", (("exp", 0),))),
    "verbosity": (">I", (("level", 0),)),
}
_NUMBERS: Final = frozenset(
    "flags exp delta initial level cas opaque magic vbucket datatype keylen extlen longer".split()
)
_WORDS: Final = re.compile(r"(?P<op>\S+)(?P<fields>(?: (?!value=)[a-z]+=\S*)*)(?: value=(?P<value>.*))?", re.DOTALL)
_ESCAPED: Final = re.compile(r"%(?:([0-9a-f]{2})|=(\d+)=)")
_IN_VALUE: Final = re.compile(rb'[^ -~]|[%;"]')
_IN_KEY: Final = re.compile(rb'[^!-~]|[%;"]')
_FLAGS: Final = 4
_SUM: Final = 8


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
    magic: int
    datatype: int
    lengths: tuple[int, int, int]

    @property
    def name(self) -> str:
        """Return the word for the opcode, or its number."""
        return NAMES.get(self.opcode, f"0x{self.opcode:02x}")

    @property
    def whole(self) -> bool:
        """Return whether all of the body is there."""
        return len(self.extras) + len(self.key) + len(self.value) == self.lengths[2]

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return SIZE + self.lengths[2]

    def render(self) -> bytes:
        """Return its bytes: the header with the announced lengths, and the body that is there."""
        keylen, extlen, whole = self.lengths
        fields = self.magic, self.opcode, keylen, extlen, self.datatype, self.status, whole, self.opaque, self.cas
        return HEADER.pack(*fields) + self.extras + self.key + self.value


def frames(data: bytes) -> Iterator[Frame]:
    """Cut bytes into frames as their headers tell; the last one may lack some of its body.

    What is less than a header is left out.
    """
    start = 0
    while len(data) >= start + SIZE:
        magic, opcode, key, extras, datatype, status, whole, opaque, cas = HEADER.unpack_from(data, start)
        body = data[start + SIZE : start + SIZE + whole]
        yield Frame(
            opcode, status, body[:extras], body[extras : extras + key], body[extras + key :], cas, opaque,
            magic, datatype, (key, extras, whole),
        )  # fmt: skip
        start += SIZE + whole


def split(data: bytes) -> tuple[list[Frame], bytes]:
    """Cut bytes into whole frames and the remainder: how the connection ended, or half a frame."""
    whole = [frame for frame in frames(data) if frame.whole]
    return whole, data[sum(frame.size for frame in whole) :]


def encode(words: str) -> bytes:
    """Return the bytes of requests in words.

    Raises:
        SuiteError: the words are none of a frame.
    """
    return b"".join(map(_request, words.split(BETWEEN))) if words else b""


def decode(data: bytes) -> str:
    """Return replies in words; an incomplete reply at the end is `rest` in hexadecimal digits."""
    return _in_words(data, (REPLY,), _reply_in_words, lambda rest: f"rest={rest.hex()}")


def decode_requests(data: bytes) -> str:
    """Return requests in words, as in a transcript; an incomplete request at the end is `raw` bytes."""
    return _in_words(data, (REQUEST, REPLY), _request_in_words, lambda rest: f"raw {_escaped(rest, _IN_VALUE)}")


def _in_words(data: bytes, magics: tuple[int, ...], words: Callable[[Frame], str], rest: Callable[[bytes], str]) -> str:
    parts: list[str] = []
    end = 0
    for frame in frames(data):
        if frame.magic not in magics or not frame.whole:
            break
        parts.append(words(frame))
        end += frame.size
    return BETWEEN.join([*parts, rest(data[end:])] if data[end:] else parts)


def _request(words: str) -> bytes:
    if words.startswith("raw "):
        return _bytes(words.removeprefix("raw "))
    found = _WORDS.fullmatch(words)
    if found is None:
        raise SuiteError(f"no frame in words: {words!r}")
    opcode, fields = found["op"], dict(word.split("=", 1) for word in found["fields"].split())
    number = OPCODES[opcode] if opcode in OPCODES else int(opcode, 16)
    key, value = _bytes(fields.pop("key", "")), _bytes(found["value"] or "")
    given = {name: int(text, 0) for name, text in fields.items() if name in _NUMBERS}
    extras = bytes.fromhex(fields.pop("extras")) if "extras" in fields else _extras(opcode, given)
    if unknown := fields.keys() - _NUMBERS:
        raise SuiteError(f"{', '.join(sorted(unknown))} in {words!r}: no field of a frame")
    announced = len(extras + key + value) + given.get("longer", 0)
    lengths = given.get("keylen", len(key)), given.get("extlen", len(extras)), announced
    opaque, magic = given.get("opaque", 0).to_bytes(4, "big"), given.get("magic", REQUEST)
    return Frame(
        number, given.get("vbucket", 0), extras, key, value, given.get("cas", 0), opaque, magic,
        given.get("datatype", 0), lengths,
    ).render()  # fmt: skip


def _extras(opcode: str, given: dict[str, int]) -> bytes:
    if opcode.startswith("flush") and "exp" in given:
        return struct.pack(">I", given["exp"])
    form, fields = _EXTRAS.get(opcode, ("", ()))
    return struct.pack(form, *(given.get(name, default) for name, default in fields))


def _reply_in_words(frame: Frame) -> str:
    words = [frame.name, f"{frame.status:#04x}" if frame.status else "ok", *_header(frame)]
    if len(frame.extras) == _FLAGS:
        words.append(f"flags={int.from_bytes(frame.extras, 'big')}")
    elif frame.extras:
        words.append(f"extras={frame.extras.hex()}")
    words += _untrue(frame)
    if frame.key:
        words.append(f"key={_escaped(frame.key, _IN_KEY)}")
    if frame.status == 0 and frame.name in COUNTING and len(frame.value) == _SUM:
        words.append(f"number={int.from_bytes(frame.value, 'big')}")
    elif frame.status == 0 and (frame.value or frame.extras or frame.key):
        words.append(f"value={_escaped(frame.value, _IN_VALUE)}")
    elif frame.value:
        words.append(f'"{_escaped(frame.value, _IN_VALUE)}"')
    return " ".join(words)


def _request_in_words(frame: Frame) -> str:
    words = [frame.name, *([f"magic={frame.magic}"] if frame.magic != REQUEST else []), *_header(frame)]
    form, fields = (">I", (("exp", 0),)) if frame.name.startswith("flush") else _EXTRAS.get(frame.name, ("", ()))
    if frame.extras and form and struct.calcsize(form) == len(frame.extras):
        numbers = struct.unpack(form, frame.extras)
        given = zip(fields, numbers, strict=True)
        words += [f"{name}={number}" for (name, default), number in given if number != default]
    elif frame.extras:
        words.append(f"extras={frame.extras.hex()}")
    words += [f"vbucket={frame.status}"] if frame.status else []
    words += _untrue(frame)
    words += [f"key={_escaped(frame.key, _IN_KEY)}"] if frame.key else []
    words += [f"value={_escaped(frame.value, _IN_VALUE)}"] if frame.value else []
    return " ".join(words)


def _header(frame: Frame) -> list[str]:
    fields = {"opaque": int.from_bytes(frame.opaque, "big"), "datatype": frame.datatype, "cas": frame.cas}
    return [f"{name}={value}" for name, value in fields.items() if value]


def _untrue(frame: Frame) -> list[str]:
    """Return the announced lengths that the body is too short for."""
    lengths = {"keylen": (frame.lengths[0], len(frame.key)), "extlen": (frame.lengths[1], len(frame.extras))}
    return [f"{name}={announced}" for name, (announced, true) in lengths.items() if announced != true]


def in_key(text: str) -> str:
    """Return a key in words; bytes are latin-1 characters."""
    return _escaped(text.encode("latin-1"), _IN_KEY)


def in_value(text: str) -> str:
    """Return a value in words; bytes are latin-1 characters."""
    return _escaped(text.encode("latin-1"), _IN_VALUE)


def _escaped(data: bytes, signs: re.Pattern[bytes]) -> str:
    return signs.sub(lambda found: f"%{found[0][0]:02x}".encode(), data).decode("ascii")


def _bytes(text: str) -> bytes:
    return _ESCAPED.sub(_unescaped, text).encode("latin-1")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else int(found[2]).to_bytes(8, "big").decode("latin-1")
