"""Draw command lines, right and wrong, with their data blocks; `exclusions.py` says what is never drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.differential import exclusions
from kvref_conformance.strategies.draw import between, chance, pick, some, weighted
from kvref_conformance.strategies.pools import NUMBERS, ODD_LINES
from kvref_conformance.strategies.words import TIMES, draw_name, draw_value, draw_word

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from kvref_conformance.differential.configuration import Configuration
    from kvref_conformance.frames import Parts
    from kvref_conformance.strategies.world import Container, World

STORAGE: Final = {"set": 5.0, "add": 1.5, "replace": 1, "append": 1, "prepend": 1, "cas": 2.5}


class TextCommands:
    """Draw the commands of one conversation.

    Args:
        draw: of the composite strategy.
        world: world that it runs in.
        ground: configuration of the run.
    """

    def __init__(self, draw: DrawFn, world: World, configuration: Configuration) -> None:
        self._draw = draw
        self._world = world
        usable = list(world.usable)
        # A conversation that jumps about everywhere seldom meets its own rows again.
        self.favourites = some(draw, usable, 3)
        self.barred = _barred(world, configuration)

    def meant(self, bound: Container) -> Container:
        """Draw the mapping a word is meant for."""
        return bound if chance(self._draw, 0.5) else pick(self._draw, self.favourites)

    def value(self, target: Container) -> bytes:
        """Draw a value for a mapping."""
        value = draw_value(self._draw, target.values, self._world.separator, self._world.palette)
        return value[:255] if "long values" in self.barred else value

    def bind(self) -> tuple[Container, bytes]:
        """Draw a bind and the mapping it is meant for."""
        target = pick(self._draw, self.favourites)
        tail = weighted(
            self._draw, {b"": 12.0, b" x": 0.3, self._world.delimiter: 0.3, self._world.delimiter + b"k1": 0.3}
        )
        return target, b"bind " + draw_name(self._draw, self._world, target) + tail + b"\r\n"

    def read(self, bound: Container) -> Parts:
        """Draw a get; `bound` as in `command`."""
        return [self._get(bound)]

    def command(self, bound: Container) -> Parts:
        """Draw one command; `bound` is what the connection is probably bound to."""
        kind = weighted(self._draw, {"get": 30.0, "store": 34, "arithmetic": 11, "delete": 7, "odd": 4})
        if kind in self.barred:
            kind = "store"
        if kind == "get":
            return [self._get(bound)]
        if kind == "store":
            return self._store(bound)
        if kind == "arithmetic":
            return [self._arithmetic(bound)]
        return [self._delete(bound) if kind == "delete" else self._odd()]

    def _odd(self) -> bytes:
        line = pick(self._draw, ODD_LINES)
        # With words too many it may count all the same.
        return b"incr\r\n" if "arithmetic" in self.barred and line.startswith((b"incr", b"decr")) else line

    def _word(self, bound: Container, prefixed: float = 0.4, *, ranges: bool = False) -> bytes:
        target = self.meant(bound)
        return draw_word(self._draw, self._world, target, prefixed=prefixed if target is bound else 0.9, ranges=ranges)

    def _get(self, bound: Container) -> bytes:
        verb = weighted(self._draw, {b"get ": 5.0, b"gets ": 4, b"bget ": 0.4})
        words = [
            self._word(bound, ranges=True) for _ in range(weighted(self._draw, {1: 6.0, 2: 2, 3: 1, 4: 0.5, 6: 0.2}))
        ]
        return verb + b" ".join(words) + b"\r\n"

    def _store(self, bound: Container) -> Parts:
        draw = self._draw
        verb = weighted(draw, STORAGE)
        if verb in self.barred:
            verb = "set"
        target = self.meant(bound)
        word = draw_word(draw, self._world, target, prefixed=0.4 if target is bound else 0.9, ranges=chance(draw, 0.1))
        value = draw_value(draw, target.values, self._world.separator, self._world.palette)[
            : None if "long values" not in self.barred else 255
        ]
        line: Parts = [b" ".join([verb.encode(), word, self._flags(), weighted(draw, TIMES), self._length(value)])]
        if verb == "cas":
            line += [b" ", self._cas()]
        line.append(weighted(draw, {b"": 9.0, b" noreply": 1, b" foo": 0.3}) + b"\r\n" + value + b"\r\n")
        return line

    def _flags(self) -> bytes:
        return b"%d" % pick(self._draw, [0, 0, 1, 5]) if chance(self._draw, 0.75) else pick(self._draw, NUMBERS)

    def _length(self, value: bytes) -> bytes:
        length = b"%d" % len(value)
        return (
            length
            if chance(self._draw, 0.96)
            else pick(self._draw, [length + b"x", b"-1", b"abc", b"+" + length, b"0" + length])
        )

    def _cas(self) -> bytes | int:
        if chance(self._draw, 0.6):
            return between(self._draw, 1, 4)
        return pick(
            self._draw,
            [
                b"0",
                b"0",
                b"1000000001",
                b"2000000000",
                b"9223372036854775807",
                b"18446744073709551615",
                b"99999999999",
                b"-1",
                b"18446744073709551616",
                b"x",
            ],
        )

    def _arithmetic(self, bound: Container) -> bytes:
        draw = self._draw
        delta = pick(draw, [b"1", b"5", b"100"]) if chance(draw, 0.6) else pick(draw, NUMBERS)
        tail = weighted(draw, {b"": 9.0, b" noreply": 1, b" foo": 0.3})
        return pick(draw, [b"incr ", b"decr "]) + self._word(bound, 0.1) + b" " + delta + tail + b"\r\n"

    def _delete(self, bound: Container) -> bytes:
        tail = weighted(self._draw, {b"": 9.0, b" 0": 1, b" 5": 0.3, b" noreply": 1, b" 0 noreply": 0.3, b" a b": 0.2})
        return b"delete " + self._word(bound, 0.1) + tail + b"\r\n"


def _barred(world: World, configuration: Configuration) -> frozenset[str]:
    """Return what is not said in a world, by the rules in force; see `exclusions.toml`."""
    barred: set[str] = set()
    if any(column.kind == "integer" for each in world.usable for column in each.values):
        barred |= {"append"} if exclusions.APPEND_TO_INTEGERS in configuration.rules else set()
        barred |= {"prepend"} if exclusions.PREPEND_TO_INTEGERS in configuration.rules else set()
        barred |= {"long values"} if exclusions.LONG_INTEGER_TEXT in configuration.rules else set()
    if exclusions.OPEN_END in configuration.rules and not all(
        each.table.is_closed for each in world.usable if each.table
    ):
        barred.add("arithmetic")
    return frozenset(barred)
