"""States of vbuckets, which the daemon's own engine keeps for a proxy in front of it and nothing else looks at.

Rules: set_vbucket, get_vbucket and rm_vbucket in default_engine.c, as recorded in more:bin-211.
"""

from __future__ import annotations

import re
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError, Line, Reply, Status

# Bytes of a number, and of a state.
_MAX_NUMBER_LENGTH: Final = {"set": 31, "get": 7, "delete": 7}
_MAX_STATE_LENGTH: Final = 31
# The stored form: one number for each vbucket, 0 for a vbucket that no client has set.
_STATES: Final = (b"dead", b"active", b"replica", b"pending")
_NUMBER: Final = re.compile(rb"[ \t\n\v\f\r]*(?P<sign>[+-]?)(?P<digits>[0-9]+)(?:[ \t\n\v\f\r].*)?", re.DOTALL)
SIZE: Final = 1 << 16  # vbuckets


class VBuckets:
    """The states of a server's vbuckets: number 0 is active at the start, all others are dead.

    Args:
        states: SIZE bytes that hold them, as another holder of the same bytes left them; None: new ones.
    """

    def __init__(self, states: bytearray | memoryview | None = None) -> None:
        self._states = bytearray(SIZE) if states is None else states
        if states is None:
            self.reset()

    def reset(self) -> None:
        """Set them as they are at the start."""
        self._states[:] = bytes([_STATES.index(b"active")]).ljust(SIZE, b"\0")

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows of `stats vbucket`: the vbuckets that are not dead."""
        return [(f"vb_{number}", _STATES[state].decode()) for number, state in enumerate(self._states) if state]

    def answer(self, command: c.VBucket) -> Reply:
        """Set, return or delete a state."""
        if len(command.word) > _MAX_NUMBER_LENGTH[command.verb]:
            return ClientError("Key is too large.")
        if command.verb == "set" and len(command.state) > _MAX_STATE_LENGTH:
            return ClientError("Value is too large.")
        state = command.state.split(b"\0")[0]
        if command.verb == "set" and state not in _STATES:
            return ClientError("Invalid state.")
        number = _number(command.word.split(b"\0")[0])
        if number is None:
            return ClientError("Value out of range.")
        if command.verb == "get":
            return Line(_STATES[self._states[number]])
        if command.verb == "delete":
            self._states[number] = 0
            return Status.OK
        self._states[number] = _STATES.index(state)
        return Line(b"Configured")


def _number(text: bytes) -> int | None:
    """Read a number as safe_strtoul does, of which 32 bits are left; None where it is none or too large."""
    found = _NUMBER.fullmatch(text)
    if found is None or int(found["digits"]) >= 1 << 64:
        return None
    number = int(found["digits"])
    if found["sign"] == b"-":
        number = -number % (1 << 64)
        if number >= 1 << 63:
            return None
    number %= 1 << 32
    return number if number < SIZE else None
