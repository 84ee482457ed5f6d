"""The text protocol of one connection: bytes to commands, replies to bytes. How each line is parsed: `grammar.py`.

Feed what arrived, then take commands until there is none; incomplete input stays buffered. Once `closed` is set, the
connection must be closed after the commands taken so far are answered.
"""

from __future__ import annotations

from typing import Final, assert_never

from kvref.protocol import command_table, crawler, foreign, meta
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.grammar import BAD_FORMAT, ERROR, TOO_LARGE, Block, Discard, Parsed, length_read, refused
from kvref.protocol.hits import END, numbered, shown
from kvref.protocol.input_buffer import Input
from kvref.protocol.rules import WireRules

# memcached.c try_read_command: a line of more than 1024 bytes without an end is only waited for when it is a get.
MAX_OPEN_LINE: Final = 1024
MAX_LEADING_BLANKS: Final = 100

# memcached 1.6 does not wait for gat and gats.
_UNLIMITED: Final = tuple(verb + b" " for verb, form in command_table.TEXT.items() if form.unlimited)
_UNLIMITED_BEYOND: Final = _UNLIMITED + tuple(
    verb + b" " for verb, form in command_table.TEXT_BEYOND_PLUGIN.items() if form.unlimited
)

BAD_CHUNK: Final = b"CLIENT_ERROR bad data chunk"
LONG_LINE: Final = b"CLIENT_ERROR line of more than %d bytes (line_size_max)"


class TextParser(Input):
    """Parse the text protocol incrementally; `opening`: no line was taken yet."""

    __slots__ = ("_block", "_opening", "_scanned", "_too_long")

    def __init__(self, rules: WireRules, *, opening: bool = True) -> None:
        super().__init__(rules)
        self._scanned = 0  # up to here no line end was found
        self._block: Block | None = None
        self._too_long = False  # the line exceeds a limit that no plugin has, so the reply names the limit
        self._opening = opening and rules.closes_on_foreign  # the first bytes may be another protocol's

    @property
    def between_commands(self) -> bool:
        return not self._buffer and self._block is None and not self._discard and not self.closed

    @property
    def at_command(self) -> bool:
        return self._block is None and super().at_command

    @property
    def starts_command(self) -> bool:
        return self.at_command and not (self._opening and foreign.opening(self._buffer))

    def begun(self) -> None:
        self._opening = False

    @property
    def halfway(self) -> bool:
        return self._block is not None or super().halfway

    def unfinished(self) -> c.Refused:
        """Return a record for the command that is not complete."""
        return c.Refused(b"")

    def take_all(self) -> bytes:
        self._scanned = 0
        return super().take_all()

    def next_command(self) -> c.Command | None:
        """Return the next complete command, or None when more bytes are needed."""
        while not self.closed:
            if self._discard and not self._throw_away():
                break
            if self._block is not None:
                return self._take_block(self._block)
            if self._opening and (protocol := foreign.opening(self._buffer)):
                self.closed = True
                return c.Foreign(protocol)
            line = self._take_line()
            if self._too_long:
                self.closed, self._too_long = True, False
                return c.Refused(LONG_LINE % self._rules.line_limit)
            if line is None:
                break
            self._opening = False
            parsed = parse_line(line, self._rules)
            if isinstance(parsed, Block):
                self._block = parsed
            elif isinstance(parsed, Discard):
                self._discard = parsed.length
                return parsed.command
            else:
                self.closed = isinstance(parsed, c.Foreign)
                return parsed
        self._compact()
        return None

    def _compact(self) -> None:
        self._scanned = max(0, self._scanned - self._position)
        super()._compact()

    def _take_block(self, block: Block) -> c.Command | None:
        start = self._position
        end = start + block.length
        if len(self._buffer) < end + (2 if self._rules.checks_data_end else 0):
            if self._exceeds_limit(start):
                self._block, self._discard = None, block.length + 2
                return c.Refused(TOO_LARGE, block.store.noreply, too_large=True)
            self._compact()
            return None
        self._block = None
        if self._rules.checks_data_end:
            self._position = end + 2
            if self._buffer[end : end + 2] != b"\r\n":
                return bad_chunk(block.store)
        else:
            # conn_swallow: answered once the bytes are there; the two behind them are thrown away whatever they are.
            self._position = end
            self._discard = 2
            self._throw_away()  # what has arrived of them: the next command may then be planned
        block.store.data = self._value(start, end)
        return block.store

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", max(self._position, self._scanned))
        if end < 0:
            self._scanned = len(self._buffer)
            self._check_open_line()
            return None
        if end - self._position > self._rules.line_limit:
            self._too_long = True
            return None
        line = bytes(self._buffer[self._position : end])
        self._position = end + 1
        return line.removesuffix(b"\r")

    def _check_open_line(self) -> None:
        length = len(self._buffer) - self._position
        if length <= MAX_OPEN_LINE:
            return
        head = bytes(self._buffer[self._position : self._position + MAX_LEADING_BLANKS + 8])
        words = head.lstrip(b" ")
        verbs = _UNLIMITED_BEYOND if self._rules.beyond_plugin else _UNLIMITED
        is_get = words.startswith(verbs) and len(head) - len(words) <= MAX_LEADING_BLANKS
        self._too_long = is_get and length > self._rules.line_limit
        self.closed = not is_get


