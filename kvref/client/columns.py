"""A Python value as the bytes that are stored, and one value on the wire as several columns of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args, get_type_hints, is_typeddict, overload

from kvref.client.arguments import repr_of, utf8
from kvref.client.errors import CallError, InvalidReplyError, ServerError

if TYPE_CHECKING:
    from typing_extensions import Buffer
    from typing_extensions import TypeVar as TypeVarWithDefault

    # What a value is read as: bytes, a dict, a tuple or a TypedDict.
    R = TypeVarWithDefault("R", default=Any)
else:
    Buffer = bytes | bytearray | memoryview
    R = TypeVar("R")

Part = str | Buffer | int | float | Decimal | None
# A list is invariant to a type checker: a list[str] is not a list[Part].
Value = str | Buffer | int | float | Decimal | list[Any] | tuple[Part, ...] | Mapping[str, Part]


def scalar(value: object) -> bytes | None:
    """Return one value as it is stored: bytes, text in UTF-8, a number in decimal; None for any other type.

    Bytes-like objects are their bytes: bytearray, memoryview, array, mmap, an array of NumPy. Numbers are what `str`
    makes of them, which is what pymemcache stores; True is "True".

    Raises:
        CallError: a text that UTF-8 cannot have, or a number that Python cannot write.
    """
    if isinstance(value, bytes):
        return bytes(value)
    try:
        if isinstance(value, str):
            return str.encode(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return int.__repr__(value).encode()  # of a member of an enumeration too
        if isinstance(value, Number):
            return str(value).encode()
        return _bytes_of(value)
    except (ValueError, BufferError) as error:
        raise CallError(f"{repr_of(value)}: the value cannot be written: {error}") from error


def part(value: object) -> bytes:
    """Return the value of one column: None is NULL, True is 1. Raises CallError for other types, and as `scalar`."""
    if value is None:
        return b""
    raw = scalar(int(value) if isinstance(value, bool) else value)
    if raw is None:
        raise invalid_value(value, "the value of a column is text, bytes, a number or None")
    return raw


def invalid_value(value: object, allowed: str) -> CallError:
    """Return the error of a value that no server may get, with what is allowed."""
    return CallError(f"value {repr_of(value)} of type {type(value).__name__}: {allowed}")


def _bytes_of(value: object) -> bytes | None:
    """Return the bytes of a bytes-like object, None for any other. Raises ValueError for a released memoryview."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    with view:
        # A scalar of NumPy or ctypes is not a sequence of bytes, and the bytes of references mean nothing. NumPy shows
        # a date as eight bytes, but reports no dimension.
        is_scalar = 0 in (view.ndim, getattr(value, "ndim", None))
        return None if is_scalar or "O" in view.format else view.tobytes()


_TYPES: Final = (int, str, bytes)
MAX_ATTEMPTS: Final = 32  # of `update`, to write a row before another client changes it


