"""The arguments of calls for both clients, checked before anything is sent.

The plugin reads the data of a storage line that it refuses as commands (text core page, sections 0 and 7). So what any
server might refuse is refused here.
"""

from __future__ import annotations

import re
from typing import Final

from kvref.client.errors import CallError

Key = str | bytes
MAX_KEY: Final = 250
_BLANK: Final = re.compile(rb"[\0-\x20\x7f]")
_RANGE_SIGNS: Final = (b"@>", b"@<")


def split_word(word: Key, delimiter: str) -> tuple[str | None, str | bytes]:
    """Split `@@mapping.key` into the mapping's name and the key; a plain key has no name.

    Args:
        word: text, sent as UTF-8, or bytes. Bytes that are UTF-8 come back as text: one key must not be two.
        delimiter: `table_map_delimiter` of the server's `config_options`.

    Raises:
        CallError: no key, blanks or control characters in it, more than 250 bytes, a range, or `@@` without a key.
    """
    raw = word.encode() if isinstance(word, str) else word
    name = None
    if raw.startswith(b"@@"):
        before, found, raw = raw[2:].partition(delimiter.encode())
        if not (before and found and raw):
            raise CallError(f"{word!r} names no mapping or no key: write @@mapping{delimiter}key, or use bind()")
        name = check_name(before.decode("utf-8", "surrogateescape"))
    if raw.startswith(_RANGE_SIGNS):
        raise CallError(f"{word!r} is a range: use get_range()")
    if not raw or len(raw) > MAX_KEY:
        raise CallError(f"key of {len(raw)} bytes: a key has 1 to {MAX_KEY}")
    if _BLANK.search(raw):
        raise CallError(f"{word!r}: a key of the text protocol holds no blank and no control character")
    try:
        return name, raw.decode()
    except UnicodeDecodeError:
        return name, raw


def as_bytes(key: Key) -> bytes:
    """Return a key as it is sent."""
    return key.encode() if isinstance(key, str) else key


def check_name(name: str) -> str:
    """Return the name of a mapping. Raises CallError for one that `bind` cannot carry."""
    raw = name.encode("utf-8", "surrogateescape")
    if not raw or len(raw) > MAX_KEY or _BLANK.search(raw):
        raise CallError(f"mapping {name!r}: a name has 1 to {MAX_KEY} bytes and no blank")
    return name


def range_word(gt: Key | None, ge: Key | None, lt: Key | None, le: Key | None) -> bytes:
    """Return the word that requests a range of keys.

    Args:
        gt: the key the range begins behind; ge: the key it begins with. Of the two at most one.
        lt: the key it ends before; le: the key it ends with. Of the two at most one.

    Raises:
        CallError: no bound, two for one end, or one that cannot be distinguished from the rest of the word.
    """
    if (gt is not None and ge is not None) or (lt is not None and le is not None):
        raise CallError("a range has one lower bound, gt or ge, and one upper bound, lt or le")
    lower, upper = (ge if gt is None else gt), (le if lt is None else lt)
    word = b""
    if lower is not None:
        raw = as_bytes(lower)
        if b"@<" in raw or raw.startswith(b"="):
            raise CallError(f"lower bound {lower!r}: the server would read another range")
        word += (b"@>" if ge is None else b"@>=") + raw
    if upper is not None:
        raw = as_bytes(upper)
        if b"@>" in raw or raw.startswith(b"=") or not raw:
            raise CallError(f"upper bound {upper!r}: it is empty, or the server would read another range")
        word += (b"@<" if le is None else b"@<=") + raw
    if not word:
        raise CallError("a range needs a bound: gt, ge, lt or le")
    if len(word) > MAX_KEY or _BLANK.search(word):
        raise CallError(f"{word!r}: a range has at most {MAX_KEY} bytes, no blank and no control character")
    return word


def check_store(expire: int, flags: int, cas: int | None = None) -> None:
    """Check the numbers of a storage line.

    Args:
        expire: seconds, or a Unix time; 0 (never) to 2^31 - 1.
        flags: 0 to 2^32 - 1.
        cas: the number `gets` returned.

    Raises:
        CallError: out of range.
    """
    for name, value, limit in (("expire", expire, 31), ("flags", flags, 32), ("cas", cas or 0, 64)):
        if not 0 <= value < 1 << limit:
            raise CallError(f"{name}={value}: a whole number from 0 to 2^{limit} - 1")


def check_delta(value: int) -> int:
    """Return the amount of incr or decr. Raises CallError below 0 or from 2^64 on."""
    if not 0 <= value < 1 << 64:
        raise CallError(f"{value}: incr and decr take a whole number from 0 to 2^64 - 1")
    return value
