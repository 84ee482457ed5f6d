"""Keys and values masked by a keyed hash, with their lengths: what a recording of production may show to others.

A key is masked byte by byte: digits become digits, small and capital letters stay such, and other bytes, such as the
delimiters of a mapping, stay as they are. How a byte is shifted depends on the secret, on the length of the key and on
all bytes before it, so that different keys stay different. Equal beginnings of keys of one length stay equal.

A value becomes letters and digits, and a value of digits only becomes other digits, so that incr and decr still work.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.traffic.dialogue import META, Command
from kvref_conformance.wire.frames import COUNTING, OPCODES, frames
from kvref_conformance.wire.verbs import CR_LF, VERBS

if TYPE_CHECKING:
    from kvref_conformance.wire.frames import Frame

MIN_SECRET: Final = 16  # bytes
_CLASSES: Final = (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CLASS: Final = {byte: members for members in _CLASSES for byte in members}
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_TO_LETTERS: Final = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))
_TO_DIGITS: Final = bytes(b"0123456789"[byte % 10] for byte in range(256))
# Replies whose values are numbers of the server.
_COUNTS: Final = COUNTING | {"stat", "version"}
_SASL: Final = frozenset((OPCODES["sasl_auth"], OPCODES["sasl_step"]))
_ITEM: Final = re.compile(rb"VALUE ([^ \r\n]+) \d+ (\d+)(?: \d+)?\r\n|VA (\d+)[^\r\n]*\r\n")
_META_REPLY: Final = re.compile(rb"(?:HD|VA|EN|NS|EX|NF)[ \r]")
_META_KEY: Final = re.compile(rb" k([^ \r\n]+)")
# A shorter key or value can be part of an error's text by chance.
_MIN_SECRET_WORD: Final = 4
# Text commands whose replies have neither keys nor values other than `VALUE`, `VA` and the meta flag k.
_KNOWN: Final = frozenset(VERBS) - {"stats", "me", "other"}


class Mask:
    """Masks commands and replies.

    Args:
        secret: at least MIN_SECRET bytes; the same secret masks the same key in the same way.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = hashlib.sha256(secret).digest()

    def key(self, key: bytes) -> bytes:
        """Return a key masked. The name of a mapping, `@@name`, is part of the schema and stays."""
        name, separator, rest = key.partition(b".") if key.startswith(b"@@") else (b"", b"", key)
        if name and not separator:
            return key
        state = hashlib.blake2b(b"%d " % len(rest), digest_size=8, key=self._secret)
        masked = bytearray()
        for place, byte in enumerate(rest):
            members = _CLASS.get(byte)
            if members is None:
                masked.append(byte)
            else:
                shift = int.from_bytes(state.copy().digest(), "big")
                masked.append(_shifted(byte, members, shift, leads=_leads(rest, place)))
            state.update(bytes((byte,)))
        return name + separator + bytes(masked)

    def value(self, value: bytes) -> bytes:
        """Return a value masked."""
        stream = hashlib.shake_256(self._secret + value).digest(len(value))
        if not value.isdigit():
            return stream.translate(_TO_LETTERS)
        digits = bytearray(stream.translate(_TO_DIGITS))
        if len(digits) > 1:
            # A number keeps its length: no leading zero appears or disappears.
            digits[0] = ord("0") if value[:1] == b"0" else ord("1") + stream[0] % 9
        return bytes(digits)

    def command(self, command: Command) -> bytes:
        """Return the bytes of a command with keys and values masked, and credentials overwritten."""
        if command.verb.startswith("binary "):
            (frame,) = frames(command.data)
            return self._binary(frame, sasl=command.data[1] in _SASL)
        line, end, block = command.data.partition(b"\n")
        words = line.removesuffix(b"\r").split(b" ")
        verb = VERBS.get(command.verb)
        masked = [self._word(word, number, command) if number else word for number, word in enumerate(words)]
        carriage = b"\r" if line.endswith(b"\r") else b""
        if verb is None or not block:
            return b" ".join(masked) + carriage + end + block
        data, rest = (block[:-2], CR_LF) if block.endswith(CR_LF) else (block, b"")
        return b" ".join(masked) + carriage + end + self.value(data) + rest

    def reply(self, command: Command | None, reply: bytes) -> bytes | None:
        """Return a reply masked; None where it may have keys or values in places that no rule names."""
        if command is None:
            return None
        if command.verb.startswith("binary "):
            return self._frames(reply, sasl=command.data[1] in _SASL)
        if command.verb not in _KNOWN or _names_a_secret(command, reply):
            return reply if command.verb == "stats" and len(command.words) == 1 else None
        masked, place = bytearray(), 0
        while found := _ITEM.match(reply, place):
            head = found[0] if found[1] is None else found[0].replace(found[1], self.key(found[1]), 1)
            length = int(found[2] or found[3])
            masked += self._meta(head, command) + self.value(reply[found.end() : found.end() + length])
            masked += reply[found.end() + length : found.end() + length + 2]
            place = found.end() + length + 2
        return bytes(masked + self._meta(reply[place:], command))

    def _meta(self, line: bytes, command: Command) -> bytes:
        if not _META_REPLY.match(line):
            return line
        mask = self._encoded if b"b" in command.words[2:] else self.key
        return _META_KEY.sub(lambda found: b" k" + mask(found[1]), line)

    def _encoded(self, key: bytes) -> bytes:
        """Return a key in base64 masked."""
        try:
            return base64.b64encode(self.key(base64.b64decode(key, validate=True)))
        except ValueError:
            return self.value(key)

    def _word(self, word: bytes, number: int, command: Command) -> bytes:
        verb = VERBS.get(command.verb)
        if verb is None:
            # What no rule names may be anything.
            return self.value(word)
        is_key = number >= verb.key if verb.several else number == verb.key
        is_meta = bool(command.words) and command.words[0] in META
        if not (verb.key and is_key and word):
            return word
        return self._encoded(word) if is_meta and b"b" in command.words[2:] else self.key(word)

    def _binary(self, frame: Frame, *, sasl: bool) -> bytes:
        if sasl:
            return replace(frame, value=b"x" * len(frame.value)).render()
        if frame.name == "stat":
            return frame.render()
        return replace(frame, key=self.key(frame.key), value=self.value(frame.value)).render()

    def _frames(self, reply: bytes, *, sasl: bool) -> bytes:
        masked, place = b"", 0
        for frame in frames(reply):
            keylen, extlen, length = frame.lengths
            if frame.status or frame.name in _COUNTS or not (keylen or length > extlen):
                masked += frame.render()
            else:
                masked += self._binary(frame, sasl=sasl)
            place += frame.size
        return masked + reply[place:]


def _names_a_secret(command: Command, reply: bytes) -> bool:
    """Return whether the text of an error repeats a key or the value of its command."""
    if b"ERROR" not in reply.partition(b"\n")[0]:
        return False
    secrets = (*command.keys, command.data.partition(b"\n")[2].strip())
    return any(len(each) >= _MIN_SECRET_WORD and each in reply for each in secrets)


def _leads(key: bytes, place: int) -> bool:
    """Return whether a digit is the first of several: there a zero stays, and no other digit becomes one."""
    return key[place - 1 : place].isdigit() is False and key[place : place + 2].isdigit() and len(key) > place + 1


def _shifted(byte: int, members: bytes, shift: int, *, leads: bool) -> int:
    if members is not _CLASSES[0] or not leads:
        return members[(members.index(byte) + shift) % len(members)]
    return byte if byte == ord("0") else members[1 + (members.index(byte) - 1 + shift) % 9]
