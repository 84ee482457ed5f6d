"""One value on the wire, several columns in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvref.client.errors import CallError, ServerError

Part = str | bytes | int | None
Value = str | bytes | int | Sequence[Part] | Mapping[str, Part]
# A mapping's keys are invariant to a type checker: a dict[str, int] is none of `str | bytes`.
Values = Mapping[str, Value] | Mapping[bytes, Value] | Mapping[str | bytes, Value]


@dataclass(frozen=True, slots=True)
class Columns:
    """How the value columns of a mapping are joined, and what they are called.

    Args:
        names: the columns in the order of `containers.value_columns`; values are then read as dicts. Empty: as tuples.
        separator: `separator` of the server's `config_options`.
        empty_in_the_middle: let an empty part stand in front of one that is not empty. kvref keeps it; both plugin
            versions take a run of separators for one, so that later parts move a column forward (columns:col-005).
    """

    names: tuple[str, ...] = ()
    separator: str = "|"
    empty_in_the_middle: bool = False

    def encode(self, value: Value) -> bytes:
        """Return a value as it is stored: dicts and tuples joined, text as UTF-8, numbers in decimal.

        Args:
            value: of a dict the names that are left out, and of a tuple what is missing at its end, become NULL.

        Raises:
            CallError: a name that is no column, more parts than columns, or a part that would be stored otherwise.
        """
        if isinstance(value, (str, bytes, int)):
            return _raw(value)
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in self.names]
            if unknown:
                known = ", ".join(self.names) or "not named"
                raise CallError(f"no value column {unknown[0]!r}: the columns are {known}")
            value = [value.get(name) for name in self.names]
        elif self.names and len(value) > len(self.names):
            raise CallError(f"{len(value)} parts for {len(self.names)} columns: {', '.join(self.names)}")
        parts = [_raw(part) for part in value]
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        self._check(parts)
        return self.separator.encode().join(parts)

    def decode(self, data: bytes) -> dict[str, str] | tuple[str, ...]:
        """Return the parts of what was read; NULL and an empty text are both empty (columns:col-001).

        Raises:
            ServerError: other than as many parts as there are names: a column holds the separator, or the mapping has
                other columns. Or bytes that are no UTF-8: read such a mapping without columns.
        """
        try:
            parts = tuple(data.decode().split(self.separator))
        except UnicodeDecodeError as error:
            raise ServerError(f"{data[:60]!r} is no UTF-8: read it as bytes, without columns") from error
        if not self.names:
            return parts
        if len(parts) != len(self.names):
            columns = ", ".join(self.names)
            raise ServerError(f"{data[:60]!r} has {len(parts)} parts, and not one for each of the columns {columns}")
        return dict(zip(self.names, parts, strict=True))

    def _check(self, parts: list[bytes]) -> None:
        separator = self.separator.encode()
        for place, part in enumerate(parts):
            if len(parts) > 1 and (separator in part or b"\0" in part):
                raise CallError(f"part {place + 1}, {part[:60]!r}, holds {self.separator!r}, the separator, or NUL")
            if not part and place > 0 and not self.empty_in_the_middle:
                raise CallError(f"part {place + 1} is empty and a later one is not: a plugin would store that one here")


def as_columns(given: Columns | Sequence[str] | None) -> Columns | None:
    """Return `Columns` for names; what is `Columns` or None already stays."""
    if given is None or isinstance(given, Columns):
        return given
    return Columns(tuple(given))


def shown_mapping(mapping: str | None, columns: Columns | None) -> str:
    """Return the arguments for a mapping and its columns as a client's `repr` has them, each with a comma in front."""
    shown = "" if mapping is None else f", mapping={mapping!r}"
    return shown if columns is None else f"{shown}, columns={columns.names!r}"


def _raw(part: Part) -> bytes:
    if part is None:
        return b""
    if isinstance(part, int):
        return b"%d" % part
    return part.encode() if isinstance(part, str) else part
