"""The options of a client, checked when it is made and not by its first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvref.client.errors import CallError
from kvref.suggestions import suggestion

# Parameters of pymemcache's `Client` that a mapped client passes on.
OF_CLIENT: Final = frozenset({
    "allow_unicode_keys", "connect_timeout", "default_noreply", "deserializer", "encoding", "no_delay", "serde",
    "serializer", "socket_keepalive", "socket_module", "timeout", "tls_context",
})  # fmt: skip
# Further ones of pymemcache's `HashClient`.
OF_SEVERAL: Final = frozenset({"hasher"})
_REFUSED: Final = {
    "key_prefix": "the keys of a table are whole; use a mapping of its own",
    "ignore_exc": "a failed read would be taken for a missing row",
    "max_pool_size": "use pool_size",
    "use_pooling": "use pool_size",
    "retry_attempts": "a key never moves to another server, so that calls are not repeated",
    "retry_timeout": "a key never moves to another server, so that calls are not repeated",
    "dead_timeout": "a key never moves to another server, so that calls are not repeated",
}
_MAX_DELIMITER: Final = 32  # bytes, of `table_map_delimiter`


def check_options(given: Mapping[str, Any], *, several: bool) -> None:
    """Check the options that a client passes to pymemcache.

    Args:
        given: by name.
        several: the client has several servers.

    Raises:
        CallError: an unknown name, one that makes no sense for tables, or a time that is no positive number.
    """
    known = OF_CLIENT | OF_SEVERAL if several else OF_CLIENT
    for name in given:
        if name in _REFUSED:
            raise CallError(f"option {name}: {_REFUSED[name]}")
        if name not in known:
            raise CallError(
                f"unknown option {name!r}{suggestion(name, known)}: the options are {', '.join(sorted(known))}"
            )
    check_times({name: given[name] for name in ("timeout", "connect_timeout") if name in given})


def check_times(times: Mapping[str, float | None]) -> None:
    """Raise CallError for a time that is neither a positive number of seconds nor None."""
    for name, seconds in times.items():
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
            raise CallError(f"{name}={seconds!r}: a number of seconds above 0")


def check_limits(*, delimiter: str, max_answer_bytes: int, pool_size: int | None = None) -> None:
    """Check what every client has.

    Args:
        delimiter: between mapping and key, 1 to 32 bytes.
        max_answer_bytes: 1 or more.
        pool_size: 1 or more; None: no pool.

    Raises:
        CallError: one of them is out of its range.
    """
    if not isinstance(delimiter, str) or not 0 < len(delimiter.encode()) <= _MAX_DELIMITER:
        raise CallError(f"delimiter={delimiter!r}: a text of 1 to {_MAX_DELIMITER} bytes")
    for name, number in (("max_answer_bytes", max_answer_bytes), ("pool_size", pool_size)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise CallError(f"{name}={number!r}: a whole number from 1 on")
