"""The replay target of memcached, for conversations that need no mapping; replies are compared with the plugin's.

Each conversation has its own server, with the plugin's demo row.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from kvref.errors import SuiteError
from kvref_conformance.steps import Restart
from kvref_conformance.wire.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json

CAS_NUMBERS = 1000
DEMO_ROW = b"set AA 8 0 12\r\nHELLO, HELLO\r\n"


class Running(Protocol):
    """A running memcached; `kvref_testbed.targets.running` gives one."""

    @property
    def version(self) -> str:
        """Return its version."""

    @property
    def host(self) -> str:
        """Return its host."""

    @property
    def port(self) -> int:
        """Return its port."""


class MemcachedTarget:
    """The `ReplayTarget` of memcached.

    Args:
        boot: starts a server for a block.
        used: let its cas numbers be further on.
    """

    def __init__(self, boot: Callable[[], AbstractContextManager[Running]], *, used: bool = False) -> None:
        self._boot = boot
        self._spent = CAS_NUMBERS if used else 0
        self._stack = ExitStack()
        with boot() as running:
            self.version = f"memcached-{running.version}"
            self._address = running.host, running.port

    @staticmethod
    def suits(conversation: Conversation) -> bool:
        """Return whether a conversation starts from the demo row alone and never changes rows over SQL."""
        if conversation.options or conversation.sql:
            return False
        queries = [step.statement for step in conversation.steps if step.statement is not None]
        restarts = any(isinstance(step.step, Restart) for step in conversation.steps)
        return all(query.startswith("SELECT") for query in queries) and not restarts

    def prepare(self, conversation: Conversation) -> str:
        """Start a server with the demo row.

        Raises:
            SuiteError: the conversation needs more than that.
        """
        if not self.suits(conversation):
            raise SuiteError(f"{conversation.id} needs a database: it cannot run on memcached")
        running = self._stack.enter_context(self._boot())
        self._address = running.host, running.port
        with self.connect() as connection:
            stored = b"set spent 0 0 1\r\nx\r\n" * self._spent + DEMO_ROW
            connection.send(stored + b"delete spent noreply\r\nquit\r\n")
            if not connection.drain(5.0):
                raise SuiteError("memcached did not store the demo row and close within 5 s")
        return ""

    def connect(self) -> Connection:
        """Open a connection."""
        return Connection(self._address)

    def execute(self, name: str, statement: str) -> dict[str, Json]:  # noqa: ARG002 - the target's signature
        """Answer nothing: there is no database."""
        return {}

    def server(self, action: str) -> str:
        """Refuse: memcached keeps nothing over a restart."""
        raise SuiteError(f"memcached has no {action!r}")

    def exit_status(self) -> int | None:
        """Give None: a memcached that dies is seen by its connections."""
        return None

    def settle(self) -> None:
        """Do nothing: no connection has anything pending."""

    def finish(self) -> None:
        """End the server."""
        self._stack.close()
