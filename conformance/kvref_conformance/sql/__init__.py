"""The view behind the protocol: SQL on the endpoint's own tables, over MySQL or in the file of kvref's SQLite store.

`world.py` makes the suite's tables and mappings with it, cases look at rows through it, `reload.py` makes the endpoint
read its configuration again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

from kvref_conformance.errors import CannotJudge

if TYPE_CHECKING:
    from kvref_conformance.sql.base import Database

PASSWORD: Final = "KVREF_MYSQL_PASSWORD"  # noqa: S105 - the variable's name
FORMS: Final = "mysql://user[:password]@host:port/, mysql://user@localhost/?unix_socket=PATH or sqlite:///PATH"


def connect(dsn: str, version: str) -> Database:
    """Connect to the database behind the endpoint; the packages that this needs are imported by it.

    Args:
        dsn: one of FORMS; a password that it lacks is that of the environment variable PASSWORD, if there is one.
        version: of the MySQL server whose defaults tables in SQLite shall have, such as `8.0.33`.

    Raises:
        CannotJudge: the DSN cannot be read, or the database cannot be reached.
    """
    try:
        parts = urlsplit(dsn)
        port = parts.port
    except ValueError as error:
        raise CannotJudge(f"--sql {dsn!r}: {error}; use {FORMS}") from error
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        from kvref_conformance.sql.sqlite import Sqlite  # noqa: PLC0415

        return Sqlite(_sqlite_path(unquote(parts.path)), version)
    if parts.scheme == "mysql" and parts.hostname:
        options = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
        if not options.keys() - {"unix_socket"}:
            from kvref_conformance.sql.mysql import MySql  # noqa: PLC0415

            return MySql(
                host=parts.hostname,
                port=port or 3306,
                user=unquote(parts.username or "root"),
                password=os.environ.get(PASSWORD, "") if parts.password is None else unquote(parts.password),
                unix_socket=options.get("unix_socket", [None])[0],
            )
    raise CannotJudge(f"--sql {dsn!r} is not a DSN: use {FORMS}")


def _sqlite_path(path: str) -> str:
    # sqlite:////file is absolute and sqlite:///file relative; many write three slashes for an absolute one too.
    relative = path.removeprefix("/")
    return path if not Path(relative).is_file() and Path(path).is_file() else relative
