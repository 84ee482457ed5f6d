"""What the clients of a world send and understand: commands of a plan in the text, meta and binary protocol.

A reply is given as the text protocol has it, so that one judge knows what each has to be.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from kvref_testbed.simulation.plan import READS, STORAGE, Command

_NON_NUMERIC: Final = b"CLIENT_ERROR cannot increment or decrement non-numeric value"
# What a command may be answered with; any may be answered with an error of the server.
_REPLIES: Final = {
    "set": rb"STORED",
    "add": rb"STORED|NOT_STORED",
    "replace": rb"STORED|NOT_STORED",
    "append": rb"STORED|NOT_STORED",
    "prepend": rb"STORED|NOT_STORED",
    "cas": rb"STORED|EXISTS|NOT_FOUND",
    "incr": rb"\d+|NOT_FOUND|" + _NON_NUMERIC,
    "decr": rb"\d+|NOT_FOUND|" + _NON_NUMERIC,
    "delete": rb"DELETED|NOT_FOUND",
    "touch": rb"TOUCHED|NOT_FOUND",
    "flush_all": rb"OK",
}
_DONE: Final = {"delete": b"DELETED", "touch": b"TOUCHED"} | dict.fromkeys(STORAGE, b"STORED")
_LINE: Final = {verb: re.compile(rb"(?:" + reply + rb")\Z") for verb, reply in _REPLIES.items()}
FAILED: Final = b"SERVER_ERROR "
_ITEM: Final = re.compile(rb"VALUE (\S+) (\d+) (\d+)(?: (\d+))?\r\n")


class WrongReplyError(Exception):
    """The bytes are not a reply that the command can have; the text is what came."""


@dataclass(slots=True)
class Item:
    """An item that a get has shown."""

    value: bytes
    flags: int
    number: int | None  # of cas


class Reply(NamedTuple):
    """A reply.

    Args:
        size: of it in bytes.
        line: of the text protocol; of a get, empty.
        items: what a get has shown, by key.
    """

    size: int
    line: bytes
    items: dict[str, Item] | None = None


class ProtocolOfClient(Protocol):
    """A protocol; `QUIT` ends a connection."""

    @property
    def QUIT(self) -> bytes: ...  # noqa: N802 - a constant

    def request(self, command: Command, number: int) -> bytes:
        """Return the bytes of a command; `number`: its cas number."""

    def reply(self, command: Command, data: bytes) -> Reply | None:
        """Return the reply at the beginning of data, None where it is not complete; raises WrongReplyError."""


def _checked(command: Command, line: bytes, size: int) -> Reply:
    """Return a reply that has no items; raises WrongReplyError."""
    expected = _LINE.get(command.verb)
    if not line.startswith(FAILED) and (expected is None or expected.match(line) is None):
        raise WrongReplyError(repr(line))
    return Reply(size, line)


class _Lines:
    """A protocol of lines."""

    QUIT = b"quit\r\n"

    def request(self, command: Command, number: int) -> bytes:
        """See `ProtocolOfClient`."""
        return f"{self._line(command, number)}\r\n".encode()

    def reply(self, command: Command, data: bytes) -> Reply | None:
        """See `ProtocolOfClient`."""
        line, end, _ = data.partition(b"\r\n")
        return self._replied(command, line, data) if end else None

    def _line(self, command: Command, number: int) -> str:
        """Return the line of a command, with its data if it has any."""
        raise NotImplementedError

    def _replied(self, command: Command, line: bytes, data: bytes) -> Reply | None:
        """Return the reply that begins with a line of data, see `ProtocolOfClient.reply`."""
        raise NotImplementedError


class Text(_Lines):
    """The text protocol."""

    def _line(self, command: Command, number: int) -> str:
        noreply = " noreply" if command.noreply else ""
        match command.verb:
            case "get" | "gets":
                return f"{command.verb} {command.key}"
            case "incr" | "decr":
                return f"{command.verb} {command.key} {command.number}{noreply}"
            case "touch":
                return f"touch {command.key} {command.exptime}{noreply}"
            case "delete":
                return f"delete {command.key}{noreply}"
            case "flush_all":
                return f"flush_all{noreply}"
            case verb:
                cas = f" {number}" if verb == "cas" else ""
                head = f"{verb} {command.key} {command.number} {command.exptime} {len(command.value)}{cas}{noreply}"
                return f"{head}\r\n{command.value}"

    def _replied(self, command: Command, line: bytes, data: bytes) -> Reply | None:
        if command.verb in READS and not line.startswith(FAILED):
            return self._shown(command, data)
        return _checked(command, line, len(line) + 2)

    @staticmethod
    def _shown(command: Command, data: bytes) -> Reply | None:
        at, items = 0, {}
        while not data.startswith(b"END\r\n", at):
            found = _ITEM.match(data, at)
            if found is None:
                if b"\r\n" in data[at:]:
                    raise WrongReplyError(repr(data))
                return None
            end = found.end() + int(found[3])
            if len(data) < end + 2:
                return None
            key = found[1].decode()
            items[key] = Item(data[found.end() : end], int(found[2]), int(found[4]) if found[4] else None)
            if key not in command.key.split() or data[end : end + 2] != b"\r\n":
                raise WrongReplyError(repr(data))
            at = end + 2
        return Reply(at + len(b"END\r\n"), b"", items)


class Meta(_Lines):
    """The meta commands of the text protocol, of one key each."""

    _CODES: Final = {b"NS": b"NOT_STORED", b"EX": b"EXISTS", b"NF": b"NOT_FOUND", b"EN": b"NOT_FOUND"}
    _MODES: Final = {"set": "S", "add": "E", "replace": "R", "append": "A", "prepend": "P", "cas": "S"}
    _VALUE: Final = re.compile(rb"VA (\d+)(?: f(\d+))?(?: c(\d+))?\Z")

    def _line(self, command: Command, number: int) -> str:
        key = command.key
        match command.verb:
            case "get":
                return f"mg {key} v f"
            case "gets":
                return f"mg {key} v f c"
            case "incr" | "decr":
                return f"ma {key} M{command.verb[0].upper()} D{command.number} v"
            case "touch":
                return f"mg {key} T{command.exptime}"
            case "delete":
                return f"md {key}"
            case "flush_all":
                return "flush_all"
            case verb:
                cas = f" C{number}" if verb == "cas" else ""
                head = f"ms {key} {len(command.value)} T{command.exptime} F{command.number} M{self._MODES[verb]}{cas}"
                return f"{head}\r\n{command.value}"

    def _replied(self, command: Command, line: bytes, data: bytes) -> Reply | None:
        size = len(line) + 2
        shown = self._VALUE.match(line)
        if shown is not None:
            value = data[size : size + int(shown[1])]
            size += int(shown[1]) + 2
            if len(data) < size:
                return None
            if command.verb in {"incr", "decr"}:
                return _checked(command, value, size)
            return Reply(size, b"", {command.key: self._item(command, line, shown, value)})
        if command.verb in READS and line == b"EN":
            return Reply(size, b"", {})
        code = _DONE.get(command.verb, line) if line == b"HD" else self._CODES.get(line, line)
        return _checked(command, code, size)

    @staticmethod
    def _item(command: Command, line: bytes, shown: re.Match[bytes], value: bytes) -> Item:
        if command.verb not in READS or shown[2] is None:
            raise WrongReplyError(repr(line))
        return Item(value, int(shown[2]), int(shown[3]) if shown[3] else None)


class Binary:
    """The binary protocol."""

    _HEADER: Final = struct.Struct(">BBHBBHIIQ")
    _OPCODES: Final = {
        "get": 0x00, "gets": 0x00, "set": 0x01, "cas": 0x01, "add": 0x02, "replace": 0x03, "delete": 0x04, "incr": 0x05,
        "decr": 0x06, "flush_all": 0x08, "append": 0x0E, "prepend": 0x0F, "touch": 0x1D,
    }  # fmt: skip
    _NO_NEW: Final = 0xFFFFFFFF  # exptime of an incr that creates nothing
    _STATUSES: Final = {1: b"NOT_FOUND", 2: b"EXISTS", 5: b"NOT_STORED", 6: _NON_NUMERIC}
    _CONDITIONS: Final = {("add", 2): b"NOT_STORED", ("replace", 1): b"NOT_STORED"}
    _OPAQUE: Final = 7
    _OWN_ERRORS: Final = 0x80  # from here on, the server has failed
    _DONE: Final = _DONE | {"flush_all": b"OK"}
    QUIT = _HEADER.pack(0x80, 0x17, 0, 0, 0, 0, 0, 0, 0)

    def request(self, command: Command, number: int) -> bytes:
        """See `ProtocolOfClient`."""
        extras, value = b"", b""
        match command.verb:
            case "incr" | "decr":
                extras = struct.pack(">QQI", command.number, 0, self._NO_NEW)
            case "touch":
                extras = struct.pack(">I", command.exptime)
            case "append" | "prepend":
                value = command.value.encode()
            case verb if verb in STORAGE:
                extras, value = struct.pack(">II", command.number, command.exptime), command.value.encode()
        key = command.key.encode()
        size = len(extras) + len(key) + len(value)
        opcode = self._OPCODES[command.verb]
        return (
            self._HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, size, self._OPAQUE, number)
            + extras
            + key
            + value
        )

    def reply(self, command: Command, data: bytes) -> Reply | None:
        """See `ProtocolOfClient`."""
        if len(data) < self._HEADER.size:
            return None
        magic, opcode, key, extras, _, status, body, opaque, number = self._HEADER.unpack_from(data)
        size = self._HEADER.size + body
        if len(data) < size:
            return None
        if magic != 0x81 or opcode != self._OPCODES[command.verb] or key or opaque != self._OPAQUE:
            raise WrongReplyError(repr(data[:size]))
        content = data[self._HEADER.size + extras : size]
        if status >= self._OWN_ERRORS:
            return Reply(size, FAILED + content)
        if command.verb in READS and status in (0, 1):
            flags = int.from_bytes(data[self._HEADER.size : self._HEADER.size + extras])
            shown = Item(content, flags, number if command.verb == "gets" else None)
            return Reply(size, b"", {command.key: shown} if status == 0 else {})
        if status == 0 and command.verb in {"incr", "decr"}:
            return _checked(command, b"%d" % int.from_bytes(content), size)
        done = self._DONE[command.verb] if status == 0 else self._STATUSES.get(status, b"status %d" % status)
        return _checked(command, self._CONDITIONS.get((command.verb, status), done), size)


PROTOCOLS: Final[dict[str, ProtocolOfClient]] = {"text": Text(), "meta": Meta(), "binary": Binary()}
