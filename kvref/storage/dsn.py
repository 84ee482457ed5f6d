"""Data source names: the schemes, and a DSN without its password."""

from __future__ import annotations

import re
from typing import Final

MYSQL: Final = "mysql://"
_IN_QUERY: Final = re.compile(r"([?&](?:password|passwd|pwd)=)[^&]*", re.IGNORECASE)


def without_password(dsn: str) -> str:
    """Return a DSN for messages: everything that is or may be a password is removed."""
    dsn = _IN_QUERY.sub(r"\1…", dsn)
    head, at, tail = dsn.rpartition("@")
    scheme, slashes, login = (head or tail).partition("://")
    user, colon, word = login.partition(":")
    if not at and word.rstrip("/").isdecimal():
        return dsn  # a port
    return f"{scheme}{slashes}{user}:…{at}{tail if at else ''}" if colon else dsn
