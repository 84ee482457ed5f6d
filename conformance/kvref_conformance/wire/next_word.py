"""Gets whose reply depends on the memory addresses of their words in 8.0 (KV-MGET-026).

innodb_get decides whether another word follows by the low 16 bits of that word's address. Received data begins at an
aligned address, so only words at multiples of the alignment can be at addresses where those bits are zero.
"""

from __future__ import annotations

import re
from typing import Final

ALIGNMENT: Final = 16  # of what malloc gives
_GET: Final = re.compile(rb"(?m)^ *b?gets? [^\r\n]*")
_WORD: Final = re.compile(rb"[^ ]+")
_LEAST: Final = 4  # a shorter word names no mapping


def depends_on_address(data: bytes, certain: int, *, counted: bool = False) -> bool:
    """Return whether a get has a word at such a place behind its first, and an @@ word there or later.

    Args:
        data: commands as they are sent, at once and from the first byte of a packet on.
        certain: bytes of them whose places are known; every later word counts as one at such a place.
        counted: any word there matters: a batch counts a get that seems to end before it as a read.
    """
    for get in _GET.finditer(data):
        words = list(_WORD.finditer(get[0]))[1:]
        for number, word in enumerate(words[1:], 1):
            offset = get.start() + word.start()
            switches = any(later[0].startswith(b"@@") and len(later[0]) >= _LEAST for later in words[number:])
            if (counted or switches) and (offset % ALIGNMENT == 0 or offset > certain):
                return True
    return False
