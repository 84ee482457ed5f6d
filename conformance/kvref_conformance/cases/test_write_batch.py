"""Batches of writes: what counts, who sees what, and when all of it is committed.

What ends a batch otherwise: `test_batch_ends.py`; a write that fails: `test_failed_write.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, eventually, frames, send, sql
from kvref_conformance.cases.batches import (
    COUNT,
    UNCOMMITTED,
    WRITES,
    committed,
    dirty,
    get,
    insert,
    miss,
    put,
    puts,
    select,
    update,
)
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send, Step

PIPELINED = "".join(f"set {{k}}{n} 0 0 1\r\nx\r\n" for n in range(3))
TEN = "".join(f"set {{k}}{n} 0 0 1\r\nx\r\n" for n in range(10))
TAIL = "{k}1 0 0 1\r\ny\r\n"
# Successful writes of {k}1, which is a row of the value 5; how many rows there are afterwards.
WRITE = {
    "replace": (send(f"replace {TAIL}", "STORED\r\n"), 1),
    "append": (send(f"append {TAIL}", "STORED\r\n"), 1),
    "prepend": (send(f"prepend {TAIL}", "STORED\r\n"), 1),
    "incr": (send("incr {k}1 2\r\n", "7\r\n"), 1),
    "decr": (send("decr {k}1 2\r\n", "3\r\n"), 1),
    "delete": (send("delete {k}1\r\n", "DELETED\r\n"), 0),
    "set-over": (put(1), 1),
    "add": (send("add {k}0 0 0 1\r\ny\r\n", "STORED\r\n"), 2),
    "noreply": (send("set {k}0 0 0 1 noreply\r\ny\r\n", ""), 2),
}
# Requests that have nothing to do with a batch.
IDLE_WORDS = {
    "version": send("version\r\n", "VERSION <text>\r\n"),
    "verbosity": send("verbosity 1\r\n", "OK\r\n"),
    "stats": send("stats\r\n", "STAT <text> <text>\r\n<stats>END\r\n"),
    "unknown-command": send("nonsense\r\n", "ERROR\r\n"),
    "long-key": send("get {k:251}\r\n", "CLIENT_ERROR bad command line format\r\n"),
    "touch": send("touch {k}none 0\r\n", ("ERROR\r\n", "NOT_FOUND\r\n")),
    "unknown-mapping-get": send("get @@{k}none.{k}9\r\n", "END\r\n"),
    "switch-word-set": send("set @@{m1} 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "switch-word-cas": send("cas @@{m1} 0 0 1 5\r\ny\r\n", "NOT_STORED\r\n"),
    "set-without-a-length": send("set {k}9 0 0\r\n", "ERROR\r\n"),
    "incr-by-no-number": send("incr {k}1 x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
    "unknown-mapping-bind": send("bind {k}none\r\n", "NOT_FOUND\r\n"),
    "same-mapping-get": send("get @@{m1}\r\n", "VALUE @@{m1} 0 <number>\r\n<text>\r\nEND\r\n"),
    "same-mapping-bind": send("bind {m1}\r\n", "SUCCEED\r\n"),
    "miss": miss("none"),
    "hit": get(1, "x"),
}


def batch_case(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case with four writes to a batch."""
    return case(id_, requirements, *steps, settings=WRITES, engine=engine)


def put_frame(number: int) -> Send:
    """Set a row of the case by a frame."""
    return frames(f"set key={{k}}{number} value=x", "set ok cas=<cas>")


