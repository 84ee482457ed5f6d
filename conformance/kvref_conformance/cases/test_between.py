"""Visibility between eight connections, so that an endpoint of several threads or processes has to share its state.

The connections send in turn; if several send at once, the expected result is independent of the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import await_reply, case, send, sql, start_request
from kvref_conformance.cases.phrases import hit, map_table, store, unmap
from kvref_conformance.steps import Reload

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

ALL: Final = "abcdefgh"
EACH: Final = tuple(enumerate(ALL))


def store_on(word: str, value: str, on: str, verb: str = "set", answer: str = "STORED") -> Send:
    """Store a value on a connection and want that answer."""
    return send(f"{verb} {word} 0 0 {len(value)}\r\n{value}\r\n", f"{answer}\r\n", on=on)


def hit_all(word: str, value: str) -> tuple[Send, ...]:
    """Want a value on every connection."""
    return tuple(hit(word, value, on=on) for on in ALL)


def miss_all(word: str) -> tuple[Send, ...]:
    """Want nothing under a word on every connection."""
    return tuple(send(f"get {word}\r\n", "END\r\n", on=on) for on in ALL)


def stat(on: str, name: str, number: int) -> Send:
    """Want that number of `stats`, whatever the others."""
    return send("stats\r\n", f"<stats>STAT {name} {number}\r\n<stats>END\r\n", on=on)


def prefixes(on: str, *answer: str) -> Send:
    """Want that of `stats detail dump`."""
    return send("stats detail dump\r\n", "".join(f"{line}\r\n" for line in (*answer, "END")), on=on)


# Each gets two words, stores one and deletes none.
ASKED: Final = tuple(
    step
    for number, on in EACH
    for step in (
        store_on("{k}", str(number), on),
        send("get {k} {k2}\r\n", f"VALUE {{k}} 0 1\r\n{number}\r\nEND\r\n", on=on),
        send("delete {k3}\r\n", "NOT_FOUND\r\n", on=on),
    )
)
WORDS: Final = tuple(
    send("set {k}:1 0 0 1\r\nx\r\nget {k}:1 {k}:2\r\n", "STORED\r\nVALUE {k}:1 0 1\r\nx\r\nEND\r\n", on=on)
    for on in ALL
)

CASES = (
    case(
        "write-seen-by-all",
        "KV-BETWEEN-001",
        *(step for number, on in EACH for step in (store_on("{k}", f"v{number}", on), *hit_all("{k}", f"v{number}"))),
    ),
    case(
        "delete-seen-by-all",
        "KV-BETWEEN-001",
        *(
            step
            for on in ALL
            for step in (store_on("{k}", "x", "a"), send("delete {k}\r\n", "DELETED\r\n", on=on), *miss_all("{k}"))
        ),
    ),
    case(
        "conditions-of-all",
        "KV-BETWEEN-002",
        store_on("{k}", "x", "a", "add"),
        *(store_on("{k}", "y", on, "add", "NOT_STORED") for on in ALL),
        *(store_on("{k}", on, on, "append") for on in ALL),
        *hit_all("{k}", f"x{ALL}"),
        *(step for on in ALL for step in (store_on("{k}", f"r{on}", on, "replace"), *hit_all("{k}", f"r{on}"))),
        send("delete {k}\r\n", "DELETED\r\n", on="h"),
        *(store_on("{k}", "y", on, "replace", "NOT_STORED") for on in ALL),
    ),
    case(
        "cas-of-all",
        "KV-BETWEEN-002",
        store_on("{k}", "x", "a"),
        *(
            step
            for number, on in EACH
            for step in (
                send("gets {k}\r\n", f"VALUE {{k}} 0 1 <cas n{number}>\r\nx\r\nEND\r\n", on=on),
                store_on("{k}", "x", ALL[(number + 1) % len(ALL)]),
                send(f"cas {{k}} 0 0 1 {{n{number}}}\r\ny\r\n", "EXISTS\r\n", on=on),
            )
        ),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas n8>\r\nx\r\nEND\r\n", on="a"),
        send("cas {k} 0 0 1 {n8}\r\ny\r\n", "STORED\r\n", on="h"),
        *hit_all("{k}", "y"),
    ),
    case(
        "sum-of-all",
        "KV-BETWEEN-003",
        store_on("{k}", "1000", "a"),
        *(start_request("incr {k} 1\r\n", on=on, silent=0) for on in ALL),
        *(await_reply("<number>\r\n", on=on) for on in ALL),
        *hit_all("{k}", "1008"),
    ),
    case(
        "cas-numbers-of-all",
        "KV-BETWEEN-004",
        *(
            step
            for letter in "np"
            for number, on in EACH
            for step in (
                store_on("{k}", "x", on),
                send("gets {k}\r\n", f"VALUE {{k}} 0 1 <new cas {letter}{number}>\r\nx\r\nEND\r\n", on=on),
            )
        ),
    ),
    case(
        "stats-of-all",
        "KV-BETWEEN-005 KV-BETWEEN-006",
        *(send("get {k2}\r\n", "END\r\n", on=on) for on in ALL),
        send("stats reset\r\n", "RESET\r\n", on="h"),
        *ASKED,
        *(
            stat(on, name, number)
            for on in ALL
            for name, number in (("cmd_get", 16), ("cmd_set", 8), ("get_hits", 8), ("get_misses", 8))
        ),
    ),
    case(
        "prefixes-of-all",
        "KV-BETWEEN-007",
        send("stats reset\r\n", "RESET\r\n"),
        send("stats detail on\r\n", "OK\r\n"),
        *WORDS,
        *(prefixes(on, "PREFIX {k} get 16 hit 8 set 8 del 0") for on in ALL),
        send("stats detail off\r\n", "OK\r\n", on="d"),
        *(send("get {k}:1\r\n", "VALUE {k}:1 0 1\r\nx\r\nEND\r\n", on=on) for on in ALL),
        prefixes("c", "PREFIX {k} get 16 hit 8 set 8 del 0"),
        send("stats reset\r\n", "RESET\r\n", on="e"),
        *(prefixes(on) for on in ALL),
    ),
    case(
        "stale-item-told-once",
        "KV-MG-017",
        send("set {k} 0 60 1\r\nx\r\nmd {k} I T60\r\n", "STORED\r\nHD\r\n"),
        send("mg {k} v\r\n", "VA 1 X W\r\nx\r\n", on="b"),
        *(send("mg {k} v\r\n", "VA 1 Z X\r\nx\r\n", on=on) for on in ALL),
    ),
    case(
        "reload-for-all",
        "KV-LIFE-003",
        store("@@{m2}.{k}", "2"),
        store("@@{m1}.{k}", "1"),
        map_table("{k2}", "{t1}"),
        *(hit("@@{k2}.{k}", "1", on=on) for on in ALL),
        sql("UPDATE {containers} SET db_table = '{t2}' WHERE name = '{k2}'"),
        *(hit("@@{k2}.{k}", "1", on=on) for on in ALL),
        Reload(),
        *(hit("@@{k2}.{k}", "2", on=on) for on in ALL),
        unmap("{k2}"),
    ),
)
