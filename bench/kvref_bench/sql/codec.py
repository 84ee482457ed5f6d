"""The work's verbs as prepared statements: what is sent and what must come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_bench.sql.reader import SQLReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.sql.learn import Frame
    from kvref_bench.sql.statement import Statement
    from kvref_bench.workload.commands import Fits, Item, Kinds


class SQL:
    """Encodes a work's verbs for connections in which its statements have certain handles.

    frames: by verb.
    """

    def __init__(self, statements: Sequence[Statement], handles: Sequence[int], frames: dict[str, Frame]) -> None:
        self._statements = {each.verb: each for each in statements}
        self._handles = dict(zip(self._statements, handles, strict=True))
        self._frames = frames

    def ask(self, verb: str, items: Sequence[Item], _place: int = 0, /, *, cas: int = 0) -> tuple[bytes, bytes]:  # noqa: ARG002 - SQL has none
        """Encode a statement and the reply it should have; see `workload.commands.Codec`."""
        [item] = items
        request = self._statements[verb].execute(self._handles[verb], item.name, item.value)
        return request, self._frames[verb].reply(item.value, there=item.there)

    def reader(self, kinds: Kinds, fits: Fits, _cas: dict[bytes, int]) -> SQLReader:
        """Return what reads other replies; see `workload.commands.Codec`."""
        return SQLReader(kinds, fits, self._statements)
