"""What is drawn: commands of memcached's text protocol with usual and odd arguments, in packets of one or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.model import steps as s
from kvref_conformance.stateful.player import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from hypothesis.strategies import SearchStrategy

KEYS: Final = 3
# The maximum length of a key.
LONGEST: Final = 250

ON = st.sampled_from(CONNECTIONS)
# The number of a key, for which a fresh one is sent.
WORD = st.integers(0, KEYS - 1).map(str)
WORDS = st.lists(WORD, min_size=1, max_size=8).map(tuple)
VALUES = st.sampled_from((
    *("0", "7", "99", "100", "18446744073709551615", "9223372036854775807"),
    *("x", "", "12ab", "a b", "a\r\nb", "\r\n", "END\r\n", "get x\r\n", "\0", "\xff\xfe", "é"),
    *("v" * 2000, "v" * 20000),
))  # fmt: skip
FLAGS = st.sampled_from((0, 1, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1))
# Seconds from now, up to thirty days; negative: gone at once; beyond thirty days a date, here one of 1970 or 2038.
EXPIRIES = st.sampled_from((0, 0, 0, 1000, 2592000, -1, 2592001, (1 << 31) - 1))
AMOUNTS = st.sampled_from(("0", "1", "10", "18446744073709551615", "9223372036854775808"))
NO_AMOUNTS = st.sampled_from(("18446744073709551616", "-1", "x", "1.5"))
COUNTS = st.sampled_from(("incr", "decr"))
SILENT = st.booleans()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Args:
        commands: with the number of a key as word; True: the next command follows in the same packet.
        long: numbers of the keys that are LONGEST bytes long.
    """

    commands: tuple[tuple[s.Request, bool], ...]
    long: frozenset[int]


def conversations(missing: Collection[str]) -> SearchStrategy[Conversation]:
    """Draw conversations.

    Args:
        missing: features that the endpoint has not, and whose commands are left out.
    """
    store = st.builds(s.Store, ON, st.sampled_from(s.STORES), WORD, VALUES, FLAGS, EXPIRIES, SILENT)
    commands: list[SearchStrategy[s.Request]] = [
        store,
        store,
        st.builds(s.Get, ON, WORDS),
        st.builds(s.Delete, ON, WORD, SILENT),
        st.builds(s.Count, ON, COUNTS, WORD, AMOUNTS, SILENT),
        st.builds(s.Count, ON, COUNTS, WORD, NO_AMOUNTS),
        st.builds(s.Unknown, ON),
    ]
    if "cas" not in missing:
        commands.append(st.builds(s.Get, ON, WORDS, cas=st.just(value=True)))
        commands.append(st.builds(s.Store, ON, st.just("cas"), WORD, VALUES, FLAGS, stale=st.booleans()))
    if "touch" not in missing:
        commands.append(st.builds(s.Touch, ON, WORD, EXPIRIES, SILENT))
    if "gat" not in missing:
        commands.append(st.builds(s.Get, ON, WORDS, expiry=EXPIRIES))
    joined = st.just(value=False) if "pipelining" in missing else st.booleans()
    drawn = st.lists(st.tuples(st.one_of(commands), joined), min_size=1, max_size=12).map(tuple)
    return st.builds(Conversation, drawn, st.frozensets(st.integers(0, KEYS - 1), max_size=1))


def packets(conversation: Conversation) -> Iterator[list[s.Request]]:
    """Yield what goes into one packet: neighbours on one connection, but no `cas`, whose number must be known."""
    packet: list[s.Request] = []
    joins = False
    for command, with_next in conversation.commands:
        cas = isinstance(command, s.Store) and command.verb == "cas"
        if packet and not (joins and not cas and packet[0].on == command.on):
            yield packet
            packet = []
        packet.append(command)
        joins = with_next
    if packet:
        yield packet
