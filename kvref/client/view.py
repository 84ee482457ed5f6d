"""What the calls of both clients have in common: keys, values and results are checked and read here."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from kvref.client.arguments import K, check_keys, repr_of, split_word
from kvref.client.columns import Columns, R, as_columns, repr_of_mapping, scalar
from kvref.client.errors import CallError, LinkError, ServerError
from kvref.client.options import Connections

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    ConnectionT = TypeVarWithDefault("ConnectionT", default=Any)
else:
    ConnectionT = TypeVar("ConnectionT")

# The defaults of a call without a row: its value and its number.
D = TypeVar("D")
C = TypeVar("C")
_log = logging.getLogger("kvref.client")


class Serialized:
    """For type checkers: the row type of a client with a serde, which is not known, matches it."""


class View(Generic[R, ConnectionT]):
    """The keys and values of one mapping, and its connections, one for each server."""

    def __init__(self, connections: Connections[ConnectionT], mapping: str | None, columns: Any) -> None:
        self._connections = connections
        self._mapping = mapping
        self._columns: Columns[Any] | None = as_columns(columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connections.servers}{repr_of_mapping(self._mapping, self._columns)})"

    def _only(self, call: str, instead: str) -> ConnectionT:
        return self._connections.only(self._mapping, call, instead)

    def _connection_of(self, key: object) -> tuple[ConnectionT, str | bytes]:
        """Return the connection to the server of a key, and the key without its mapping."""
        name, bare = split_word(key, self._connections.delimiter, ascii_only=self._connections.ascii_only)
        return self._connections.of(self._mapping if name is None else name, bare), bare

    def _connections_of(self, keys: Iterable[K]) -> dict[ConnectionT, dict[str | bytes, list[K]]]:
        """Return the connections with the keys of each: the keys as given, by those without the mapping."""
        places: dict[ConnectionT, dict[str | bytes, list[K]]] = {}
        for key in check_keys(keys):
            connection, bare = self._connection_of(key)
            places.setdefault(connection, {}).setdefault(bare, []).append(key)
        return places

    def _single(self, verb: str) -> Self:
        """Return this view. Raises CallError if the mapping may have several columns: the verb is for values of one."""
        if self._columns is not None and not self._columns.is_single:
            raise CallError(f"{verb} of several columns: a plugin would keep the first and set the others to NULL")
        return self

    def _written(self, value: Any) -> Any:
        """Return a value as it is stored, or as the serde accepts it."""
        if self._columns is not None:
            return self._columns.encode(value)
        if self._connections.has_serde:
            return value
        raw = scalar(value)
        return Columns().encode(value) if raw is None else raw

    def _all_written(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        if not isinstance(values, Mapping):
            raise CallError(f"values={repr_of(values)}: a dict")
        return {key: self._written(value) for key, value in dict(values).items()}

    def _read(self, value: Any) -> Any:
        return value if self._columns is None else self._columns.decode(value)

    def _ignored(self, call: str) -> _Ignored:
        """Return a context that ends without an error of the network or the server, if the client ignores them."""
        return _Ignored(call, self._connections.ignore_exc)


class _Ignored:
    __slots__ = ("_call", "_enabled")

    def __init__(self, call: str, enabled: bool) -> None:
        self._call = call
        self._enabled = enabled

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not self._enabled or not isinstance(error, LinkError | ServerError):
            return False
        _log.warning("%s failed and is ignored: %s", self._call, error)
        return True
