"""What a connection needs of the server that has accepted it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from asyncio import Transport

    from kvref.engine.session import Shared
    from kvref.protocol.rules import WireRules
    from kvref.server.access.attempts import Attempts
    from kvref.server.access.foreign import ForeignProtocols
    from kvref.server.connection import Connection
    from kvref.server.drivers import Driver
    from kvref.server.operations.tally import ProcessTally
    from kvref.server.turns import Turns


class Host(Protocol):
    """What a connection needs of its server."""

    shared: Shared
    driver: Driver
    wire_rules: WireRules
    connections: set[Connection]
    attempts: Attempts
    foreign: ForeignProtocols
    settings: dict[str, int]
    tally: ProcessTally
    turns: Turns

    def publish(self) -> None:
        """Show other processes of the port what was counted."""

    def welcome(self, connection: Connection, transport: Transport) -> bool:
        """Take note of a connection, or turn it away; tells whether it stays."""

    def forget(self, connection: Connection) -> None:
        """Take note that a connection is gone."""
