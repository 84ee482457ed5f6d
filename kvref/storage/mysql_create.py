"""The plugin's configuration schema on a MySQL or MariaDB server, with its demo rows."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from kvref.storage.mysql_schema import SCHEMA

_STATEMENT: Final = re.compile(r";\s*\n")


def create(connection: Connection[Cursor]) -> bool:
    """Create the plugin's schema with its demo rows, unless `containers` is there; tell whether that was needed.

    Each table comes with its rows or not at all, `containers` last: what failed half-way is gone on with.
    """
    with connection.cursor() as cursor:
        if cursor.execute(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'containers'", (SCHEMA,)
        ):
            return False
        script = files(__package__).joinpath("mysql_schema.sql").read_text(encoding="utf-8")
        for statement in _STATEMENT.split(script.strip().removesuffix(";")):
            cursor.execute(statement)
    return True
