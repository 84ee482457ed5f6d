"""A write that fails within a batch, and its effect on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, eventually, send
from kvref_conformance.cases.batches import WRITES, committed, get, insert, miss, put, puts
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

# Requests that fail in a table with the rows {k}1 and, not of this connection, {k}0.
FAILS = {
    "add": send("add {k}0 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "replace": send("replace {k}none 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "append": send("append {k}none 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "delete": send("delete {k}none\r\n", "NOT_FOUND\r\n"),
    "noreply": send("delete {k}none noreply\r\n", ""),
    "cas": send("cas {k}0 0 0 1 99999999\r\ny\r\n", "EXISTS\r\n"),
    "cas-missing": send("cas {k}none 0 0 1 99999999\r\ny\r\n", "NOT_FOUND\r\n"),
}
WORD = {"word": send("delete @@{m2}.{k}none\r\n", "NOT_FOUND\r\n")}
PACKET = "set {k}1 0 0 1\r\nx\r\ndelete {k}none\r\nset {k}2 0 0 1\r\nx\r\nset {k}3 0 0 1\r\nx\r\n"


def batch_case(id_: str, requirements: str, *steps: Step) -> Case:
    """Write a case with four writes to a batch."""
    return case(id_, requirements, *steps, settings=WRITES)


UNDOES_ITSELF = (
    *(
        batch_case(f"kept-beside-{name}", "KV-BATCH-020", insert(0), put(1), failing, get(1, "x"))
        for name, failing in FAILS.items()
    ),
    batch_case(
        "kept-in-a-packet", "KV-BATCH-020", send(PACKET, "STORED\r\nNOT_FOUND\r\nSTORED\r\nSTORED\r\n"), get(1, "x")
    ),
    batch_case(
        "kept-and-committed",
        "KV-BATCH-021",
        put(1),
        FAILS["delete"],
        *puts(2, 3),
        Disconnect(),
        eventually(committed(3)),
    ),
)
DISCARDS = (
    *(
        batch_case(
            f"discarded-by-{name}",
            "KV-BATCH-022",
            insert(0),
            put(1),
            failing,
            miss(1),
            *puts(2, 4),
            committed(1),
            put(5),
            committed(5),
        )
        for name, failing in (FAILS | WORD).items()
    ),
    batch_case("discarded-as-fourth", "KV-BATCH-022", *puts(1, 3), FAILS["delete"], committed(0), miss(3)),
    batch_case("seen-and-discarded", "KV-BATCH-023", put(1), get(1, "x", on="b"), FAILS["delete"], miss(1, on="b")),
)
MISSES = {
    "delete": FAILS["delete"],
    "incr": send("incr {k}none 1\r\n", "NOT_FOUND\r\n"),
    "decr": send("decr {k}none 1\r\n", "NOT_FOUND\r\n"),
    "ma": send("ma {k}none\r\n", "NF\r\n"),
}
COUNTS = (
    *(
        batch_case(
            f"not-counted-{name}", "KV-BATCH-052", put(1), missed, *puts(2, 3), committed(0), put(4), committed(4)
        )
        for name, missed in MISSES.items()
    ),
    batch_case(
        "failed-incr-counts",
        "KV-BATCH-024",
        *puts(1, 2),
        send("incr {k}none 1\r\n", ("NOT_FOUND\r\n", "<number>\r\n")),
        get(1, "x"),
        committed(0),
        put(3),
        committed(3),
    ),
    batch_case(
        "failure-of-another",
        "KV-BATCH-025",
        *puts(1, 2),
        send("delete {k}none\r\n", "NOT_FOUND\r\n", on="b"),
        *puts(3, 4),
        committed(4),
    ),
)

CASES: tuple[Case, ...] = (*UNDOES_ITSELF, *DISCARDS, *COUNTS)
