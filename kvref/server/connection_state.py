"""What a connection is at a moment, and what the server's sweeps ask of it; `connection.py` is what it does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kvref.engine.session import Session
from kvref.protocol.codec import Parser
from kvref.protocol.text import TextParser
from kvref.server.access.gate import Gate

if TYPE_CHECKING:
    from kvref.protocol import commands as c
    from kvref.server.access.listener import Listener
    from kvref.server.host import Host
    from kvref.server.outbox import Outbox
    from kvref.server.own_commit import OwnCommit
    from kvref.server.plain_ways import PlainWays
    from kvref.server.shortcut import Shortcut


class ConnectionState:
    """The state of one connection; whoever inherits it makes `_out` and `_commit`, which call back.

    Args:
        host: the server.
        listener: where it was accepted.
    """

    # An idle connection is a few cache lines.
    __slots__ = (
        "_command", "_commit", "_dropped", "_ending", "_eof", "_gate", "_generation", "_half_open", "_heard", "_host",
        "_last", "_loop", "_out", "_parser", "_paused", "_reading", "_scheduled", "_session", "_shortcut",
        "_transaction", "_transport", "_ways", "active", "greedy",
    )  # fmt: skip

    _commit: OwnCommit
    _out: Outbox

    def __init__(self, host: Host, listener: Listener) -> None:
        self._host = host
        self._half_open = listener.tls is None  # TLS has no half that could stay open
        users = listener.users
        self._gate = None if users is None else Gate(users, host.shared.rules.release, host.attempts, host.wire_rules)
        self._parser: Parser = TextParser(host.wire_rules)
        self._heard = False  # the client has said something
        self.active = True  # and that since this was last taken back
        self._session = Session(host.shared, listener.access)
        self._transaction = host.driver.begin()
        self._loop = asyncio.get_running_loop()
        self._generation = host.shared.directory.generation
        self._transport: asyncio.Transport | None = None
        self._command: c.Command | None = None  # what waits for another writer
        self._scheduled = False  # the rest of the input waits for its turn
        self.greedy = False  # it has sent more at once than one turn takes
        self._eof = False  # the client sends no more
        self._last = False  # what has arrived is answered, and nothing more is taken
        self._dropped = False  # something came all the same
        self._ending = False  # nothing more is carried out
        self._reading = True
        self._paused = False  # the client does not read
        # None also while anything waits in front of what arrives.
        self._shortcut: Shortcut | None = None
        self._ways: PlainWays | None = None

    def waited_for(self) -> tuple[asyncio.Transport, Parser | Gate, bool] | None:
        """Return its transport, who reads it and whether there is work for the server; None: the client is gone."""
        transport = self._transport
        return None if transport is None else (transport, self._gate or self._parser, self._behind or self._ending)

    @property
    def _behind(self) -> bool:
        return self._scheduled or self._out.waits or self._commit.running or self._command is not None

    @property
    def quiet_since(self) -> float:
        """Tell since when it was not answered (loop time)."""
        return self._commit.quiet_since

    @property
    def batch_since(self) -> float | None:
        """Tell since when its batch is open (loop time); None where it has none."""
        return self._commit.batch_since
