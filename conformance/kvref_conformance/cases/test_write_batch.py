"""Batches of writes: what counts, who sees what, and when all of it is committed.

What ends a batch otherwise: `test_batch_ends.py`; a write that fails: `test_failed_write.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import ask, case, eventually, say, sql
from kvref_conformance.cases.batches import (
    COUNT,
    UNCOMMITTED,
    WRITES,
    becomes,
    committed,
    dirty,
    holds,
    nothing,
    put,
    puts,
    reads,
    row,
)
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send, Step

PIPELINED = "".join(f"set {{k}}{n} 0 0 1\r\nx\r\n" for n in range(3))
TEN = "".join(f"set {{k}}{n} 0 0 1\r\nx\r\n" for n in range(10))
TAIL = "{k}1 0 0 1\r\ny\r\n"
# Successful writes of {k}1, which is a row of the value 5; how many rows there are afterwards.
WRITE = {
    "replace": (say(f"replace {TAIL}", "STORED\r\n"), 1),
    "append": (say(f"append {TAIL}", "STORED\r\n"), 1),
    "prepend": (say(f"prepend {TAIL}", "STORED\r\n"), 1),
    "incr": (say("incr {k}1 2\r\n", "7\r\n"), 1),
    "decr": (say("decr {k}1 2\r\n", "3\r\n"), 1),
    "delete": (say("delete {k}1\r\n", "DELETED\r\n"), 0),
    "set-over": (put(1), 1),
    "add": (say("add {k}0 0 0 1\r\ny\r\n", "STORED\r\n"), 2),
    "noreply": (say("set {k}0 0 0 1 noreply\r\ny\r\n", ""), 2),
}
# Requests that have nothing to do with a batch.
IDLE_WORDS = {
    "version": say("version\r\n", "VERSION <text>\r\n"),
    "verbosity": say("verbosity 1\r\n", "OK\r\n"),
    "stats": say("stats\r\n", "<stats>END\r\n"),
    "unknown-command": say("nonsense\r\n", "ERROR\r\n"),
    "long-key": say("get {k:251}\r\n", "CLIENT_ERROR bad command line format\r\n"),
    "touch": say("touch {k}none 0\r\n", ("ERROR\r\n", "NOT_FOUND\r\n")),
    "unknown-mapping-get": say("get @@{k}none.{k}9\r\n", "END\r\n"),
    "switch-word-set": say("set @@{m1} 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "switch-word-cas": say("cas @@{m1} 0 0 1 5\r\ny\r\n", "NOT_STORED\r\n"),
    "set-without-a-length": say("set {k}9 0 0\r\n", "ERROR\r\n"),
    "incr-by-no-number": say("incr {k}1 x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
    "unknown-mapping-bind": say("bind {k}none\r\n", "NOT_FOUND\r\n"),
    "same-mapping-get": say("get @@{m1}\r\n", "VALUE @@{m1} 0 <number>\r\n<text>\r\nEND\r\n"),
    "same-mapping-bind": say("bind {m1}\r\n", "SUCCEED\r\n"),
    "miss": nothing("none"),
    "hit": reads(1, "x"),
}


def batched(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case with four writes to a batch."""
    return case(id_, requirements, *steps, settings=WRITES, engine=engine)


def binary(number: int) -> Send:
    """Set a row of the case by a frame."""
    return ask(f"set key={{k}}{number} value=x", "set ok cas=<cas>")


