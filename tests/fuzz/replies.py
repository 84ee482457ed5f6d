"""Whether what a server answers is well-formed, read by its own reader: any sequence of whole replies."""

from __future__ import annotations

import re
import struct
from typing import Final

# Words in front of a line end. A key may hold anything but a blank and LF.
_REST: Final = rb" \d{1,10} (\d{1,8})(?: \d{1,20})?\r\n|VA (\d{1,8})(?: [^\r\n ]+)*\r\n"
_BLOCK: Final = re.compile(rb"VALUE [^ \n]{1,250}" + _REST)
# In a range the plugin answers integer keys as they are stored, and keys that it has cut to nothing (`range.answers`).
_BLOCK_OF_PLUGIN: Final = re.compile(rb"VALUE [\s\S]{0,250}?" + _REST)
# A binary set may have stored a key with a blank and digits behind it, which look like the flags of a gets.
_BLOCK_OF_KEY_WITH_NUMBER: Final = re.compile(rb"VALUE [\s\S]{0,250}? \d{1,20} \d{1,10} (\d{1,8})\r\n")
_LINE: Final = re.compile(
    rb"(?:END|STORED|NOT_STORED|EXISTS|NOT_FOUND|DELETED|TOUCHED|OK|RESET|SUCCEED|ERROR|\d{1,20} *"
    rb"|CLIENT_ERROR [^\r\n]+|SERVER_ERROR [^\r\n]+|VERSION [^\r\n]+|STAT [^\r\n]+|PREFIX [^\n]+|ITEM [^\n]+"
    rb"|BADCLASS [^\r\n]+|NOTSTARTED [^\r\n]+|ERROR failed[^\r\n]+|MEMLIMIT_TOO_SMALL [^\r\n]+|Error TLS not enabled"
    rb"|ERROR: shutdown not enabled"
    rb"|MN|EN|NF|NS|EX|HD|(?:EN|NF|NS|EX|HD|ME)(?: [^ \n]+)+ ?|)\r\n"
    rb"|key=[^ \n]{1,750} exp=-?\d+ la=\d+ cas=\d+ fetch=no cls=0 size=\d+\n"
)
_HEAD: Final = struct.Struct(">BBHBBHI")
HEAD: Final = 24
LONGEST: Final = 64 << 20


class MalformedError(AssertionError):
    """A server answered what is not a reply."""


class TextReplies:
    """Read replies of one connection in the text protocol; `count` is of those that were whole.

    Args:
        plugin: it answers as the plugin does.
    """

    def __init__(self, *, plugin: bool = False) -> None:
        self._block = _BLOCK_OF_PLUGIN if plugin else _BLOCK
        self._rest = b""
        self.count = 0

    def feed(self, data: bytes) -> None:
        """Read what came; raises MalformedError."""
        data, at = self._rest + data, 0
        while at < len(data):
            line = _LINE.match(data, at)
            if line is not None:
                at, self.count = line.end(), self.count + 1
                continue
            block = self._block.match(data, at)
            if block is None:
                self._check_open(data, at)
                break
            end = block.end() + int(block[1] or block[2])
            if len(data) < end + 2:
                break
            if data[end : end + 2] != b"\r\n":
                end = self._end_behind_number(data, at)
                if len(data) < end + 2:
                    break
                if data[end : end + 2] != b"\r\n":
                    raise MalformedError(f"a value does not end in CR LF: {data[at : end + 20]!r}")
            at = end + 2
        self._rest = data[at:]

    def _end_behind_number(self, data: bytes, at: int) -> int:
        """Return where a value ends if a number is part of its key; raises MalformedError if it cannot be."""
        block = _BLOCK_OF_KEY_WITH_NUMBER.match(data, at) if self._block is _BLOCK_OF_PLUGIN else None
        if block is None:
            raise MalformedError(f"a value does not end in CR LF: {data[at : at + 300]!r}")
        return block.end() + int(block[1])

    def end(self) -> None:
        """Take note that nothing more comes; raises MalformedError where something is half."""
        if self._rest:
            raise MalformedError(f"half a reply: {self._rest[:200]!r}")

    def _check_open(self, data: bytes, at: int) -> None:
        if b"\r\n" in data[at:] and not data.startswith(
            (b"VALUE ", b"EN ", b"ME ", b"HD ", b"NF ", b"NS ", b"EX "), at
        ):
            raise MalformedError(f"no reply: {data[at : at + 200]!r}")
        if len(data) - at > 1 << 16 and b"\n" in data[at : at + 4096]:
            raise MalformedError(f"no reply: {data[at : at + 200]!r}")


class BinaryReplies:
    """Read replies of one connection in the binary protocol."""

    def __init__(self) -> None:
        self._rest = b""
        self.count = 0

    def feed(self, data: bytes) -> None:
        """Read what came; raises MalformedError."""
        data, at = self._rest + data, 0
        while len(data) - at >= HEAD:
            magic, _, key, extras, kind, _, body = _HEAD.unpack_from(data, at)
            if magic != 0x81 or kind or key + extras > body or body > LONGEST:
                raise MalformedError(f"no frame: {data[at : at + 60]!r}")
            if len(data) - at < HEAD + body:
                break
            at, self.count = at + HEAD + body, self.count + 1
        self._rest = data[at:]

    def end(self) -> None:
        """Take note that nothing more comes; raises MalformedError where something is half."""
        if self._rest:
            raise MalformedError(f"half a frame: {self._rest[:200]!r}")
