"""MySQL's character sets: bytes of the wire to text and back, and where bytes stop being text."""

from __future__ import annotations

import codecs
import re
from typing import Final

# MySQL's latin1 is Windows' code page 1252 with its five holes filled.
_LATIN1: Final = "".join(bytes([byte]).decode("cp1252", "replace").replace("\ufffd", chr(byte)) for byte in range(256))
_FOUR_BYTES: Final = re.compile(rb"[\xf0-\xff]")


class Charset:
    """A character set; this one's bytes are UTF-8.

    Args:
        name: MySQL's, in lower case.
        unit: bytes of each character, or of the shortest where they vary; 0: UTF-8.
        checked: the plugin looks for malformed bytes (not in character sets of one byte: coll-033).
    """

    def __init__(self, name: str, unit: int = 0, *, checked: bool = True) -> None:
        self.name = name
        self.unit = unit
        self.checked = checked
        self.room = unit or 1  # bytes for which a CHAR has room, for each character
        self.varies = False  # characters of one set differ in bytes, and it is not UTF-8

    def decode(self, data: bytes) -> str:
        """Return bytes as text.

        Raises:
            UnicodeDecodeError: `start` is the first byte that is none.
        """
        return data.decode()

    def encode(self, text: str) -> bytes:
        """Return text as bytes; a character that the set lacks becomes `?`, as MySQL converts it."""
        return text.encode("utf-8", "surrogateescape")

    def letters(self, data: bytes) -> list[bytes]:
        """Return the characters of text whose bytes are kept, up to the first that is none."""
        unit = self.unit or 1
        return [data[at : at + unit] for at in range(0, len(data), unit)]

    def malformed_at(self, data: bytes) -> int | None:
        """Return the position of the first byte that is no text, None where all are."""
        try:
            self.decode(data)
        except UnicodeDecodeError as error:
            return error.start
        return None


class _ThreeBytes(Charset):
    """UTF-8 without characters of four bytes."""

    def decode(self, data: bytes) -> str:
        found = None if data.isascii() else _FOUR_BYTES.search(data)
        if found is None:
            return data.decode()
        data[: found.start()].decode()
        raise UnicodeDecodeError(self.name, data, found.start(), found.end(), "a character of four bytes")


class _OneByte(Charset):
    """Each byte is a character: the one at its place in `characters`."""

    def __init__(self, name: str, characters: str) -> None:
        super().__init__(name, unit=1, checked=False)
        self._characters = characters
        self._bytes = codecs.charmap_build(characters)

    def decode(self, data: bytes) -> str:
        return codecs.charmap_decode(data, "strict", self._characters)[0]

    def encode(self, text: str) -> bytes:
        return codecs.charmap_encode(text, "replace", self._bytes)[0]


class _Ascii(_OneByte):
    """Bytes from 0x80 on are no characters, but columns keep them: here as U+0080 to U+00FF."""

    def malformed_at(self, data: bytes) -> int | None:
        return None if data.isascii() else next(at for at, byte in enumerate(data) if byte >= 0x80)


class _Ucs2(Charset):
    """Two bytes a character; to MySQL any two bytes are one."""

    def decode(self, data: bytes) -> str:
        return data.decode("utf-16-be")

    def encode(self, text: str) -> bytes:
        return text.encode("utf-16-be", "replace")

    def malformed_at(self, data: bytes) -> int | None:
        return len(data) - 1 if len(data) % 2 else None


UTF8MB4: Final = Charset("utf8mb4")
CHARSETS: Final = {
    charset.name: charset
    for charset in (
        UTF8MB4,
        _ThreeBytes("utf8mb3"),
        _ThreeBytes("utf8"),
        _OneByte("latin1", _LATIN1),
        _Ascii("ascii", "".join(map(chr, range(256)))),
        _Ucs2("ucs2", unit=2),
    )
}
