"""What the calls of both clients have in common: keys, values and results are checked and read here."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self

from kvref.client.arguments import check_mapping, split_word
from kvref.client.columns import Columns, R, as_columns, check_single, shown_mapping
from kvref.client.errors import LinkError, ServerError
from kvref.client.values import scalar

_log = logging.getLogger("kvref.client")


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that all views of a client share.

    Args:
        servers: for `repr`.
        delimiter: between mapping and key.
        ascii_only: keys have ASCII characters alone.
        has_serde: values without columns are turned to bytes by pymemcache's serde.
        ignore_exc: a call that the network or the server fails returns what it returns without a row.
    """

    servers: str
    delimiter: str = "."
    ascii_only: bool = False
    has_serde: bool = False
    ignore_exc: bool = False


class Serialized:
    """For type checkers: the row type of a client with a serde, which is not known, matches it."""


class View(Generic[R]):
    """The keys and values of one mapping."""

    def __init__(self, rules: Rules, mapping: str | None, columns: Any) -> None:
        self._rules = rules
        self._mapping = mapping
        self._columns: Columns[Any] | None = as_columns(columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._rules.servers}{shown_mapping(self._mapping, self._columns)})"

    def _split(self, key: object) -> tuple[str | None, str | bytes]:
        """Return the mapping of a key and the key in it."""
        name, bare = split_word(key, self._rules.delimiter, ascii_only=self._rules.ascii_only)
        return (self._mapping if name is None else name), bare

    def _single(self, verb: str) -> Self:
        check_single(verb, self._columns)
        return self

    def _written(self, value: Any) -> Any:
        """Return a value as it is stored, or as the serde takes it."""
        if self._columns is not None:
            return self._columns.encode(value)
        if self._rules.has_serde:
            return value
        raw = scalar(value)
        return Columns().encode(value) if raw is None else raw

    def _all_written(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {key: self._written(value) for key, value in check_mapping("values", values).items()}

    def _read(self, value: Any) -> Any:
        return value if self._columns is None else self._columns.decode(value)

    def _ignored(self, call: str) -> _Ignored:
        """Return a context that ends without an error of the network or the server, if the client ignores them."""
        return _Ignored(call, self._rules.ignore_exc)


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
