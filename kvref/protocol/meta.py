"""The meta commands of memcached 1.6: one line to one command, and replies to bytes (proto_text.c, protocol.txt).

Flags are checked from left to right. An unknown or duplicate flag ends the check; of several invalid numbers, the reply
names the last one.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol import numbers
from kvref.protocol import replies as r
from kvref.protocol.grammar import BAD_EXPTIME, BAD_FORMAT, Parsed, length_read, refused, sized, time_read
from kvref.protocol.rules import WireRules

MAX_WORDS: Final = 19  # of a line with flags, its verb included
MAX_OPAQUE: Final = 32  # bytes, its letter included
DUPLICATE: Final = b"CLIENT_ERROR duplicate flag"
UNKNOWN: Final = b"CLIENT_ERROR invalid flag"
EITHER: Final = b"CLIENT_ERROR invalid or duplicate flag"
BAD_KEY: Final = b"CLIENT_ERROR error decoding key"
BAD_TOKEN: Final = b"CLIENT_ERROR bad token in command line format"
BAD_MODE_LENGTH: Final = b"CLIENT_ERROR incorrect length for M token"
BAD_INITIAL: Final = b"CLIENT_ERROR invalid numeric initial value"
BAD_DELTA: Final = b"CLIENT_ERROR invalid numeric delta value"
BAD_OPAQUE: Final = b"CLIENT_ERROR opaque token too long"
BAD_STORING: Final = b"CLIENT_ERROR invalid mode for ms M token"
BAD_COUNTING: Final = b"CLIENT_ERROR invalid mode for ma M token"
TOO_MANY: Final = b"CLIENT_ERROR options flags too long"

_UNCHECKED: Final = frozenset(b"OPLkstcfvhlquI")
_NUMBERS: Final = {b"C": BAD_TOKEN, b"J": BAD_INITIAL, b"D": BAD_DELTA}
_STORING: Final = {b"": "set", b"S": "set", b"E": "add", b"A": "append", b"P": "prepend", b"R": "replace"}
_COUNTING: Final = {b"": True, b"I": True, b"+": True, b"D": False, b"-": False}


@dataclass(slots=True)
class _Flags:
    """Flags of one line: numbers and times by letter, the mode, the key, and why they are refused, empty if not."""

    word: bytes
    options: list[bytes]
    numbers: dict[bytes, int] = field(default_factory=dict)
    mode: bytes = b""
    refusal: bytes = b""

    def has(self, letter: bytes) -> bool:
        return any(option[:1] == letter for option in self.options)


def get(words: list[bytes], rules: WireRules) -> Parsed:
    flags = _head(words, 2, rules)
    if flags.refusal:
        return c.Refused(flags.refusal.replace(b"flags too", b"flags are too"))
    named = flags.numbers.get
    return c.MetaGet(flags.word, flags.options, named(b"T"), named(b"N"), named(b"R"))


def set_(words: list[bytes], rules: WireRules) -> Parsed:
    length = length_read(words[2], rules) if len(words) > 2 else None
    if length is None or length < 0:
        return c.Refused(BAD_FORMAT)
    flags = _head(words, 3, rules)
    mode = _STORING.get(flags.mode)
    if mode is None and not _wrong(flags):
        flags.refusal = BAD_STORING
    if flags.refusal or mode is None:
        return refused(c.Refused(flags.refusal), length, rules)
    named = flags.numbers.get
    verb = "cas" if mode in ("set", "replace") and b"C" in flags.numbers else mode
    cas = 0 if mode == "add" else named(b"C", 0)  # an item that is not there has none
    parsed = c.MetaSet(flags.word, flags.options, verb, named(b"F", 0), named(b"T", 0), cas, flags.has(b"I"))
    return sized(parsed, length, rules)


def delete(words: list[bytes], rules: WireRules) -> Parsed:
    flags = _head(words, 2, rules)
    if flags.refusal:
        return c.Refused(_either(words, flags.refusal, rules))
    named = flags.numbers.get
    return c.MetaDelete(flags.word, flags.options, named(b"C"), named(b"T"), flags.has(b"I"))


def arithmetic(words: list[bytes], rules: WireRules) -> Parsed:
    flags = _head(words, 2, rules)
    increment = _COUNTING.get(flags.mode)
    if increment is None and not _wrong(flags):
        flags.refusal = BAD_COUNTING
    if flags.refusal or increment is None:
        return c.Refused(_either(words, flags.refusal, rules))
    named = flags.numbers.get
    initial = named(b"J", 0) if b"N" in flags.numbers else None
    return c.MetaArithmetic(
        flags.word, flags.options, increment, named(b"D", 1), initial, named(b"N", 0), named(b"C", 0), named(b"T")
    )


def debug(words: list[bytes], rules: WireRules) -> Parsed:
    """Parse me: only the flag b counts, and only as the first."""
    if len(words) < 2 or len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT)
    options = words[2:3] if words[2:3] == [b"b"] else []
    word = decoded_key(words[1]) if options else words[1]
    return c.Refused(BAD_FORMAT) if word is None else c.MetaDebug(word, options)


def noop(_words: list[bytes], _rules: WireRules) -> Parsed:
    return c.MetaNoop()


def _either(words: list[bytes], refusal: bytes, rules: WireRules) -> bytes:
    """Return the words of md and ma for what a flag is refused for."""
    specific = refusal in (BAD_OPAQUE, TOO_MANY, BAD_EXPTIME, BAD_COUNTING) or len(words[1]) > rules.key_limit
    return refusal if specific else EITHER


def _wrong(flags: _Flags) -> bool:
    """Return whether flags are refused for what is looked at before the mode is."""
    return flags.refusal not in (b"", BAD_OPAQUE)


def _head(words: list[bytes], start: int, rules: WireRules) -> _Flags:
    flags = _Flags(words[1], words[start:])
    if len(words[1]) > rules.key_limit:
        flags.refusal = BAD_FORMAT
    elif len(words) > MAX_WORDS:
        flags.refusal = TOO_MANY
    else:
        seen = set()
        for option in flags.options:
            if option[0] >= 127 or option[0] in seen:
                flags.refusal = DUPLICATE
                return flags
            seen.add(option[0])
            read = None if option[0] in _UNCHECKED else _READ.get(option[:1], _unknown)
            refusal = read(flags, option, rules) if read else b""
            flags.refusal = refusal or flags.refusal
            if refusal == UNKNOWN:
                return flags
        if not flags.refusal and any(option[:1] == b"O" and len(option) > MAX_OPAQUE for option in flags.options):
            flags.refusal = BAD_OPAQUE  # memcached notices that later, when a time may have been set already
    return flags


def _unknown(_flags: _Flags, _option: bytes, _rules: WireRules) -> bytes:
    return UNKNOWN


def _key(flags: _Flags, _option: bytes, _rules: WireRules) -> bytes:
    word = decoded_key(flags.word)
    if word is None:
        return BAD_KEY
    flags.word = word
    return b""


def _number(flags: _Flags, option: bytes, _rules: WireRules) -> bytes:
    number = numbers.unsigned(option[1:])
    if number is None:
        return _NUMBERS[option[:1]]
    flags.numbers[option[:1]] = number
    return b""


def _client_flags(flags: _Flags, option: bytes, rules: WireRules) -> bytes:
    number = numbers.unsigned(option[1:])
    if number is None or (number >= 1 << 32 and not rules.wide_flags_wrap):
        return flags.refusal or BAD_FORMAT  # here, an error of an earlier flag takes precedence, unlike elsewhere
    flags.numbers[b"F"] = number % (1 << 32)
    return b""


def _time(flags: _Flags, option: bytes, rules: WireRules) -> bytes:
    number = numbers.signed(option[1:])
    if number is None:
        return BAD_TOKEN
    flags.numbers[option[:1]], refusal = time_read(number, rules)
    return refusal


def _mode(flags: _Flags, option: bytes, _rules: WireRules) -> bytes:
    flags.mode = option[1:]
    return b"" if len(option) == 2 else BAD_MODE_LENGTH


_READ: Final[dict[bytes, Callable[[_Flags, bytes, WireRules], bytes]]] = {
    b"b": _key,
    b"M": _mode,
    b"F": _client_flags,
    **dict.fromkeys((b"T", b"N", b"R"), _time),
    **dict.fromkeys(_NUMBERS, _number),
}


def decoded_key(word: bytes) -> bytes | None:
    """Return a key that came in base64; None where it is none. memcached passes over bytes that are not digits."""
    try:
        return binascii.a2b_base64(word, strict_mode=True) or None
    except binascii.Error:
        return None


_ANSWERED: Final = {c.MetaGet: b"stcflhOk", c.MetaSet: b"cOk", c.MetaDelete: b"Ok", c.MetaArithmetic: b"tcOk"}


def encode(command: c.Command, reply: r.Meta | r.MetaDebug) -> bytes:
    """Return the bytes of a reply, empty where the flag q leaves it out."""
    assert isinstance(command, c.MetaRequest)
    if isinstance(reply, r.MetaDebug):
        return _debug(command, reply)
    if command.has(b"q") and reply.code is (r.MetaCode.MISSED if isinstance(command, c.MetaGet) else r.MetaCode.DONE):
        return b""
    parts = [reply.code.value] if reply.data is None else [b"VA %d" % len(reply.data)]
    returned = reply.code is r.MetaCode.DONE or isinstance(command, c.MetaSet)
    for option in command.options:
        letter = option[:1]
        if letter not in _ANSWERED[type(command)]:
            continue
        if letter == b"O":
            parts.append(option)
        elif letter == b"k":
            parts += _key_returned(command)
        elif returned:
            parts.append(b"%b%d" % (letter, _returned(command, reply.item, letter)))
    marks = ((b"Z", reply.taken), (b"X", reply.stale), (b"W", reply.won))
    parts += [mark for mark, there in marks if there]
    line = b" ".join(parts) + b"\r\n"
    return line if reply.data is None else line + reply.data + b"\r\n"


def _key_returned(command: c.MetaRequest) -> list[bytes]:
    if not command.has(b"b"):
        return [b"k" + command.word]
    return [b"k" + binascii.b2a_base64(command.word, newline=False), b"b"]


def _returned(command: c.MetaRequest, item: r.MetaItem, letter: bytes) -> int:
    match letter:
        case b"s":
            return item.size
        case b"c":
            return item.cas
        case b"f":
            return item.flags
        case b"l":
            return item.idle
        case b"h":
            return int(item.fetched)
        case _:
            return item.earlier if command.precedes(b"t", b"T", b"N") else item.ttl


def _debug(command: c.MetaRequest, reply: r.MetaDebug) -> bytes:
    if reply.rows is None:
        return b"EN\r\n"
    key = binascii.b2a_base64(command.word, newline=False) if command.options else command.word
    return b"ME %b %b\r\n" % (key, " ".join(f"{name}={value}" for name, value in reply.rows).encode())
