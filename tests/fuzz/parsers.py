"""What must hold of the parsers for any bytes in any pieces: no error, bounded input, and pieces that do not matter."""

from __future__ import annotations

from typing import Final

from kvref import profiles
from kvref.protocol import commands as c
from kvref.protocol.codec import parser
from kvref.protocol.rules import WireRules, wire_rules

LIMIT: Final = 4096  # of a value, and of a line: what passes them is short
PROFILES: Final = ("kvref", "mysql-8.0", "mysql-5.6")
RULES: Final[tuple[WireRules, ...]] = tuple(
    wire_rules(profiles.load(name), LIMIT, line_limit=LIMIT) for name in PROFILES
)
MOST_COMMANDS: Final = 100_000
OPEN_LINE: Final = 1024  # bytes of another line than a get's that are waited for


class ParserFaultError(AssertionError):
    """A parser broke a rule that holds for any input."""


def parse(rules: WireRules, pieces: list[bytes]) -> tuple[list[c.Command], bool, bool]:
    """Return the commands of some input, whether the connection is closed, and whether half a command is left.

    Args:
        rules: of a profile.
        pieces: as they arrive, none of them empty.

    Raises:
        ParserFaultError: more waits than is bounded, or there is no end of commands.
    """
    first, *_ = pieces
    parsing = parser(first, rules)
    commands: list[c.Command] = []
    for piece in pieces:
        parsing.feed(piece)
        while (command := parsing.next_command()) is not None:
            commands.append(command)
            if len(commands) > MOST_COMMANDS:
                raise ParserFaultError(f"no end of commands: {commands[:3]}")
        most = 2 * LIMIT + (64 << 20 if rules.value_limit is None else rules.value_limit)
        if not parsing.closed and parsing.pending > most + len(piece):
            raise ParserFaultError(f"{parsing.pending} bytes wait")
        if parsing.closed:
            break
        parsing.unfinished()  # may be called at any moment
    return commands, parsing.closed, not parsing.closed and parsing.halfway


def cut(data: bytes, places: bytes) -> list[bytes]:
    """Return data in pieces, whose lengths the bytes of `places` say."""
    pieces, at = [], 0
    for length in places:
        pieces.append(data[at : at + length + 1])
        at += length + 1
    return [piece for piece in (*pieces, data[at:]) if piece]


def check(data: bytes) -> None:
    """Parse some input, whose first bytes say the profile and the pieces; raises ParserFaultError."""
    if len(data) < 3:
        return
    rules = RULES[data[0] % len(RULES)]
    places, body = data[2 : 2 + data[1] % 16], data[2 + data[1] % 16 :]
    if not body:
        return
    whole = parse(rules, [body])
    if any(len(line) > OPEN_LINE for line in body.split(b"\n")):
        # A line that is not a get's may be longer where it arrives at once (KV-PARSE-015): pieces matter.
        parse(rules, cut(body, places))
        return
    for pieces in (cut(body, places), [body[i : i + 1] for i in range(len(body))]):
        if parse(rules, pieces) != whole:
            raise ParserFaultError(f"{rules}: {pieces} are not what {body!r} is")
