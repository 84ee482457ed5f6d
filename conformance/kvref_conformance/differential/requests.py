"""Draw frames of the binary protocol, right and wrong; `exclusions.py` says what is never drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.frames import OPCODES, SIZE, Request
from kvref_conformance.strategies.draw import between, chance, pick, weighted
from kvref_conformance.strategies.words import RANGES, draw_name, draw_value, draw_word

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from kvref_conformance.differential.lines import TextCommands
    from kvref_conformance.frames import Parts
    from kvref_conformance.strategies.world import Container, World

_KINDS: Final = {
    "get": 30.0, "row of gets": 6, "store": 34, "arithmetic": 12, "delete": 7, "small": 4, "stat": 2, "other": 3,
    "vbucket": 0.6, "detail": 0.4,
}  # fmt: skip
_GETS: Final = {"get": 3.0, "getk": 3, "getq": 1, "getkq": 1.5}
_STORES: Final = {"set": 6.0, "add": 1.5, "replace": 1.2, "append": 1, "prepend": 1}
_EXPIRIES: Final = {
    0: 14.0, 100: 1, 2591999: 0.5, 2592000: 0.5, 2592001: 0.2, 1_000_000_000: 1, 1_900_000_000: 1, 2_147_483_647: 0.5,
    2_147_483_648: 0.3, 4_294_967_294: 0.2, 4_294_967_295: 0.6,
}  # fmt: skip
_FLAGS: Final = (1, 5, 8, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 300, 70000)
_AMOUNTS: Final = (
    0, 1, 2, 5, 100, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1, 10**19, 4_294_967_295
)  # fmt: skip
_CAS: Final = (1_000_000_001, 2_000_000_000, (1 << 63) - 1, (1 << 64) - 1, 99_999_999_999)
NO_CREATION: Final = 0xFFFFFFFF
# Not the counters, which begin elsewhere, nor `settings`, of which kvref has some (own-process in not_replayed.toml).
_STATS: Final = (
    "items", "sizes", "slabs", "reset", "resetting", "vbucket", "vbuckets",
    "topkeys", "cachedump 1 0 0", "conns", "tap", "detail", "detail off", "detailed", "nope", "@@m1",
    " ", "RESET",
)  # fmt: skip
# Excluded: 0x83 to 0x85 and the scrubber, whose answers depend on earlier commands of any client; see `_vbuckets`.
_OTHERS: Final = (
    0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x30, 0x3F, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46,
    0x47, 0x48, 0x60, 0x7F, 0x80, 0x81, 0x82, 0x86, 0x8F, 0xC0, 0xEF, 0xF0, 0xF1, 0xFE, 0xFF,
)  # fmt: skip
MARK_OPAQUE: Final = b"mark"  # of the frame that marks the end of an answer
OPAQUES: Final = st.binary(min_size=4, max_size=4).filter(lambda drawn: drawn != MARK_OPAQUE)
_ODD_BYTES: Final = (b" ", b"\0", b"\t", b"\r\n", b"\n", b"\xff", b"\xc3", b"\x80", b":")


class BinaryCommands:
    """Draw the frames of one conversation.

    Args:
        draw: of the composite strategy.
        world: world that it runs in.
        speaker: of the same conversation's text; knows its mappings and what is not said.
    """

    def __init__(self, draw: DrawFn, world: World, commands: TextCommands) -> None:
        self._draw = draw
        self._world = world
        self._text_commands = commands

    def bind(self) -> tuple[Container, Parts]:
        """Draw a get that switches, and the mapping it is meant for."""
        target = pick(self._draw, self._text_commands.favourites)
        tail = weighted(self._draw, {b"": 8.0, self._world.delimiter: 2, b"\0": 0.3, self._world.delimiter + b"k1": 1})
        key = b"@@" + draw_name(self._draw, self._world, target) + tail
        return target, self._request(weighted(self._draw, _GETS), key=key).parts()

    def flush(self) -> Parts:
        """Draw a flush."""
        extras = weighted(self._draw, {b"": 4.0, bytes(4): 1, b"\0\0\0\x0a": 1, b"\xff\xff\xff\xff": 0.5})
        return self._request(weighted(self._draw, {"flush": 3.0, "flushq": 1}), extras=extras).parts()

    def quit(self) -> Parts:
        """Draw a quit."""
        return self._request(pick(self._draw, ["quit", "quitq"])).parts()

    def read(self, bound: Container) -> Parts:
        """Draw a get; `bound` as in `command`."""
        return _parts(self._get(bound))

    def command(self, bound: Container) -> Parts:
        """Draw one command, or a few that belong together; `bound` is what the connection is probably bound to."""
        kind = weighted(self._draw, _KINDS)
        if kind in self._text_commands.barred:
            kind = "store"
        requests = {
            "get": self._get, "row of gets": self._row_of_gets, "store": self._store, "arithmetic": self._arithmetic,
            "delete": self._delete, "small": self._small, "stat": self._stat, "other": self._other,
            "vbucket": self._vbuckets, "detail": self._detail,
        }[kind](bound)  # fmt: skip
        return _parts(requests)

    def _request(self, name: str, *, key: bytes = b"", value: bytes = b"", extras: bytes = b"") -> Request:
        opaque = self._draw(OPAQUES) if chance(self._draw, 0.5) else bytes(4)
        datatype = between(self._draw, 0, 255) if chance(self._draw, 0.02) else 0
        return Request(OPCODES[name], key, value, extras, opaque=opaque, datatype=datatype)

    def _key(self, bound: Container, prefixed: float = 0.4, *, ranges: bool = False) -> bytes:
        target = self._text_commands.meant(bound)
        key = draw_word(self._draw, self._world, target, prefixed=prefixed if target is bound else 0.9, ranges=ranges)
        return self._odd(key)

    def _odd(self, key: bytes) -> bytes:
        """Return a key, now and then with what a word of text cannot hold."""
        if not chance(self._draw, 0.06):
            return key
        place = pick(self._draw, [0, len(key), len(key), between(self._draw, 0, len(key))])
        return (key[:place] + pick(self._draw, _ODD_BYTES) + key[place:])[:250]

    def _with_cas(self, request: Request, probability: float) -> Request:
        if not chance(self._draw, probability):
            return request
        if chance(self._draw, 0.7):
            return replace(request, heard=between(self._draw, 1, 4))
        return replace(request, cas=pick(self._draw, _CAS))

    def _get(self, bound: Container) -> list[Request]:
        request = self._request(weighted(self._draw, _GETS), key=self._key(bound, ranges=True))
        request = self._with_cas(request, 0.03)
        if not chance(self._draw, 0.03) or any(each in request.key for each in RANGES):
            return [request]
        # A get with a vbucket number is taken for one of several; one without ends them (see `exclusions.toml`).
        behind = self._request("get", key=self._key(bound))
        return [replace(request, vbucket=pick(self._draw, [1, 2, 0xFF, 0x100, 0xFFFF])), behind]

    def _row_of_gets(self, bound: Container) -> list[Request]:
        count = between(self._draw, 2, 5)
        names = [pick(self._draw, ["getq", "getkq", "getkq"]) for _ in range(count)]
        end = weighted(self._draw, {"noop": 3.0, "get": 1, "getk": 1})
        row = [self._request(name, key=self._key(bound, 0.5, ranges=True)) for name in names]
        return [*row, self._request(end, key=b"" if end == "noop" else self._key(bound))]

    def _store(self, bound: Container) -> list[Request]:
        draw = self._draw
        name = weighted(draw, _STORES)
        if name in self._text_commands.barred:
            name = "set"
        target = self._text_commands.meant(bound)
        key = self._odd(
            draw_word(draw, self._world, target, prefixed=0.4 if target is bound else 0.9, ranges=chance(draw, 0.1))
        )
        value = draw_value(draw, target.values, self._world.separator, self._world.palette)[
            : None if "long values" not in self._text_commands.barred else 255
        ]
        extras = b""
        if name not in {"append", "prepend"}:
            flags = 0 if chance(draw, 0.6) else pick(draw, _FLAGS)
            extras = flags.to_bytes(4, "big") + weighted(draw, _EXPIRIES).to_bytes(4, "big")
        quiet = "q" if chance(draw, 0.25) else ""
        request = self._with_cas(self._request(name + quiet, key=key, value=value, extras=extras), 0.3)
        return [replace(request, vbucket=pick(draw, [1, 0x100, 0xFFFF])) if chance(draw, 0.02) else request]

    def _arithmetic(self, bound: Container) -> list[Request]:
        draw = self._draw
        delta = pick(draw, [1, 5, 100]) if chance(draw, 0.6) else pick(draw, _AMOUNTS)
        initial = pick(draw, [0, 1, 50]) if chance(draw, 0.5) else pick(draw, _AMOUNTS)
        expiry = NO_CREATION if chance(draw, 0.4) else weighted(draw, _EXPIRIES)
        extras = delta.to_bytes(8, "big") + initial.to_bytes(8, "big") + expiry.to_bytes(4, "big")
        name = pick(draw, ["incr", "incr", "decr"]) + ("q" if chance(draw, 0.2) else "")
        return [self._with_cas(self._request(name, key=self._key(bound, 0.1), extras=extras), 0.1)]

    def _delete(self, bound: Container) -> list[Request]:
        request = self._request("deleteq" if chance(self._draw, 0.25) else "delete", key=self._key(bound, 0.1))
        return [self._with_cas(request, 0.15)]

    def _small(self, _: Container) -> list[Request]:
        name = weighted(self._draw, {"noop": 3.0, "version": 2, "verbosity": 1})
        return [self._request(name, extras=pick(self._draw, [bytes(4), b"\0\0\0\1"]) if name == "verbosity" else b"")]

    def _stat(self, _: Container) -> list[Request]:
        return [self._request("stat", key=pick(self._draw, _STATS).encode())]

    def _other(self, bound: Container) -> list[Request]:
        draw = self._draw
        key, value = (self._key(bound) if chance(draw, 0.6) else b""), pick(draw, [b"", b"", b"PLAIN", b"\0u\0p"])
        request = self._request("noop", key=key, value=value, extras=pick(draw, [b"", bytes(4), bytes(8)]))
        return [self._with_cas(replace(request, opcode=pick(draw, _OTHERS)), 0.05)]

    def _vbuckets(self, _: Container) -> list[Request]:
        """Draw a state for a vbucket, a query of it, and its removal, so that later conversations are not affected.

        Not the states replica and pending: a client that sets one ends mysqld (more:bin-204).
        """
        draw = self._draw
        number = pick(draw, [b"1", b"7", b"007", b"65535", b"70000", b"-1", b"x", b"", b" 5", b"9" * 31])
        number = b"9" * 32 if chance(draw, 0.05) else number
        state = pick(draw, [b"active", b"dead", b"Active", b"dead\0", b"", b"x" * 31, b"x" * 32])
        requests = [
            replace(self._request("noop", key=number, value=state), opcode=0x83),
            replace(self._request("noop", key=number), opcode=0x84),
            self._request("stat", key=b"vbucket"),
            replace(self._request("noop", key=number), opcode=0x85),
            replace(self._request("noop", key=number), opcode=0x84),
        ]
        return requests if chance(draw, 0.8) else requests[:1] + requests[3:4]

    def _detail(self, bound: Container) -> list[Request]:
        """Draw commands that are counted, and the counts: they begin at 0, whatever was said before."""
        counted = [
            *self._get(bound), *self._store(bound), *self._delete(bound), self._request("get", key=b"k:1"),
            self._request("delete", key=b"k:"), self._request("getq", key=b":q"),
        ]  # fmt: skip
        counted = self._draw(st.permutations(counted))
        stats = [self._request("stat", key=b"detail " + word) for word in (b"on", b"dump", b"off")]
        reset = self._request("stat", key=b"reset")
        counters = self._request("stat", key=pick(self._draw, [b"", b"aggregate"]))
        return [reset, stats[0], *(replace(each, vbucket=0) for each in counted), *stats[1:], counters, reset]

    def wrong(self, bound: Container) -> Parts:
        """Draw a frame that is not as it must be, with others behind it; most end the connection."""
        draw = self._draw
        draws = [self._get, self._store, self._delete, self._small, self._stat]
        if "arithmetic" not in self._text_commands.barred:
            draws.append(self._arithmetic)
        request = pick(draw, draws)(bound)[0]
        behind = [self._request("noop"), *self._get(bound)]
        request = replace(request, vbucket=0)
        kind = weighted(draw, {"extras": 2.0, "key": 2, "long key": 1, "value": 1.5, "magic": 1, "short": 2, "long": 2})
        if kind == "extras":
            request = replace(request, extras=pick(draw, [b"", bytes(1), bytes(4), bytes(8), bytes(20), bytes(7)]))
        elif kind == "key":
            request = replace(request, key=b"" if request.key else b"k1")
        elif kind == "long key":
            request = replace(request, key=b"x" * pick(draw, [250, 251, 300]))
        elif kind == "value":
            request = replace(request, value=b"more")
        elif kind == "magic":
            behind[-1] = replace(behind[-1], magic=pick(draw, [0x81, 0x82, 0x00, 0x7F]))
        elif kind == "short":
            request = self._cut_short(request)
        else:
            request = self._drawn_out(request, behind)
        return _parts([request, *behind])

    def _cut_short(self, request: Request) -> Request:
        """Draw a body length too short for extras and key, or a key length too long for the body."""
        true = len(request.extras) + len(request.key)
        if not true:
            return replace(request, lengths=(3, None, None))
        if chance(self._draw, 0.3):
            return replace(request, lengths=(pick(self._draw, [true + 1, 250, 0xFFFF]), None, None))
        return replace(request, lengths=(None, None, between(self._draw, 0, true - 1)))

    def _drawn_out(self, request: Request, behind: list[Request]) -> Request:
        """Draw a body length that includes the next frame, or a part of it, so that later frames are misread."""
        true = len(request.extras) + len(request.key) + len(request.value)
        more = SIZE if chance(self._draw, 0.5) else between(self._draw, 1, SIZE + len(behind[1].key))
        return replace(request, lengths=(None, None, true + more))


def _parts(requests: list[Request]) -> Parts:
    return [part for request in requests for part in request.parts()]
