"""The options of a client, checked when it is made, and the servers that they name.

The choice is that of pymemcache's `HashClient`, so that both clients find a row on the same server: rendezvous hashing
(Thaler and Ravishankar, 1998) with MurmurHash3 of `server-key`. A server that is added takes over only the keys that
it then has.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Protocol, TypedDict, TypeVar

from kvref.addresses import UNIX, Address, is_ip
from kvref.client.arguments import as_integer, check_name, repr_of, utf8
from kvref.client.errors import CallError
from kvref.client.protocol import MAX_ANSWER_BYTES, handshake
from kvref.errors import suggestion


class Serde(Protocol):
    """A serializer of values, as pymemcache defines it."""

    def serialize(self, key: Any, value: Any, /) -> tuple[Any, int]:
        """Return what is stored, bytes or a text, and flags."""

    def deserialize(self, key: Any, value: bytes, flags: int, /) -> Any:
        """Return the value."""


class ClientOptions(TypedDict, total=False):
    """The options of both clients."""

    mapping: str | None
    delimiter: str
    credentials: tuple[str, str] | None
    connect_timeout: float | None
    timeout: float | None
    tls_context: ssl.SSLContext | None
    max_answer_bytes: int
    ignore_exc: bool


class BytesOptions(ClientOptions, total=False):
    """The options of `MappedClient` without a serde; the last six are pymemcache's."""

    pool_size: int | None
    allow_unicode_keys: bool
    default_noreply: bool
    encoding: str
    no_delay: bool
    socket_keepalive: Any
    socket_module: Any


class MappedOptions(BytesOptions, total=False):
    """The options of `MappedClient`. With a serde, the type of values is unknown to a type checker."""

    serde: Serde | None
    serializer: Callable[[Any, Any], Any] | None
    deserializer: Callable[[Any, bytes, int], Any] | None


class AsyncOptions(ClientOptions, total=False):
    """The options of `AsyncMappedClient`; `tls_context`, pymemcache's name, is `tls`."""

    tls: ssl.SSLContext | None


_REJECTED: Final = {
    "key_prefix": "the keys of a table are whole; use another mapping",
    "max_pool_size": "use pool_size",
    "use_pooling": "use pool_size",
    "retry_attempts": "a key never moves to another server, so that calls are not repeated",
    "retry_timeout": "a key never moves to another server, so that calls are not repeated",
    "dead_timeout": "a key never moves to another server, so that calls are not repeated",
    "IGNORE_EXCEPTIONS": "use ignore_exc",
    "hasher": "both clients choose the server of a key as pymemcache does by default",
}
# What a client does not pass on to pymemcache.
OWN: Final = frozenset(ClientOptions.__annotations__) - {"connect_timeout", "timeout", "tls_context"} | {"pool_size"}
_WITHOUT_DEFAULT: Final = frozenset({"socket_module"})
_ASCII: Final = "".join(map(chr, range(128)))
_MAX_DELIMITER: Final = 32  # bytes, of `table_map_delimiter`
_MAX_SECONDS: Final = (1 << 31) // 1000  # a socket counts milliseconds in 32 bits
_MAX_PATH: Final = 107  # bytes of a socket's path, as the kernel has it


class _Option(NamedTuple):
    default: Any
    allows: Callable[[Any], bool]
    expected: str


