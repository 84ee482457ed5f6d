"""The numbers that a server gives to prepared statements, and exchanges that have them.

MySQL counts from 1 in each connection. MariaDB goes on counting where it uses the state of an ended connection again
(10.11: seen with `thread_cache_size` above 0), and a proxy counts as it likes.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from kvref_bench.load.plan import Parts
from kvref_bench.sql import connection
from kvref_bench.sql.packets import HEADER

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

    from kvref_bench.sql.statement import Statement
    from kvref_bench.workload.commands import Kinds

BEFORE: Final = HEADER + 1
AFTER: Final = BEFORE + 4


class Connections:
    """The connections of one worker; the one opened first is that of session 0.

    connect: logs in. usual: the handles that exchanges are encoded with.
    """

    def __init__(
        self, connect: Callable[[], socket.socket], statements: Sequence[Statement], usual: Sequence[int], kinds: Kinds
    ) -> None:
        self._connect = connect
        self._statements = statements
        self._usual = tuple(usual)
        self._verbs = [each.verb for each in kinds.all]
        self._given: list[tuple[int, ...]] = []

    def open(self) -> socket.socket:
        """Open the next session and prepare the statements. Raises BenchError."""
        opened = self._connect()
        try:
            self._given.append(connection.prepare(opened, self._statements))
        except BaseException:
            opened.close()
            raise
        return opened

    def numbered(self, session: int, exchanges: Iterator[Parts]) -> Iterator[Parts]:
        """Return the exchanges of a session with the handles of its connection, once that is open."""
        # Chained, so that exchanges that are right as they are pass no line of Python.
        return chain.from_iterable(self._numbered(session, exchanges))

    def _numbered(self, session: int, exchanges: Iterator[Parts]) -> Iterator[Iterator[Parts]]:
        given = self._given[session] if session < len(self._given) else self._usual
        if given == self._usual:
            yield exchanges
            return
        handles = {
            each.verb: handle.to_bytes(4, "little") for each, handle in zip(self._statements, given, strict=True)
        }
        yield map(partial(_with_handles, [handles[verb] for verb in self._verbs]), exchanges)


def _with_handles(handles: list[bytes], exchange: Parts) -> Parts:
    request, reply, kinds = exchange
    if len(kinds) == 1:
        return request[:BEFORE] + handles[kinds[0]] + request[AFTER:], reply, kinds
    parts, place = [], 0
    for kind in kinds:
        end = place + HEADER + int.from_bytes(request[place : place + 3], "little")
        parts += [request[place : place + BEFORE], handles[kind], request[place + AFTER : end]]
        place = end
    return b"".join(parts), reply, kinds
