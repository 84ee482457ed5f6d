"""Authentication of a connection: by the first `set` of the text protocol, and by SASL PLAIN of the binary protocol.

Source: Authentication in protocol.txt, and SASLAuthProtocol of memcached's wiki.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.clients import binary, text
from kvref_conformance.clients.text import Command, Raw

if TYPE_CHECKING:
    from kvref_conformance.clients.faults import Unit
    from kvref_conformance.clients.store import Store

AUTH: Final = "auth"  # the verb of the request with the credentials, in both protocols
_SASL: Final = frozenset({"sasl_list", "sasl_auth", "sasl_step"})
_REFUSED: Final = 0x20


@dataclass(slots=True)
class Gate:
    """Answers commands of one connection: requests for authentication first, others when it is open.

    Args:
        credentials: user and password that open it; None: it is open.
    """

    credentials: tuple[str, str] | None

    def answer(self, command: Command, store: Store, *, is_binary: bool) -> tuple[Command, list[Unit]]:
        """Execute a command.

        Returns:
            The command, whose verb is AUTH if it has credentials; and the units of its reply.
        """
        if is_binary and command.verb in _SASL:
            return self._sasl(command, store)
        if self.credentials is None:
            return command, [*(binary if is_binary else text).answer(command, store)]
        if is_binary:
            return command, [binary.failed(command, _REFUSED)]
        if command.verb != "set":
            return command, [Raw(b"CLIENT_ERROR unauthenticated\r\n")]
        named = replace(command, verb=AUTH, keys=(), quiet=False)
        if command.data != " ".join(self.credentials).encode():
            return named, [Raw(b"CLIENT_ERROR authentication failure\r\n")]
        self.credentials = None
        return named, [Raw(b"STORED\r\n")]

    def _sasl(self, command: Command, store: Store) -> tuple[Command, list[Unit]]:
        named = replace(command, verb=AUTH if command.verb == "sasl_auth" else command.verb, keys=())
        if command.verb == "sasl_auth" and self.credentials is not None:
            mechanism, sent = binary.key_and_value(command)
            if mechanism != b"PLAIN" or sent.split(b"\0")[1:] != [each.encode() for each in self.credentials]:
                return named, [binary.failed(command, _REFUSED)]
            self.credentials = None
        return named, [*binary.answer(command, store)]