# Meta commands that write {k}1, which is a row.
META = {
    "ms": "ms {k}1 1\r\ny\r\n",
    "ms-append": "ms {k}1 1 MA\r\ny\r\n",
    "md": "md {k}1\r\n",
    "md-stale": "md {k}1 I\r\n",
    "ma": "ma {k}1\r\n",
    "mg-time": "mg {k}1 T0\r\n",
}
SINGLE = (
    case("single-write", "KV-BATCH-001", put(1), committed(1), put(2), committed(2)),
    case("single-noreply", "KV-BATCH-001", send("set {k}1 0 0 1 noreply\r\nx\r\n", ""), committed(1)),
    case("single-delete", "KV-BATCH-001", insert(1), send("delete {k}1\r\n", "DELETED\r\n"), committed(0)),
)
BINARY = (
    batch_case(
        "binary-full-committed",
        "KV-BATCH-047",
        put_frame(1),
        frames("setq key={k}2 value=x", ""),
        put_frame(3),
        committed(0),
        frames("setq key={k}4 value=x", ""),
        committed(4),
    ),
    batch_case(
        "binary-end-by-quit",
        "KV-BATCH-050",
        put_frame(1),
        committed(0),
        frames("quit", "quit ok", closes=True),
        eventually(committed(1)),
        frames("setq key={k}2 value=x; quitq", "", on="b", closes=True),
        eventually(committed(2)),
    ),
    batch_case(
        "binary-beside-text",
        "KV-BATCH-047",
        put_frame(1),
        send("set {k}2 0 0 1\r\nx\r\n", "STORED\r\n", on="text"),
        put_frame(3),
        frames("deleteq key={k}1; incrq key={k}4 initial=5", ""),
        committed(2),
    ),
)
COUNTED_META = tuple(
    batch_case(
        f"{name}-counts",
        "KV-BATCH-053",
        insert(1, "5"),
        *puts(2, 3),
        send(line, "HD\r\n"),
        committed(1),
        put(4),
        committed(3 if name == "md" else 4),
    )
    for name, line in META.items()
)
SEEN = (
    batch_case("pending-unseen", "KV-BATCH-002", put(1), committed(0), put(2), committed(0), put(3), committed(0)),
    batch_case("full-committed", "KV-BATCH-003", *puts(1, 4), committed(4)),
    batch_case(
        "next-batch", "KV-BATCH-004", *puts(1, 5), committed(4), *puts(6, 7), committed(4), put(8), committed(8)
    ),
    batch_case(
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
    batch_case(
        "pending-delete",
        "KV-BATCH-002 KV-BATCH-003",
        insert(1),
        send("delete {k}1\r\n", "DELETED\r\n"),
        committed(1),
        *puts(2, 4),
        committed(3),
    ),
    batch_case(
        "pending-update", "KV-BATCH-002", insert(1, "old"), put(1), select(1, "old"), *puts(2, 4), select(1, "x")
    ),
)
COUNTED = (
    *(
        batch_case(
            f"counts-{name}",
            "KV-BATCH-006",
            insert(1, "5"),
            write,
            *puts(6, 7),
            committed(1),
            put(8),
            committed(left + 3),
        )
        for name, (write, left) in WRITE.items()
    ),
    batch_case(
        "counts-cas",
        "KV-BATCH-006",
        put(1),
        send("gets {k}1\r\n", "VALUE {k}1 0 1 <cas a>\r\nx\r\nEND\r\n"),
        send("cas {k}1 0 0 1 {a}\r\ny\r\n", "STORED\r\n"),
        put(2),
        committed(0),
        put(3),
        committed(3),
        select(1, "y"),
    ),
    batch_case("same-key", "KV-BATCH-007", put(1), put(1), put(1), committed(0), put(1, value="y"), select(1, "y")),
    batch_case(
        "cancelling-out",
        "KV-BATCH-007",
        put(1),
        send("delete {k}1\r\n", "DELETED\r\n"),
        put(2),
        committed(0),
        put(3),
        committed(2),
    ),
    batch_case("pipelined", "KV-BATCH-008", send(PIPELINED, "STORED\r\n" * 3), committed(0), put(4), committed(4)),
    batch_case(
        "pipelined-ten",
        "KV-BATCH-008",
        send(TEN, "STORED\r\n" * 10),
        committed(8),
        Disconnect(),
        eventually(committed(10)),
    ),
    batch_case(
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
        batch_case(
            f"uncounted-{name}", "KV-BATCH-010", *puts(1, 2), request, put(3), committed(0), put(4), committed(4)
        )
        for name, request in IDLE_WORDS.items()
    ),
    batch_case(
        "uncounted-refused-store",
        "KV-BATCH-010",
        *puts(1, 2),
        send("set @@{k}none.{k}9 0 0 1\r\nx\r\n", "NOT_FOUND\r\n"),
        put(3),
        committed(0),
        put(4),
        committed(4),
    ),
)
CUT = {
    "value": ("KV-BATCH-013", send("set {k}1 0 0 1025\r\n{v~1025}\r\n", "STORED\r\n")),
    "key": ("KV-BATCH-013", send("set {k:33} 0 0 1\r\nx\r\n", "STORED\r\n")),
}
OWN = (
    *(
        batch_case(f"counts-a-cut-{name}", requirement, write, *puts(2, 3), committed(0), put(4), committed(4))
        for name, (requirement, write) in CUT.items()
    ),
    batch_case(
        "own-set",
        "KV-BATCH-011",
        put(1, value="new"),
        get(1, "new"),
        send("append {k}1 0 0 1\r\n!\r\n", "STORED\r\n"),
        get(1, "new!"),
        committed(0),
    ),
    batch_case(
        "own-delete",
        "KV-BATCH-011",
        insert(1),
        send("delete {k}1\r\n", "DELETED\r\n"),
        miss(1),
        send("add {k}1 0 0 1\r\ny\r\n", "STORED\r\n"),
        get(1, "y"),
        select(1, "x"),
    ),
    batch_case(
        "own-cas",
        "KV-BATCH-011",
        put(1),
        send("gets {k}1\r\n", "VALUE {k}1 0 1 <cas a>\r\nx\r\nEND\r\n"),
        put(1, value="y"),
        send("gets {k}1\r\n", "VALUE {k}1 0 1 <new cas b>\r\ny\r\nEND\r\n"),
        send("cas {k}1 0 0 1 {b}\r\nz\r\n", "STORED\r\n"),
        committed(0),
        put(1, value="w"),
        select(1, "w"),
    ),
    batch_case(
        "own-count-up",
        "KV-BATCH-011",
        put(1, value="5"),
        send("incr {k}1 2\r\n", "7\r\n"),
        send("incr {k}1 3\r\n", "10\r\n"),
        committed(0),
        send("decr {k}1 1\r\n", ("9\r\n", "9 \r\n")),
        sql(COUNT, (1,)),
    ),
    batch_case(
        "write-on-committed",
        "KV-BATCH-012",
        insert(1, "5"),
        put(2),
        update(1, "7"),
        send("incr {k}1 1\r\n", "8\r\n"),
        *puts(3, 4),
        select(1, "8"),
    ),
)

CASES: tuple[Case, ...] = (*SINGLE, *COUNTED_META, *BINARY, *SEEN, *COUNTED, *OWN)
