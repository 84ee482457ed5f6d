"""A Python value as the bytes that are stored, for both clients."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any

from kvref.client.arguments import shown
from kvref.client.errors import CallError

if TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    Buffer = bytes | bytearray | memoryview

Part = str | Buffer | int | float | Decimal | None
# A list is invariant to a type checker: a list[str] is not a list[Part].
Value = str | Buffer | int | float | Decimal | list[Any] | tuple[Part, ...] | Mapping[str, Part]
# As are a mapping's keys.
Values = Mapping[str, Value] | Mapping[bytes, Value] | Mapping[int, Value] | Mapping[str | bytes | int, Value]


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
        raise CallError(f"{shown(value)}: the value cannot be written: {error}") from error


def part(value: object) -> bytes:
    """Return the value of one column: None is NULL, True is 1. Raises CallError for other types, and as `scalar`."""
    if value is None:
        return b""
    raw = scalar(int(value) if isinstance(value, bool) else value)
    if raw is None:
        raise refused(value, "the value of a column is text, bytes, a number or None")
    return raw


def refused(value: object, allowed: str) -> CallError:
    """Return the error of a value that no server may get, with what is allowed."""
    return CallError(f"value {shown(value)} of type {type(value).__name__}: {allowed}")


def _bytes_of(value: object) -> bytes | None:
    """Return the bytes of a bytes-like object, None for any other. Raises ValueError for a released memoryview."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    with view:
        # A scalar of NumPy or ctypes is not a sequence of bytes, and the bytes of references mean nothing. NumPy shows
        # a date as eight bytes, but says that it has no dimension.
        is_scalar = 0 in (view.ndim, getattr(value, "ndim", None))
        return None if is_scalar or "O" in view.format else view.tobytes()
