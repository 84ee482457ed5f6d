"""Which server answers the plain gets of a listener, by its value of `reads` and that of the DSN."""

from __future__ import annotations

from contextlib import closing

import pytest

from kvref import profiles
from kvref.storage.mysql.login import parse
from kvref.storage.mysql.store import MySQLStore

# A listener may read where the DSN lets any listener read, or closer to the primary.
ALLOWED = {"primary": {"primary"}, "replica": {"primary", "replica"}, "session": {"primary", "replica", "session"}}


@pytest.mark.parametrize("of_dsn", ALLOWED)
def test_a_listener_reads_where_the_dsn_allows_it(of_dsn: str) -> None:
    login = parse(f"mysql://kvref@a,b/?reads={of_dsn}", {})
    with closing(MySQLStore(login, profiles.load("kvref"), 1.0)) as store:
        found = {listener: store.reads_for(listener) for listener in ("", *ALLOWED)}
    assert found == {"": of_dsn, **{each: each if each in ALLOWED[of_dsn] else of_dsn for each in ALLOWED}}