@dataclass(frozen=True)  # with slots, Columns[Row](...) is a TypeError in Python 3.11
class Columns(Generic[R]):
    """Names, types and separator of the value columns of a mapping.

    One named column is the whole value, which the servers do not split either.

    Args:
        names: the columns in the order of `containers.value_columns`; values are then read as dicts. Empty: as tuples.
        separator: `separator` of the server's `config_options`.
        empty_in_the_middle: allow an empty part before one that is not empty. kvref stores it; both plugin versions
            read a run of separators as one, so that later parts move a column forward (columns:col-005).
        types: one for each name, see `typed`; empty: values are read as text.

    Raises:
        CallError: names that are one text, empty or given twice, no separator, or another type of column.
    """

    names: tuple[str, ...] = ()
    separator: str = "|"
    empty_in_the_middle: bool = False
    types: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.names, list | tuple) or not all(isinstance(name, str) and name for name in self.names):
            raise CallError(f"columns={repr_of(self.names)}: a tuple of names, or a dict of names with types")
        if len(set(self.names)) < len(self.names):
            raise CallError(f"columns={repr_of(self.names)}: a name is given twice")
        for name in self.names:
            utf8("columns", name)
        if not isinstance(self.separator, str) or not utf8("separator", self.separator):
            raise CallError(f"separator={repr_of(self.separator)}: a text that is not empty")
        if not isinstance(self.empty_in_the_middle, bool):
            raise CallError(f"empty_in_the_middle={repr_of(self.empty_in_the_middle)}: True or False")
        if not isinstance(self.types, list | tuple) or len(self.types) not in (0, len(self.names)):
            raise CallError(f"types={repr_of(self.types)}: one type for each of {len(self.names)} columns")
        for name, kind in zip(self.names, self.types, strict=False):
            if not any(_without_none(kind) is each for each in _TYPES):
                raise CallError(
                    f"columns: column {name!r}: {repr_of(kind)} is not a supported column type: use int, str or bytes,"
                    " or one | None"
                )
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "types", tuple(self.types))

    @overload
    @classmethod
    def typed(cls, columns: type[R], separator: str = "|", *, empty_in_the_middle: bool = False) -> Columns[R]: ...

    @overload
    @classmethod
    def typed(
        cls, columns: Mapping[str, Any], separator: str = "|", *, empty_in_the_middle: bool = False
    ) -> Columns[dict[str, Any]]: ...

    @classmethod
    def typed(cls, columns: Any, separator: str = "|", *, empty_in_the_middle: bool = False) -> Columns[Any]:
        """Return columns whose values are read with their types.

        Args:
            columns: names in the order of `containers.value_columns`, each with `int`, `str` or `bytes`, or one of
                these with `| None`; a dict, or a TypedDict, which is then the type of rows. The protocol shows NULL as
                an empty part, so an empty part is read as None, except of `str` and `bytes` without `| None`: of these
                it is an empty text.
            separator: see `Columns`.
            empty_in_the_middle: see `Columns`.

        Raises:
            CallError: another type.
        """
        if is_typeddict(columns):
            columns = _hints(columns)
        if not isinstance(columns, Mapping):
            raise CallError(f"columns={repr_of(columns)}: a dict of names with types, or a TypedDict")
        return cls(tuple(columns), separator, empty_in_the_middle, tuple(columns.values()))

    @property
    def is_single(self) -> bool:
        """Return whether there is one column, which has a name."""
        return len(self.names) == 1

    def encode(self, value: Value | R) -> bytes:
        """Return a value as it is stored: dicts and tuples joined, text as UTF-8, numbers in decimal.

        Args:
            value: a dict, list or tuple with every column; None becomes NULL. Without names, what is missing at the end
                of a tuple becomes NULL. A text, bytes or a number is sent as it is.

        Raises:
            CallError: another type, a name that is not a column, other than one part for each column, or a part that
                would be stored otherwise.
        """
        if isinstance(value, Mapping):
            return self._joined(self._in_order(value))
        if isinstance(value, list | tuple):
            if self.names and len(value) != len(self.names):
                raise CallError(f"{len(value)} parts for {len(self.names)} columns: {', '.join(self.names)}")
            if not value:
                raise CallError(f"value {value!r}: a row has one value column or more")
            return self._joined(value)
        if value is None or scalar(value) is None:
            raise invalid_value(value, "a value is text, bytes, a number, or a list, tuple or dict of columns")
        data = part(value)
        parts = data.count(self.separator.encode()) + 1
        if len(self.names) > 1 and parts != len(self.names):
            raise CallError(f"{data[:60]!r} has {parts} parts for {len(self.names)} columns: {', '.join(self.names)}")
        return data

    def decode(self, data: bytes) -> Any:
        """Return the parts of what was read; NULL and an empty text are both empty (columns:col-001).

        Raises:
            InvalidReplyError: other than as many parts as there are names: a column contains the separator, or the
                mapping has other columns. Or bytes that are not UTF-8, or not a number for `int`.
        """
        if not isinstance(data, bytes):
            raise InvalidReplyError(f"{repr_of(data)}: a serde returned it, and columns are read from bytes")
        parts = [data] if self.is_single else data.split(self.separator.encode())
        if not self.names:
            return tuple(map(_text, parts))
        if len(parts) != len(self.names):
            columns = ", ".join(self.names)
            raise InvalidReplyError(
                f"{data[:60]!r} has {len(parts)} parts, and not one for each of the columns {columns}"
            )
        types = self.types or (str,) * len(parts)
        return {name: _read(name, kind, part) for name, kind, part in zip(self.names, types, parts, strict=True)}

    def check_changes(self, changes: Mapping[Any, Any]) -> None:
        """Raise CallError for a name that is not a column, or for what cannot be its value."""
        self.check_names(changes)
        for name, value in changes.items():
            self._check_part(self.names.index(name), part(value), len(self.names))

    def check_names(self, given: Mapping[Any, Any]) -> None:
        """Raise CallError for a name that is not a column."""
        for name in given:
            if name not in self.names:
                known = ", ".join(self.names) or "not named"
                raise CallError(f"no value column {repr_of(name)}: the columns are {known}")

    def _in_order(self, value: Mapping[Any, Any]) -> list[Any]:
        self.check_names(value)
        missing = [name for name in self.names if name not in value]
        if missing or not self.names:
            names = ", ".join(missing) or "any column"
            raise CallError(
                f"no value for {names}, which would become NULL: give None, or change some columns with update()"
            )
        return [value[name] for name in self.names]

    def _joined(self, value: Sequence[object]) -> bytes:
        parts = [part(each) for each in value]
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        self._check(parts)
        return self.separator.encode().join(parts)

    def _check(self, parts: list[bytes]) -> None:
        for index, raw in enumerate(parts):
            self._check_part(index, raw, len(parts))
            if not raw and index > 0 and not self.empty_in_the_middle:
                raise CallError(f"part {index + 1} is empty and a later one is not: a plugin would store that one here")

    def _check_part(self, index: int, raw: bytes, count: int) -> None:
        if count > 1 and (self.separator.encode() in raw or b"\0" in raw):
            raise CallError(f"part {index + 1}, {raw[:60]!r}, contains {self.separator!r}, the separator, or NUL")


