"""One connection between a client and a server: commands in the order sent, each with the reply that belongs to it.

The rules are those of memcached's protocol.txt: a command of the text protocol is one line, with a data block where the
verb has one. Its reply is one line, except for `get`, `stats` and their relatives: those end with a line that is no
item.
Commands that may stay without a reply (`noreply`, the meta flag q, quiet opcodes) are completed by the next reply that
cannot be theirs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kvref_conformance.wire.frames import NAMES, OPCODES, REPLY, REQUEST
from kvref_conformance.wire.requests import Request, cut, frame_request, text_request
from kvref_conformance.wire.verbs import block

# Limit of a line, in bytes; no server accepts a longer one.
MAX_LINE: Final = 1 << 16
# Limit of one command with its data or of one reply, in bytes.
MAX_BYTES: Final = 64 << 20

# First words of lines that are followed by further lines of the same reply.
ITEMS: Final = {
    **dict.fromkeys((b"get", b"gets", b"bget", b"gat", b"gats"), (b"VALUE",)),
    b"stats": (b"STAT", b"ITEM", b"PREFIX", b"VALUE"),
    b"lru_crawler": (b"key=", b"mg"),
}
# Verbs behind which an item is what the recording says, whatever it was before.
SETTING: Final = frozenset({"set", "delete"})
META: Final = frozenset({b"mg", b"ms", b"md", b"ma", b"me", b"mn"})
SILENT: Final = "noreply"
# Replies of these never end, or the connection has another protocol afterwards.
ENDLESS: Final = frozenset({b"watch"})
_STAT: Final = OPCODES["stat"]


class NotRecordableError(ValueError):
    """The connection has bytes that are not command or no reply, or that exceed a limit."""


@dataclass(eq=False, slots=True)
class Command:
    """One command.

    Args:
        data: as sent, with its data block or body.
        verb: first word, or name of the opcode with `binary ` before it.
        keys: its keys.
        at: when its last byte was sent, in seconds of the caller's clock.
        silent: it never has a reply (`noreply`, `quit`).
        quiet: it may stay without a reply.
    """

    data: bytes
    verb: str
    keys: tuple[bytes, ...] = ()
    at: float = 0.0
    silent: bool = False
    quiet: bool = False
    words: list[bytes] = field(default_factory=list)

    @property
    def base_verb(self) -> str:
        """Return the verb without its protocol, and without the mark of a quiet opcode."""
        return self.verb.removeprefix("binary ").rstrip("q")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A command with its reply.

    Args:
        command: None for bytes that belong to no command.
        reply: as received; empty without a reply.
        binary: both are frames of the binary protocol.
    """

    command: Command | None
    reply: bytes
    binary: bool


