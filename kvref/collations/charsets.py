"""MySQL's character sets: bytes of the wire to text and back, and where bytes stop being text.

Of OTHER_CHARSETS only bytes are known: where a character ends, and which bytes are none. The server that holds the
column orders them and turns them into other text. Ranges of bytes are those of `my_well_formed_len_*` in MySQL's
strings/ctype-*.cc.
"""

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
        unit: bytes of each character, or of the shortest where they vary; 0: UTF-8.
        checked: the plugin looks for malformed bytes (not in character sets of one byte: type-153).
    """

    def __init__(self, name: str, unit: int = 0, *, checked: bool = True) -> None:
        self.name = name
        self.unit = unit
        self.checked = checked
        self.room = unit or 1  # bytes for which a CHAR has room, for each character
        self.varies = False  # characters of one set differ in bytes, and it is not UTF-8

    def decode(self, data: bytes) -> str:
        """Return bytes as text; raises UnicodeDecodeError whose `start` is the first byte that is none."""
        return data.decode()

    def encode(self, text: str) -> bytes:
        """Return text as bytes; a character that the set lacks becomes `?`, as MySQL converts it."""
        return text.encode("utf-8", "surrogateescape")

    def letters(self, data: bytes) -> list[bytes]:
        """Return the characters of text whose bytes are kept, up to the first that is none."""
        unit = self.unit or 1
        return [data[at : at + unit] for at in range(0, len(data), unit)]

    def malformed_at(self, data: bytes) -> int | None:
        """Return the position of the first byte that is not text, None where all are."""
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
    """Each byte is a character: the one at its place in `characters`, which begin with ASCII."""

    def __init__(self, name: str, characters: str) -> None:
        super().__init__(name, unit=1, checked=False)
        self._characters = characters
        self._bytes = codecs.charmap_build(characters)

    def decode(self, data: bytes) -> str:
        return data.decode("ascii") if data.isascii() else codecs.charmap_decode(data, "strict", self._characters)[0]

    def encode(self, text: str) -> bytes:
        return codecs.charmap_encode(text, "replace", self._bytes)[0]


class _Ascii(_OneByte):
    """Bytes from 0x80 on are not characters, but columns keep them: here as U+0080 to U+00FF."""

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


_ONE_BYTE: Final = (
    "armscii8 cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8 greek hebrew hp8 keybcs2 koi8r koi8u latin2"
    " latin5 latin7 macce macroman swe7 tis620"
).split()
_EUC_JAPANESE: Final = rb"[\0-\x7f]|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|[\xa1-\xfe]{2}"
_SHIFT_JAPANESE: Final = rb"[\0-\x7f\xa1-\xdf]|[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
_LETTERS: Final = {
    "big5": rb"[\0-\x7f]|[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": _SHIFT_JAPANESE,
    "eucjpms": _EUC_JAPANESE,
    "euckr": rb"[\0-\x7f]|[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
    "gb18030": rb"[\0-\x7f]|[\x81-\xfe][\x40-\x7e\x80-\xfe]|[\x81-\xfe][0-9][\x81-\xfe][0-9]",
    "gb2312": rb"[\0-\x7f]|[\xa1-\xf7][\xa1-\xfe]",
    "gbk": rb"[\0-\x7f]|[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "sjis": _SHIFT_JAPANESE,
    "ujis": _EUC_JAPANESE,
}
_WIDE: Final = {
    "utf16": ("utf-16-be", 2, rb"[^\xd8-\xdf].|[\xd8-\xdb].[\xdc-\xdf]."),
    "utf16le": ("utf-16-le", 2, rb".[^\xd8-\xdf]|.[\xd8-\xdb].[\xdc-\xdf]"),
    "utf32": ("utf-32-be", 4, rb"\0[\0-\x10].."),
}


class _Bytes(Charset):
    """A character set whose bytes are not interpreted.

    Args:
        unit: bytes of the shortest character.
        letter: matches one character; None where each byte is one.
        codec: only for spaces.
    """

    def __init__(self, name: str, unit: int = 1, letter: bytes | None = None, codec: str = "latin-1") -> None:
        super().__init__(name, unit, checked=letter is not None)
        self._codec = codec
        self._letter = None if letter is None else re.compile(letter, re.DOTALL)
        self.varies = letter is not None
        if name.startswith("utf16"):
            self.room = 4  # InnoDB keeps CHAR as short as it can only where a character may have one byte

    def decode(self, data: bytes) -> str:
        return data.decode(self._codec)

    def encode(self, text: str) -> bytes:
        return text.encode(self._codec, "replace")

    def letters(self, data: bytes) -> list[bytes]:
        if self._letter is None:
            return super().letters(data)
        found: list[bytes] = []
        at = 0
        while (match := self._letter.match(data, at)) is not None:
            found.append(match[0])
            at = match.end()
        return found

    def malformed_at(self, data: bytes) -> int | None:
        well_formed = sum(map(len, self.letters(data)))
        return None if well_formed == len(data) else well_formed


OTHER_CHARSETS: Final[dict[str, Charset]] = {
    **{name: _Bytes(name) for name in _ONE_BYTE},
    **{name: _Bytes(name, 1, letter) for name, letter in _LETTERS.items()},
    **{name: _Bytes(name, unit, letter, codec) for name, (codec, unit, letter) in _WIDE.items()},
}
