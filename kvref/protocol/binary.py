"""The binary protocol of one connection: frames to commands, replies to frames. What opcodes carry: `opcodes.py`."""

from __future__ import annotations

import struct
from typing import Final, assert_never

from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.command_table import binary_form
from kvref.protocol.input_buffer import Input
from kvref.protocol.opcodes import HEADER_SIZE, NOOP, REQUEST, SETS, TOUCH, UNSUPPORTED, Body, Header, Opcode, header_at
from kvref.protocol.rules import WireRules

_REPLY: Final = struct.Struct(">BBHBxHI4sQ")
_FOUND: Final = struct.Struct(">BBHBxHI4sQI")  # with flags behind the header
_FLAGS_SIZE: Final = 4
_MAGIC: Final = 0x81
_UINT64: Final = struct.Struct(">Q")

OK: Final = 0x00
NOT_FOUND: Final = 0x01
EXISTS: Final = 0x02
TOO_LARGE: Final = 0x03
INVALID: Final = 0x04
NOT_STORED: Final = 0x05
NOT_A_NUMBER: Final = 0x06
UNKNOWN: Final = 0x81
OUT_OF_MEMORY: Final = 0x82
NOT_SUPPORTED: Final = 0x83
INTERNAL: Final = 0x84
TEMPORARY: Final = 0x86

TEXTS: Final = {
    NOT_FOUND: b"Not found",
    EXISTS: b"Data exists for key",
    TOO_LARGE: b"Too large",
    INVALID: b"Invalid arguments",
    NOT_STORED: b"Not stored",
    NOT_A_NUMBER: b"Non-numeric server-side value for incr or decr",
    UNKNOWN: b"Unknown command",
    OUT_OF_MEMORY: b"Out of memory",
    NOT_SUPPORTED: b"Not supported",
    TEMPORARY: b"Temporary failure",
}
# Statuses of failures (process_arithmetic_command, complete_update_bin); the texts of these replies are the statuses'.
_STATUSES: Final = {
    r.Fault.NOT_A_NUMBER: NOT_A_NUMBER,
    r.Fault.NOT_STORED: NOT_STORED,
    r.Fault.NOT_FLUSHED: INVALID,
    r.Fault.TOO_LARGE: TOO_LARGE,
    r.Fault.OUT_OF_MEMORY: OUT_OF_MEMORY,
    r.Fault.UNFIT_TABLE: TEMPORARY,
}
# complete_update_bin: the condition of each of the two has a separate status (binary:bin-set-004, binary:bin-set-005).
_NOT_STORED: Final = {"add": EXISTS, "replace": NOT_FOUND}
_SCRUB: Final = 0xF0  # answered by the daemon's own engine, and does nothing here (binary:bin-op-009)
_MAX_ENGINE_BODY: Final = 64 << 10  # beyond it a key or a value is too large


