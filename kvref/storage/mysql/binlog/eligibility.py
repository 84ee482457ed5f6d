"""Which tables may be cached: those whose every change names the key of the row in the binary log."""

from __future__ import annotations

import re
from typing import Final

from kvref.storage.mysql.schema import quote

# The log of MySQL up to 9.5 and of MariaDB does not have what foreign keys change in a child's rows.
_CASCADES: Final = re.compile(r"\bON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)\b", re.IGNORECASE)
_KEY: Final = re.compile(r"(var)?char\(|varbinary\(|(tiny|small|medium|big)?int\b", re.IGNORECASE)
_INNODB: Final = re.compile(r"\bENGINE=InnoDB\b", re.IGNORECASE)


def refusal(created: str, key: str) -> str:
    """Return why the rows of a table cannot be cached, empty where they can.

    Args:
        created: what SHOW CREATE TABLE says.
        key: name of the key column.
    """
    if found := _CASCADES.search(created):
        return f"a foreign key changes its rows without an event in the binary log ({found[0]})"
    if not _INNODB.search(created):
        return "it is no InnoDB table"
    column = re.search(rf"^\s*{re.escape(quote(key))} (.*)$", created, re.MULTILINE | re.IGNORECASE)
    if column is None or not _KEY.match(column[1]):
        return f"its key column {key} is of a type whose values the binary log does not have as SQL shows them"
    if re.search(r"\bGENERATED ALWAYS\b| AS \(", column[1], re.IGNORECASE):
        return f"its key column {key} is generated"
    return ""
