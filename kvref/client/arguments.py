"""The arguments of calls for both clients, checked before anything is sent.

If the plugin rejects a storage line, it reads the data as commands (KV-PARSE-020, KV-PARSE-028). So what any server
might reject is rejected here. A function accepts any object and returns what is sent, or raises CallError.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from kvref.client.errors import CallError, InvalidReplyError

Key = str | bytes | int
K = TypeVar("K", bound=Key)
# The keys of one range are all text, all bytes or all numbers.
B = TypeVar("B", str, bytes, int)
MAX_KEY: Final = 250
_MAX_REPR: Final = 80  # characters of an argument in the text of an error
_MAX_NUMBER: Final = 10**MAX_KEY
_BLANK: Final = re.compile(rb"[\0-\x20\x7f]")
_RANGE_SIGNS: Final = (b"@>", b"@<")
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]*")


def repr_of(argument: object) -> str:
    """Return the `repr` of an argument for an error text, shortened."""
    try:
        text = repr(argument)
    except Exception:  # noqa: BLE001 - the caller's class, or a number of more digits than Python writes
        text = f"<{type(argument).__name__}>"
    return text if len(text) <= _MAX_REPR else f"{text[: _MAX_REPR - 1]}…"


def utf8(name: str, text: str) -> bytes:
    """Return a text as UTF-8, with other bytes by `surrogateescape`. Raises CallError for half of a surrogate pair."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise CallError(f"{name}={repr_of(text)}: the text cannot be written in UTF-8: {error.reason}") from error


def as_integer(argument: object) -> int | None:
    """Return an integer of any class, such as an IntEnum or one of NumPy, as an int; None for the rest and a bool."""
    if isinstance(argument, bool):
        return None
    try:
        return operator.index(argument)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - whatever the caller's class raises, it is not an integer
        return None


def as_bytes(key: object) -> bytes:
    """Return a key as it is sent: text in UTF-8, a whole number in decimal. Raises CallError for another type."""
    if isinstance(key, str):
        return utf8("key", key)
    if isinstance(key, bytes):
        return bytes(key)
    number = as_integer(key)
    if number is None:
        raise CallError(f"key {repr_of(key)}: a key is text, bytes or a whole number")
    if abs(number) >= _MAX_NUMBER:
        raise CallError(f"key of more than {MAX_KEY} digits: a key has 1 to {MAX_KEY} bytes")
    return b"%d" % number


def split_word(word: object, delimiter: str, *, ascii_only: bool = False) -> tuple[str | None, str | bytes]:
    """Split `@@mapping.key` into the mapping's name and the key; a bare key has no name.

    Args:
        word: text, sent as UTF-8, bytes, or a whole number, sent in decimal. Bytes that are UTF-8 are returned as
            text: one key must not be two.
        delimiter: `table_map_delimiter` of the server's `config_options`.
        ascii_only: reject other characters, as pymemcache does with `allow_unicode_keys=False`.

    Raises:
        CallError: another type, no key, blanks or control characters in it, more than 250 bytes, a range, or `@@`
            without a key.
    """
    raw = as_bytes(word)
    name = None
    if raw.startswith(b"@@"):
        before, found, raw = raw[2:].partition(delimiter.encode())
        if not (before and found and raw):
            raise CallError(f"{repr_of(word)} names no mapping or no key: write @@mapping{delimiter}key, or use bind()")
        name = check_name(before.decode("utf-8", "surrogateescape"))
    if raw.startswith(_RANGE_SIGNS):
        raise CallError(f"{repr_of(word)} is a range: use get_range()")
    if not raw or len(raw) > MAX_KEY:
        raise CallError(f"key of {len(raw)} bytes: a key has 1 to {MAX_KEY}")
    if _BLANK.search(raw):
        raise CallError(f"{repr_of(word)}: a key of the text protocol must not contain spaces or control characters")
    if ascii_only and not raw.isascii():
        raise CallError(f"{repr_of(word)}: a key has ASCII characters alone with allow_unicode_keys=False")
    try:
        return name, raw.decode()
    except UnicodeDecodeError:
        return name, raw


def check_keys(keys: Iterable[K]) -> list[K]:
    """Return several keys as a list. Raises CallError for one key, for what is not iterable, and unhashable keys."""
    if isinstance(keys, str | bytes | bytearray | memoryview):
        raise CallError(f"keys={repr_of(keys)}: several keys, such as a list, and not one")
    try:
        iterator = iter(keys)
    except Exception as error:
        raise CallError(f"keys={repr_of(keys)}: several keys, such as a list") from error
    found = list(iterator)
    for key in found:
        try:
            hash(key)
        except TypeError as error:
            raise CallError(f"key {repr_of(key)}: a key is text, bytes or a whole number") from error
    return found


