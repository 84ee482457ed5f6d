"""What is drawn: commands of memcached's text protocol with usual and odd arguments, in packets of one or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.strategies import SearchStrategy

STORES: Final = ("set", "add", "replace", "append", "prepend")
KEYS: Final = 3
NUMBERS: Final = ("0", "7", "99", "100", "18446744073709551615", "9223372036854775807")
VALUES: Final = (
    *("x", "", "12ab", "a b", "a\r\nb", "\r\n", "END\r\n", "get x\r\n", "\0", "\xff\xfe", "é"),
    *("v" * 2000, "v" * 20000),
)
FLAGS: Final = (0, 1, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
# Seconds from now, up to thirty days; negative: gone at once; beyond thirty days a date, here one of 1970 or 2038.
EXPIRIES: Final = (0, 0, 0, 1000, 2592000, -1, 2592001, (1 << 31) - 1)
AMOUNTS: Final = ("0", "1", "10", "18446744073709551615", "9223372036854775808")
NO_AMOUNTS: Final = ("18446744073709551616", "-1", "x", "1.5")
# The maximum length of a key.
LONGEST: Final = 250


@dataclass(frozen=True, slots=True)
class Command:
    """One request.

    Args:
        verb: of the text protocol; `unknown` for a word that is none, `cas-old` for `cas` with a number of the past.
        keys: numbers of the keys it names.
        value: of its data block.
        flags: stored with it.
        expiry: as sent.
        amount: of incr and decr.
        silent: with noreply.
        with_next: the next command follows in the same packet.
    """

    verb: str
    keys: tuple[int, ...] = (0,)
    value: str = ""
    flags: int = 0
    expiry: int = 0
    amount: str = "1"
    silent: bool = False
    with_next: bool = False


@dataclass(frozen=True, slots=True)
class Talk:
    """A drawn conversation.

    Args:
        commands: each with the connection it goes to, a or b.
        long: numbers of the keys that are LONGEST bytes long.
    """

    commands: tuple[tuple[str, Command], ...]
    long: frozenset[int]


def talks(missing: Iterable[str]) -> SearchStrategy[Talk]:
    """Draw conversations.

    Args:
        missing: features that the endpoint has not, and whose commands are left out.
    """
    without = frozenset(missing)
    together = st.just(value=False) if "pipelining" in without else st.booleans()
    key = st.integers(0, KEYS - 1).map(lambda number: (number,))
    values, expiries = st.sampled_from((*NUMBERS, *VALUES)), st.sampled_from(EXPIRIES)
    store = st.builds(
        Command, st.sampled_from(STORES), key, values, st.sampled_from(FLAGS), expiries,
        silent=st.booleans(), with_next=together,
    )  # fmt: skip
    gets = st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=8).map(tuple)
    kinds = [
        store,
        store,
        st.builds(Command, st.just("get"), gets, with_next=together),
        st.builds(Command, st.just("delete"), key, silent=st.booleans(), with_next=together),
        st.builds(
            Command,
            st.sampled_from(("incr", "decr")),
            key,
            amount=st.sampled_from(AMOUNTS),
            silent=st.booleans(),
            with_next=together,
        ),
        st.builds(Command, st.sampled_from(("incr", "decr")), key, amount=st.sampled_from(NO_AMOUNTS)),
        st.builds(Command, st.just("unknown"), with_next=together),
    ]
    if "cas" not in without:
        kinds.append(st.builds(Command, st.just("gets"), gets, with_next=together))
        kinds.append(st.builds(Command, st.sampled_from(("cas", "cas-old")), key, values, st.sampled_from(FLAGS)))
    if "touch" not in without:
        kinds.append(st.builds(Command, st.just("touch"), key, expiry=expiries, silent=st.booleans()))
    if "gat" not in without:
        kinds.append(st.builds(Command, st.just("gat"), gets, expiry=expiries))
    commands = st.tuples(st.sampled_from("ab"), st.one_of(kinds))
    return st.builds(
        Talk,
        st.lists(commands, min_size=1, max_size=12).map(tuple),
        st.frozensets(st.integers(0, KEYS - 1), max_size=1),
    )
