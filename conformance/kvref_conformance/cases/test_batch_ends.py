"""What ends a batch before it is full: gets, another mapping, `flush_all`, the end of the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, eventually, send, send_unanswered, sql
from kvref_conformance.cases.batches import (
    COUNT,
    SNAPSHOT,
    UNCOMMITTED,
    WRITES,
    WRITES_AND_SINGLE_READS,
    committed,
    dirty,
    get,
    insert,
    item_reply,
    miss,
    pending,
    put,
    puts,
    update,
)
from kvref_conformance.cases.phrases import OPTIONS, map_table, unmap
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Sql, Step

FLUSHED = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
SWITCHES = {
    "get": send("get @@{m2}.{k}none\r\n", "END\r\n"),
    "set": send("set @@{m2}.{k}3 0 0 1\r\nx\r\n", "STORED\r\n"),
    "bind": send("bind {m2}\r\n", "SUCCEED\r\n"),
}
# The mapping in force, {k2}q, in another letter case.
SPELLINGS = {
    "get": send("get @@{k2}Q.{k}none\r\n", "END\r\n"),
    "get-without-a-key": send("get @@{k2}Q\r\n", "VALUE @@{k2}Q 0 <number>\r\n<text>\r\nEND\r\n"),
    "bind": send("bind {k2}Q\r\n", "SUCCEED\r\n"),
}
GETS = {
    "hit": get(1, "x"),
    "miss": miss("none"),
    "gets": send("gets {k}1\r\n", "VALUE {k}1 0 1 <cas>\r\nx\r\nEND\r\n"),
    "several": send("get {k}1 {k}none {k}2\r\n", item_reply(1, "x").removesuffix("END\r\n") + item_reply(2, "x")),
}


def other_count(rows: int) -> Sql:
    """Want so many committed rows of the case in the other mapping's table."""
    return sql(COUNT.replace("{t1}", "{t2}"), (rows,))


def single_case(id_: str, requirements: str, *steps: Step) -> Case:
    """Write a case where each get is a batch of its own."""
    return case(id_, requirements, *steps, settings=WRITES_AND_SINGLE_READS)


def batch_case(id_: str, requirements: str, *steps: Step, engine: str = "") -> Case:
    """Write a case where gets fill no batch."""
    return case(id_, requirements, *steps, settings=WRITES, engine=engine)


READS = (
    *(
        single_case(f"get-commits-{name}", "KV-BATCH-030", *puts(1, 2), committed(0), get, committed(2))
        for name, get in GETS.items()
    ),
    single_case(
        "get-begins-anew", "KV-BATCH-031", *puts(1, 3), get(1, "x"), *puts(4, 6), committed(3), put(7), committed(7)
    ),
    single_case(
        "get-of-another",
        "KV-BATCH-032",
        *puts(1, 2),
        get(1, pending(1), on="b"),
        committed(0),
        *puts(3, 4),
        committed(4),
    ),
    single_case(
        "get-without-a-key",
        "KV-BATCH-033",
        put(1),
        send("get @@{m1}\r\n", "VALUE @@{m1} 0 <number>\r\n<text>\r\nEND\r\n"),
        committed(0),
    ),
    single_case("get-unknown-mapping", "KV-BATCH-033", put(1), send("get @@{k}none.{k}\r\n", "END\r\n"), committed(0)),
    case(
        "counts-apart",
        "KV-BATCH-034 KV-BATCH-051",
        *puts(1, 3),
        *(get(n, "x") for n in (1, 2, 3)),
        committed(0),
        miss("none"),
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
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        get(1, "old"),
        *puts(2, 5),
        get(1, "new"),
        settings=SNAPSHOT,
    ),
)
SWITCHED = (
    *(
        batch_case(f"switch-by-{name}-commits", "KV-BATCH-040", *puts(1, 2), committed(0), switch, committed(2))
        for name, switch in SWITCHES.items()
    ),
    batch_case(
        "switch-and-count",
        "KV-BATCH-041",
        *puts(1, 2),
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        *puts(3, 4),
        other_count(0),
        *puts(5, 6),
        other_count(4),
    ),
    batch_case(
        "switch-keeps-the-count",
        "KV-BATCH-042",
        *puts(1, 2),
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        put(3),
        other_count(0),
        put(4),
        other_count(2),
        *puts(5, 7),
        other_count(2),
        put(8),
        other_count(6),
    ),
    batch_case(
        "same-mapping-store",
        "KV-BATCH-010",
        *puts(1, 2),
        send("set @@{m1}.{k}3 0 0 1\r\nx\r\n", "STORED\r\n"),
        committed(0),
        put(4),
        committed(4),
    ),
)


def rebind_case(id_: str, requirements: str, naming: Step, *, commits: bool, name: str = "{k2}q") -> Case:
    """Write a case where two writes are pending while the mapping in force is named again.

    Args:
        id_: of the case.
        requirements: IDs of what it judges.
        naming: names the mapping in another spelling.
        commits: that commits the two.
        name: the mapping's row in containers.
    """
    return batch_case(
        id_,
        requirements,
        map_table(name, "{t1}"),
        send(f"bind {name}\r\n", "SUCCEED\r\n"),
        *puts(1, 2),
        naming,
        committed(2 if commits else 0),
        put(3),
        committed(2 if commits else 0),
        put(4),
        committed(4),
        unmap(name),
    )


SPELLED = (
    *(
        rebind_case(f"another-spelling-by-{by}-commits", "KV-BATCH-048", word, commits=True)
        for by, word in SPELLINGS.items()
    ),
    *(rebind_case(f"another-spelling-by-{by}", "KV-BATCH-049", word, commits=False) for by, word in SPELLINGS.items()),
    rebind_case(
        "name-with-bytes-cut-off-commits",
        "KV-BATCH-048",
        send("get @@{k2:50}y.{k}none\r\n", "END\r\n"),
        commits=True,
        name="{k2:50}",
    ),
)
OVER = (
    case(
        "own-flush",
        "KV-BATCH-043",
        *puts(1, 2),
        send("flush_all\r\n", "OK\r\n"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        *puts(3, 5),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        put(6),
        sql("SELECT COUNT(*) FROM {t}", (4,)),
        shape=FLUSHED,
        settings=WRITES,
    ),
    batch_case("end-by-quit", "KV-BATCH-044", *puts(1, 3), send("quit\r\n", "", closes=True), eventually(committed(3))),
    *(
        batch_case(f"end-by-{how}", "KV-BATCH-044", *puts(1, 3), Disconnect(how=how), eventually(committed(3)))
        for how in ("half", "close", "reset")
    ),
    batch_case(
        "end-within-a-value",
        "KV-BATCH-044",
        *puts(1, 3),
        send_unanswered("set {k}4 0 0 10\r\nhalf"),
        Disconnect(how="close"),
        eventually(committed(3)),
    ),
    batch_case(
        "end-of-one-of-two",
        "KV-BATCH-044",
        *puts(1, 2),
        *puts(3, 5, "b"),
        Disconnect("b"),
        eventually(committed(3)),
        *puts(6, 7),
        committed(7),
    ),
    batch_case(
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
