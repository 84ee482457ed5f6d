"""The table that `kvref init --cache` makes: any key of 250 bytes, any value, flags, CAS number and expiry time.

Each store has the statements in its file `cache.sql`. The index on the expiry column contains the rows to remove first.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from kvref.errors import ConfigError

DEFAULT_NAME: Final = "cache"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")


def cache_script(package: str, name: str) -> str:
    """Return the SQL that makes a cache table and its row of `containers`.

    Args:
        package: of the store; it contains `cache.sql`.
        name: of the mapping and of the table.

    Raises:
        ConfigError: a mapping cannot be called so.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"cache name {name!r}: write a letter and up to 39 letters, digits or underscores")
    return files(package).joinpath("cache.sql").read_text(encoding="utf-8").replace("{name}", name)
