"""Recognize frames of gets, and noops between them, in the forms that every profile parses in the same way."""

from __future__ import annotations

from typing import Final

from kvref.protocol.command_table import ROWS, binary_form
from kvref.protocol.commands import Frame, Get, Noop
from kvref.protocol.opcodes import HEADER_SIZE, NOOP, REQUEST, Header, Opcode, header_at
from kvref.protocol.rules import WireRules

_SHAPE: Final = 12  # bytes of a header that decide whether its frame is plain; the opaque and the CAS number follow
_MAX_SHAPES: Final = 1 << 12


def command_of(frame: Frame) -> Get | Noop:
    """Return the command of such a frame."""
    return Noop(frame=frame) if frame.opcode == NOOP else Get([frame.key], with_cas=True, frame=frame)


class PlainFrames:
    """Binary gets, and noops between them.

    Args:
        rules: grammar facts of the profile.
    """

    def __init__(self, rules: WireRules) -> None:
        self._key_limit = rules.key_limit
        forms = {number: binary_form(number, rules) for command in (Get, Noop) for number in ROWS[command].binary}
        self._opcodes = {number: form for number, form in forms.items() if form is not None}
        self._shapes: dict[bytes, tuple[Opcode, Header]] = {}  # by the first bytes of headers that were seen

    def all_of(self, data: bytes, most: int) -> list[Frame] | None:
        """Return the frames that some input consists of, None for any other input.

        Args:
            data: at the beginning of a frame.
            most: number of frames.
        """
        found: list[Frame] = []
        at, length = 0, len(data)
        while at < length:
            shape = self._shapes.get(data[at : at + _SHAPE]) or self._shape(data, at)
            if shape is None or len(found) >= most:
                return None
            opcode, header = shape
            key_at = at + HEADER_SIZE
            end = key_at + header.body_length
            if end > length:
                return None
            opaque = data[at + _SHAPE : at + _SHAPE + 4]
            found.append(Frame(header.opcode, opaque, data[key_at:end], opcode.quiet, opcode.with_key))
            at = end
        return found

    def _shape(self, data: bytes, at: int) -> tuple[Opcode, Header] | None:
        """Return a header with the layout of its opcode, None where the frame is not plain or must still come."""
        if len(data) < at + HEADER_SIZE:
            return None
        header = header_at(data, at)
        opcode = self._opcodes.get(header.opcode)
        if opcode is None or header.magic != REQUEST or header.vbucket:
            return None
        if header.key_length > self._key_limit or not opcode.accepts(header):
            return None
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        self._shapes[data[at : at + _SHAPE]] = opcode, header
        return opcode, header
