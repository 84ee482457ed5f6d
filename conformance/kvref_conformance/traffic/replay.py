"""Replay recorded traffic on another endpoint, one command at a time in the recorded order, and compare the replies.

A command is sent when the reply to the one before it is complete, on whichever connection that was. Replies that depend
on what the recording does not determine are counted and not compared: items stored before the recording began, and
items that several connections changed at the same time.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kvref import addresses, documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError
from kvref_conformance.corpus.conversation import Conversation, Recorded, from_json
from kvref_conformance.corpus.holes import CasNumbers, Clock, cas_number, cas_spans, matches
from kvref_conformance.corpus.templates import CasNames
from kvref_conformance.judging.player import Player
from kvref_conformance.steps import AwaitReply, Disconnect, Send
from kvref_conformance.traffic import grouping
from kvref_conformance.traffic.dialogue import SETTING, Dialogue, NotRecordableError
from kvref_conformance.traffic.modelled import BEYOND
from kvref_conformance.traffic.recorder import EOF, MASKED, Bounded
from kvref_conformance.wire.connection import Connection, Reply
from kvref_conformance.wire.frames import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref.addresses import SocketAddress
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.steps import StartRequest
    from kvref_conformance.traffic.dialogue import Command, Exchange

# Limit of a line of a recording, in bytes.
MAX_LINE: Final = 256 << 20
MAX_EXAMPLES: Final = 3
QUIT: Final = "quit"
REPLY_SECONDS: Final = 5.0
LATE: Final = f"<no complete reply within {REPLY_SECONDS:g} s>"
_SYNC: Final = b"version\r\n"
_BINARY_SYNC: Final = encode(f"noop opaque={int.from_bytes(b'sync', 'big')}")
_FLUSHING: Final = frozenset({"flush_all", "flush"})
_READING: Final = frozenset({"get", "gets", "bget", "getk", "mg", "me"})
_STORING: Final = frozenset({"add", "replace", "cas"})
_STORED: Final = frozenset({"STORED", "ok"})
_MISSING: Final = frozenset({"END", "NOT_FOUND", "EN", "NF", "0x01"})
# Of `replace`, `append` and `prepend`; `add` has the same reply if the item exists.
_NOT_STORED: Final = frozenset({"NOT_STORED", "NS", "0x05"})


@dataclass(frozen=True, slots=True)
class Example:
    """A difference.

    Args:
        where: `traffic-1, step 7`.
        sent: latin-1 characters, or frames in hexadecimal digits.
        recorded: the recorded reply, with holes.
        observed: the reply now.
    """

    where: str
    sent: str
    recorded: Json
    observed: str


@dataclass(frozen=True, slots=True)
class Cause:
    """What differences of one group have in common: the verb, and the kinds of both replies."""

    verb: str
    recorded: str
    observed: str

    def requirements(self) -> tuple[str, ...]:
        """Return the requirements that the recorded reply is about."""
        return grouping.of(self.verb, self.recorded)


@dataclass(slots=True)
class Result:
    """What a replay found.

    Args:
        commands: number of steps that were sent.
        same: of these, those with the recorded reply, or without a reply in both.
        earlier: those not compared, since they depend on items stored before the recording began.
        concurrent: those not compared, since several connections changed an item at the same time.
        masked: those not compared, since the recording has no reply that could be masked.
        beyond: those not compared, since the model does not determine their replies.
        counts: differences by cause.
        examples: the first ones of each cause.
    """

    commands: int = 0
    same: int = 0
    earlier: int = 0
    concurrent: int = 0
    masked: int = 0
    beyond: int = 0
    counts: Counter[Cause] = field(default_factory=Counter)
    examples: defaultdict[Cause, list[Example]] = field(default_factory=lambda: defaultdict(list))


def read(path: Path) -> Iterator[Conversation]:
    """Read the parts of a recording one by one.

    Args:
        path: of the file.

    Raises:
        SuiteError: it cannot be read, has no whole part at some line, or has a conversation that is not traffic.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if not line.endswith(b"\n"):
                    fix = "remove it: the lines before it are whole"
                    raise SuiteError(f"{path}, line {number}: cut off, or larger than {MAX_LINE} bytes: {fix}")
                yield _part(line, f"{path}, line {number}")
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror or error}") from error


def is_traffic(path: Path) -> bool:
    """Return whether a file begins with a part of recorded traffic; False for one that cannot be read."""
    try:
        with path.open("rb") as file:
            begin = file.read(1 << 12)
    except OSError:
        return False
    return b'"traffic": {"began"' in begin.partition(b'"steps"')[0]


def _part(line: bytes, where: str) -> Conversation:
    try:
        conversation = from_json(documents.json_of(line))
    except (DocumentError, SuiteError) as error:
        raise SuiteError(f"{where}: no recording: {error}") from error
    known = all(isinstance(each.step, Send | AwaitReply | Disconnect) for each in conversation.steps)
    if not conversation.traffic or not known:
        raise SuiteError(f"{where}: no recorded traffic: replay other conversations with --target or --sql")
    return conversation


