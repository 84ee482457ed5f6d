"""Any history of three connections and SQL, judged by the model in `kvref_conformance.histories`.

Each case is a group of settings, and one start of the endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case
from kvref_conformance.cases.batches import COMMITTED, LEVEL, SERIAL, SHORT_WAIT, SNAPSHOT, WRITES, R, W
from kvref_conformance.histories import judge_histories
from kvref_conformance.plugin import end_test

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.run import Run

CASES = (
    case("histories-of-writes", "KV-HIST-001", settings=WRITES),
    case("histories-at-level-1", "KV-HIST-002", settings=COMMITTED),
    case("histories-at-level-2", "KV-HIST-002", settings=SNAPSHOT),
    case("histories-of-reads-at-level-2", "KV-HIST-002", settings={W: 1, R: 3, LEVEL: 2}),
    case("histories-at-level-3", "KV-HIST-002", settings=SERIAL),
    case("histories-of-locking-reads", "KV-HIST-003", settings={W: 1000, R: 1, LEVEL: 3}),
    case("histories-with-a-lock-wait-that-ends", "KV-HIST-004", settings=SHORT_WAIT),
)


def test_history(case: Case, run: Run) -> None:
    end_test(run, judge_histories(run.judge, case, "histories", run.histories, run.seed))
