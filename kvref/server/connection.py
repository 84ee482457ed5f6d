"""One client connection: bytes in, commands in order, replies out in the same order, each after its commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, cast

from kvref.engine.dispatch import execute
from kvref.engine.session import Session, Shared
from kvref.protocol import commands as c
from kvref.protocol.codec import Parser, begins_with_write, encode, is_binary, parser, resumed
from kvref.protocol.command_table import timed_as
from kvref.protocol.opcodes import REQUEST
from kvref.protocol.replies import Closed, Fault, Keys, Reply, ServerError
from kvref.protocol.rules import WireRules
from kvref.protocol.text import TextParser
from kvref.server.background_commit import BackgroundCommit
from kvref.server.client_warnings import ClientWarnings
from kvref.server.connection_state import MAX_PENDING, NEXT, OVER, Event, Passed, Phase
from kvref.server.executors.base import Executor
from kvref.server.listeners.authentication import Authenticator
from kvref.server.listeners.listener import Listener
from kvref.server.planners.base import InputPlanner, Stop
from kvref.server.slots import Awaited, Replies, Slots
from kvref.server.stats_rows import SocketStats, State
from kvref.server.telemetry.command_times import CommandDurations, CommandTimes
from kvref.server.telemetry.event_counters import ProcessEventCounters
from kvref.server.timers import oldest_first
from kvref.server.turns import Turns

# One connection's turn: after either the replies go out and the other connections come first.
TURN_BYTES: Final = 256 << 10
TURN_SECONDS: Final = 0.002
INPUT_QUANTUM: Final = 16 << 10  # bytes of input: more than that waits while other connections wait for their turn
_CONTROL_REPLIES: Final = (Closed, ServerError, Keys)
_GET: Final = b"get "
_DROPPING: Final = (Phase.DRAINING, Phase.DRAINED)  # new input is not answered
_TIMED_GET: Final = ("get",)  # under which a single get is measured
PASS_AGAIN: Final = 0.1  # seconds until a connection that could not be passed on is tried again
COMMIT_AGAIN: Final = 1.0  # seconds until the batch of a lost connection that could not be committed is tried again


# Passes a connection on: its descriptor, its listener and its state. Returns whether that has succeeded.
PassOn = Callable[[int, Listener, Passed], bool]


class Host(Protocol):
    """What a connection needs of its server."""

    shared: Shared
    executor: Executor
    wire_rules: WireRules
    connections: set[Connection]
    client_warnings: ClientWarnings
    settings: dict[str, int]
    tally: ProcessEventCounters
    turns: Turns
    alone: bool  # no other process serves the port
    pass_on: PassOn | None  # to the process that writes to the file; None: that is this one, or any may write

    @property
    def command_durations(self) -> CommandDurations | None: ...
    def publish(self, *, get: bool = False) -> None: ...
    def register(self, connection: Connection, transport: asyncio.Transport) -> bool: ...
    def unregister(self, connection: Connection) -> None: ...


class Connection:
    """Serve one socket by the text or the binary protocol: from its first byte (more:switch-001), or as `passed` on."""

    # An idle connection is a few cache lines.
    __slots__ = (
        "_authenticator",
        "_command",
        "_commit",
        "_commits",
        "_continuation",
        "_counters",
        "_dropped",
        "_generation",
        "_half_open",
        "_host",
        "_listener",
        "_loop",
        "_parser",
        "_passes_later",
        "_paused",
        "_phase",
        "_planner",
        "_protocol_known",
        "_reading",
        "_scheduled",
        "_session",
        "_slots",
        "_times",
        "_transaction",
        "_transport",
        "exceeded_quantum",
        "moved",
        "passed_on",
        "received_at",
    )  # fmt: skip

    def __init__(self, host: Host, listener: Listener, passed: Passed | None = None) -> None:
        self._host = host
        self._counters = host.shared.counters
        self._listener = listener
        self._half_open = listener.tls is None  # TLS has no half that could stay open
        users = listener.users
        self._authenticator = (
            None
            if users is None
            else Authenticator(users, host.shared.rules.release, host.client_warnings, host.wire_rules)
        )
        self._parser: Parser = TextParser(host.wire_rules)
        self._protocol_known = False  # the first byte of the client has decided it
        self._session = Session(host.shared, listener.access)
        self._transaction = host.executor.begin(listener.reads)
        self._loop = asyncio.get_running_loop()
        self.received_at = self._loop.time()  # when the client sent its last bytes (loop time)
        self._generation = host.shared.directory.generation
        self._transport: asyncio.Transport | None = None
        self._command: c.Command | None = None  # what waits for the store
        self._continuation: c.Command | None = None  # the rest of a listing of keys, which comes next
        self._scheduled = False  # the rest of the input waits for its turn
        self.exceeded_quantum = False  # it has sent more at once than one turn takes
        self._phase = Phase.OPEN
        self._dropped = False  # something came while it drained
        self._reading = True
        self._paused = False  # the client does not read
        self._planner: InputPlanner | None = None  # also while anything precedes new input
        self._slots = Slots(self)
        durations = host.command_durations
        self._times = None if durations is None else CommandTimes(durations)
        self._commits = host.executor.commits_of(self._transaction)
        self._commit = BackgroundCommit(host.executor, self._session, self._transaction, self)
        self.moved = passed is not None  # it began in another process
        self.passed_on = False  # another process serves it now
        self._passes_later = False  # that is tried again
        if passed is not None:
            self._authenticator, self._protocol_known = None, True
            self._session.resume(passed.binding)
            self._parser = resumed(host.wire_rules, is_binary=passed.is_binary)
            self._parser.feed(passed.pending)

    def describe(self, requester: Session) -> SocketStats | None:
        """Return the row of this connection in the answer to `requester`; None if its client has disconnected."""
        transport = self._transport
        if transport is None:
            return None
        known = transport.get_extra_info("socket")
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        state = State.COMMAND if self._session is requester else self._state
        return SocketStats(known.fileno(), peer or "", own, known.family, state, self._loop.time() - self.received_at)

    @property
    def _state(self) -> State:
        if self._phase in OVER:
            return State.CLOSING
        if self._paused:
            return State.WRITING
        if self._busy:
            return State.STORE
        return State.DATA if (self._authenticator or self._parser).halfway else State.IDLE

    def waited_for(self) -> tuple[asyncio.Transport, Parser | Authenticator, bool] | None:
        """Return its transport, its reader and whether the server has work for it; None: the client is gone."""
        transport = self._transport
        return (
            None
            if transport is None
            else (transport, self._authenticator or self._parser, self._busy or self._phase in OVER)
        )

    @property
    def _busy(self) -> bool:
        return self._scheduled or self._slots.open or self._commit.running or self._command is not None

    @property
    def quiet_since(self) -> float:
        """Return the loop time of its last reply."""
        return self._commit.quiet_since

    @property
    def batch_since(self) -> float | None:
        """Return since when its batch is open (loop time); None if it has none."""
        return self._commit.batch_since

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start a session, unless there are too many."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        if not self._host.register(self, self._transport):
            self._advance_phase(Event.END)
        if self._authenticator is not None:
            self._authenticator.peer = transport.get_extra_info("peername")
        if self.moved:
            self._resume_input()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Commit the batch; a command that waits for a lock is carried out all the same (tx:lock-112)."""
        self._transport = None
        self._advance_phase(Event.LOSS)
        self._slots.awaited = None
        if self._slots.undecided:
            self._slots.awaited = Awaited.DECIDED
        elif self._command is None and not self._commit.running:
            self._commit.start()

    def data_received(self, data: bytes) -> None:
        """Take what arrived and answer every complete command."""
        self.received_at = now = self._loop.time()
        self._counters.bytes_read += len(data)
        planner = self._planner
        if planner is not None:
            fresh = planner.fresh(now)
            if fresh and self._times is None and not self._slots.open and data.startswith(planner.gets):
                reply = planner.hit(data)
                if reply is not None:
                    self._write(reply, get=True)
                    return
            self._take_planned(planner, data, fresh=fresh)
            return
        if self._host.pass_on is not None and not data.startswith(_GET) and self._passed_before(data):
            return
        self._take_input(data)

    def _take_planned(self, planner: InputPlanner, data: bytes, *, fresh: bool) -> None:
        """Plan the commands at the beginning of the input if cached rows are `fresh`, and parse the rest."""
        if self._host.pass_on is not None and not data.startswith(_GET) and self._passed_before(data):
            return
        if fresh:
            times = self._times
            if times is not None and not self._slots.open and data.startswith(planner.gets):
                started = times.now()
                reply = planner.hit(data)
                if reply is not None:
                    times.sent(_TIMED_GET, started)
                    self._write(reply, get=True)
                    return
            if len(data) <= INPUT_QUANTUM or not self._host.turns.busy:
                data = self._plan(planner, data)
                if not data:
                    return
        self._take_input(data)

    def _plan(self, planner: InputPlanner, data: bytes) -> bytes:
        """Plan the commands at the beginning of the input; return what is for the parser, which nothing precedes."""
        slots = self._slots
        if slots.open and (slots.full or slots.undecided_size > self._host.settings["pipelined_size_max"]):
            return data
        if slots.planned and slots.planner is not planner:
            return data  # the mapping has changed: it waits for what is planned of it as it was
        taken, stop = planner.take(data, slots, self._times)
        if slots.planned and slots.current is not None:
            slots.current.input_size += taken
            slots.planner = planner
        if taken and not self._session.started:
            self._session.start()
        if stop is Stop.END:
            return b""
        rest = data[taken:]
        if stop is Stop.UNUSUAL:
            return rest
        self._planner = None
        self._parser.feed(rest)
        if stop is Stop.TURN:
            self._await_turn()
        else:
            self._throttle()
        return b""

    def send_replies(self, replies: Replies) -> None:
        """Send replies, or drop them where the client is gone."""
        ready = replies[0] if len(replies) == 1 else b"".join(replies)
        if replies.names is not None and self._times is not None:
            names = [name for name, reply in zip(replies.names, replies, strict=True) if reply]
            self._times.sent(names, replies.started)
        if ready:
            self._counters.bytes_written += len(ready) - replies.counted
            if self._transport is not None:
                if not self._host.alone:
                    self._host.publish()
                self._transport.write(ready)
        if self._phase in OVER:
            self._close_if_done()
        elif self._host.pass_on is not None and replies.late and self._slots.awaited is None:  # else see `resume`
            self._loop.call_soon(self._pass_on)  # this process has written

    def note_batch(self) -> None:
        """Note that planned commands were answered, which may have begun or ended the batch."""
        self._commit.note()

    def rejected(self, reply: Reply) -> None:
        """Note a reply that rejects a command, for the log and the metrics."""
        if isinstance(reply, ServerError):
            self._note_error(reply)

    def replies_lost(self) -> None:
        """Note that a commit failed, for which replies have waited."""
        self._host.tally.refused()
        if self._host.shared.rules.cache_holds_rows:
            self._host.shared.cache.clear()

    def resume(self, awaited: Awaited) -> None:
        """Go on: what was awaited has happened, see `Slots.awaited`."""
        read_only = awaited is Awaited.DECIDED and not self._slots.open  # no reply waits for a commit
        if self._host.pass_on is None or self._transport is None or read_only:
            self._continue()
        else:  # once the replies are sent
            self._loop.call_soon(self._pass_on)

    def _take_input(self, data: bytes) -> None:
        if self._phase in _DROPPING:
            self._dropped = True
            return
        if self._silenced:
            return
        if self._authenticator is not None:
            data = self._authenticate(self._authenticator, data)
            if not data:
                return
        waiting = self._parser.pending
        continues = 0 < waiting <= INPUT_QUANTUM  # earlier input may be complete now
        if not self._protocol_known:
            self._protocol_known = continues = True
            self._parser = parser(data, self._host.wire_rules)
        self._parser.feed(data)
        if not (continues and self._take_waiting()):
            self._run()
        self._throttle()

    @property
    def _silenced(self) -> bool:
        shared = self._host.shared
        return shared.rules.reload_silences and self._generation != shared.directory.generation

    def _authenticate(self, authenticator: Authenticator, data: bytes) -> bytes:
        """Answer a client that is not authenticated; return the input after the authentication."""
        reply, rest = authenticator.feed(data)
        self._write(reply)
        if authenticator.passed:
            self._authenticator, self._protocol_known = None, True
            self._parser = parser(authenticator.first, self._host.wire_rules)
        elif authenticator.closes:
            if authenticator.foreign:
                self._host.client_warnings.foreign_protocol(authenticator.foreign, self._peer)
            self.end()
        return rest

    def _write(self, reply: bytes, *, get: bool = False) -> None:
        host = self._host
        self._counters.bytes_written += len(reply)
        if not host.alone:
            host.publish(get=get)
        self._transport.write(reply)  # type: ignore[union-attr]  # it is there while data comes

    def eof_received(self) -> bool:
        """Close the connection after the replies to everything that was sent, once the client has closed its side."""
        self._advance_phase(Event.EOF)
        self._run()
        return self._half_open  # the sending side stays open until all replies are sent

    def pause_writing(self) -> None:
        """Stop reading while the client does not read: replies must not accumulate."""
        self._paused = True
        self._planner = None
        self._throttle()

    def resume_writing(self) -> None:
        """Go on where `pause_writing` stopped."""
        self._paused = False
        self._resume_input()

    def end(self) -> None:
        """Close once what has arrived is carried out and answered."""
        self._advance_phase(Event.STOP)
        self._run()

    def commit_idle(self) -> None:
        """Commit its batch if there is one, unless a command of it is on its way; what is planned comes first."""
        if self._slots.planned:
            self._loop.call_soon(self._commit_now)
        else:
            self._commit_now()

    def _commit_now(self) -> None:
        if not self._session.batch.open or self._slots.undecided:
            return
        if self._command is None and not self._commit.running and self._transport is not None:
            self._commit.start()
            if not self._can_start:
                self._planner = None

    def batch_lost(self) -> None:
        """Let the parser take what comes next, whose reply says that a batch is lost."""
        self._planner = None

    def committed(self) -> None:
        """Go on, or end, after a commit in the background."""
        if self._transport is not None:
            self._resume_input()
        elif self._session.batch.open:
            self._loop.call_later(COMMIT_AGAIN, self._commit.start)
        else:
            self._host.executor.end(self._transaction)
            self._host.unregister(self)

    def _continue(self) -> None:
        if not self._take_waiting():
            self._resume_input()

    def _resume_input(self) -> None:
        if self._transport is None:
            self._commit.start()
            return
        self._throttle()
        self._run()

    def _run(self, *, own_turn: bool = False) -> None:
        """Carry out what the parser has, once no planned command precedes it."""
        self._planner = None
        if self._slots.undecided:
            self._slots.awaited = Awaited.DECIDED
            return
        self._carry_out(own_turn=own_turn)
        if self._may_plan and self._phase not in _DROPPING and self._parser.between_commands:
            self._planner = self._planner_next()

    def _planner_next(self) -> InputPlanner | None:
        """Return what plans the commands that come next, None where nothing does now."""
        planner = self._host.executor.planner(self._transaction, self._session, self._host.wire_rules)
        return planner.frames if planner is not None and is_binary(self._parser) else planner

    @property
    def _may_plan(self) -> bool:
        """Return whether a command that comes next may be planned."""
        return self._protocol_known and self._can_start

    @property
    def _can_start(self) -> bool:
        """Return whether nothing precedes a command that comes next."""
        waits = self._scheduled or self._commit.running or self._paused or self._phase in OVER
        waits = waits or self._command is not None or self._commit.lost is not None or self._authenticator is not None
        return not waits and self._continuation is None and self._slots.awaited is None

    def _carry_out(self, *, own_turn: bool) -> None:
        if self._scheduled or self._commit.running:
            return
        if self._slots.full:
            self._slots.awaited = Awaited.SENT
            return
        if not own_turn and self._parser.pending > INPUT_QUANTUM and self._host.turns.busy:
            self._await_turn()
            return
        until = time.monotonic() + TURN_SECONDS
        first = True  # plannable commands may follow an unusual one
        while not self._stops:
            if self._slots.queued_bytes > TURN_BYTES or time.monotonic() > until:
                # Its turn is over: its replies are sent first, and the others come before the rest.
                self._slots.flush(self._commits)
                self._await_turn()
                return
            if not self._carry_out_next():
                break
            if (first or is_binary(self._parser)) and 0 < self._parser.pending <= INPUT_QUANTUM:
                self._take_pending()
            first = False
        self._slots.flush(self._commits)
        if self._slots.undecided:
            self._slots.awaited = Awaited.DECIDED
            self._throttle()
        self._close_if_done()

    @property
    def _stops(self) -> bool:
        waits = self._command is not None or self._paused or self._scheduled
        return waits or self._phase in OVER or self._slots.undecided

    def _carry_out_next(self) -> bool:
        """Carry out the next command as far as it needs no waiting; return whether there is one."""
        command, self._continuation = self._continuation or self._parser.next_command(), None
        if command is None:
            if self._parser.closed or self._phase is not Phase.OPEN:
                self._advance_phase(Event.END)
            return False
        if self._commit.lost is not None:
            lost, self._commit.lost = self._commit.lost, None
            self._answer(command, lost)
            return True
        if self._slots.waiting:  # it may be `stats`
            self._counters.bytes_written += self._slots.count_waiting()
        if self._times is not None:
            self._times.start()
        begin = partial(execute, self._session, command, int(time.time()))
        reply = self._host.executor.run(self._transaction, begin, self._resume)
        if reply is None:
            self._command = command
            self._throttle()
        else:
            self._answer(command, reply)
        return True

    def _await_turn(self) -> None:
        self._planner = None
        self._scheduled = self.exceeded_quantum = True
        self._host.turns.add(self._next_turn)
        self._throttle()

    def _next_turn(self) -> None:
        self._scheduled = False
        if self._slots.undecided:
            self._slots.awaited = Awaited.DECIDED  # what it plans at once is bounded
            return
        if self._slots.open and self._host.pass_on is not None:
            self._slots.awaited = Awaited.SENT  # then it may be passed on
            return
        if not self._take_waiting():
            self._throttle()
            self._run(own_turn=True)

    def _take_waiting(self) -> bool:
        """Plan the commands at the beginning of the pending input; return whether that used up its turn."""
        if not self._take_pending():
            return False
        if self._command is not None or self._scheduled or self._slots.undecided:
            self._throttle()
            return True
        return False

    def _take_pending(self) -> bool:
        """Plan the commands at the beginning of the pending input; return whether there are any."""
        if not (self._transport and self._may_plan and self._parser.pending and self._parser.starts_command):
            return False
        self._slots.flush(self._commits)
        planner = self._planner_next()
        return planner is not None and planner.fresh(self._loop.time()) and self._plan_pending(planner)

    def _plan_pending(self, planner: InputPlanner) -> bool:
        """Plan the commands at the beginning of the pending input; return whether there are any."""
        data = self._parser.take_all()
        rest = self._plan(planner, data)
        if len(rest) < len(data):
            self._parser.begun()
        if rest:
            self._parser.feed(rest)
        elif not self._parser.pending:
            self._planner = planner
        if (rest or self._phase is not Phase.OPEN) and self._slots.undecided:
            self._slots.awaited = Awaited.DECIDED
        return len(rest) < len(data)

    def _resume(self, reply: Reply) -> None:
        command, self._command = self._command, None
        assert command is not None
        self._answer(command, reply)
        self._slots.flush(self._commits)
        self._continue()

    def _answer(self, command: c.Command, reply: Reply) -> None:
        """Append the reply to a command that does not wait for the store any more."""
        self._session.settle()
        self._commit.note()
        if self._session.flushed or self._session.switched_by_key:
            self._note_effects()
        if isinstance(reply, _CONTROL_REPLIES):
            if isinstance(reply, ServerError):
                self._note_error(reply)
            elif isinstance(reply, Keys):
                self._continuation = reply.more
            else:
                self._advance_phase(Event.END)
                if isinstance(command, c.Foreign):
                    self._host.client_warnings.foreign_protocol(command.protocol, self._peer)
        line = encode(command, reply, self._session.written_cas)
        out = self._slots.begin()
        if self._times is not None:
            if out.names is None:
                out.names, out.started = [], self._times.started
            out.names.append(timed_as(command))
        self._slots.reply(line)
        out.counted += len(line)
        self._counters.bytes_written += len(line)

    def _note_error(self, reply: ServerError) -> None:
        if reply.fault is Fault.TOO_LARGE:
            self._host.client_warnings.refused_value(reply.text, self._peer)
        else:
            self._host.tally.refused()

    def _note_effects(self) -> None:
        """Act on what a command has done in addition to its reply."""
        session = self._session
        if session.flushed:
            session.flushed = False
            if self._host.shared.rules.flush_commits_others:
                for _, other in oldest_first(self._host.connections - {self}):
                    other.commit_idle()  # more:hist-004
        if session.switched_by_key:
            self._host.client_warnings.switched(session.switched_by_key, self._peer)
            session.switched_by_key = ""

    @property
    def _peer(self) -> object:
        return None if self._transport is None else self._transport.get_extra_info("peername")

    def _advance_phase(self, event: Event) -> None:
        self._phase = NEXT.get((self._phase, event), self._phase)

    def _close_if_done(self) -> None:
        """Close a connection that ends, once all its replies are sent."""
        over = self._phase in OVER and self._command is None and not self._slots.open
        if over and self._transport is not None:
            # Closed over unread input TCP loses replies on their way (RFC 1122, 4.2.2.13); TLS has no half-close.
            waits = self._phase is Phase.DRAINED and self._dropped and self._half_open
            (self._transport.write_eof if waits else self._transport.close)()

    def _pass_on(self) -> None:
        """Let the process that writes to the file serve the connection, or continue if it cannot be passed on yet.

        A connection without a command may wait for a commit, too: until its first bytes decide the protocol it stays.
        """
        if self._slots.open or self._transport is None:
            return  # the last of its replies passes it on
        if self._protocol_known and self._parser.starts_command and self._parser.pending <= MAX_PENDING:
            pending = self._parser.take_all()
            if self._passed(pending, binary=is_binary(self._parser)):
                return
            self._parser.feed(pending)
        self._continue()

    def _pass_later(self) -> None:
        """Try once more; if that fails too, the next write tries again."""
        self._pass_on()
        self._passes_later = False

    def _passed_before(self, data: bytes) -> bool:
        """Pass the connection on if a write comes next, so that this process does not commit; return whether it is."""
        binary = is_binary(self._parser) if self._protocol_known else data[0] == REQUEST
        writes = begins_with_write(data, is_binary=binary) and not self._parser.pending
        return writes and self._passed(data, binary=binary)

    def _passed(self, pending: bytes, *, binary: bool) -> bool:
        """Pass the connection on with its input, unless something of a command is under way; return whether it is."""
        transport, pass_on, binding = self._transport, self._host.pass_on, self._session.binding
        if transport is None or pass_on is None or binding is None or not self._half_open or self._silenced:
            return False
        if transport.is_closing():  # it is passed on already, in this turn of the loop
            return False
        waits = self._phase is not Phase.OPEN or self._busy or not self._can_start
        if waits or not self._parser.at_command or len(pending) > MAX_PENDING or transport.get_write_buffer_size():
            return False
        descriptor = transport.get_extra_info("socket").fileno()
        if not pass_on(descriptor, self._listener, Passed(binding, binary, pending)):
            if not self._passes_later:  # the channel between the processes may be full
                self._passes_later = True
                self._loop.call_later(PASS_AGAIN, self._pass_later)
            return False
        self.passed_on = True
        transport.abort()  # closes the descriptor of this process, not the connection
        return True

    def _throttle(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        # Input that waits for the connection's turn is bounded; a data block that is still coming must be read.
        most = self._host.settings["pipelined_size_max"]
        waiting = self._parser.pending > (min(INPUT_QUANTUM, most) if self._scheduled else most) and self._busy
        reading = not self._paused and not waiting
        if waiting and (self._slots.waiting or self._slots.planned) and self._slots.awaited is None:
            self._slots.awaited = Awaited.SENT
        if reading != self._reading:
            self._reading = reading
            (self._transport.resume_reading if reading else self._transport.pause_reading)()


def protocol_factory(host: Host, listener: Listener, passed: Passed | None = None) -> Callable[[], asyncio.Protocol]:
    """Return a protocol factory: a Connection has all methods of a protocol, but no base that mypyc cannot compile."""
    return cast("Callable[[], asyncio.Protocol]", partial(Connection, host, listener, passed))
