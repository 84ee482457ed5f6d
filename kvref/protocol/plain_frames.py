"""Recognize frames of gets, noops and simple sets, in the forms that every profile parses in the same way."""

from __future__ import annotations

from typing import Final

from kvref.protocol.binary import is_too_large
from kvref.protocol.command_table import ROWS, binary_form
from kvref.protocol.commands import Command, Frame, Get, Noop, Store
from kvref.protocol.fast_path import MAX_FLAGS, STORING
from kvref.protocol.opcodes import HEADER_SIZE, NOOP, REQUEST, Body, Opcode, header_at
from kvref.protocol.rules import WireRules

# A get or a noop; or a set, add or replace without a CAS number, as one of the lines of `PlainLines`.
PlainFrame = Frame | Store
# Number of the opcode, bytes of the frame, whether it is quiet, and with a key, and the opcode of one that stores.
_Shape = tuple[int, int, bool, bool, Opcode | None]

_SHAPE: Final = 12  # bytes of a header that decide whether its frame is plain; the opaque and the CAS number follow
_MAX_SHAPES: Final = 1 << 12


def command_of(plain: PlainFrame) -> Command:
    """Return the command of such a frame."""
    if isinstance(plain, Store):
        return plain
    return Noop(frame=plain) if plain.opcode == NOOP else Get([plain.key], with_cas=True, frame=plain)


class PlainFrames:
    """Binary gets, noops, sets, adds and replaces.

    Args:
        rules: grammar facts of the profile.
    """

    def __init__(self, rules: WireRules) -> None:
        self._rules = rules
        numbers = [number for command in (Get, Noop, Store) for number in ROWS[command].binary]
        forms = {number: binary_form(number, rules) for number in numbers}
        self._opcodes = {number: form for number, form in forms.items() if form is not None}
        self._shapes: dict[bytes, _Shape] = {}  # by the first bytes of headers that were seen

    def first(self, data: bytes, most: int, *, sets: bool) -> tuple[list[PlainFrame], list[int]]:
        """Return the plain frames at the beginning of some input, and where each ends.

        Args:
            data: at the beginning of a frame.
            most: number of frames.
            sets: those that store something are plain too.
        """
        found: list[PlainFrame] = []
        ends: list[int] = []
        at, length = 0, len(data)
        while at < length and len(found) < most:
            shape = self._shapes.get(data[at : at + _SHAPE]) or self._shape(data, at)
            if shape is None:
                break
            number, size, quiet, with_key, stores = shape
            end = at + size
            if end > length:
                break
            if stores is None:
                opaque = data[at + _SHAPE : at + _SHAPE + 4]
                found.append(Frame(number, opaque, data[at + HEADER_SIZE : end], quiet, with_key))
            else:
                store = self._store(stores, data, at, end) if sets else None
                if store is None:
                    break
                found.append(store)
            ends.append(end)
            at = end
        return found, ends

    def _shape(self, data: bytes, at: int) -> _Shape | None:
        """Return what a frame is, None where it is not plain or must still come."""
        if len(data) < at + HEADER_SIZE:
            return None
        header = header_at(data, at)
        opcode = self._opcodes.get(header.opcode)
        if opcode is None or header.magic != REQUEST or header.vbucket:
            return None
        if header.key_length > self._rules.key_limit or not opcode.accepts(header):
            return None
        if opcode.value and is_too_large(header, self._rules):
            return None
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        size, stores = HEADER_SIZE + header.body_length, opcode if opcode.value else None
        shape = self._shapes[data[at : at + _SHAPE]] = header.opcode, size, opcode.quiet, opcode.with_key, stores
        return shape

    def _store(self, opcode: Opcode, data: bytes, at: int, end: int) -> Store | None:
        """Return a storage command of a frame, None if it is not plain."""
        header = header_at(data, at)
        key_at = at + HEADER_SIZE + header.extras_length
        value_at = key_at + header.key_length
        word = data[key_at:value_at]
        command = opcode.build(header, Body(data[at + HEADER_SIZE : key_at], word, data[value_at:end]), self._rules)
        assert isinstance(command, Store)
        if command.verb.encode() not in STORING or command.flags > MAX_FLAGS or not 0 <= command.exptime <= MAX_FLAGS:
            return None
        command.frame = Frame(header.opcode, header.opaque, word, opcode.quiet, opcode.with_key)
        return command
