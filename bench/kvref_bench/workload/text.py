"""The text protocol: commands with the replies they should have, and the reading of other replies.

memcached's `doc/protocol.txt`; what the plugin answers instead: the requirements of its profiles.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref_bench.workload.commands import GETTING, OUTCOMES, PIECE, Read, expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.workload.commands import Fits, Item

_END: Final = b"\r\n"
_STORING: Final = {b"set", b"add", b"replace", b"append", b"prepend"}
_LINES: Final = {
    "stored": b"STORED\r\n",
    "not_stored": b"NOT_STORED\r\n",
    "exists": b"EXISTS\r\n",
    "not_found": b"NOT_FOUND\r\n",
    "deleted": b"DELETED\r\n",
    "touched": b"TOUCHED\r\n",
    "counted": b"0\r\n",  # the shortest possible sum; anything shorter is not complete
}
_OUTCOMES: Final = {line.rstrip(): outcome for outcome, line in _LINES.items() if line}


class Requested(NamedTuple):
    """A command as it was sent."""

    verb: str
    names: tuple[bytes, ...]


class Text:
    """The text protocol; expiry: seconds, of storage commands."""

    unpredictable = None

    def __init__(self, expiry: int = 0) -> None:
        self._expiry = expiry

    def encode(self, verb: str, items: Sequence[Item], _place: int = 0, /) -> tuple[bytes, bytes]:
        """Encode a command and the reply it should have; see `Codec`."""
        if verb in GETTING:
            number = b" 0" if verb == "gets" else b""
            blocks = [
                b"VALUE %b 0 %d%b\r\n%b\r\n" % (each.name, len(each.value), number, each.value)
                for each in items
                if each.there
            ]
            names = b" ".join([each.name for each in items])
            return b"%b %b\r\n" % (verb.encode(), names), b"".join([*blocks, b"END\r\n"])
        [item] = items
        reply = _LINES[expected(verb, there=item.there)]
        if verb in ("incr", "decr"):
            return b"%b %b 1\r\n" % (verb.encode(), item.name), reply
        if verb == "touch":
            return b"touch %b 0\r\n" % item.name, reply
        if verb == "delete":
            return b"delete %b\r\n" % item.name, reply
        data = PIECE if verb in ("append", "prepend") else item.value
        return b"%b %b 0 %d %d\r\n%b\r\n" % (verb.encode(), item.name, self._expiry, len(data), data), reply

    def replies(self, request: bytes, _: tuple[str, ...], data: bytes, fits: Fits) -> Iterator[Read | None]:
        """Yield what each reply to an exchange says; see `Codec`."""
        place = 0
        for command in commands(request):
            read = _values(command, data, place, fits) if command.verb in GETTING else _line(command, data, place)
            yield read
            if read is None:
                return
            place = read.end


def _values(command: Requested, data: bytes, begin: int, fits: Fits) -> Read | None:
    outcomes: list[str] = []
    wrong: list[bytes] = []
    place = begin
    left = iter(command.names)
    while True:
        end = data.find(_END, place)
        if end < 0:
            return None
        line = data[place:end]
        if line == b"END":
            outcomes += ["miss"] * (len(command.names) - len(outcomes))
            return Read(tuple(outcomes), end + 2, tuple(wrong))
        block = _block(line, command.verb)
        if block is None:
            return Read(("error",) * len(command.names), end + 2, (data[begin : end + 2],))
        name, size = block
        stop = end + 2 + size + 2
        if len(data) < stop:
            return None
        # Values are in the order of the keys, and missing ones are omitted.
        for each in left:
            if each == name:
                break
            outcomes.append("miss")
        else:
            return Read(("error",) * len(command.names), stop, (data[begin:stop],))
        good = data[stop - 2 : stop] == _END and fits(name, data[end + 2 : stop - 2])
        outcomes.append("hit" if good else "error")
        if not good:
            wrong.append(data[place:stop])
        place = stop


def _block(line: bytes, verb: str) -> tuple[bytes, int] | None:
    words = line.split(b" ")
    if len(words) != (4 if verb == "get" else 5) or words[0] != b"VALUE" or words[2] != b"0":
        return None
    if not words[3].isdigit() or not words[-1].isdigit():
        return None
    return words[1], int(words[3])


def _line(command: Requested, data: bytes, place: int) -> Read | None:
    end = data.find(_END, place)
    if end < 0:
        return None
    line = data[place:end]
    outcome = _OUTCOMES.get(line, "error")
    if command.verb in ("incr", "decr") and line.isdigit():
        outcome = "counted"
    if outcome not in OUTCOMES[command.verb]:
        return Read(("error",), end + 2, (data[place : end + 2],))
    return Read((outcome,), end + 2)


@lru_cache(maxsize=65536)
def commands(request: bytes) -> tuple[Requested, ...]:
    """Take the commands of an exchange apart again."""
    found = []
    place = 0
    while place < len(request):
        end = request.index(_END, place)
        verb, *words = request[place:end].split(b" ")
        place = end + 2
        if verb in _STORING:
            place += int(words[3]) + 2
        names = words if verb in (b"get", b"gets") else words[:1]
        found.append(Requested(verb.decode(), tuple(names)))
    return tuple(found)
