"""One value on the wire, several columns in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, Self, get_args

from kvref.client.errors import CallError, InvalidReplyError, ServerError

Part = str | bytes | int | None
Value = str | bytes | int | Sequence[Part] | Mapping[str, Part]
# A mapping's keys are invariant to a type checker: a dict[str, int] is none of `str | bytes`.
Values = Mapping[str, Value] | Mapping[bytes, Value] | Mapping[str | bytes, Value]
_TYPES: Final = (int, str, bytes)
MAX_ATTEMPTS: Final = 32  # of `update`, to write a row before another client changes it


@dataclass(frozen=True, slots=True)
class Columns:
    """How the value columns of a mapping are joined, and what they are called.

    Args:
        names: the columns in the order of `containers.value_columns`; values are then read as dicts. Empty: as tuples.
        separator: `separator` of the server's `config_options`.
        empty_in_the_middle: let an empty part stand in front of one that is not empty. kvref keeps it; both plugin
            versions take a run of separators for one, so that later parts move a column forward (columns:col-005).
        types: one for each name, see `typed`; empty: values are read as text.
    """

    names: tuple[str, ...] = ()
    separator: str = "|"
    empty_in_the_middle: bool = False
    types: tuple[Any, ...] = ()

    @classmethod
    def typed(cls, columns: Mapping[str, Any], separator: str = "|", *, empty_in_the_middle: bool = False) -> Self:
        """Return columns whose values are read with their types.

        Args:
            columns: names in the order of `containers.value_columns`, each with `int`, `str` or `bytes`, or one of
                these with `| None`. The protocol shows NULL as an empty part, so an empty part is read as None, except
                of `str` and `bytes` without `| None`: of these it is an empty text.
            separator: see `Columns`.
            empty_in_the_middle: see `Columns`.

        Raises:
            CallError: another type.
        """
        for name, kind in columns.items():
            if _plain(kind) not in _TYPES:
                raise CallError(
                    f"column {name!r}: {kind!r} is no type of a column: use int, str or bytes, or one | None"
                )
        return cls(tuple(columns), separator, empty_in_the_middle, tuple(columns.values()))

    def encode(self, value: Value) -> bytes:
        """Return a value as it is stored: dicts and tuples joined, text as UTF-8, numbers in decimal.

        Args:
            value: a dict or a tuple with every column; None becomes NULL. Without names, what is missing at the end of
                a tuple becomes NULL. A text, bytes or a number is sent as it is.

        Raises:
            CallError: a name that is no column, other than one part for each column, or a part that would be stored
                otherwise.
        """
        if isinstance(value, (str, bytes, int)):
            return self._whole(_raw(value))
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in self.names]
            if unknown:
                known = ", ".join(self.names) or "not named"
                raise CallError(f"no value column {unknown[0]!r}: the columns are {known}")
            missing = [name for name in self.names if name not in value]
            if missing:
                raise CallError(
                    f"no value for {', '.join(missing)}, which would become NULL: give None, or change some columns"
                    " with update()"
                )
            value = [value[name] for name in self.names]
        elif self.names and len(value) != len(self.names):
            raise CallError(f"{len(value)} parts for {len(self.names)} columns: {', '.join(self.names)}")
        parts = [_raw(part) for part in value]
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        self._check(parts)
        return self.separator.encode().join(parts)

    def decode(self, data: bytes) -> dict[str, Any] | tuple[str, ...]:
        """Return the parts of what was read; NULL and an empty text are both empty (columns:col-001).

        Raises:
            InvalidReplyError: other than as many parts as there are names: a column contains the separator, or the
                mapping has other columns. Or bytes that are no UTF-8, or no number for `int`.
        """
        parts = data.split(self.separator.encode())
        if not self.names:
            return tuple(map(_text, parts))
        if len(parts) != len(self.names):
            columns = ", ".join(self.names)
            raise InvalidReplyError(
                f"{data[:60]!r} has {len(parts)} parts, and not one for each of the columns {columns}"
            )
        types = self.types or (str,) * len(parts)
        return {name: _read(name, kind, part) for name, kind, part in zip(self.names, types, parts, strict=True)}

    def _whole(self, data: bytes) -> bytes:
        """Return a value that the caller has joined. Raises CallError if it has not one part for each column."""
        parts = data.count(self.separator.encode()) + 1
        if self.names and parts != len(self.names):
            raise CallError(f"{data[:60]!r} has {parts} parts for {len(self.names)} columns: {', '.join(self.names)}")
        return data

    def _check(self, parts: list[bytes]) -> None:
        separator = self.separator.encode()
        for place, part in enumerate(parts):
            if len(parts) > 1 and (separator in part or b"\0" in part):
                raise CallError(f"part {place + 1}, {part[:60]!r}, holds {self.separator!r}, the separator, or NUL")
            if not part and place > 0 and not self.empty_in_the_middle:
                raise CallError(f"part {place + 1} is empty and a later one is not: a plugin would store that one here")


ColumnsSpec = Columns | Sequence[str] | Mapping[str, Any] | None


def as_columns(given: ColumnsSpec) -> Columns | None:
    """Return `Columns` for names, or for names with types; what is `Columns` or None already stays.

    Raises:
        CallError: a type that no column can have.
    """
    if given is None or isinstance(given, Columns):
        return given
    return Columns.typed(given) if isinstance(given, Mapping) else Columns(tuple(given))


def shown_mapping(mapping: str | None, columns: Columns | None) -> str:
    """Return the arguments for a mapping and its columns as a client's `repr` has them, each with a comma in front."""
    shown = "" if mapping is None else f", mapping={mapping!r}"
    if columns is None:
        return shown
    if not columns.types:
        return f"{shown}, columns={columns.names!r}"
    types = ", ".join(
        f"{name!r}: {kind.__name__ if isinstance(kind, type) else kind}"
        for name, kind in zip(columns.names, columns.types, strict=True)
    )
    return f"{shown}, columns={{{types}}}"


def _plain(kind: Any) -> Any:
    """Return a type without its `| None`."""
    kinds = [each for each in get_args(kind) if each is not NoneType] or [kind]
    return kinds[0] if len(kinds) == 1 else None


def _read(name: str, kind: Any, part: bytes) -> int | str | bytes | None:
    if not part and (kind is not _plain(kind) or kind is int):
        return None
    plain = _plain(kind)
    if plain is bytes:
        return part
    if plain is str:
        return _text(part)
    try:
        return int(part)
    except ValueError as error:
        raise InvalidReplyError(f"column {name}: {part[:60]!r} is no whole number") from error


def _text(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        raise InvalidReplyError(f"{part[:60]!r} is no UTF-8: read it as bytes") from error


def _raw(part: Part) -> bytes:
    if part is None:
        return b""
    if isinstance(part, int):
        return b"%d" % part
    return part.encode() if isinstance(part, str) else part


def check_single(verb: str, columns: Columns | None) -> None:
    """Raise CallError if a mapping has several columns: the verb is for values of one."""
    if columns is not None:
        raise CallError(f"{verb} of several columns: a plugin would keep the first and set the others to NULL")


def check_update(columns: Columns | None) -> None:
    """Raise CallError if a mapping's columns have no names, so that `update` cannot name those that it changes."""
    if columns is None or not columns.names:
        raise CallError("update: give the client the names of the columns")


def update_lost(key: str | bytes) -> ServerError:
    """Return the error of an `update` whose row changed at each of MAX_ATTEMPTS attempts."""
    return ServerError(f"update: {key!r} changed between each of {MAX_ATTEMPTS} attempts to read and write it")
