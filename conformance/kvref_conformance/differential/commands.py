"""Draw what the connections of a duel send: the commands of all generated conversations, some of them distorted.

Requests are templates: of text a line with its data block, of the binary protocol frames in words (`wire/frames.py`);
in both `{c2}` is the second cas number that was received. `exclusions.py` says what is never sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.corpus.templates import bytes_of, escaped
from kvref_conformance.differential import exclusions
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.steps import Send
from kvref_conformance.strategies.commands import Arguments, draw_command
from kvref_conformance.strategies.draw import between, chance, pick, some, weighted
from kvref_conformance.strategies.palette import CAS
from kvref_conformance.strategies.pools import NUMBERS, ODD_FRAMES, ODD_LINES, ODD_OPCODES, ODD_STATES, ODD_VBUCKETS
from kvref_conformance.strategies.words import EXPIRIES, draw_name, draw_value, draw_word
from kvref_conformance.wire.connection import SENTINEL_OPAQUE
from kvref_conformance.wire.frames import SIZE, frames, in_key, in_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

    from kvref_conformance.differential.configuration import Configuration
    from kvref_conformance.strategies.world import Container, World

KINDS: Final = {"get": 30.0, "store": 34, "count": 11, "delete": 7, "odd": 6}
READS: Final = {"get": 1.0}
_VERBS: Final = {"set": 5.0, "add": 1.5, "replace": 1, "append": 1, "prepend": 1, "cas": 2.5}
_FLAGS: Final = (*(0,) * 8, 1, 1, 5, 5, 8, 300, 70000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_AMOUNTS: Final = (
    *("1", "5", "100") * 4,
    *map(str, (0, 2, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1, 10**19, 4_294_967_295)),
)
_INITIALS: Final = (*(None,) * 8, 0, 1, 50, 0, 1, 50, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_FLUSHES: Final = {
    "flush_all": 8.0, "flush_all 0": 1, "flush_all 10": 1, "flush_all -1": 0.3, "flush_all abc": 0.5,
    "flush_all 0 1 2": 0.2, "flush_all noreply": 1, "flush_all 0 noreply": 0.5,
}  # fmt: skip
_BINARY_FLUSHES: Final = {
    "flush": 4.0, "flushq": 1.5, "flush exp=0": 1, "flush exp=10": 1, "flushq exp=10": 0.3, "flush exp=4294967295": 0.5,
}  # fmt: skip
_NUMBER_READ: Final = "verbosity 1\r\n"
_STORED: Final = re.compile(r"(?:set|add|replace|append|prepend|cas) \S+ \S+ \S+ (?P<length>\d+)")
_NUMBER: Final = re.compile(r"(?<= )\d+(?= |$)")
_KEY: Final = re.compile(r" key=\S*")
_TAILS: Final = {" noreply": 3.0, " foo": 1, " 0": 2, " 5": 0.5, " 0 noreply": 0.5, " a b": 0.5}
_ODD_BYTES: Final = " \0\t\r\n\xff\xc3\x80:"
_OPAQUES: Final = st.integers(1, (1 << 32) - 1).filter(lambda drawn: drawn != SENTINEL_OPAQUE)
# In the place of a cas number that was received, until braces are escaped.
_RECEIVED: Final = "\ue000"


class Commands:
    """Draw the requests of one conversation.

    Args:
        draw: of the composite strategy.
        world: world that it runs in.
        configuration: configuration of the run.
    """

    def __init__(self, draw: DrawFn, world: World, configuration: Configuration) -> None:
        self._draw = draw
        self._world = world
        # A conversation that uses every mapping seldom meets its own rows again.
        self.favourites = some(draw, list(world.usable), 3)
        self._excluded = _excluded(world, configuration)

    def bind(self, protocol: str) -> tuple[Container, str]:
        """Draw what binds a mapping, and the mapping that is meant."""
        target, delimiter = pick(self._draw, self.favourites), self._world.delimiter
        odd = b"\0" if protocol == s.BINARY else b" x"
        tail = weighted(self._draw, {b"": 12.0, odd: 0.3, delimiter: 0.6, delimiter + b"k1": 0.6})
        name = (draw_name(self._draw, self._world, target) + tail).decode("latin-1")
        if protocol == s.BINARY:
            silent, named = chance(self._draw, 0.3), chance(self._draw, 0.5)
            return target, self._written(s.Get("", (f"@@{name}",), silent=silent, named=named, protocol=protocol))
        return target, self._written(s.Bind("", name))

    def flush(self, protocol: str) -> str:
        """Draw a flush."""
        if protocol == s.BINARY:
            return weighted(self._draw, _BINARY_FLUSHES)
        line = weighted(self._draw, _FLUSHES)
        # A get that reads a number first decides whether a flush_all with a number is rejected, on any connection
        # (more:errno-001).
        return f"{_NUMBER_READ if ' ' in line else ''}{line}\r\n"

    def quit(self, protocol: str) -> str:
        """Draw a quit."""
        return pick(self._draw, ("quit", "quitq")) if protocol == s.BINARY else "quit\r\n"

    def requests(self, bound: Container, protocol: str, kinds: Mapping[str, float] = KINDS) -> list[str]:
        """Draw a command, or a few requests that belong together.

        Args:
            bound: mapping that the connection is probably bound to.
            protocol: of the connection.
            kinds: of commands, with weights.
        """
        kind = weighted(self._draw, kinds)
        if kind == "odd":
            return self._odd_frames(bound) if protocol == s.BINARY else [self._odd_line()]
        step = self._command(bound, protocol, {kind if kind not in self._excluded else "store": 1.0})
        if protocol == s.BINARY:
            return self._with_fields(step, bound)
        return [self._distorted(self._written(step))]

    def wrong(self, bound: Container) -> list[str]:
        """Draw a frame that is not as it must be, with others behind it; most end the connection."""
        draw = self._draw
        command = self._written(self._command(bound, s.BINARY))
        words = pick(draw, (command, command, command, command, pick(draw, ODD_FRAMES)))
        next_commands = ["noop", self._written(self._command(bound, s.BINARY, READS))]
        kind = weighted(draw, {"extras": 2.0, "key": 2, "long key": 1, "value": 1.5, "magic": 1, "short": 2, "long": 2})
        if kind == "extras":
            words = _with_field(words, f"extras={bytes(pick(draw, (0, 1, 4, 8, 20, 7))).hex()}")
        elif kind == "key":
            words = _KEY.sub("", words) if _KEY.search(words) else _with_field(words, "key=k1")
        elif kind == "long key":
            words = _with_field(_KEY.sub("", words), f"key={'x' * pick(draw, (250, 251, 300))}")
        elif kind == "value":
            words = f"{words.partition(' value=')[0]} value=more"
        elif kind == "magic":
            next_commands[-1] = _with_field(next_commands[-1], f"magic={pick(draw, (0x81, 0x82, 0x00, 0x7F))}")
        else:
            words = _with_field(words, self._wrong_length(words, next_commands[1], longer=kind == "long"))
        return [words, *next_commands]

    def _wrong_length(self, words: str, next_commands: str, *, longer: bool) -> str:
        """Draw a length: of a body that goes on in the next frame or is too short, or of a key that is too long."""
        frame, following = (next(frames(bytes_of(Send((each,), (), binary=True)))) for each in (words, next_commands))
        if longer:
            return f"longer={SIZE if chance(self._draw, 0.5) else between(self._draw, 1, SIZE + len(following.key))}"
        needed = len(frame.extras) + len(frame.key)
        if not needed or chance(self._draw, 0.3):
            return f"keylen={pick(self._draw, (needed + 3, 250, 0xFFFF))}"
        return f"longer={between(self._draw, 0, needed - 1) - frame.lengths[2]}"

    def _command(self, bound: Container, protocol: str, kinds: Mapping[str, float] | None = None) -> s.Locking:
        draw, world = self._draw, self._world
        target = bound if chance(draw, 0.5) else pick(draw, self.favourites)

        def value() -> str:
            drawn = draw_value(draw, target.values, world.separator, world.palette)
            return drawn[: 255 if "long values" in self._excluded else None].decode("latin-1")

        verbs = {verb: weight for verb, weight in _VERBS.items() if verb not in self._excluded}
        every = {kind: weight for kind, weight in KINDS.items() if kind not in {*self._excluded, "odd"}}
        arguments = Arguments(
            lambda kind: self._word(bound, target, protocol, kind),
            value,
            kinds or every,
            verbs,
            words={1: 6.0, 2: 2, 3: 1, 4: 0.5, 6: 0.2},
            flags=_FLAGS,
            expiries=EXPIRIES,
            amounts=_AMOUNTS,
            initials=_INITIALS,
            numbered=0.4,
            silent=0.25 if protocol == s.BINARY else 0.1,
            named=0.5,
        )
        return draw_command(draw, "", protocol, arguments)

    def _word(self, bound: Container, target: Container, protocol: str, kind: str) -> str:
        draw, switches = self._draw, kind in {"get", "store"}
        prefixed = 0.9 if target is not bound else 0.4 if switches else 0.1
        ranges = switches and (kind == "get" or chance(draw, 0.1))
        word = draw_word(draw, self._world, target, prefixed=prefixed, ranges=ranges).decode("latin-1")
        if protocol == s.TEXT or not chance(draw, 0.06):
            return word
        # What a word of text cannot hold.
        place = pick(draw, (0, len(word), len(word), between(draw, 0, len(word))))
        return (word[:place] + pick(draw, _ODD_BYTES) + word[place:])[:250]

    def _written(self, step: s.Request) -> str:
        """Return a request; a `cas` has a number that was received, or one that no server counts to."""
        numbered = isinstance(step, s.Store) and step.verb == "cas"
        received = numbered and chance(self._draw, 0.6)
        number = _RECEIVED if received else pick(self._draw, [each for each in CAS if each >= 0]) if numbered else 0
        template = escaped(encodings.request(step, number))
        return template.replace(_RECEIVED, f"{{c{between(self._draw, 1, 4)}}}") if received else template

    def _odd_line(self) -> str:
        line = pick(self._draw, ODD_LINES).decode("latin-1")
        # With words too many it may count all the same.
        return "incr\r\n" if "count" in self._excluded and line.startswith(("incr", "decr")) else line

    def _distorted(self, request: str) -> str:
        """Return a line as it is, or with another number, another word behind the last, or as a bget."""
        draw = self._draw
        line, end, data = request.partition("\r\n")
        kind = weighted(draw, {"": 5.0, "number": 3, "tail": 0.6, "length": 0.2, "bget": 0.5})
        stored = _STORED.match(line)
        if kind == "length" and stored is not None:
            odd = pick(draw, ("{}x", "-1", "abc", "+{}", "0{}")).format(stored["length"])
            line = line[: stored.start("length")] + odd + line[stored.end("length") :]
        elif kind == "number":
            # Not the length: a longer block would have no end.
            places = [
                each.span() for each in _NUMBER.finditer(line) if stored is None or each.span() != stored.span("length")
            ]
            if places:
                begin, until = pick(draw, places)
                line = line[:begin] + pick(draw, NUMBERS).decode() + line[until:]
        elif kind == "tail":
            line += weighted(draw, _TAILS)
        elif kind == "bget" and line.startswith("get"):
            line = f"bget {line.partition(' ')[2]}"
        return line + end + data

    def _with_fields(self, step: s.Locking, bound: Container) -> list[str]:
        """Return a frame, some with further fields of its header, and what has to follow it."""
        draw, words = self._draw, self._written(step)
        if isinstance(step, s.Count) and step.initial is not None and chance(draw, 0.4):
            words = _with_field(words, f"exp={weighted(draw, EXPIRIES)}")
        if " cas=" not in words and chance(draw, 0.03 if isinstance(step, s.Get) else 0.15):
            received = chance(draw, 0.7)
            number = f"{{c{between(draw, 1, 4)}}}" if received else str(pick(draw, [each for each in CAS if each > 0]))
            words = _with_field(words, f"cas={number}")
        if chance(draw, 0.5):
            words = _with_field(words, f"opaque={draw(_OPAQUES)}")
        if chance(draw, 0.02):
            words = _with_field(words, f"datatype={between(draw, 0, 255)}")
        if not chance(draw, 0.02):
            return [words]
        # A get with a vbucket number is taken for one of several; one without ends them (see `exclusions.toml`).
        words = _with_field(words, f"vbucket={pick(draw, (1, 2, 0xFF, 0x100, 0xFFFF))}")
        return [words, self._written(self._command(bound, s.BINARY, READS))] if isinstance(step, s.Get) else [words]

    def _odd_frames(self, bound: Container) -> list[str]:
        """Draw frames that are not commands of keys."""
        draw = self._draw
        kind = weighted(draw, {"listed": 6.0, "opcode": 3, "vbucket": 0.6, "counted": 0.4})
        if kind == "listed":
            return [pick(draw, ODD_FRAMES)]
        if kind == "opcode":
            words = pick(draw, ODD_OPCODES)
            if extras := pick(draw, (b"", bytes(4), bytes(8))):
                words += f" extras={extras.hex()}"
            if chance(draw, 0.6):
                words += f" key={escaped(in_key(self._word(bound, bound, s.BINARY, 'get')))}"
            return [words + pick(draw, ("", "", " value=PLAIN", " value=%00u%00p"))]
        if kind == "vbucket":
            # A state, a query of it, and its removal, so that later conversations are not affected. Not the states
            # replica and pending: a client that sets one ends mysqld (more:bin-204).
            key = f" key={in_key(pick(draw, ODD_VBUCKETS))}"
            state = f"0x83{key} value={in_value(pick(draw, ODD_STATES))}"
            queries = [f"0x84{key}"] if chance(draw, 0.8) else []
            return [state, *queries, "stat key=vbucket", f"0x85{key}", *queries]
        # Commands that are counted, and the counts: they begin at 0, whatever was sent before.
        kinds = ({"get": 1.0}, {"store": 1.0}, {"delete": 1.0})
        commands = [self._written(self._command(bound, s.BINARY, each)) for each in kinds]
        commands = draw(st.permutations([*commands, "get key=k:1", "delete key=k:", "getq key=:q"]))
        reset, shown = "stat key=reset", pick(draw, ("stat", "stat key=aggregate"))
        detail = [f"stat key=detail%20{word}" for word in ("on", "dump", "off")]
        return [reset, detail[0], *commands, *detail[1:], shown, reset]


def _with_field(words: str, field: str) -> str:
    """Return a frame with a further field, or another value of one."""
    head, value, rest = words.partition(" value=")
    return f"{head} {field}{value}{rest}"


def _excluded(world: World, configuration: Configuration) -> frozenset[str]:
    """Return what is not sent in a world, by the rules in force; see `exclusions.toml`."""
    excluded: set[str] = set()
    if any(column.kind == "integer" for each in world.usable for column in each.values):
        excluded |= {"append"} if exclusions.APPEND_TO_INTEGERS in configuration.rules else set()
        excluded |= {"prepend"} if exclusions.PREPEND_TO_INTEGERS in configuration.rules else set()
        excluded |= {"long values"} if exclusions.LONG_INTEGER_TEXT in configuration.rules else set()
    if exclusions.OPEN_END in configuration.rules and not all(
        each.table.is_closed for each in world.usable if each.table
    ):
        excluded.add("count")
    return frozenset(excluded)