ColumnsSpec = Columns[R] | type[R] | tuple[str, ...] | list[str] | Mapping[str, Any] | None


def as_columns(given: Any) -> Columns[Any] | None:
    """Return `Columns` of names, or of names with types. Raises CallError for one text or another type."""
    if given is None:
        return None
    if isinstance(given, Columns):
        return given
    if isinstance(given, Mapping) or is_typeddict(given):
        typed: Columns[Any] = Columns.typed(given)
        return typed
    if isinstance(given, str):
        raise CallError(f"columns={repr_of(given)}: write columns=({repr_of(given)},) for one column")
    return Columns(given)


def repr_of_mapping(mapping: str | None, columns: Columns[Any] | None) -> str:
    """Return the arguments for a mapping and its columns in a client's `repr`, each after a comma."""
    text = "" if mapping is None else f", mapping={mapping!r}"
    if columns is None:
        return text
    if not columns.types:
        return f"{text}, columns={columns.names!r}"
    types = ", ".join(
        f"{name!r}: {kind.__name__ if isinstance(kind, type) else kind}"
        for name, kind in zip(columns.names, columns.types, strict=True)
    )
    return f"{text}, columns={{{types}}}"


def _without_none(kind: Any) -> Any:
    """Return a type without its `| None`."""
    kinds = [each for each in get_args(kind) if each is not NoneType] or [kind]
    return kinds[0] if len(kinds) == 1 else None


def _read(name: str, kind: Any, part: bytes) -> int | str | bytes | None:
    if not part and (kind is not _without_none(kind) or kind is int):
        return None
    base = _without_none(kind)
    if base is bytes:
        return part
    if base is str:
        return _text(part)
    try:
        return int(part)
    except ValueError as error:
        raise InvalidReplyError(f"column {name}: {part[:60]!r} is not a whole number") from error


def _text(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        raise InvalidReplyError(f"{part[:60]!r} is not UTF-8: read it as bytes") from error


def _hints(row: type) -> dict[str, Any]:
    """Return the types of a TypedDict by name. Raises CallError for a name in them that is not known."""
    try:
        return get_type_hints(row)
    except Exception as error:
        raise CallError(f"columns={repr_of(row)}: a type of its columns is not known: {error}") from error


def check_update(columns: Columns[Any] | None, changes: object) -> dict[str, Any]:
    """Return the changes of `update`. Raises CallError for columns without names, or for invalid changes."""
    if columns is None or not columns.names:
        raise CallError("update: give the client the names of the columns")
    if not isinstance(changes, Mapping):
        raise CallError(f"changes={repr_of(changes)}: a dict of columns")
    columns.check_changes(changes)
    return dict(changes)


def update_lost(key: str | bytes | int) -> ServerError:
    """Return the error of an `update` whose row changed at each of MAX_ATTEMPTS attempts."""
    return ServerError(f"update: {key!r} changed between each of {MAX_ATTEMPTS} attempts to read and write it")
