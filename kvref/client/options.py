"""The options of a client, checked when it is made, and the servers that they name.

The choice is that of pymemcache's `HashClient`, so that both clients find a row on the same server: rendezvous hashing
(Thaler and Ravishankar, 1998) with MurmurHash3 of `server-key`. A server that is added takes over only the keys that
it then has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kvref.addresses import UNIX, Address
from kvref.client.arguments import Key
from kvref.client.errors import CallError
from kvref.errors import suggestion

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


Server = str | tuple[str, int]
DEFAULT_PORT: Final = 11211
_MASK: Final = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593


def server_addresses(servers: Server | Sequence[Server]) -> list[Address]:
    """Return the address of each server.

    Args:
        servers: one server or a list of them: (host, port), HOST:PORT, HOST with port 11211, unix:PATH or an absolute
            path.

    Raises:
        CallError: no server, one that is no address, or one that is named twice.
    """
    given = list(servers) if isinstance(servers, list) else [servers]
    if not given:
        raise CallError("a client needs a server")
    found = [_address(each) for each in given]
    names = [server_name(each) for each in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise CallError(f"server {min(twice)!r} is named twice")
    return found


def server_name(address: Address) -> str:
    """Return the name of a server as pymemcache hashes it: `host:port` or the path of a socket."""
    return address.path or f"{address.host}:{address.port}"


def server_of(key: Key, names: Sequence[str]) -> str:
    """Return the name of the server that has a key.

    Args:
        key: without its mapping; text if it is UTF-8.
        names: of all servers, one or more.
    """
    return max(names, key=lambda name: (murmur3(f"{name}-{key!s}"), name)) if len(names) > 1 else names[0]


def murmur3(text: str) -> int:
    """Return MurmurHash3, 32 bits, seed 0, of the low bytes of the characters of a text, as pymemcache computes it."""
    data = bytes(ord(each) & 0xFF for each in text)
    whole = len(data) & ~3
    found = 0
    for at in range(0, whole, 4):
        found ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
        found = (_rotated(found, 13) * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        found ^= _mixed(int.from_bytes(data[whole:], "little"))
    found ^= len(data)
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


def _mixed(number: int) -> int:
    return _rotated(number * _C1 & _MASK, 15) * _C2 & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK


def _address(server: object) -> Address:
    refused = CallError(f"server {server!r}: write HOST:PORT, HOST, (host, port), unix:PATH or an absolute path")
    if isinstance(server, tuple) and len(server) == 2:
        host, port = server
        if not isinstance(host, str) or isinstance(port, bool) or not isinstance(port, int):
            raise refused
    elif isinstance(server, str):
        path = server.removeprefix(UNIX) if server.startswith((UNIX, "/")) else ""
        if path and "\0" not in path:
            return Address("", 0, str(Path(path).absolute()))
        host, colon, digits = server.rpartition(":")
        if not colon or server.endswith("]") or (":" in host and not host.startswith("[")):
            host, digits = server, str(DEFAULT_PORT)  # a host alone, or an IPv6 address without brackets
        if server.startswith(UNIX) or not (digits.isascii() and digits.isdigit()):
            raise refused
        port = int(digits)
    else:
        raise refused
    host = host.strip("[]")
    if not host or not host.isprintable() or " " in host or not 0 < port < 1 << 16:
        raise refused
    return Address(host, port)
