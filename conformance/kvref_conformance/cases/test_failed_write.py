"""A write that fails within a batch, and its effect on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, eventually, say
from kvref_conformance.cases.batches import WRITES, committed, nothing, put, puts, reads, row
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

# Requests that fail in a table with the rows {k}1 and, not of this connection, {k}0.
FAILS = {
    "add": say("add {k}0 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "replace": say("replace {k}none 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "append": say("append {k}none 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
    "delete": say("delete {k}none\r\n", "NOT_FOUND\r\n"),
    "noreply": say("delete {k}none noreply\r\n", ""),
    "cas": say("cas {k}0 0 0 1 99999999\r\ny\r\n", "EXISTS\r\n"),
    "cas-missing": say("cas {k}none 0 0 1 99999999\r\ny\r\n", "NOT_FOUND\r\n"),
}
WORD = {"word": say("delete @@{m2}.{k}none\r\n", "NOT_FOUND\r\n")}
PACKET = "set {k}1 0 0 1\r\nx\r\ndelete {k}none\r\nset {k}2 0 0 1\r\nx\r\nset {k}3 0 0 1\r\nx\r\n"


def batched(id_: str, requirements: str, *steps: Step) -> Case:
    """Write a case with four writes to a batch."""
    return case(id_, requirements, *steps, settings=WRITES)


UNDOES_ITSELF = (
    *(
        batched(f"kept-beside-{name}", "KV-BATCH-020", row(0), put(1), failing, reads(1, "x"))
        for name, failing in FAILS.items()
    ),
    batched(
        "kept-in-a-packet", "KV-BATCH-020", say(PACKET, "STORED\r\nNOT_FOUND\r\nSTORED\r\nSTORED\r\n"), reads(1, "x")
    ),
    batched(
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
        batched(
            f"discarded-by-{name}",
            "KV-BATCH-022",
            row(0),
            put(1),
            failing,
            nothing(1),
            *puts(2, 4),
            committed(1),
            put(5),
            committed(5),
        )
        for name, failing in (FAILS | WORD).items()
    ),
    batched("discarded-as-fourth", "KV-BATCH-022", *puts(1, 3), FAILS["delete"], committed(0), nothing(3)),
    batched("seen-and-discarded", "KV-BATCH-023", put(1), reads(1, "x", on="b"), FAILS["delete"], nothing(1, on="b")),
)
COUNTS = (
    batched(
        "failed-incr-counts",
        "KV-BATCH-024",
        *puts(1, 2),
        say("incr {k}none 1\r\n", ("NOT_FOUND\r\n", "<number>\r\n")),
        reads(1, "x"),
        committed(0),
        put(3),
        committed(3),
    ),
    batched(
        "failure-of-another",
        "KV-BATCH-025",
        *puts(1, 2),
        say("delete {k}none\r\n", "NOT_FOUND\r\n", on="b"),
        *puts(3, 4),
        committed(4),
    ),
)

CASES: tuple[Case, ...] = (*UNDOES_ITSELF, *DISCARDS, *COUNTS)


def test_failed_write(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
