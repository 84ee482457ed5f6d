"""Any history of three connections and SQL, judged by the model in `kvref_conformance.stateful.concurrency`.

Each of these cases is a group of settings, and one start of the endpoint. Behavior that histories have found and no
recording had shown follows as conversations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.batches import (
    COMMITTED,
    DIRTY,
    LEVEL,
    SERIAL,
    SHORT_WAIT,
    SNAPSHOT,
    WRITES,
    R,
    W,
    get,
    insert,
    put,
    puts,
    update,
)
from kvref_conformance.stateful.case_names import SIMULTANEOUS

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.running.run import Run

GENERATED = (
    case("histories-of-writes", "KV-HIST-001", settings=DIRTY),
    case("histories-at-level-1", "KV-HIST-002", settings=COMMITTED),
    case("histories-at-level-2", "KV-HIST-002", settings=SNAPSHOT),
    case("histories-of-reads-at-level-2", "KV-HIST-002", settings={W: 1, R: 3, LEVEL: 2}),
    case("histories-at-level-3", "KV-HIST-002", settings=SERIAL),
    case("histories-of-locking-reads", "KV-HIST-003", settings={W: 1000, R: 1, LEVEL: 3}),
    case("histories-with-a-lock-wait-that-ends", "KV-HIST-004", settings=SHORT_WAIT),
    case(SIMULTANEOUS, "KV-HIST-009"),
)
OLD = (put(2), update(1, "new"), get(1, "old"))
CASES = (
    *GENERATED,
    case("view-fixed-by-first-write", "KV-HIST-005", insert(1, "old"), *OLD, settings=SNAPSHOT),
    case("view-fixed-by-each-write", "KV-HIST-006", insert(1, "old"), *puts(3, 6), *OLD, settings=SNAPSHOT),
    case(
        "view-fixed-by-first-read",
        "KV-HIST-007",
        insert(1, "old"),
        *(put(2), update(1, "new"), get(1, "new"), update(1, "newer"), get(1, "new")),
        settings=SNAPSHOT,
    ),
    case(
        "flush-all-commits-for-all",
        "KV-HIST-008",
        send("bind {m2}\r\nset {k} 0 0 1\r\nx\r\n", "SUCCEED\r\nSTORED\r\n", on="b"),
        send("flush_all\r\n", "OK\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("x",)),
        settings=WRITES,
    ),
)


def test_concurrency(case: Case, run: Run) -> None:
    if case in GENERATED:
        run.end_generated_test(case, "concurrency")
    else:
        run.end_test(run.judge.judge(case, "concurrency"))
