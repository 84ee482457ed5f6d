"""The database behind kvref is killed and comes back, or hangs for a while, under load."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.description import Fault, of
from faults.steady import all_fail, all_go_on, writing
from faults.stores import Store
from helpers.database import sql
from helpers.serving import serving

from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
CLIENTS = 8
LOCK_WAIT = 1
TIMEOUT = 2
# A command waits for a connection, and then for its answer, as long as this each; and it may have to wait for its turn.
# The rest is for a busy machine: a command without these limits would wait for as long as the database is stopped.
LONGEST = 2 * (LOCK_WAIT + TIMEOUT) + 20
GOES_ON = 30.0  # seconds from the return of the database to the next success of every connection
CAUSE = re.compile(r"connect|connection|no answer|it is not known whether it was written|shutdown")


def survive(fault: Fault, store: Store, begins: Callable[[], None], ends: Callable[[], None]) -> None:
    """Stop and start the database under load, repeatedly, and compare its rows with the acknowledged writes."""
    options = ("--set", f"innodb_lock_wait_timeout={LOCK_WAIT}")
    # Batches are small, so that some commands queue behind others that wait.
    with serving(f"{store.dsn}?timeout={TIMEOUT}&coalesce=2", *options) as served:
        with writing(served, fault, CLIENTS) as writers:
            for _ in range(fault.size):
                all_go_on(writers, GOES_ON)
                begins()
                all_fail(writers, LONGEST)
                ends()
                fault.most("back_after_s", all_go_on(writers, GOES_ON))
                fault.cycles += 1
        reply = {text for writer in writers for text in writer.errors}
        assert not [text for text in reply if not CAUSE.search(text)], reply
        assert fault.figures["longest_answer_s"] <= LONGEST
        found = [text for writer in writers for text in writer.wrong_rows(store.rows())]
        fault.lost += len(found)
        assert found == []


@of("database-killed-mysql-8.0", "database-killed-mariadb")
def test_the_database_is_killed_and_comes_back(fault: Fault, store: Store) -> None:
    assert store.server is not None
    survive(fault, store, store.server.kill, store.server.start)


@of("database-stopped-mysql-8.0", "database-stopped-mariadb")
def test_the_database_hangs_and_goes_on(fault: Fault, store: Store) -> None:
    assert store.server is not None
    pid = process_of(store.server)
    try:
        survive(fault, store, lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGCONT))
    finally:
        os.kill(pid, signal.SIGCONT)


def process_of(server: SQLServer) -> int:
    """Return the number of a server's process."""
    ((file,),) = sql(server, "SELECT @@pid_file")
    return int(Path(file).read_text())