class Dialogue:
    """Pairs commands and replies of one connection. After NotRecordableError it must not be used further."""

    def __init__(self) -> None:
        self.binary = False
        self._requests = bytearray()
        self._answered = bytearray()
        self._scanned = 0  # bytes of the answer that are whole lines of the first waiting command
        self._waiting: deque[Command] = deque()

    @property
    def size(self) -> int:
        """Return the number of bytes that are kept in memory."""
        return len(self._requests) + len(self._answered) + sum(len(each.data) for each in self._waiting)

    @property
    def waiting(self) -> tuple[Command, ...]:
        """Return the commands without a complete reply, in order."""
        return tuple(self._waiting)

    def sent(self, data: bytes, at: float = 0.0) -> list[Exchange]:
        """Take bytes of the client.

        Args:
            data: what follows the bytes before it.
            at: when they were sent, in seconds.

        Returns:
            Commands that are complete without a reply.

        Raises:
            NotRecordableError: as the class says.
        """
        if not self._requests and not self._waiting and data:
            self.binary = data[0] == REQUEST
        self._requests += data
        while (command := self._binary_command() if self.binary else self._text_command()) is not None:
            command.at = at
            self._waiting.append(command)
        return self._complete_silent()

    def received(self, data: bytes) -> list[Exchange]:
        """Take bytes of the server; return the exchanges that they complete. Raises as `sent`."""
        self._answered += data
        found: list[Exchange] = []
        while self._answered:
            end = self._end_of_frame() if self.binary else self._end_of_reply()
            if end is None:
                break
            reply = bytes(self._answered[:end])
            del self._answered[:end]
            self._scanned = 0
            found += self._assigned(reply)
            found += self._complete_silent()
        if len(self._answered) > MAX_BYTES:
            raise NotRecordableError(f"a reply of more than {MAX_BYTES} bytes")
        return found

    def closed(self) -> list[Exchange]:
        """Return the commands without a complete reply, at the end of the connection; the first has what came of it."""
        rest, self._answered = bytes(self._answered), bytearray()
        commands = [*self._waiting]
        self._waiting.clear()
        if rest and not commands:
            return [Exchange(None, rest, self.binary)]
        return [Exchange(each, b"" if number else rest, self.binary) for number, each in enumerate(commands)]

    def _complete_silent(self) -> list[Exchange]:
        found = []
        while self._waiting and self._waiting[0].silent:
            found.append(Exchange(self._waiting.popleft(), b"", self.binary))
        return found

    def _text_command(self) -> Command | None:
        request = text_request(self._requests)
        if request is None and len(self._requests) > MAX_LINE:
            raise NotRecordableError(f"a line of more than {MAX_LINE} bytes")
        data = self._whole(request)
        return None if request is None or data is None else _text_command(data, request)

    def _binary_command(self) -> Command | None:
        request = frame_request(self._requests)
        if request is not None and request.magic != REQUEST:
            raise NotRecordableError(f"a binary request with the magic byte 0x{request.magic:02x}")
        data = self._whole(request)
        if request is None or data is None:
            return None
        name = NAMES.get(request.opcode, f"0x{request.opcode:02x}")
        return Command(data, f"binary {name}", request.keys, quiet=name.endswith("q"))

    def _whole(self, request: Request | None) -> bytes | None:
        """Take the bytes of the first request; None if they have not arrived."""
        if request is not None and request.size > MAX_BYTES:
            raise NotRecordableError(f"a command of more than {MAX_BYTES} bytes")
        return cut(self._requests, request)

    def _end_of_frame(self) -> int | None:
        """Return where the reply of a binary command ends: behind its frame; `stat` has frames up to an empty one."""
        place = 0
        while (frame := frame_request(self._answered, place)) is not None:
            if frame.magic != REPLY:
                raise NotRecordableError(f"a binary reply with the magic byte 0x{frame.magic:02x}")
            place += frame.size
            if len(self._answered) < place:
                return None
            if frame.opcode != _STAT or not frame.keys:
                return place
        return None

    def _end_of_reply(self) -> int | None:
        """Return where the reply to the first waiting command of the text protocol ends."""
        verb = self._waiting[0].words[0] if self._waiting and self._waiting[0].words else b""
        items = ITEMS.get(verb, ())
        while (end := self._answered.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._answered[self._scanned : end])
            whole = end + 1 + _item_block(line)
            if len(self._answered) < whole:
                return None
            if not line.startswith(items or (b"\0",)):
                return whole
            self._scanned = whole
        return None

    def _assigned(self, reply: bytes) -> list[Exchange]:
        """Give a reply to the first waiting command that it can be of; quiet ones before that have none."""
        found = []
        while self._waiting and self._waiting[0].quiet and not _fits(self._waiting[0], reply, [*self._waiting][1:]):
            found.append(Exchange(self._waiting.popleft(), b"", self.binary))
        command = self._waiting.popleft() if self._waiting else None
        return [*found, Exchange(command, reply, self.binary)]


def _item_block(line: bytes) -> int:
    words = line.split()
    if words[:1] == [b"VALUE"] and len(words) > 3:
        return block(words[3])
    return block(words[1]) if words[:1] == [b"VA"] and len(words) > 1 else 0


def _text_command(data: bytes, request: Request) -> Command:
    words = [*request.words]
    if words and words[0] in ENDLESS:
        raise NotRecordableError(f"`{request.name}`, whose reply does not end")
    meta = bool(words) and words[0] in META
    return Command(
        data,
        request.name,
        request.keys,
        silent=bool(words) and (words[0] == b"quit" or (not meta and words[-1] == SILENT.encode() and len(words) > 1)),
        quiet=meta and b"q" in words[2:],
        words=words,
    )


def _fits(command: Command, reply: bytes, later: list[Command]) -> bool:
    """Return whether a reply can be that of a quiet command, and not that of a later one."""
    if command.verb.startswith("binary "):
        # Opcode and opaque, which a server returns unchanged.
        return (reply[1], reply[12:16]) == (command.data[1], command.data[12:16])
    words = reply.partition(b"\n")[0].split()
    if words[:1] == [b"MN"]:
        return False
    for sign in (b"O", b"k"):
        token = next((word for word in words[1:] if word.startswith(sign)), None)
        if token is not None and any(_token(each, sign) == token for each in (command, *later)):
            return _token(command, sign) == token
    return True


def _token(command: Command, sign: bytes) -> bytes | None:
    if sign == b"k":
        return b"k" + command.words[1] if b"k" in command.words[2:] else None
    return next((word for word in command.words[2:] if word.startswith(sign)), None)