def bad_chunk(store: c.Store | c.MetaSet) -> c.Refused:
    """Return the rejected command of a storage line whose data has no line end behind it."""
    return c.Refused(BAD_CHUNK, store.noreply)


def parse_line(line: bytes, rules: WireRules) -> Parsed:
    """Parse the bytes of a line in front of LF, one CR removed."""
    if b"\0" in line and rules.nul_ends_line:
        line = line[: line.index(b"\0")]
    words = [word for word in line.split(b" ") if word]
    form = command_table.text_form(words[0], rules) if words else None
    if form is None and rules.closes_on_http and foreign.is_http(words):
        return c.Foreign(foreign.HTTP)
    if b"\0" in line:
        return _refused(BAD_FORMAT, words, form, rules)
    if form is None or not form.fewest <= len(words) <= form.most:
        return _refused(ERROR, words, form, rules)
    return form.parse(words, rules)


def _refused(line: bytes, words: list[bytes], form: command_table.TextForm | None, rules: WireRules) -> Parsed:
    at = None if form is None else form.length_at
    length = length_read(words[at], rules) if at is not None and at < len(words) else None
    return refused(c.Refused(line), length, rules)


def encode(command: c.Command, reply: r.Reply) -> bytes:
    """Return the bytes of a reply, empty where the command said noreply."""
    if isinstance(reply, r.Items):
        return _items(reply)
    if getattr(command, "noreply", False):
        return b""
    match reply:
        case r.Status():
            return reply.value
        case r.Number():
            return b"%d\r\n" % reply.value
        case r.Line():
            return reply.line + b"\r\n"
        case r.ClientError() | r.ServerError():
            kind = "CLIENT" if isinstance(reply, r.ClientError) else "SERVER"
            return f"{kind}_ERROR {_one_line(reply.text)}\r\n".encode()
        case r.StatRows():
            return "".join(f"STAT {name} {value}\r\n" for name, value in reply.rows).encode() + END
        case r.Keys():
            return crawler.encode(reply)
        case r.Release():
            return f"VERSION {reply.text}\r\n".encode()
        case r.Closed():
            return foreign.farewell(command.protocol) if isinstance(command, c.Foreign) else b""
        case r.Meta() | r.MetaDebug():
            return meta.encode(command, reply)
        case _:
            assert_never(reply)


def _items(reply: r.Items) -> bytes:
    parts = []
    for item in reply.items:
        hit = shown(item.word, item.flags, item.data)
        parts.append(numbered(hit, item.cas) if reply.with_cas else hit)
    parts.append(END)
    return b"".join(parts)


def _one_line(text: str) -> str:
    # A database's message may hold line ends, which would read as a second reply.
    return " ".join(text.split())
