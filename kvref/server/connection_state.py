"""The state of a connection: its phases from the first byte to the last reply, and what another process continues with.

A phase decides which input is still read and which commands are still carried out. What the next command waits for (its
turn, the store, planned commands, a client that does not read) is not part of it.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import Final, NamedTuple

from kvref.engine.session import Binding


class Phase(Enum):
    """What a connection still does."""

    OPEN = auto()  # all
    HALF_CLOSED = auto()  # it answers what has arrived: the client sends no more
    DRAINING = auto()  # it answers what has arrived: the server stops, and drops new input
    DRAINED = auto()  # as ENDING, but new input was dropped
    ENDING = auto()  # it sends the replies that are left, carries out nothing more and closes
    LOST = auto()  # the client is gone: it commits what is open


class Event(Enum):
    """What ends a phase."""

    EOF = auto()  # the client has closed its side
    STOP = auto()  # the server takes no more of it
    END = auto()  # its last command is carried out
    LOSS = auto()  # the socket is closed


NEXT: Final = {
    (Phase.OPEN, Event.EOF): Phase.HALF_CLOSED,
    (Phase.OPEN, Event.STOP): Phase.DRAINING,
    (Phase.OPEN, Event.END): Phase.ENDING,
    (Phase.HALF_CLOSED, Event.END): Phase.ENDING,
    (Phase.DRAINING, Event.EOF): Phase.HALF_CLOSED,
    (Phase.DRAINING, Event.END): Phase.DRAINED,
    (Phase.DRAINED, Event.EOF): Phase.ENDING,
    **{(phase, Event.LOSS): Phase.LOST for phase in Phase},
}
# A tuple is searched without a call of Python, which the hash of a phase is.
OVER: Final = (Phase.DRAINED, Phase.ENDING, Phase.LOST)  # nothing more is carried out


MAX_PENDING: Final = 64 << 10  # bytes of input with which a connection can be passed on


class Passed(NamedTuple):
    """The state of a connection between two commands; up to MAX_PENDING bytes of its input are not carried out yet."""

    binding: Binding
    is_binary: bool
    pending: bytes


def to_message(passed: Passed) -> bytes:
    """Return the state as bytes: a line of JSON, and then the input."""
    return json.dumps([*passed.binding, passed.is_binary]).encode() + b"\n" + passed.pending


def from_message(message: bytes) -> Passed:
    """Return the state that `to_message` made bytes of."""
    line, _, pending = message.partition(b"\n")
    name, started, is_binary = json.loads(line)
    return Passed(Binding(name, started), is_binary, pending)
