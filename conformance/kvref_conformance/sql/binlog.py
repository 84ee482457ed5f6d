"""The binary log of a server of MySQL's kind, in words: transactions by the kinds of their rows.

`Write Update; Delete; truncate` is a transaction that inserted and then updated rows, one that deleted some, and a
TRUNCATE TABLE. How many events a kind takes in a row is the server's own matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.errors import NotRun

if TYPE_CHECKING:
    from kvref_conformance.sql.base import Database

ROWS: Final = re.compile(r"(Write|Update|Delete)_rows")
TRUNCATE: Final = re.compile(r"truncate\b", re.IGNORECASE)


def end(database: Database) -> tuple[str, int]:
    """Return file and position of the end of the log.

    Raises:
        NotRun: the server writes none.
    """
    if database.query("SELECT @@GLOBAL.log_bin") != [(1,)]:
        raise NotRun("needs a binary log of the server: --log-bin --binlog-format=row")
    file, size, *_ = database.query("SHOW BINARY LOGS")[-1]
    return str(file), int(str(size))


def since(database: Database, mark: tuple[str, int]) -> str:
    """Return what came into the log since then."""
    transactions: list[list[str]] = []
    for _, _, kind, _, _, info in database.query(f"SHOW BINLOG EVENTS IN '{mark[0]}' FROM {mark[1]}"):
        # MySQL begins a transaction with a Query event, MariaDB with one that carries the GTID.
        if str(info).startswith("BEGIN"):
            transactions.append([])
        elif TRUNCATE.search(str(info)):
            transactions.append(["truncate"])
        elif (rows := ROWS.match(str(kind))) and transactions[-1][-1:] != [rows[1]]:
            transactions[-1].append(rows[1])
    return "; ".join(" ".join(kinds) for kinds in transactions)