def check_name(name: object) -> str:
    """Return the name of a mapping. Raises CallError for one that `bind` cannot carry."""
    if not isinstance(name, str):
        raise CallError(f"mapping {repr_of(name)}: a name is text")
    raw = utf8("mapping", name)
    if not raw or len(raw) > MAX_KEY or _BLANK.search(raw):
        raise CallError(f"mapping {repr_of(name)}: a name has 1 to {MAX_KEY} bytes and no blank")
    return name


def range_word(gt: Key | None, ge: Key | None, lt: Key | None, le: Key | None) -> bytes:
    """Return the word that requests a range of keys. Raises CallError for invalid or ambiguous bounds."""
    if (gt is not None and ge is not None) or (lt is not None and le is not None):
        raise CallError("a range has one lower bound, gt or ge, and one upper bound, lt or le")
    lower, upper = (ge if gt is None else gt), (le if lt is None else lt)
    word = b""
    if lower is not None:
        raw = as_bytes(lower)
        if b"@<" in raw or raw.startswith(b"="):
            raise CallError(f"lower bound {repr_of(lower)}: the server would read another range")
        word += (b"@>" if ge is None else b"@>=") + raw
    if upper is not None:
        raw = as_bytes(upper)
        if b"@>" in raw or raw.startswith(b"=") or not raw:
            raise CallError(f"upper bound {repr_of(upper)}: it is empty, or the server would read another range")
        word += (b"@<" if le is None else b"@<=") + raw
    if not word:
        raise CallError("a range needs a bound: gt, ge, lt or le")
    if len(word) > MAX_KEY or _BLANK.search(word):
        raise CallError(f"{repr_of(word)}: a range has at most {MAX_KEY} bytes, no blank and no control character")
    return word


def key_of_range(raw: bytes, *bounds: Key | None) -> Any:
    """Return the key of a row of a range: bytes if a bound is bytes, text if one is text, otherwise an int.

    Raises:
        InvalidReplyError: the bounds are numbers, and the key is not one in decimal: 8.0.33 answers storage bytes for
            an integer key.
    """
    given = [bound for bound in bounds if bound is not None]
    if any(isinstance(bound, bytes) for bound in given):
        return raw
    text = raw.decode("utf-8", "surrogateescape")
    if any(isinstance(bound, str) for bound in given):
        return text
    if not _DECIMAL.fullmatch(text):
        raise InvalidReplyError(f"key {raw!r} of a range is not a whole number: give its bounds as text or bytes")
    return int(text)


def check_integer(name: str, argument: object, bits: int) -> int:
    """Return an integer of any class, but not a bool, from 0 to 2^bits - 1. Raises CallError for anything else."""
    number = as_integer(argument)
    if number is None or not 0 <= number < 1 << bits:
        raise CallError(f"{name}={repr_of(argument)}: a whole number from 0 to 2^{bits} - 1")
    return number


def check_expire(expire: object) -> int:
    """Return an expiry time: seconds, or a Unix time, or 0 for never. Raises CallError."""
    return check_integer("expire", expire, 31)


def check_flags(flags: object) -> int | None:
    """Return flags, None if none are given. Raises CallError."""
    return None if flags is None else check_integer("flags", flags, 32)


def check_cas(number: object) -> int:
    """Return the number that `gets` returned; also its digits, which pymemcache returns. Raises CallError."""
    if isinstance(number, str | bytes) and number.isascii() and number.isdigit() and len(number) < MAX_KEY:
        number = int(number)
    return check_integer("cas", number, 64)


def check_noreply(noreply: object) -> bool | None:
    """Return whether a call waits for its reply; None is the client's default. Raises CallError for another type."""
    if noreply is not None and not isinstance(noreply, bool):
        raise CallError(f"noreply={repr_of(noreply)}: True or False")
    return noreply


def check_stats(arguments: Iterable[object]) -> list[bytes]:
    """Return the arguments of `stats`. Raises CallError for one that is not one word."""
    words = [as_bytes(argument) for argument in arguments]
    for word in words:
        if not word or len(word) > MAX_KEY or _BLANK.search(word):
            raise CallError(f"stats: {repr_of(word)}: an argument is one word")
    return words


def check_raw(command: object, end_tokens: object) -> tuple[bytes, bytes]:
    """Return a command and the end of its reply, for `raw_command`. Raises CallError if one is empty or not text."""
    for name, word in (("command", command), ("end_tokens", end_tokens)):
        if not isinstance(word, str | bytes) or not word or (name == "command" and not word.split()):
            raise CallError(f"raw_command: {name}={repr_of(word)}: text or bytes, and not empty")
    return as_bytes(command), as_bytes(end_tokens)
