"""What ends a batch before it is full: gets, another mapping, `flush_all`, the end of the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, eventually, quiet, say, sql
from kvref_conformance.cases.batches import (
    COUNT,
    SNAPSHOT,
    UNCOMMITTED,
    WRITES,
    WRITES_AND_SINGLE_READS,
    becomes,
    committed,
    dirty,
    item,
    nothing,
    put,
    puts,
    reads,
    row,
)
from kvref_conformance.cases.phrases import OPTIONS, row_added, row_removed
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Sql, Step

FLUSHED = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
SWITCHES = {
    "get": say("get @@{m2}.{k}none\r\n", "END\r\n"),
    "set": say("set @@{m2}.{k}3 0 0 1\r\nx\r\n", "STORED\r\n"),
    "bind": say("bind {m2}\r\n", "SUCCEED\r\n"),
}
# The mapping in force, {k2}q, in another letter case.
SPELLINGS = {
    "get": say("get @@{k2}Q.{k}none\r\n", "END\r\n"),
    "get-without-a-key": say("get @@{k2}Q\r\n", "VALUE @@{k2}Q 0 <number>\r\n<text>\r\nEND\r\n"),
    "bind": say("bind {k2}Q\r\n", "SUCCEED\r\n"),
}
GETS = {
    "hit": reads(1, "x"),
    "miss": nothing("none"),
    "gets": say("gets {k}1\r\n", "VALUE {k}1 0 1 <cas>\r\nx\r\nEND\r\n"),
    "several": say("get {k}1 {k}none {k}2\r\n", item(1, "x").removesuffix("END\r\n") + item(2, "x")),
}


def elsewhere(rows: int) -> Sql:
    """Want so many committed rows of the case in the other mapping's table."""
    return sql(COUNT.replace("{t1}", "{t2}"), (rows,))


def single(id_: str, requirements: str, *steps: Step) -> Case:
    """Write a case where each get is a batch of its own."""
    return case(id_, requirements, *steps, settings=WRITES_AND_SINGLE_READS)


def batched(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case where gets fill no batch."""
    return case(id_, requirements, *steps, settings=WRITES, engine=engine)


READS = (
    *(
        single(f"get-commits-{name}", "KV-BATCH-030", *puts(1, 2), committed(0), get, committed(2))
        for name, get in GETS.items()
    ),
    single(
        "get-begins-anew", "KV-BATCH-031", *puts(1, 3), reads(1, "x"), *puts(4, 6), committed(3), put(7), committed(7)
    ),
    single(
        "get-of-another", "KV-BATCH-032", *puts(1, 2), reads(1, "x", on="b"), committed(0), *puts(3, 4), committed(4)
    ),
    single(
        "get-without-a-key",
        "KV-BATCH-033",
        put(1),
        say("get @@{m1}\r\n", "VALUE @@{m1} 0 <number>\r\n<text>\r\nEND\r\n"),
        committed(0),
    ),
    single("get-unknown-mapping", "KV-BATCH-033", put(1), say("get @@{k}none.{k}\r\n", "END\r\n"), committed(0)),
    case(
        "counts-apart",
        "KV-BATCH-034 KV-BATCH-051",
        *puts(1, 3),
        *(reads(n, "x") for n in (1, 2, 3)),
        committed(0),
        nothing("none"),
        committed(3),
        *puts(4, 6),
        committed(3),
        put(7),
        committed(7),
        settings=SNAPSHOT,
    ),
    case(
        "full-writes-end-reads",
        "KV-BATCH-035",
        row(1, "old"),
        reads(1, "old"),
        becomes(1, "new"),
        reads(1, "old"),
        *puts(2, 5),
        reads(1, "new"),
        settings=SNAPSHOT,
    ),
)
SWITCHED = (
    *(
        batched(f"switch-by-{name}-commits", "KV-BATCH-040", *puts(1, 2), committed(0), switch, committed(2))
        for name, switch in SWITCHES.items()
    ),
    batched(
        "switch-and-count",
        "KV-BATCH-041",
        *puts(1, 2),
        say("bind {m2}\r\n", "SUCCEED\r\n"),
        *puts(3, 4),
        elsewhere(0),
        *puts(5, 6),
        elsewhere(4),
    ),
    batched(
        "switch-keeps-the-count",
        "KV-BATCH-042",
        *puts(1, 2),
        say("bind {m2}\r\n", "SUCCEED\r\n"),
        put(3),
        elsewhere(0),
        put(4),
        elsewhere(2),
        *puts(5, 7),
        elsewhere(2),
        put(8),
        elsewhere(6),
    ),
    batched(
        "same-mapping-store",
        "KV-BATCH-010",
        *puts(1, 2),
        say("set @@{m1}.{k}3 0 0 1\r\nx\r\n", "STORED\r\n"),
        committed(0),
        put(4),
        committed(4),
    ),
)


def again(id_: str, requirements: str, naming: Step, *, commits: bool, name: str = "{k2}q") -> Case:
    """Write a case where two writes are pending while the mapping in force is named again.

    Args:
        id_: of the case.
        requirements: IDs of what it judges.
        naming: names the mapping in another spelling.
        commits: that commits the two.
        name: the mapping's row in containers.
    """
    return batched(
        id_,
        requirements,
        row_added(name, "{t1}"),
        say(f"bind {name}\r\n", "SUCCEED\r\n"),
        *puts(1, 2),
        naming,
        committed(2 if commits else 0),
        put(3),
        committed(2 if commits else 0),
        put(4),
        committed(4),
        row_removed(name),
    )


SPELLED = (
    *(again(f"another-spelling-by-{by}-commits", "KV-BATCH-048", word, commits=True) for by, word in SPELLINGS.items()),
    *(again(f"another-spelling-by-{by}", "KV-BATCH-049", word, commits=False) for by, word in SPELLINGS.items()),
    again(
        "name-with-bytes-cut-off-commits",
        "KV-BATCH-048",
        say("get @@{k2:50}y.{k}none\r\n", "END\r\n"),
        commits=True,
        name="{k2:50}",
    ),
)
OVER = (
    case(
        "own-flush",
        "KV-BATCH-043",
        *puts(1, 2),
        say("flush_all\r\n", "OK\r\n"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        *puts(3, 5),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        put(6),
        sql("SELECT COUNT(*) FROM {t}", (4,)),
        shape=FLUSHED,
        settings=WRITES,
    ),
    batched("end-by-quit", "KV-BATCH-044", *puts(1, 3), say("quit\r\n", "", closes=True), eventually(committed(3))),
    *(
        batched(f"end-by-{how}", "KV-BATCH-044", *puts(1, 3), Disconnect(how=how), eventually(committed(3)))
        for how in ("half", "close", "reset")
    ),
    batched(
        "end-within-a-value",
        "KV-BATCH-044",
        *puts(1, 3),
        quiet("set {k}4 0 0 10\r\nhalf"),
        Disconnect(how="close"),
        eventually(committed(3)),
    ),
    batched(
        "end-of-one-of-two",
        "KV-BATCH-044",
        *puts(1, 2),
        *puts(3, 5, "b"),
        Disconnect("b"),
        eventually(committed(3)),
        *puts(6, 7),
        committed(7),
    ),
    batched(
        "end-dirty",
        "KV-BATCH-044",
        UNCOMMITTED,
        put(1),
        dirty(1),
        Disconnect(),
        eventually(committed(1)),
        engine="mysql",
    ),
)

CASES: tuple[Case, ...] = (*READS, *SWITCHED, *SPELLED, *OVER)


def test_batch_ends(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