class BinaryParser(Input):
    """Parse the binary protocol incrementally."""

    __slots__ = ("_after",)

    def __init__(self, rules: WireRules) -> None:
        super().__init__(rules)
        self._after: c.Command | None = None  # answered once what is to be thrown away has arrived

    @property
    def between_commands(self) -> bool:
        return not self._buffer and self.at_command

    @property
    def starts_command(self) -> bool:
        return self.at_command

    @property
    def at_command(self) -> bool:
        return self._after is None and super().at_command

    def next_command(self) -> c.Command | None:
        """Return the next complete command, or None when more bytes are needed."""
        while not self.closed and (not self._discard or self._throw_away()):
            if self._after is not None:
                command, self._after = self._after, None
                return command
            if self.pending < HEADER_SIZE:
                break
            start = self._position
            header = header_at(self._buffer, start)
            if not self._is_request(header):
                self.closed = True
                break
            taken = self._take(header)
            if taken is not None:
                return taken
            if self._position == start:
                break  # more of it must come
        self._compact()
        return None

    def unfinished(self) -> c.Refused:
        """Return a record for the command that is not complete."""
        whole = self.pending >= HEADER_SIZE
        frame = _frame(header_at(self._buffer, self._position)) if whole else c.Frame(0, bytes(4))
        return c.Refused(b"", frame=frame)

    def _is_request(self, header: Header) -> bool:
        if header.magic == REQUEST:
            return True
        # complete_nread_binary looks at the magic only where a body is read (more:frame-018).
        bodiless = header.opcode == NOOP or header.opcode in UNSUPPORTED
        return header.magic == _MAGIC and bodiless and self._rules.answers_reply_magic

    def _take(self, header: Header) -> c.Command | None:
        """Return the command of a frame; None where more of it must come, or is thrown away before it is answered."""
        opcode = binary_form(header.opcode, self._rules)
        status = self._refusal(header, opcode)
        if status:
            self.closed = True
            return _refused(header, status)
        if header.opcode in UNSUPPORTED:
            self._skip(header)
            return _refused(header, NOT_SUPPORTED)
        if opcode is None or (opcode.own_engine and header.body_length > _MAX_ENGINE_BODY):
            self._skip(header)
            self._after = self._unanswered(header, opcode)
            return None
        return self._of_engine(header, opcode) if opcode.own_engine else self._whole(header, opcode)

    def _refusal(self, header: Header, opcode: Opcode | None) -> int:
        """Return the status of a frame whose lengths are wrong, which ends the connection; 0 where they are right."""
        if header.value_length < 0 and self._rules.short_body_is_unknown:
            return UNKNOWN
        if header.key_length > self._rules.key_limit or (opcode is not None and not opcode.accepts(header)):
            return INVALID
        return 0

    def _skip(self, header: Header) -> None:
        self._position += HEADER_SIZE
        self._discard = header.body_length

    def _unanswered(self, header: Header, opcode: Opcode | None) -> c.Command:
        if header.opcode == _SCRUB:
            return c.Refused(b"", frame=_frame(header))
        if opcode is not None:
            return c.Refused(b"Value is too large.", status=INVALID, frame=_frame(header))
        text = TEXTS[UNKNOWN] if self._rules.names_unknown_opcode else b""
        return c.Refused(text, status=UNKNOWN, frame=_frame(header))

    def _of_engine(self, header: Header, opcode: Opcode) -> c.Command | None:
        start = self._position + HEADER_SIZE
        if len(self._buffer) < start + header.body_length:
            return None
        # The engine has no extras: what comes first is the key.
        data = bytes(self._buffer[start : start + header.body_length])
        self._position = start + header.body_length
        command = opcode.build(header, Body(b"", data[: header.key_length], data[header.key_length :]), self._rules)
        command.frame = _frame(header)
        return command

    def _whole(self, header: Header, opcode: Opcode) -> c.Command | None:
        key_at = self._position + HEADER_SIZE + header.extras_length
        value_at = key_at + header.key_length
        if len(self._buffer) < value_at:
            return None
        word = bytes(self._buffer[key_at:value_at])
        if opcode.value and is_too_large(header, self._rules):
            # Answered before the value has arrived, and the row goes where a set does not come to pass (bin-set-018).
            removes = word if header.opcode in SETS and self._rules.too_large_set_removes else b""
            self._position, self._discard = value_at, header.value_length
            return _refused(header, TOO_LARGE, removes)
        end = value_at if opcode.leaves_value else value_at + header.value_length
        if len(self._buffer) < end and self._exceeds_limit(value_at):
            self._position, self._discard = value_at, header.value_length
            return _refused(header, TOO_LARGE)
        if len(self._buffer) < end:
            return None
        extras = bytes(self._buffer[self._position + HEADER_SIZE : key_at])
        body = Body(extras, word, self._value(value_at, end))
        self._position = end
        command = opcode.build(header, body, self._rules)
        command.frame = c.Frame(header.opcode, header.opaque, word, opcode.quiet, opcode.with_key)
        return command


def is_too_large(header: Header, rules: WireRules) -> bool:
    """Return whether the value of a frame is beyond the size limit."""
    counted = header.value_length + (header.key_length if rules.limit_counts_key else 0)
    return rules.value_limit is not None and counted > rules.value_limit


def _frame(header: Header) -> c.Frame:
    return c.Frame(header.opcode, header.opaque)


def _refused(header: Header, status: int, removes: bytes = b"") -> c.Refused:
    return c.Refused(TEXTS[status], removes=removes, status=status, frame=_frame(header))


def encode(command: c.Command, frame: c.Frame, reply: r.Reply, cas: int) -> bytes:
    """Return the bytes of a reply, empty where the command is quiet about it; `cas` is that of a row it wrote, or 0."""
    match reply:
        case r.Items():
            return _item(frame, reply)
        case r.Number():
            return b"" if frame.quiet else reply_frame(frame, data=_UINT64.pack(reply.value), cas=cas)
        case r.Status() if isinstance(command, c.Stats):
            return reply_frame(frame) if reply is not r.Status.ERROR else _error(frame, NOT_FOUND)
        case r.Status():
            status = _status(command, reply)
            if status:
                return _error(frame, status)
            return b"" if frame.quiet else reply_frame(frame, cas=cas if reply is r.Status.STORED else 0)
        case r.StatRows():
            rows = [reply_frame(frame, key=k.encode(), data=v.encode()) for k, v in reply.rows]
            return b"".join([*rows, reply_frame(frame)])
        case r.Release():
            return reply_frame(frame, data=reply.text.encode())
        case r.Line():
            return _line(command, frame, reply)
        case r.Closed():
            return reply_frame(frame) if isinstance(command, c.Quit) and not frame.quiet else b""
        case r.ClientError() | r.ServerError():
            return _failed(command, frame, reply, cas)
        case r.Meta() | r.MetaDebug() | r.Keys():
            raise TypeError(f"{reply!r} answers no binary request")
        case _:
            assert_never(reply)