def duration(parts: Iterator[Conversation]) -> float:
    """Return when the last step of a recording began, in seconds after its first step."""
    times = [step.at for part in parts for step in part.steps if step.at is not None]
    return max(times) - min(times) if times else 0.0


def replay(parts: Iterator[Conversation], server: SocketAddress, *, timed: bool = False) -> Result:
    """Replay a recording.

    Args:
        parts: of the recording, in order.
        server: address of the endpoint.
        timed: send each command no earlier than it was recorded, counted from the first one.

    Raises:
        SuiteError: the endpoint cannot be reached, or the recording cannot be read.
    """
    traffic = _Traffic(server, timed=timed)
    try:
        for part in parts:
            for number, recorded in enumerate(part.steps, 1):
                traffic.take(recorded, f"{part.id}, step {number}")
        traffic.finish()
    finally:
        traffic.close()
    return traffic.result


class _Numbers(CasNumbers):
    """Cas numbers of a recording, of which the last ones are remembered."""

    def __init__(self) -> None:
        self.observed = Bounded()

    def agree(self, n: int, number: int) -> bool:
        if self.observed.get(n, number) != number:
            return False
        self.observed.remember(n, number)
        return True


class _Names(CasNames):
    """The endpoint's cas numbers in place of the recorded ones; 0 for one that it never returned."""

    def __init__(self, observed: Bounded) -> None:
        super().__init__()
        self._observed = observed

    def __getitem__(self, name: str) -> str:
        return self.texts[name] if name in self.texts else str(self._observed.get(int(name[1:]), 0))


@dataclass(slots=True)
class _Sent:
    """A step whose command has no reply yet."""

    recorded: Recorded
    where: str
    began: float


class _Server:
    """The endpoint, as a target of the player."""

    def __init__(self, address: SocketAddress) -> None:
        self._address = address

    def connect(self) -> Connection:
        """Connect; raises SuiteError if no server listens."""
        try:
            return Connection(self._address)
        except OSError as error:
            where = addresses.format_address(self._address)
            raise SuiteError(f"cannot reach {where}: {error.strerror or error}: does it still run?") from error

    def execute(self, name: str, statement: str) -> dict[str, Any]:
        """Refuse: traffic has no statements."""
        raise SuiteError(f"{name}: {statement}: recorded traffic has no SQL")

    def server(self, action: str) -> str:
        """Refuse: traffic does not act on the server."""
        raise SuiteError(f"{action}: recorded traffic does not act on the server")


