"""Visibility between eight connections, so that an endpoint of several threads or processes has to share its state.

The connections send in turn; if several send at once, the expected result is independent of the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import answers, asks, case, say, sql
from kvref_conformance.cases.phrases import row_added, row_removed, shows, stored
from kvref_conformance.steps import Reload

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send

ALL: Final = "abcdefgh"
EACH: Final = tuple(enumerate(ALL))


def put(word: str, value: str, on: str, verb: str = "set", answer: str = "STORED") -> Send:
    """Store a value on a connection and want that answer."""
    return say(f"{verb} {word} 0 0 {len(value)}\r\n{value}\r\n", f"{answer}\r\n", on=on)


def everywhere(word: str, value: str) -> tuple[Send, ...]:
    """Want a value on every connection."""
    return tuple(shows(word, value, on=on) for on in ALL)


def nowhere(word: str) -> tuple[Send, ...]:
    """Want nothing under a word on every connection."""
    return tuple(say(f"get {word}\r\n", "END\r\n", on=on) for on in ALL)


def counted(on: str, name: str, number: int) -> Send:
    """Want that number of `stats`, whatever the others."""
    return say("stats\r\n", f"<stats>STAT {name} {number}\r\n<stats>END\r\n", on=on)


def prefixes(on: str, *answer: str) -> Send:
    """Want that of `stats detail dump`."""
    return say("stats detail dump\r\n", "".join(f"{line}\r\n" for line in (*answer, "END")), on=on)


# Each gets two words, stores one and deletes none.
ASKED: Final = tuple(
    step
    for number, on in EACH
    for step in (
        put("{k}", str(number), on),
        say("get {k} {k2}\r\n", f"VALUE {{k}} 0 1\r\n{number}\r\nEND\r\n", on=on),
        say("delete {k3}\r\n", "NOT_FOUND\r\n", on=on),
    )
)
WORDS: Final = tuple(
    say("set {k}:1 0 0 1\r\nx\r\nget {k}:1 {k}:2\r\n", "STORED\r\nVALUE {k}:1 0 1\r\nx\r\nEND\r\n", on=on) for on in ALL
)

CASES = (
    case(
        "write-seen-by-all",
        "KV-BETWEEN-001",
        *(step for number, on in EACH for step in (put("{k}", f"v{number}", on), *everywhere("{k}", f"v{number}"))),
    ),
    case(
        "delete-seen-by-all",
        "KV-BETWEEN-001",
        *(
            step
            for on in ALL
            for step in (put("{k}", "x", "a"), say("delete {k}\r\n", "DELETED\r\n", on=on), *nowhere("{k}"))
        ),
    ),
    case(
        "conditions-of-all",
        "KV-BETWEEN-002",
        put("{k}", "x", "a", "add"),
        *(put("{k}", "y", on, "add", "NOT_STORED") for on in ALL),
        *(put("{k}", on, on, "append") for on in ALL),
        *everywhere("{k}", f"x{ALL}"),
        *(step for on in ALL for step in (put("{k}", f"r{on}", on, "replace"), *everywhere("{k}", f"r{on}"))),
        say("delete {k}\r\n", "DELETED\r\n", on="h"),
        *(put("{k}", "y", on, "replace", "NOT_STORED") for on in ALL),
    ),
    case(
        "cas-of-all",
        "KV-BETWEEN-002",
        put("{k}", "x", "a"),
        *(
            step
            for number, on in EACH
            for step in (
                say("gets {k}\r\n", f"VALUE {{k}} 0 1 <cas n{number}>\r\nx\r\nEND\r\n", on=on),
                put("{k}", "x", ALL[(number + 1) % len(ALL)]),
                say(f"cas {{k}} 0 0 1 {{n{number}}}\r\ny\r\n", "EXISTS\r\n", on=on),
            )
        ),
        say("gets {k}\r\n", "VALUE {k} 0 1 <cas n8>\r\nx\r\nEND\r\n", on="a"),
        say("cas {k} 0 0 1 {n8}\r\ny\r\n", "STORED\r\n", on="h"),
        *everywhere("{k}", "y"),
    ),
    case(
        "sum-of-all",
        "KV-BETWEEN-003",
        put("{k}", "1000", "a"),
        *(asks("incr {k} 1\r\n", on=on, silent=0) for on in ALL),
        *(answers("<number>\r\n", on=on) for on in ALL),
        *everywhere("{k}", "1008"),
    ),
    case(
        "cas-numbers-of-all",
        "KV-BETWEEN-004",
        *(
            step
            for letter in "np"
            for number, on in EACH
            for step in (
                put("{k}", "x", on),
                say("gets {k}\r\n", f"VALUE {{k}} 0 1 <new cas {letter}{number}>\r\nx\r\nEND\r\n", on=on),
            )
        ),
    ),
    case(
        "stats-of-all",
        "KV-BETWEEN-005 KV-BETWEEN-006",
        *(say("get {k2}\r\n", "END\r\n", on=on) for on in ALL),
        say("stats reset\r\n", "RESET\r\n", on="h"),
        *ASKED,
        *(
            counted(on, name, number)
            for on in ALL
            for name, number in (("cmd_get", 16), ("cmd_set", 8), ("get_hits", 8), ("get_misses", 8))
        ),
    ),
    case(
        "prefixes-of-all",
        "KV-BETWEEN-007",
        say("stats reset\r\n", "RESET\r\n"),
        say("stats detail on\r\n", "OK\r\n"),
        *WORDS,
        *(prefixes(on, "PREFIX {k} get 16 hit 8 set 8 del 0") for on in ALL),
        say("stats detail off\r\n", "OK\r\n", on="d"),
        *(say("get {k}:1\r\n", "VALUE {k}:1 0 1\r\nx\r\nEND\r\n", on=on) for on in ALL),
        prefixes("c", "PREFIX {k} get 16 hit 8 set 8 del 0"),
        say("stats reset\r\n", "RESET\r\n", on="e"),
        *(prefixes(on) for on in ALL),
    ),
    case(
        "stale-item-told-once",
        "KV-MG-017",
        say("set {k} 0 60 1\r\nx\r\nmd {k} I T60\r\n", "STORED\r\nHD\r\n"),
        say("mg {k} v\r\n", "VA 1 X W\r\nx\r\n", on="b"),
        *(say("mg {k} v\r\n", "VA 1 Z X\r\nx\r\n", on=on) for on in ALL),
    ),
    case(
        "reload-for-all",
        "KV-LIFE-003",
        stored("@@{m2}.{k}", "2"),
        stored("@@{m1}.{k}", "1"),
        row_added("{k2}", "{t1}"),
        *(shows("@@{k2}.{k}", "1", on=on) for on in ALL),
        sql("UPDATE {containers} SET db_table = '{t2}' WHERE name = '{k2}'"),
        *(shows("@@{k2}.{k}", "1", on=on) for on in ALL),
        Reload(),
        *(shows("@@{k2}.{k}", "2", on=on) for on in ALL),
        row_removed("{k2}"),
    ),
)


def test_between(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
