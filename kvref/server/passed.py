"""A connection that goes on in another process: what that one needs, in addition to the socket."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from kvref.engine.session import Binding

MAX_PENDING: Final = 64 << 10  # bytes of input with which a connection can be passed on


class Passed(NamedTuple):
    """The state of a connection between two commands.

    Args:
        binding: of its session.
        is_binary: it has the binary protocol.
        pending: input that is not carried out yet, up to MAX_PENDING bytes.
    """

    binding: Binding
    is_binary: bool
    pending: bytes


def to_message(passed: Passed) -> bytes:
    """Return the state as bytes: a line of JSON, and the input behind it."""
    return json.dumps([*passed.binding, passed.is_binary]).encode() + b"\n" + passed.pending


def from_message(message: bytes) -> Passed:
    """Return the state that `to_message` made bytes of."""
    line, _, pending = message.partition(b"\n")
    name, started, is_binary = json.loads(line)
    return Passed(Binding(name, started), is_binary, pending)
