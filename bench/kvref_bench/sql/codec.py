"""The work's verbs as prepared statements: what is sent, what must come, and the reading of other replies."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pymysql.constants import ER

from kvref_bench.load.plan import Answer
from kvref_bench.sql.packets import column_value, packet, reply
from kvref_bench.workload.commands import GETTING, OUTCOMES, expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.plan import Exchange
    from kvref_bench.sql.learn import Frame
    from kvref_bench.sql.packets import Reply
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

    def ask(self, verb: str, items: Sequence[Item], _place: int = 0, /) -> tuple[bytes, bytes]:
        """Encode a statement and the reply it should have; see `workload.commands.Codec`."""
        [item] = items
        request = self._statements[verb].execute(self._handles[verb], item.name, item.value)
        return request, self._frames[verb].reply(item.value, there=item.there)

    def reader(self, kinds: Kinds, fits: Fits) -> SQLReader:
        """Return what reads other replies; see `workload.commands.Codec`."""
        return SQLReader(kinds, fits, self._statements)


class SQLReader:
    """Reads replies; statements are those of each verb."""

    def __init__(self, kinds: Kinds, fits: Fits, statements: dict[str, Statement]) -> None:
        self._kinds = kinds
        self._fits = fits
        self._statements = statements
        self._keys = lru_cache(maxsize=65536)(self._keys_of)

    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        """Return the outcomes of the replies to an exchange, or None while they are not complete."""
        # The handles of statements differ between connections, the kinds do not.
        verbs = tuple(self._kinds.all[each].verb for each in exchange.kinds)
        kinds, wrong, place = [], [], 0
        for verb, name in zip(verbs, self._keys(exchange.request, verbs), strict=True):
            said = reply(data, place)
            if said is None:
                return None
            became = outcome(verb, said)
            if became == "hit" and not self._right(name, said.rows):
                became = "error"
            kinds.append(self._kinds.number(verb, became))
            if became == "error":
                wrong.append(data[place : said.end])
            place = said.end
        if place < len(data):
            wrong.append(data[place:])
        return Answer(tuple(kinds), tuple(wrong))

    def _right(self, name: bytes, rows: tuple[bytes, ...]) -> bool:
        value = column_value(rows[0]) if len(rows) == 1 else None
        return value is not None and self._fits(name, value)

    def _keys_of(self, request: bytes, verbs: tuple[str, ...]) -> list[bytes]:
        names, place = [], 0
        for verb in verbs:
            each = packet(request, place)
            assert each is not None, "an exchange has a packet for each operation"
            names.append(self._statements[verb].key(request[place : each.end]))
            place = each.end
        return names


def outcome(verb: str, said: Reply) -> str:
    """Return the outcome of an operation; the value of a row is not checked.

    With CLIENT_FOUND_ROWS, the count is 0 only if there is no row.
    """
    if said.error is not None:
        return "not_stored" if verb == "add" and said.error[0] == ER.DUP_ENTRY else "error"
    if verb in GETTING:
        return "hit" if said.rows else "miss"
    if said.affected:
        return expected(verb, there=verb != "add")
    return next((each for each in ("not_found", "not_stored") if each in OUTCOMES[verb]), "error")