SINGLE = (
    case("single-write", "KV-BATCH-001", put(1), committed(1), put(2), committed(2)),
    case("single-noreply", "KV-BATCH-001", say("set {k}1 0 0 1 noreply\r\nx\r\n", ""), committed(1)),
    case("single-delete", "KV-BATCH-001", row(1), say("delete {k}1\r\n", "DELETED\r\n"), committed(0)),
)
BINARY = (
    batched(
        "binary-full-committed",
        "KV-BATCH-047",
        binary(1),
        ask("setq key={k}2 value=x", ""),
        binary(3),
        committed(0),
        ask("setq key={k}4 value=x", ""),
        committed(4),
    ),
    batched(
        "binary-end-by-quit",
        "KV-BATCH-050",
        binary(1),
        committed(0),
        ask("quit", "quit ok", closes=True),
        eventually(committed(1)),
        ask("setq key={k}2 value=x; quitq", "", on="b", closes=True),
        eventually(committed(2)),
    ),
    batched(
        "binary-beside-text",
        "KV-BATCH-047",
        binary(1),
        say("set {k}2 0 0 1\r\nx\r\n", "STORED\r\n", on="text"),
        binary(3),
        ask("deleteq key={k}1; incrq key={k}4 initial=5", ""),
        committed(2),
    ),
)
SEEN = (
    batched("pending-unseen", "KV-BATCH-002", put(1), committed(0), put(2), committed(0), put(3), committed(0)),
    batched("full-committed", "KV-BATCH-003", *puts(1, 4), committed(4)),
    batched("next-batch", "KV-BATCH-004", *puts(1, 5), committed(4), *puts(6, 7), committed(4), put(8), committed(8)),
    batched(
        "pending-dirty",
        "KV-BATCH-005",
        UNCOMMITTED,
        dirty(0),
        put(1),
        dirty(1),
        put(2),
        dirty(2),
        committed(0),
        engine="mysql",
    ),
    batched(
        "pending-delete",
        "KV-BATCH-002 KV-BATCH-003",
        row(1),
        say("delete {k}1\r\n", "DELETED\r\n"),
        committed(1),
        *puts(2, 4),
        committed(3),
    ),
    batched("pending-update", "KV-BATCH-002", row(1, "old"), put(1), holds(1, "old"), *puts(2, 4), holds(1, "x")),
)
COUNTED = (
    *(
        batched(
            f"counts-{name}",
            "KV-BATCH-006",
            row(1, "5"),
            write,
            *puts(6, 7),
            committed(1),
            put(8),
            committed(left + 3),
        )
        for name, (write, left) in WRITE.items()
    ),
    batched(
        "counts-cas",
        "KV-BATCH-006",
        put(1),
        say("gets {k}1\r\n", "VALUE {k}1 0 1 <cas a>\r\nx\r\nEND\r\n"),
        say("cas {k}1 0 0 1 {a}\r\ny\r\n", "STORED\r\n"),
        put(2),
        committed(0),
        put(3),
        committed(3),
        holds(1, "y"),
    ),
    batched("same-key", "KV-BATCH-007", put(1), put(1), put(1), committed(0), put(1, value="y"), holds(1, "y")),
    batched(
        "cancelling-out",
        "KV-BATCH-007",
        put(1),
        say("delete {k}1\r\n", "DELETED\r\n"),
        put(2),
        committed(0),
        put(3),
        committed(2),
    ),
    batched("pipelined", "KV-BATCH-008", say(PIPELINED, "STORED\r\n" * 3), committed(0), put(4), committed(4)),
    batched(
        "pipelined-ten",
        "KV-BATCH-008",
        say(TEN, "STORED\r\n" * 10),
        committed(8),
        Disconnect(),
        eventually(committed(10)),
    ),
    batched(
        "own-count",
        "KV-BATCH-009",
        *puts(1, 3),
        *puts(4, 6, "b"),
        committed(0),
        put(7, "b"),
        committed(4),
        put(8),
        committed(8),
    ),
    *(
        batched(f"uncounted-{name}", "KV-BATCH-010", *puts(1, 2), request, put(3), committed(0), put(4), committed(4))
        for name, request in IDLE_WORDS.items()
    ),
    batched(
        "uncounted-refused-store",
        "KV-BATCH-010",
        *puts(1, 2),
        say("set @@{k}none.{k}9 0 0 1\r\nx\r\n", "NOT_FOUND\r\n"),
        put(3),
        committed(0),
        put(4),
        committed(4),
    ),
)
CUT = {
    "value": ("KV-BATCH-013", say("set {k}1 0 0 1025\r\n{v~1025}\r\n", "STORED\r\n")),
    "key": ("KV-BATCH-013", say("set {k:33} 0 0 1\r\nx\r\n", "STORED\r\n")),
}
OWN = (
    *(
        batched(f"counts-a-cut-{name}", requirement, write, *puts(2, 3), committed(0), put(4), committed(4))
        for name, (requirement, write) in CUT.items()
    ),
    batched(
        "own-set",
        "KV-BATCH-011",
        put(1, value="new"),
        reads(1, "new"),
        say("append {k}1 0 0 1\r\n!\r\n", "STORED\r\n"),
        reads(1, "new!"),
        committed(0),
    ),
    batched(
        "own-delete",
        "KV-BATCH-011",
        row(1),
        say("delete {k}1\r\n", "DELETED\r\n"),
        nothing(1),
        say("add {k}1 0 0 1\r\ny\r\n", "STORED\r\n"),
        reads(1, "y"),
        holds(1, "x"),
    ),
    batched(
        "own-cas",
        "KV-BATCH-011",
        put(1),
        say("gets {k}1\r\n", "VALUE {k}1 0 1 <cas a>\r\nx\r\nEND\r\n"),
        put(1, value="y"),
        say("gets {k}1\r\n", "VALUE {k}1 0 1 <new cas b>\r\ny\r\nEND\r\n"),
        say("cas {k}1 0 0 1 {b}\r\nz\r\n", "STORED\r\n"),
        committed(0),
        put(1, value="w"),
        holds(1, "w"),
    ),
    batched(
        "own-count-up",
        "KV-BATCH-011",
        put(1, value="5"),
        say("incr {k}1 2\r\n", "7\r\n"),
        say("incr {k}1 3\r\n", "10\r\n"),
        committed(0),
        say("decr {k}1 1\r\n", ("9\r\n", "9 \r\n")),
        sql(COUNT, (1,)),
    ),
    batched(
        "write-on-committed",
        "KV-BATCH-012",
        row(1, "5"),
        put(2),
        becomes(1, "7"),
        say("incr {k}1 1\r\n", "8\r\n"),
        *puts(3, 4),
        holds(1, "8"),
    ),
)

CASES: tuple[Case, ...] = (*SINGLE, *BINARY, *SEEN, *COUNTED, *OWN)


def test_write_batch(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