def _status(command: c.Command, reply: r.Status) -> int:
    match reply:
        case r.Status.NOT_FOUND:
            return NOT_FOUND
        case r.Status.EXISTS:
            return EXISTS
        case r.Status.NOT_STORED:
            return _NOT_STORED.get(command.verb, NOT_STORED) if isinstance(command, c.Store) else NOT_STORED
        case _:
            return OK


def _item(frame: c.Frame, reply: r.Items) -> bytes:
    return item_frame(frame, reply.items[0]) if reply.items else miss_frame(frame)


def miss_frame(frame: c.Frame) -> bytes:
    """Return the bytes of the reply to a get of a key without an item, empty if the get is quiet."""
    if frame.quiet:
        return b""
    # A miss has the key instead of the text (bin-at-002).
    return reply_frame(frame, NOT_FOUND, key=frame.key) if frame.with_key else _error(frame, NOT_FOUND)


def item_frame(frame: c.Frame, item: r.Item) -> bytes:
    """Return the bytes of the reply to a get that has found an item."""
    key = item.word if frame.with_key else b""
    return found_frame(frame.opcode, frame.opaque, key, item.flags, item.data, item.cas)


def found_frame(opcode: int, opaque: bytes, key: bytes, flags: int, data: bytes, cas: int) -> bytes:
    """Return the bytes of the reply to a get that has found an item.

    Args:
        opcode, opaque: of the request.
        key: as the reply has it, empty for most opcodes.
        flags: 0 to 2^32-1.
        cas: 0 to 2^64-1.
    """
    if opcode == TOUCH:
        data = b""
    length = _FLAGS_SIZE + len(key) + len(data)
    return _FOUND.pack(_MAGIC, opcode, len(key), _FLAGS_SIZE, OK, length, opaque, cas, flags) + key + data


def _line(command: c.Command, frame: c.Frame, reply: r.Line) -> bytes:
    if isinstance(command, c.Refused):
        return reply_frame(frame, command.status, data=reply.line)
    if isinstance(command, c.VBucket):
        return reply_frame(frame, data=reply.line)
    if isinstance(command, c.Stats):
        return reply_frame(frame, key=b"detailed", data=reply.line + b"\r\n") + reply_frame(frame)
    return _error(frame, INVALID)


def _failed(command: c.Command, frame: c.Frame, reply: r.ClientError | r.ServerError, cas: int) -> bytes:
    if isinstance(command, c.Stats):
        return _error(frame, NOT_FOUND)
    status = None if reply.fault is None else _STATUSES.get(reply.fault)
    if status is None:
        failed = TEMPORARY if reply.fault is r.Fault.CONFLICT else INTERNAL
        status = INVALID if isinstance(reply, r.ClientError) else failed
        return reply_frame(frame, status, data=reply.text.encode())
    if status == NOT_STORED and isinstance(command, c.Arithmetic):
        return reply_frame(frame, status, data=TEXTS[status], cas=cas)  # the number was taken before (more:bin-206)
    # process_bin_delete has no case for a temporary failure.
    return _error(frame, INVALID if status == TEMPORARY and isinstance(command, c.Delete) else status)


def frame_of(reply: bytes) -> c.Frame | None:
    """Return the frame that a reply answers, None for a reply of the text protocol."""
    if reply[0] != _MAGIC:
        return None
    _, opcode, _, _, _, _, opaque, _ = _REPLY.unpack_from(reply)
    return c.Frame(opcode, opaque)


def _error(frame: c.Frame, status: int) -> bytes:
    return reply_frame(frame, status, data=TEXTS[status])


def reply_frame(
    frame: c.Frame, status: int = OK, *, extras: bytes = b"", key: bytes = b"", data: bytes = b"", cas: int = 0
) -> bytes:
    """Return the bytes of a reply to a frame."""
    length = len(extras) + len(key) + len(data)
    return (
        _REPLY.pack(_MAGIC, frame.opcode, len(key), len(extras), status, length, frame.opaque, cas)
        + extras + key + data
    )  # fmt: skip
