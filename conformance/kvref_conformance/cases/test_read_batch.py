"""Batches of reads: how long a connection sees the same, and what counts as a read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, say, sql
from kvref_conformance.cases.batches import (
    COMMITTED,
    SERIAL,
    SNAPSHOT,
    WRITES,
    becomes,
    holds,
    item,
    nothing,
    put,
    puts,
    reads,
    row,
    vanishes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

LEVELS = {"1": COMMITTED, "2": SNAPSHOT, "3": SERIAL}


def read(id_: str, requirements: str, *steps: Step, settings: Mapping[str, int] = SNAPSHOT) -> Case:
    """Write a case with four reads to a batch, at level 2 where not said otherwise."""
    return case(id_, requirements, *steps, settings=settings)


VIEW = (
    case("newest-each-time", "KV-RBATCH-001", row(1, "old"), reads(1, "old"), becomes(1, "new"), reads(1, "new")),
    *(
        read(
            f"same-for-four-reads-at-{level}",
            "KV-RBATCH-002",
            row(1, "old"),
            reads(1, "old"),
            becomes(1, "new"),
            *(reads(1, "old") for _ in range(3)),
            *(reads(1, "new") for _ in range(2)),
            becomes(1, "newer"),
            *(reads(1, "new") for _ in range(2)),
            reads(1, "newer"),
            settings=LEVELS[level],
        )
        for level in ("2", "3")
    ),
    read(
        "newest-committed-at-1",
        "KV-RBATCH-003",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        reads(1, "new"),
        settings=COMMITTED,
    ),
    read(
        "same-for-four-reads-at-1",
        "KV-RBATCH-004",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        *(reads(1, "old") for _ in range(3)),
        reads(1, "new"),
        settings=COMMITTED,
    ),
    read(
        "newest-at-0",
        "KV-RBATCH-005",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        reads(1, "new"),
        vanishes(1),
        nothing(1),
        row(2),
        reads(2, "x"),
        settings=WRITES,
    ),
    read(
        "first-read-fixes-all",
        "KV-RBATCH-006",
        row(1, "old"),
        nothing("none"),
        becomes(1, "new"),
        reads(1, "old"),
    ),
    *(
        read(f"insert-unseen-at-{level}", "KV-RBATCH-007", nothing("none"), row(1), nothing(1), settings=LEVELS[level])
        for level in ("2", "3")
    ),
    *(
        read(
            f"delete-unseen-at-{level}",
            "KV-RBATCH-008",
            row(1),
            reads(1, "x"),
            vanishes(1),
            reads(1, "x"),
            settings=LEVELS[level],
        )
        for level in ("2", "3")
    ),
    *(
        read(
            f"delete-seen-at-{level}",
            "KV-RBATCH-020",
            row(1),
            reads(1, "x"),
            vanishes(1),
            nothing(1),
            settings=LEVELS[level],
        )
        for level in LEVELS
    ),
    *(
        read(
            id_,
            requirements,
            row(1),
            reads(1, "x"),
            *puts(6, 8, "b"),
            say("delete {k}1\r\n", "DELETED\r\n", on="b"),
            then,
        )
        for id_, requirements, then in (
            ("delete-of-another-unseen", "KV-RBATCH-008", reads(1, "x")),
            ("delete-of-another-seen", "KV-RBATCH-020", nothing(1)),
        )
    ),
    *(
        read(
            id_,
            requirements,
            row(1),
            reads(1, "x"),
            sql("UPDATE {t1} SET c1 = '{k}2' WHERE c1 = '{k}1'"),
            nothing(2),
            then,
        )
        for id_, requirements, then in (
            ("rename-unseen", "KV-RBATCH-009", reads(1, "x")),
            ("rename-seen", "KV-RBATCH-020", nothing(1)),
        )
    ),
    read(
        "deleted-and-inserted-again",
        "KV-RBATCH-010",
        row(1, "old"),
        reads(1, "old"),
        vanishes(1),
        row(1, "new"),
        reads(1, "old"),
        *(nothing("none") for _ in range(2)),
        reads(1, "new"),
    ),
    read(
        "no-row-locks",
        "KV-RBATCH-011",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        vanishes(1),
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}1'"),
        settings=SERIAL,
    ),
)
COUNTED = (
    read(
        "misses-count",
        "KV-RBATCH-012",
        row(1, "old"),
        nothing("none"),
        becomes(1, "new"),
        *(nothing("none") for _ in range(3)),
        reads(1, "new"),
    ),
    read(
        "gets-counts",
        "KV-RBATCH-012",
        row(1, "old"),
        *(say("gets {k}1\r\n", "VALUE {k}1 0 3 <cas>\r\nold\r\nEND\r\n") for _ in range(2)),
        becomes(1, "new"),
        *(reads(1, "old") for _ in range(2)),
        reads(1, "new"),
    ),
    read(
        "several-keys-are-one-read",
        "KV-RBATCH-013",
        row(1, "old"),
        say("get {k}1 {k}none {k}more\r\n", item(1, "old")),
        becomes(1, "new"),
        *(reads(1, "old") for _ in range(3)),
        reads(1, "new"),
    ),
    read(
        "several-keys-are-several-reads",
        "KV-RBATCH-014",
        row(1, "old"),
        say("get {k}1 {k}none {k}more\r\n", item(1, "old")),
        becomes(1, "new"),
        reads(1, "old"),
        reads(1, "new"),
    ),
    read(
        "range-is-one-read",
        "KV-RBATCH-015",
        row(1, "old"),
        row(2, "old"),
        say("get @>={k}1@<={k}2\r\n", item(1, "old").removesuffix("END\r\n") + item(2, "old")),
        becomes(1, "new"),
        *(reads(1, "old") for _ in range(3)),
        reads(1, "new"),
    ),
    read(
        "own-batch-of-reads",
        "KV-RBATCH-016",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        reads(1, "new", on="b"),
        becomes(1, "newer"),
        *(reads(1, "new", on="b") for _ in range(3)),
        reads(1, "old"),
        reads(1, "newer", on="b"),
    ),
    read(
        "switch-ends-reads",
        "KV-RBATCH-017",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        reads(1, "old"),
        say("bind {m2}\r\n", "SUCCEED\r\n"),
        say("bind {m1}\r\n", "SUCCEED\r\n"),
        reads(1, "new"),
    ),
    read(
        "flush-ends-reads",
        "KV-RBATCH-024",
        row(1, "old"),
        reads(1, "old"),
        say("flush_all\r\n", "OK\r\n"),
        row(1, "new"),
        reads(1, "new"),
    ),
)
WRITTEN = (
    *(
        read(
            f"view-{name}",
            requirement,
            row(1, "old"),
            reads(1, "old"),
            becomes(1, "new"),
            put(2),
            reads(1, value),
        )
        for name, requirement, value in (
            ("stays-after-a-write", "KV-RBATCH-022", "old"),
            ("ends-at-a-write", "KV-RBATCH-023", "new"),
        )
    ),
    read(
        "append-on-the-newest",
        "KV-RBATCH-018",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        say("append {k}1 0 0 1\r\n!\r\n", "STORED\r\n"),
        reads(1, "new!"),
        *puts(6, 8),
        holds(1, "new!"),
    ),
    read(
        "incr-on-the-newest",
        "KV-RBATCH-018",
        row(1, "5"),
        reads(1, "5"),
        becomes(1, "7"),
        say("incr {k}1 1\r\n", "8\r\n"),
        reads(1, "8"),
        *puts(6, 8),
        holds(1, "8"),
    ),
    read(
        "own-writes-beside-the-view",
        "KV-RBATCH-019",
        row(1, "old"),
        nothing(2),
        put(2),
        reads(2, "x"),
        say("delete {k}1\r\n", "DELETED\r\n"),
        nothing(1),
    ),
)

CASES: tuple[Case, ...] = (*VIEW, *COUNTED, *WRITTEN)


def test_read_batch(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
