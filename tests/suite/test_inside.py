"""What tests use of the inside of the server can only become less: see `inside.py` for what is counted, and why."""

from __future__ import annotations

import pytest
from suite.inside import all_uses, uses

# `python tests/suite/inside.py` prints it. A test of replies, rows, counters of `stats` or a budget of
# `yardsticks/trace` needs none of these.
BUDGET: dict[str, dict[str, int]] = {
    "conformance/kvref_testbed/simulation/database.py": {"private": 1},
    "conformance/kvref_testbed/simulation/defects.py": {"path": 3, "replaced": 26},
    "tests/engine/test_crawler.py": {"replaced": 4},
    "tests/engine/test_name_of_bound.py": {"path": 1},
    "tests/engine/test_stats.py": {"replaced": 1},
    "tests/fuzz/test_parsers.py": {"replaced": 1},
    "tests/protocol/test_command_table.py": {"replaced": 3},
    "tests/server/in_process.py": {"replaced": 1},
    "tests/server/row_cache/defects.py": {"path": 1, "private": 22, "replaced": 18},
    "tests/server/test_execution.py": {"path": 2},
    # When a commit begins, and how wide a group is, no reply shows.
    "tests/server/test_group_commit.py": {"path": 1},
    "tests/server/test_mysql_runs.py": {"path": 5},
    "tests/server/test_mysql_ddl.py": {"path": 1},
    "tests/server/test_mysql_pipelined.py": {"path": 1},
    "tests/server/test_plans.py": {"path": 6, "private": 2, "replaced": 4},
    "tests/server/test_reload.py": {"replaced": 1},
    "tests/server/test_routing.py": {"path": 3, "private": 1, "replaced": 1},
    "tests/server/test_settings.py": {"path": 1},
    "tests/server/test_threads.py": {"path": 1},
    "tests/storage/test_mysql_nodes.py": {"replaced": 2},
    "tests/storage/test_mysql_row_cache.py": {"path": 1},
    "tests/storage/test_sqlite_opening.py": {"replaced": 2},
    "tests/suite/test_mutants.py": {"path": 1},
}


def test_tests_use_no_more_of_the_inside() -> None:
    found = all_uses()
    more = {
        name: counted
        for name, counted in found.items()
        if any(counted[kind] > BUDGET.get(name, {}).get(kind, 0) for kind in counted)
    }
    assert not more, "test what a client sees, or make what is tested public"
    assert found == BUDGET, "there is less of it: lower the budget"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("store._connection.execute('x')", "private"),
        ("from kvref.protocol.commands import _Request", "private"),
        ("from kvref.storage import x\nx._connection", "private"),
        ("getattr(store, '_connection')", "private"),
        ("for name in ('_connection', 'other'): getattr(store, name)", "private"),
        ("def early(self): self._connection = 1", "private"),
        ("from kvref.engine.steps import crawler\nmonkeypatch.setattr(crawler, 'PAGE', 3)", "replaced"),
        ("from kvref.engine import rules as r\nput(r.Rules, 'is_expired', 1)", "replaced"),
        ("from kvref.engine import rules\nrules.Rules.is_expired = 1", "replaced"),
        ("from kvref.engine import rules\nmonkeypatch.setitem(rules.ROWS, 'k', 1)", "replaced"),
        ("patch('kvref.storage.sqlite.rows.Rows.count')", "replaced"),
        ("patch.object(store, 'commit', failing)", "replaced"),
        ("store.commit = failing  # type: ignore[method-assign]", "replaced"),
        ("from kvref.server.executors import executor_for", "path"),
        ("from kvref.server import executors", "path"),
        ("import kvref.engine.plans.store", "path"),
        ("from kvref.storage.sqlite import planned_rows, store", "path"),
        ("patched = 'kvref.server.slots.Slots'", "path"),
    ],
)
def test_each_use_is_counted(source: str, kind: str) -> None:
    assert uses(source) == {kind: 1}


@pytest.mark.parametrize(
    "source",
    [
        "class Own:\n    def __init__(self): self._connection = 1\nOwn()._connection",
        "from kvref_conformance import x\nx._connection",
        "from subprocess import Popen\npatch.object(Popen, 'commit')",
        "name = f'{key}_connection'",
        "store.commit = 1",
        "from kvref.storage.sqlite.store import SQLiteStore\nSQLiteStore(path).commit()",
        "from kvref.storage.sqlite import rows\nrows.Rows(1)._replace(key=1)",
    ],
)
def test_what_is_public_or_its_own_is_not_counted(source: str) -> None:
    assert uses(source) == {}
