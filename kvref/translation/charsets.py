"""Which character set and collation a column has that does not say, by version of the server.

What a character set and a collation do is `kvref.collations`, which is shared with the server: both write into the same
indexes, so both must sort alike.
"""

from __future__ import annotations

from typing import Final

# SHOW CHARACTER SET of 8.0.33; where 5.6.14 has another one, OLDER.
_DEFAULTS: Final = {
    "ascii": "ascii_general_ci",
    "latin1": "latin1_swedish_ci",
    "ucs2": "ucs2_general_ci",
    "utf8": "utf8_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_0900_ai_ci",
}
_OLDER: Final = {"utf8mb4": "utf8mb4_general_ci"}


def server_charset(version: str) -> str:
    """Return the character set of a table that names none, by the server's version."""
    return "latin1" if version.startswith("5.") else "utf8mb4"


def collation_of(charset: str, version: str) -> str:
    """Return the default collation of a character set in a version of the server.

    Raises:
        KeyError: the character set is not in the list above.
    """
    if version.startswith("5.") and charset in _OLDER:
        return _OLDER[charset]
    return _DEFAULTS[charset]
