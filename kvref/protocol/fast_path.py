"""Plain text commands: `get WORD` and `set WORD FLAGS 0 LENGTH` of words that cannot switch; how a hit is shown."""

from __future__ import annotations

import re
from typing import Final

from kvref.protocol.replies import Status
from kvref.protocol.rules import MAX_KEY, WireRules

END: Final = b"END\r\n"
STORED: Final = Status.STORED.value
# Words that begin with @ switch or are ranges; a NUL ends a line in some profiles.
_PLAIN: Final = rb"[^@ \r\n\0][^ \r\n\0]{0,249}"
WORD: Final = re.compile(_PLAIN)
GET: Final = re.compile(rb"get (" + _PLAIN + rb")\r\n")
SET: Final = re.compile(rb"set (" + _PLAIN + rb") ([0-9]{1,9}) 0 ([0-9]{1,7})\r\n")
LARGEST_FLAGS: Final = 999_999_999  # that SET takes


def shown(word: bytes, flags: int, data: bytes) -> bytes:
    """Return one hit of a get, without END.

    Args:
        word: as the client sent it.
        flags: 0 to 2^32-1.
        data: the value.
    """
    return b"VALUE %b %d %d\r\n%b\r\n" % (word, flags, len(data), data)


def longest_value(rules: WireRules, most: int) -> int:
    """Return how many bytes the value of a plain set may have, `most` or fewer.

    Args:
        rules: the grammar facts in force.
        most: what the server takes this way.
    """
    if rules.value_limit is None:
        return most
    return min(most, rules.value_limit - (MAX_KEY if rules.limit_counts_key else 0))
