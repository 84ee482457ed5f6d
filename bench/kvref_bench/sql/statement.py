"""Statements as a scenario writes them, and the packets that execute them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.sql.packets import EXECUTE, HEADER, INTEGER, INTEGER_BYTES, TEXT, framed, number, text

if TYPE_CHECKING:
    from kvref_bench.load.work import Work

PLACE: Final = re.compile(r":(key|value)\b")
NO_CURSOR_ONCE: Final = b"\0\1\0\0\0"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a scenario.

    sql: with `?` where the parameters go. parameters: `key` or `value`, in their order.
    numbers: the key is a whole number.
    """

    verb: str
    sql: str
    parameters: tuple[str, ...]
    numbers: bool

    def execute(self, handle: int, key: bytes, value: bytes) -> bytes:
        """Encode a COM_STMT_EXECUTE.

        handle: of the statement in its connection. key: decimal digits where it is a number.
        """
        types = b"".join(INTEGER if self._number(each) else TEXT for each in self.parameters)
        given = b"".join(self._encoded(each, key if each == "key" else value) for each in self.parameters)
        nulls = bytes((len(self.parameters) + 7) // 8)
        head = bytes([EXECUTE]) + handle.to_bytes(4, "little") + NO_CURSOR_ONCE
        return framed(head + nulls + b"\1" + types + given)

    def key(self, request: bytes) -> bytes:
        """Read the key from a COM_STMT_EXECUTE again; b"" in one without."""
        count = len(self.parameters)
        place = HEADER + 10 + (count + 7) // 8 + 1 + 2 * count
        for each in self.parameters:
            if self._number(each):
                return b"%d" % int.from_bytes(request[place : place + INTEGER_BYTES], "little", signed=True)
            size, place = number(request, place)
            if each == "key":
                return request[place : place + size]
            place += size
        return b""

    def _number(self, parameter: str) -> bool:
        return self.numbers and parameter == "key"

    def _encoded(self, parameter: str, given: bytes) -> bytes:
        return int(given).to_bytes(INTEGER_BYTES, "little", signed=True) if self._number(parameter) else text(given)


def statements(work: Work) -> tuple[Statement, ...]:
    """Read the statements of a work's verbs, in the order in which each connection prepares them.

    Raises:
        BenchError: a statement without parameters, which is no place of a key.
    """
    return tuple(_statement(verb, work.statements[verb], numbers=_numbers(work)) for verb in sorted(work.verbs))


def _statement(verb: str, sql: str, *, numbers: bool) -> Statement:
    parameters = tuple(PLACE.findall(sql))
    if "key" not in parameters:
        raise BenchError(f"the statement for {verb}, {sql!r}, has no :key: write it where the key goes")
    return Statement(verb, PLACE.sub("?", sql), parameters, numbers)


def _numbers(work: Work) -> bool:
    return work.keys.shape == "int" and work.keys.file is None
