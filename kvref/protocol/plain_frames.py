"""Recognize frames of gets, in the forms that every profile parses in the same way."""

from __future__ import annotations

from kvref.protocol.command_table import ROWS, binary_form
from kvref.protocol.commands import Frame, Get, Noop
from kvref.protocol.opcodes import HEADER_SIZE, REQUEST, header_at
from kvref.protocol.rules import WireRules


class PlainFrames:
    """Binary gets, and noops between them.

    Args:
        rules: grammar facts of the profile.
    """

    def __init__(self, rules: WireRules) -> None:
        self._key_limit = rules.key_limit
        forms = {number: binary_form(number, rules) for command in (Get, Noop) for number in ROWS[command].binary}
        self._opcodes = {number: form for number, form in forms.items() if form is not None}

    def all_of(self, data: bytes, most: int) -> list[Frame] | None:
        """Return the frames that some input consists of, None for any other input.

        Args:
            data: at the beginning of a frame.
            most: number of frames.
        """
        found: list[Frame] = []
        at, length = 0, len(data)
        while at < length:
            if length < at + HEADER_SIZE or len(found) >= most:
                return None
            header = header_at(data, at)
            opcode, key_at = self._opcodes.get(header.opcode), at + HEADER_SIZE
            at = key_at + header.body_length
            if opcode is None or header.magic != REQUEST or header.vbucket or at > length:
                return None
            if header.key_length > self._key_limit or not opcode.accepts(header):
                return None
            found.append(Frame(header.opcode, header.opaque, data[key_at:at], opcode.quiet, opcode.with_key))
        return found
