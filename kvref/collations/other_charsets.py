"""MySQL's other character sets, as far as bytes go: where a character ends, and which bytes are none.

Nobody here orders them or turns them into other text: the server that holds the column does. Ranges of bytes are those
of `my_well_formed_len_*` in MySQL's strings/ctype-*.cc.
"""

from __future__ import annotations

import re
from typing import Final

from kvref.collations.charsets import Charset

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
    """A character set whose bytes nobody looks into.

    Args:
        name: MySQL's.
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
