"""Replies that end at the answer to the sentinel of their connection: of cases, generated conversations and duels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.steps import By, Send, StartRequest
from kvref_conformance.wire.connection import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.steps import AwaitReply
    from kvref_conformance.wire.connection import Connection

Allow = tuple[str, ...] | By


class Sentinels:
    """The `player.Replies` of connections that have a sentinel.

    Args:
        allowed: returns the replies that a step allows, which limit the length of the reply; nothing is allowed in the
            steps of a duel.
    """

    def __init__(self, allowed: Callable[[Allow], tuple[str, ...]] = lambda _: ()) -> None:
        self._allowed = allowed

    def send(self, connection: Connection, step: Send, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and return the reply, see `player.Replies`."""
        connection.expect_sentinel(binary=step.binary)
        allowed = self._allowed(step.allow)
        connection.allow(max(map(len, allowed), default=0))
        if step.quiet:
            return connection.send_quietly(packets)
        if step.closes:
            return connection.send_until_close(packets, step.patience)
        versions = max((text.count("VERSION ") for text in allowed), default=0)
        return connection.exchange(packets, versions, step.patience)

    def start(self, connection: Connection, step: Send | StartRequest, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and return what comes although the endpoint should wait."""
        connection.expect_sentinel(binary=step.binary)
        return Reply(connection.begin(packets, step.silent if isinstance(step, StartRequest) else 0.0))

    def receive(self, connection: Connection, step: AwaitReply) -> Reply:
        """Return the reply to what `start` sent."""
        return connection.end(step.patience)

    def disconnect(self, connection: Connection, how: str) -> None:
        """Close a connection, half: and wait until the endpoint has."""
        if how == "half":
            connection.hang_up()
        else:
            connection.close(reset=how == "reset")
