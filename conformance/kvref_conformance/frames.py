"""The binary protocol in words: a frame is a few words, frames are joined by `; `, and bytes are made of them and back.

    set key=shop flags=4 value=one; noop        ->        set ok cas=17; noop ok

Of a request: the opcode by its name or as `0x1f`, then `key`, `flags`, `exp`, `delta`, `initial`, `level` (the extras
that the opcode has), `extras` (other ones, in hexadecimal digits), `cas`, `opaque`, and last `value`, to the end. For
malformed requests: `magic`, `vbucket`, `datatype`, `keylen`, `extlen` (in place of the actual ones), and `longer`, by
how many bytes the announced body is longer than the sent one. `raw` is followed by bytes.

Of a reply: the opcode, `ok` or the number of the status, each field that is not zero or empty, `number` for the sum of
incr and decr, and the body: behind `value=`, or in quotes where the status is an error.

Bytes outside ASCII and the few signs with a meaning here are written as in a URL: `%0d%0a`, `%3b` for a semicolon, and
in a key `%20` for a blank.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from kvref.errors import SuiteError

HEADER: Final = struct.Struct(">BBHBBHIIQ")
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
_ESCAPED: Final = re.compile(r"%([0-9a-f]{2})")
_IN_VALUE: Final = re.compile(rb'[^ -~]|[%;"]')
_IN_KEY: Final = re.compile(rb'[^!-~]|[%;"]')
_FLAGS: Final = 4
_SUM: Final = 8


def encode(words: str) -> bytes:
    """Return the bytes of requests in words.

    Raises:
        SuiteError: the words are none of a frame.
    """
    return b"".join(map(_request, words.split(BETWEEN))) if words else b""


def decode(data: bytes) -> str:
    """Return replies in words; an incomplete reply at the end is `rest` in hexadecimal digits."""
    said = []
    while len(data) >= HEADER.size and data[0] == REPLY:
        end = HEADER.size + HEADER.unpack_from(data)[6]
        if end > len(data):
            break
        said.append(_reply(data[:end]))
        data = data[end:]
    return BETWEEN.join([*said, f"rest={data.hex()}"] if data else said)


def told(data: bytes) -> str:
    """Return requests in words, as in a transcript; an incomplete request at the end is `raw` bytes."""
    said = []
    while len(data) >= HEADER.size and data[0] in (REQUEST, REPLY):
        end = HEADER.size + HEADER.unpack_from(data)[6]
        if end > len(data):
            break
        said.append(_asked(data[:end]))
        data = data[end:]
    return BETWEEN.join([*said, f"raw {_escaped(data, _IN_VALUE)}"] if data else said)


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
    body = extras + key + value
    header = HEADER.pack(
        given.get("magic", REQUEST),
        number,
        given.get("keylen", len(key)),
        given.get("extlen", len(extras)),
        given.get("datatype", 0),
        given.get("vbucket", 0),
        len(body) + given.get("longer", 0),
        given.get("opaque", 0),
        given.get("cas", 0),
    )
    return header + body


def _extras(opcode: str, given: dict[str, int]) -> bytes:
    if opcode.startswith("flush") and "exp" in given:
        return struct.pack(">I", given["exp"])
    form, fields = _EXTRAS.get(opcode, ("", ()))
    return struct.pack(form, *(given.get(name, default) for name, default in fields))


def _reply(frame: bytes) -> str:
    _, number, keylen, extlen, datatype, status, _, opaque, cas = HEADER.unpack_from(frame)
    opcode = NAMES.get(number, f"{number:#04x}")
    extras, key, rest = _parts(frame, keylen, extlen)
    words = [opcode, f"{status:#04x}" if status else "ok", *_header(opaque, datatype, cas)]
    if len(extras) == _FLAGS:
        words.append(f"flags={int.from_bytes(extras, 'big')}")
    elif extras:
        words.append(f"extras={extras.hex()}")
    words += _untrue(keylen, key, extlen, extras)
    if key:
        words.append(f"key={_escaped(key, _IN_KEY)}")
    if status == 0 and opcode in COUNTING and len(rest) == _SUM:
        words.append(f"number={int.from_bytes(rest, 'big')}")
    elif status == 0 and (rest or extras or key):
        words.append(f"value={_escaped(rest, _IN_VALUE)}")
    elif rest:
        words.append(f'"{_escaped(rest, _IN_VALUE)}"')
    return " ".join(words)


def _asked(frame: bytes) -> str:
    magic, number, keylen, extlen, datatype, vbucket, _, opaque, cas = HEADER.unpack_from(frame)
    opcode = NAMES.get(number, f"{number:#04x}")
    extras, key, value = _parts(frame, keylen, extlen)
    words = [opcode, *([f"magic={magic}"] if magic != REQUEST else []), *_header(opaque, datatype, cas)]
    form, fields = (">I", (("exp", 0),)) if opcode.startswith("flush") else _EXTRAS.get(opcode, ("", ()))
    if extras and form and struct.calcsize(form) == len(extras):
        numbers = struct.unpack(form, extras)
        given = zip(fields, numbers, strict=True)
        words += [f"{name}={number}" for (name, default), number in given if number != default]
    elif extras:
        words.append(f"extras={extras.hex()}")
    words += [f"vbucket={vbucket}"] if vbucket else []
    words += _untrue(keylen, key, extlen, extras)
    words += [f"key={_escaped(key, _IN_KEY)}"] if key else []
    words += [f"value={_escaped(value, _IN_VALUE)}"] if value else []
    return " ".join(words)


def _header(opaque: int, datatype: int, cas: int) -> list[str]:
    fields = {"opaque": opaque, "datatype": datatype, "cas": cas}
    return [f"{name}={value}" for name, value in fields.items() if value]


def _untrue(keylen: int, key: bytes, extlen: int, extras: bytes) -> list[str]:
    """Return the announced lengths that the body is too short for."""
    lengths = {"keylen": (keylen, len(key)), "extlen": (extlen, len(extras))}
    return [f"{name}={announced}" for name, (announced, true) in lengths.items() if announced != true]


def _parts(frame: bytes, keylen: int, extlen: int) -> tuple[bytes, bytes, bytes]:
    body = frame[HEADER.size :]
    return body[:extlen], body[extlen : extlen + keylen], body[extlen + keylen :]


def _escaped(data: bytes, signs: re.Pattern[bytes]) -> str:
    return signs.sub(lambda found: f"%{found[0][0]:02x}".encode(), data).decode("ascii")


def _bytes(text: str) -> bytes:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")
