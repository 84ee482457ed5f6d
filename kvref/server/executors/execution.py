"""The one interpreter of verbs: what a command waits for after each step, and its reply at the end.

A verb is a generator of storage operations. An executor sends it the answer of each operation, or throws the reason why
there is none. What differs between executors is how operations are answered, and when: at once, in a thread, or with
those of other commands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from kvref.engine.operations import Operation, OperationGen
from kvref.protocol.replies import Reply, ServerError

_log = logging.getLogger("kvref.server")

FAILED: Final = ServerError("internal error, see the server's log")


class Execution:
    """One command during its execution.

    Attributes:
        operation: the operation that the command waits for; None before it begins and once it has a reply.
        done: called with the reply, if it is not available at once.
        failed: it raised an unexpected exception; the log has the traceback.
        reply: its reply, once it waits for no operation.
    """

    __slots__ = ("_begin", "_steps", "done", "failed", "operation", "reply")

    def __init__(self, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> None:
        self._begin = begin
        self.done = done
        self._steps: OperationGen | None = None
        self.operation: Operation | None = None
        self.failed = False
        self.reply: Reply

    def start(self) -> bool:
        """Begin or restart the command; return whether it waits for an operation."""
        if self._steps is not None:
            self._steps.close()
            self.failed = False
        self._steps = self._begin()
        return self.send(None)

    def send(self, answer: Any, error: Exception | None = None) -> bool:
        """Pass the command the result of its operation, or its error; return whether it waits for another one."""
        assert self._steps is not None
        try:
            self.operation = self._steps.send(answer) if error is None else self._steps.throw(error)
        except StopIteration as stop:
            return self._end(stop.value)
        except Exception:  # noqa: BLE001 - logged whole
            return self.fail()
        return True

    def fail(self) -> bool:
        """End the command after an error that no command should meet, which is logged; return False."""
        # A server never ends because of a request.
        _log.exception("a command failed")
        self.failed = True
        return self._end(FAILED)

    def _end(self, reply: Reply) -> bool:
        self.operation, self.reply = None, reply
        return False
