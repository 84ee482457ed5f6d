"""Columns by their declared types: which texts and numbers they hold, and how they are kept in SQLite."""

import re
from dataclasses import dataclass

from refusal import Refusal

Cell = int | float | str | bytes | None

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 32, "BIGINT": 64}
SIZED = {"TINY": 255, "": 65535, "MEDIUM": 16777215, "LONG": 4294967295}
TYPE = re.compile(r"\s*([A-Za-z]+)\s*(?:\(\s*(\d+)\s*\))?(.*)", re.DOTALL)
CHARSET = re.compile(r"(?:CHARACTER\s+SET|CHARSET)\s+(\w+)", re.IGNORECASE)
DECIMAL = re.compile(rb"[+-]?[0-9]{1,40}")


def wrap(value: int) -> int:
    """Keep a number of 64 bits as SQLite does, as a signed one."""
    return value - (1 << 64) if value >= 1 << 63 else value


@dataclass(frozen=True)
class Column:
    """One mapped column."""

    name: str
    type: str
    kind: str
    bits: int = 0
    is_unsigned: bool = False
    width: int | None = None
    in_octets: bool = False
    codec: str = "utf-8"
    basic_plane: bool = False

    @property
    def quoted(self) -> str:
        """The name as SQL writes it."""
        return quote(self.name)

    @property
    def low(self) -> int:
        """The least number of an integer column."""
        return 0 if self.is_unsigned else -(1 << self.bits - 1)

    @property
    def high(self) -> int:
        """The greatest number of an integer column."""
        return (1 << self.bits) - 1 if self.is_unsigned else (1 << self.bits - 1) - 1

    def holds(self, value: int) -> bool:
        """Tell whether an integer column can hold the number."""
        return self.low <= value <= self.high

    def text(self, value: bytes) -> str:
        """Decode text in the character set of the column."""
        text = value.decode(self.codec)
        if self.basic_plane and any(char > "\uffff" for char in text):
            raise UnicodeDecodeError("utf-8", value, 0, 1, "more than three bytes in a character")
        return text

    def too_long(self, value: bytes, text: str | None) -> bool:
        """Tell whether a value is wider than the column."""
        if self.width is None:
            return False
        return (len(value) if text is None or self.in_octets else len(text)) > self.width

    def number(self, value: Cell) -> int:
        """Read a cell as the number that it means in this column."""
        if value is None:
            return 0
        if isinstance(value, float):
            return max(self.low, min(self.high, int(value))) if value == value else 0
        if isinstance(value, int):
            return value + (1 << 64) if value < 0 and self.is_unsigned else value
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        return int(data) if DECIMAL.fullmatch(data) else 0

    def encode_number(self, value: int) -> int:
        """Keep a number that the server computed, or refuse it."""
        if not self.holds(value):
            raise Refusal(f"CLIENT_ERROR {value} is out of the range of column {self.name}")
        return wrap(value)

    def _integer(self, role: str, data: bytes) -> int:
        """Keep a key or a part of a value in an integer column, or refuse it."""
        if not DECIMAL.fullmatch(data) or not self.holds(int(data)):
            shown = data[:60].decode("utf-8", "replace")
            raise Refusal(f"CLIENT_ERROR {role} {shown!r} is no number from {self.low} to {self.high} for column "
                          f"{self.name}")
        return wrap(int(data))

    def encode(self, value: bytes) -> Cell:
        """Keep a part of a value, or refuse it."""
        if self.kind == "int":
            return self._integer("value", value)
        text: str | None = None
        if self.kind == "text":
            try:
                text = self.text(value)
            except UnicodeDecodeError as error:
                raise Refusal(f"SERVER_ERROR column {self.name} holds {self.codec} text, byte {error.start} of the "
                              f"data is none") from error
        if self.too_long(value, text):
            unit = "characters" if text is not None and not self.in_octets else "bytes"
            raise Refusal(f"SERVER_ERROR object too large for cache: column {self.name} takes {self.width} {unit}",
                          too_large=True)
        return value if text is None else text

    def decode(self, cell: Cell) -> bytes:
        """Give the bytes that a client gets for a cell."""
        if cell is None:
            return b""
        if self.kind == "int" and isinstance(cell, int | float):
            return str(self.number(cell)).encode()
        if isinstance(cell, bytes):
            return cell
        if isinstance(cell, str):
            return cell.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "replace")
        return str(cell).encode()

    def encode_key(self, key: bytes) -> Cell:
        """Keep a key, or refuse it with the reply of a storage command."""
        if self.kind == "int":
            return self._integer("key", key)
        text: str | None = None
        if self.kind == "text":
            try:
                text = self.text(key)
            except UnicodeDecodeError as error:
                raise Refusal(f"SERVER_ERROR the key is no {self.codec} text for column {self.name}") from error
        if self.too_long(key, text):
            raise Refusal(f"CLIENT_ERROR key too long for column {self.name} ({self.width})")
        return key if text is None else text

    def match(self, key: bytes) -> tuple[str, list[Cell]] | None:
        """Give the condition that finds the row of a key; None is a key that no row can have."""
        try:
            cell = self.encode_key(key)
        except Refusal:
            return None
        if self.kind == "bytes":
            try:
                return f"{self.quoted} IN (?, ?)", [cell, key.decode("utf-8")]
            except UnicodeDecodeError:
                return f"{self.quoted} = ?", [cell]
        if self.kind == "int" and int(key) >= 1 << 63:
            return f"{self.quoted} IN (?, ?)", [cell, float(int(key))]
        return f"{self.quoted} = ?", [cell]


def quote(name: str) -> str:
    """Write a name in quotation marks."""
    return '"' + name.replace('"', '""') + '"'


def column_of(name: str, declared: str, collation: str | None) -> Column | None:
    """Read a declared type; None is a type that is neither integer, text nor bytes of variable length."""
    match = TYPE.fullmatch(declared)
    if match is None:
        return None
    base = match[1].upper()
    width = int(match[2]) if match[2] else None
    rest = match[3].upper()
    if base in INTEGERS:
        return Column(name, base, "int", bits=INTEGERS[base], is_unsigned="UNSIGNED" in rest or "UNSIGNED" in
                      declared.upper())
    charset = CHARSET.search(declared)
    charset_name = charset[1].lower() if charset else (collation or "").lower().split("_")[0]
    codec = {"latin1": "latin-1", "ascii": "ascii"}.get(charset_name, "utf-8")
    plane = charset_name in ("utf8", "utf8mb3")
    if base in ("CHAR", "VARCHAR"):
        return Column(name, base, "text", width=width, codec=codec, basic_plane=plane)
    if base == "VARBINARY":
        return Column(name, base, "bytes", width=width, in_octets=True)
    for ending, kind in (("TEXT", "text"), ("BLOB", "bytes")):
        if base.endswith(ending) and base[: -len(ending)] in SIZED:
            return Column(name, base, kind, width=SIZED[base[: -len(ending)]], in_octets=True, codec=codec,
                          basic_plane=plane)
    return None