class _Line:
    """A connection to the endpoint."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.dialogue = Dialogue()
        self.open = True
        self.sent: dict[Command, _Sent] = {}
        self.unsure = False  # the last command may still be running: it has no reply

    def send(self, data: bytes) -> list[Exchange]:
        self.open = self._connection.send(data) and self.open
        return self.dialogue.sent(data)

    def receive(self, deadline: float) -> list[Exchange] | None:
        """Return exchanges that arrived; None at the end of the connection, or if nothing came until the deadline."""
        if not self._connection.has_bytes(max(0.001, deadline - time.monotonic())):
            return None
        self.open = self._connection.receive()
        return self.dialogue.received(self._connection.take()) if self.open else None


class _Traffic:
    """Plays recorded steps; a reply ends where the protocol says so, and is compared with the recorded one."""

    def __init__(self, server: SocketAddress, *, timed: bool) -> None:
        self.result = Result()
        self._began = time.monotonic() if timed else None
        self._first: float | None = None
        self._lines: dict[Connection, _Line] = {}
        self._cas = _Numbers()
        self._player = Player(_Server(server), _Names(self._cas.observed), self)
        self._state = _State()
        self._last = ""
        self._now = _Sent(Recorded(Disconnect()), "", 0.0)

    def take(self, recorded: Recorded, where: str) -> None:
        """Send a step and compare what it completes."""
        self._wait(recorded)
        self._now = _Sent(recorded, where, time.time())
        step = recorded.step
        if not isinstance(step, Disconnect):
            assert isinstance(step, Send | AwaitReply)
            self.result.commands += 1
            self._switch(step.on, reopen=isinstance(step, Send))
        self._player.take(step)

    def finish(self) -> None:
        """Wait for what is still to come."""
        for name in list(self._player.connections):
            self._player.take(Disconnect(name, "close"))

    def close(self) -> None:
        self._player.close()

    def send(self, connection: Connection, _step: Send, packets: tuple[bytes, ...]) -> Reply:
        """Send a command and compare replies until it has one, see `player.Replies`."""
        line = self._line(connection)
        waiting = self._send(line, b"".join(packets))
        while waiting is not None and waiting in line.sent and not waiting.quiet:
            if not self._receive(line):
                break
        return Reply(b"")

    def start(self, _connection: Connection, _step: Send | StartRequest, _packets: tuple[bytes, ...]) -> Reply:
        """Refuse: in traffic each command waits for its reply."""
        raise SuiteError(f"{self._now.where}: traffic has no such step")

    def receive(self, connection: Connection, _step: AwaitReply) -> Reply:
        """Compare what comes without a command."""
        self._listen(self._line(connection))
        return Reply(b"")

    def disconnect(self, connection: Connection, _how: str) -> None:
        """Compare what is still to come, and close."""
        line = self._line(connection)
        self._settle(line)
        for exchange in line.dialogue.closed():
            self._compare(line, exchange, "")
        del self._lines[connection]
        connection.close()

    def _line(self, connection: Connection) -> _Line:
        return self._lines.setdefault(connection, _Line(connection))

    def _wait(self, recorded: Recorded) -> None:
        if self._began is None or recorded.at is None:
            return
        self._first = recorded.at if self._first is None else self._first
        time.sleep(max(0.0, self._began + recorded.at - self._first - time.monotonic()))

    def _switch(self, name: str, *, reopen: bool) -> None:
        """Go on on another connection, when commands on the last have had their effect; forget a closed one."""
        connections = self._player.connections
        if self._last and self._last != name and self._last in connections:
            self._settle(self._line(connections[self._last]))
        self._last = name
        if reopen and name in connections and not self._line(connections[name]).open:
            connections[name].close()
            del self._lines[connections.pop(name)]

    def _send(self, line: _Line, data: bytes) -> Command | None:
        sent = self._now
        before = set(line.dialogue.waiting)
        try:
            exchanges = line.send(data)
        except NotRecordableError as error:
            raise SuiteError(f"{sent.where}: {error}: the recording was changed") from error
        commands = [each for each in line.dialogue.waiting if each not in before]
        commands += [each.command for each in exchanges if each.command is not None and each.command not in before]
        for command in commands:
            line.sent[command] = sent
        self._compare_all(line, exchanges)
        line.unsure = any((each.silent and each.verb != QUIT) or each.quiet for each in commands)
        return commands[0] if commands else None

    def _receive(self, line: _Line, seconds: float = REPLY_SECONDS) -> bool:
        """Compare what comes; return False at the end of the connection, or if nothing comes."""
        try:
            exchanges = line.receive(time.monotonic() + seconds)
        except NotRecordableError as error:
            raise SuiteError(f"the endpoint's reply is none of the protocol: {error}") from error
        if exchanges is not None:
            self._compare_all(line, exchanges)
            return True
        ending = LATE if line.open else EOF
        line.open = False
        for number, exchange in enumerate(line.dialogue.closed()):
            self._compare(line, exchange, ending if number == 0 else "")
        return False

    def _settle(self, line: _Line) -> None:
        """Wait until commands without a reply have had their effect: send one that has a reply."""
        if not line.unsure or not line.open:
            return
        line.unsure = False
        known = set(line.dialogue.waiting)
        exchanges = line.send(_BINARY_SYNC if line.dialogue.binary else _SYNC)
        (sync,) = [each for each in line.dialogue.waiting if each not in known]
        self._compare_all(line, exchanges)
        while sync in line.dialogue.waiting and self._receive(line):
            pass

    def _listen(self, line: _Line) -> None:
        recorded = _reply_of(self._now.recorded)
        binary = line.dialogue.binary
        data = b""
        while line.open and not (data and not _ends(recorded)):
            exchanges = line.receive(time.monotonic() + REPLY_SECONDS)
            if exchanges is None:
                break
            data += b"".join(each.reply for each in exchanges)
        rest = b"".join(each.reply for each in line.dialogue.closed()) if not line.open else b""
        shown = (data + rest).hex() if binary else (data + rest).decode("latin-1")
        self._judge(self._now, None, shown + ("" if line.open else EOF), binary=binary)

    def _compare_all(self, line: _Line, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            self._compare(line, exchange, "")

    def _compare(self, line: _Line, exchange: Exchange, ending: str) -> None:
        sent = None if exchange.command is None else line.sent.pop(exchange.command, None)
        if sent is None:
            return  # the reply of `_settle`, or one that belongs to no command
        reply = exchange.reply.hex() if exchange.binary else exchange.reply.decode("latin-1")
        self._judge(sent, exchange.command, reply + ending, binary=exchange.binary)

    def _judge(self, sent: _Sent, command: Command | None, observed: str, *, binary: bool) -> None:
        recorded = _reply_of(sent.recorded)
        doubt = self._state.doubt(command, recorded, sent.recorded, binary=binary)
        if recorded == MASKED:
            self.result.masked += 1
        elif (BEYOND.hex() if binary else BEYOND.decode()) in observed:
            self.result.beyond += 1
        elif matches(recorded, observed, self._cas, Clock(sent.began, time.time()), hexadecimal=binary):
            self.result.same += 1
        elif doubt == EARLIER:
            self.result.earlier += 1
        elif doubt == CONCURRENT:
            self.result.concurrent += 1
        else:
            self._differs(sent, command, observed, binary=binary)
        self._learn(recorded, observed, binary=binary)

    def _differs(self, sent: _Sent, command: Command | None, observed: str, *, binary: bool) -> None:
        recorded = _reply_of(sent.recorded)
        verb = "" if command is None else command.verb
        kinds = (grouping.kind_of(each, hexadecimal=binary) for each in (_filled(recorded, binary=binary), observed))
        cause = Cause(verb, *kinds)
        self.result.counts[cause] += 1
        if len(self.result.examples[cause]) < MAX_EXAMPLES:
            data = b"" if command is None else command.data
            shown = data.hex() if binary else data.decode("latin-1")
            self.result.examples[cause].append(Example(sent.where, shown, recorded, observed))

    def _learn(self, recorded: Json, observed: str, *, binary: bool) -> None:
        """Pair cas numbers of replies that differ elsewhere, so that a later `cas` has the endpoint's number."""
        parts = recorded if isinstance(recorded, list) else []
        holes = [each["cas"] for each in parts if isinstance(each, dict) and "cas" in each]
        spans = [observed[begin:end] for begin, end in cas_spans(observed, hexadecimal=binary)]
        if len(holes) == len(spans):
            for n, digits in zip(holes, spans, strict=True):
                self._cas.observed.setdefault(n, cas_number(digits, hexadecimal=binary))


