"""What one connection receives: its commands, and the units of the reply to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kvref_conformance.clients import binary, text
from kvref_conformance.wire.frames import REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.clients.faults import Fault, Unit
    from kvref_conformance.clients.login import Gate
    from kvref_conformance.clients.store import Store
    from kvref_conformance.clients.text import Command


@dataclass(slots=True)
class Exchange:
    """Executes the commands of one connection. Nothing that a client sends raises an error.

    The replies to the commands of one segment are one reply for a fault, as are those to quiet commands.

    Args:
        store: the items.
        gate: authentication of the connection.
        due: returns the fault that is armed for one of some verbs, None without one.
        commands: receives each command.
        units: of the reply to what came since the last one.
        verbs: of the commands that it belongs to, and `key` if one of them has a key.
        ended: the client has quit.
    """

    store: Store
    gate: Gate
    due: Callable[[set[str]], Fault | None]
    commands: list[Command]
    units: list[Unit] = field(default_factory=list)
    verbs: set[str] = field(default_factory=set)
    ended: bool = False
    _buffer: bytearray = field(default_factory=bytearray)

    def receive(self, data: bytes) -> bool:
        """Execute the commands that a segment completes; return whether a reply is due.

        Commands behind one with `Fault.at_once` remain: call this again, without bytes, once the reply is sent.
        """
        self._buffer += data
        complete = False
        while self._buffer and not self.ended:
            is_binary = self._buffer[0] == REQUEST
            command = (binary if is_binary else text).take(self._buffer)
            if command is None:
                break
            due = self.due(self.verbs | {command.verb})
            if command.quiet and due is not None and due.loud:
                words = tuple(word for word in command.words if word != b"noreply")
                command = replace(command, quiet=False, words=words)
            command, answered = self.gate.answer(command, self.store, is_binary=is_binary)
            self.commands.append(command)
            self.verbs |= {command.verb, "key"} if command.keys else {command.verb}
            self.units += answered
            complete = complete or not command.quiet
            self.ended = command.verb == "quit"
            if due is not None and due.at_once:
                return not self.ended
        return complete and not self.ended

    def reply(self) -> tuple[list[Unit], set[str]]:
        """Return the units and the verbs of the reply, and begin another one."""
        done = self.units, self.verbs
        self.units, self.verbs = [], set()
        return done