def _is_time(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given <= _MAX_SECONDS


def _is_encoding(given: object) -> bool:
    try:
        # pymemcache writes the numbers of a request in it too.
        return isinstance(given, str) and _ASCII.encode(given) == _ASCII.encode()
    except (LookupError, ValueError):
        return False


def _or_none(allows: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda given: given is None or allows(given)


_TRUE: Final = _Option(default=True, allows=lambda given: isinstance(given, bool), expected="True or False")
_FALSE: Final = _TRUE._replace(default=False)
_COUNT: Final = "a whole number from 1 on"
_A_TIME: Final = f"a number of seconds above 0, up to {_MAX_SECONDS}"
_CONTEXT: Final = _Option(None, _or_none(lambda given: isinstance(given, ssl.SSLContext)), "an ssl.SSLContext")
# `mapping` and `credentials` are checked in `checked`.
_OPTIONS: Final[Mapping[str, _Option]] = {
    "mapping": _Option(None, lambda _: True, ""),
    "delimiter": _Option(
        ".",
        lambda given: isinstance(given, str) and 0 < len(utf8("delimiter", given)) <= _MAX_DELIMITER,
        f"a text of 1 to {_MAX_DELIMITER} bytes",
    ),
    "credentials": _Option(None, lambda _: True, ""),
    "connect_timeout": _Option(10.0, _or_none(_is_time), _A_TIME),
    "timeout": _Option(60.0, _or_none(_is_time), _A_TIME),
    "tls_context": _CONTEXT,
    "tls": _CONTEXT,
    "max_answer_bytes": _Option(MAX_ANSWER_BYTES, lambda given: (as_integer(given) or 0) > 0, _COUNT),
    "ignore_exc": _FALSE,
    "pool_size": _Option(None, _or_none(lambda given: (as_integer(given) or 0) > 0), _COUNT),
    "allow_unicode_keys": _TRUE,
    "default_noreply": _FALSE,
    "encoding": _Option("ascii", _is_encoding, "the name of an encoding that has ASCII"),
    "no_delay": _TRUE,
    "socket_keepalive": _Option(None, lambda _: True, ""),
    "socket_module": _Option(None, lambda given: callable(getattr(given, "socket", None)), "a module such as socket"),
    "serde": _Option(
        None,
        _or_none(
            lambda given: callable(getattr(given, "serialize", None)) and callable(getattr(given, "deserialize", None))
        ),
        "an object with serialize and deserialize",
    ),
    "serializer": _Option(None, _or_none(callable), "a function"),
    "deserializer": _Option(None, _or_none(callable), "a function"),
}


def checked(names: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a client with defaults. Raises CallError for an unknown name or an invalid value.

    Args:
        names: the TypedDict of the client's options.
    """
    known = names.__annotations__.keys()
    for name, value in given.items():
        if name in _REJECTED:
            raise CallError(f"option {name}: {_REJECTED[name]}")
        if name not in known:
            raise CallError(
                f"unknown option {name!r}{suggestion(name, known)}: the options are {', '.join(sorted(known))}"
            )
        if not _OPTIONS[name].allows(value):
            raise CallError(f"{name}={repr_of(value)}: {_OPTIONS[name].expected}")
    if given.get("mapping") is not None:
        check_name(given["mapping"])
    handshake(given.get("credentials"))
    return {name: _OPTIONS[name].default for name in known if name not in _WITHOUT_DEFAULT} | dict(given)


Server = str | tuple[str, int]
Servers = Server | list[Server]
DEFAULT_PORT: Final = 11211
_MASK: Final = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
ConnectionT = TypeVar("ConnectionT")


class Connections(Generic[ConnectionT]):
    """The connections of a client, one for each server and mapping, made at their first use. It is thread-safe.

    A key never moves to another server: the servers store tables, and a row that is written to another server when the
    first is down would not be found later.

    Args:
        connect: makes a connection for a server and a mapping; None is the server's default mapping.
        servers: as the caller gave them, for `repr`.
        options: checked ones, of which all views of the client share some.
    """

    def __init__(
        self,
        connect: Callable[[Address, str | None], ConnectionT],
        addresses: Sequence[Address],
        servers: object,
        options: Mapping[str, Any],
    ) -> None:
        self.servers = repr(servers)
        self.delimiter: str = options["delimiter"]
        self.ascii_only = not options.get("allow_unicode_keys", True)
        self.has_serde = any(options.get(name) is not None for name in ("serde", "serializer", "deserializer"))
        self.ignore_exc: bool = options["ignore_exc"]
        self._connect = connect
        self._servers = {server_name(address): address for address in addresses}
        self._names = list(self._servers)
        self._connections: dict[tuple[str, str | None], ConnectionT] = {}
        self._lock = threading.Lock()

    def of(self, mapping: str | None, key: str | bytes) -> ConnectionT:
        """Return the connection to the server that has a key of a mapping."""
        return self._on(server_of(key, self._names), mapping)

    def each(self, mapping: str | None) -> list[ConnectionT]:
        """Return the connections for a mapping to each server, in the order of the addresses."""
        return [self._on(server, mapping) for server in self._names]

    def only(self, mapping: str | None, call: str, instead: str) -> ConnectionT:
        """Return the connection for a mapping to the only server. Raises CallError if there are several."""
        if len(self._names) > 1:
            raise CallError(f"{call}: there are {len(self._names)} servers: use {instead}")
        return self.each(mapping)[0]

    def all(self) -> list[ConnectionT]:
        with self._lock:
            return list(self._connections.values())

    def _on(self, server: str, mapping: str | None) -> ConnectionT:
        server_and_mapping = (server, mapping)
        with self._lock:
            if server_and_mapping not in self._connections:
                self._connections[server_and_mapping] = self._connect(self._servers[server], mapping)
            return self._connections[server_and_mapping]


def server_addresses(servers: Servers) -> list[Address]:
    """Return the address of each server: (host, port), HOST:PORT, HOST with port 11211, unix:PATH or an absolute path.

    Raises:
        CallError: no server, one that is not an address, or one that is named twice.
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


def server_of(key: str | bytes, names: Sequence[str]) -> str:
    """Return the name of the server that has a key, which is without its mapping and text if it is UTF-8."""
    return max(names, key=lambda name: (murmur3(f"{name}-{key!s}"), name)) if len(names) > 1 else names[0]


def murmur3(text: str) -> int:
    """Return MurmurHash3, 32 bits, seed 0, of the low bytes of the characters of a text, as pymemcache computes it."""
    data = bytes(ord(each) & 0xFF for each in text)
    aligned = len(data) & ~3
    found = 0
    for at in range(0, aligned, 4):
        found ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
        found = (_rotated(found, 13) * 5 + 0xE6546B64) & _MASK
    if aligned < len(data):
        found ^= _mixed(int.from_bytes(data[aligned:], "little"))
    found ^= len(data)
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


def _mixed(number: int) -> int:
    return _rotated(number * _C1 & _MASK, 15) * _C2 & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK


def _address(server: object) -> Address:
    error = CallError(f"server {repr_of(server)}: write HOST:PORT, HOST, (host, port), unix:PATH or an absolute path")
    if isinstance(server, tuple) and len(server) == 2:
        host, port = server
        if not isinstance(host, str) or isinstance(port, bool) or not isinstance(port, int):
            raise error
    elif isinstance(server, str):
        path = server.removeprefix(UNIX) if server.startswith((UNIX, "/")) else ""
        if path and "\0" not in path:
            path = str(Path(path).absolute())
            if len(utf8("server", path)) > _MAX_PATH:
                raise CallError(f"server {repr_of(server)}: the path of a socket has at most {_MAX_PATH} bytes")
            return Address("", 0, path)
        host, colon, digits = server.rpartition(":")
        if not colon or server.endswith("]") or (":" in host and not host.startswith("[")):
            host, digits = server, str(DEFAULT_PORT)  # a host alone, or an IPv6 address without brackets
        if server.startswith(UNIX) or not (digits.isascii() and digits.isdigit()):
            raise error
        port = int(digits)
    else:
        raise error
    host = host.strip("[]")
    named = host and host.isprintable() and not {" ", "/"} & {*host} and (":" not in host or is_ip(host))
    if not named or not 0 < port < 1 << 16:
        raise error
    try:
        host.encode("idna")  # as the resolver does
    except UnicodeError:
        raise error from None
    return Address(host, port)