EARLIER: Final = "earlier"
CONCURRENT: Final = "concurrent"


class _State:
    """What the recording determines of each item: whether it was stored or found missing, and who used it last."""

    def __init__(self) -> None:
        self._known = Bounded()
        self._everything = False  # flush_all: what is unknown is known to be missing
        self._ends: Bounded = Bounded()
        self._unordered = Bounded()

    def doubt(self, command: Command | None, recorded: Json, step: Recorded, *, binary: bool) -> str:
        """Return why the reply to a command is not determined, EARLIER or CONCURRENT; empty if it is."""
        if command is None:
            return ""
        verb = command.base_verb
        if verb in _FLUSHING:
            self._everything = True
            self._unordered.clear()
        kind = grouping.kind_of(_filled(recorded, binary=binary), hexadecimal=binary)
        concurrent = [key for key in command.keys if self._overlaps(key, verb, step)]
        unknown = [key for key in command.keys if key not in self._known and not self._everything]
        unordered = [key for key in command.keys if key in self._unordered]
        self._note(command, verb, kind, concurrent)
        if concurrent or unordered:
            return CONCURRENT
        return EARLIER if unknown and _existed(verb, kind) else ""

    def _note(self, command: Command, verb: str, kind: str, concurrent: list[bytes]) -> None:
        determined = verb in SETTING or kind in _MISSING or (verb in _STORING and kind in _STORED)
        for key in command.keys:
            if key in concurrent:
                self._unordered.remember(key, None)
            elif verb in SETTING:
                self._unordered.pop(key, None)
            if determined:
                self._known.remember(key, None)

    def _overlaps(self, key: bytes, verb: str, step: Recorded) -> bool:
        """Return whether another connection's command on a key, one of both a change, ran at the same time."""
        if step.at is None:
            return False
        changes = verb not in _READING
        name, ended, changed = self._ends.get(key, ("", -1.0, False))
        on = getattr(step.step, "on", "")
        overlaps = bool(name) and name != on and step.at < ended and (changes or changed)
        if step.at + (step.took or 0.0) >= ended:
            self._ends.remember(key, (on, step.at + (step.took or 0.0), changes))
        return overlaps


def _existed(verb: str, kind: str) -> bool:
    """Return whether a recorded reply shows that there was an item."""
    if kind in _MISSING or verb == "set" or "ERROR" in kind:
        return False
    if verb == "add":
        return kind not in _STORED
    return kind not in _NOT_STORED


def _reply_of(step: Recorded) -> Json:
    """Return the recorded reply, of the one version that a recording of traffic has; empty without one."""
    return next(iter(step.got.values()), "")


def _filled(recorded: Json, *, binary: bool) -> str:
    """Return a recorded reply with a number in place of each hole."""
    if not isinstance(recorded, list):
        return recorded if isinstance(recorded, str) else ""
    return "".join(part if isinstance(part, str) else "0" * 16 if binary else "1" for part in recorded)


def _ends(recorded: Json) -> bool:
    last = recorded[-1] if isinstance(recorded, list) and recorded else recorded
    return isinstance(last, str) and last.endswith(EOF)
