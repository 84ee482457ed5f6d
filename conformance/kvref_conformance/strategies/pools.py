"""The generator's pools: `pools.toml`, read once, and long texts that are built here."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from kvref_conformance.data.tables import tables

_POOLS: Final = tables(files(__package__).joinpath("pools.toml"), object)


def _sent(name: str) -> tuple[bytes, ...]:
    return tuple(text.encode("latin-1") for text in _POOLS["sent"][name])


ODD_KEYS: Final = (*_sent("odd_keys"), b"x" * 249, b"x" * 250, b"x" * 251, b"\xc3\xa9" * 125)
NUMBER_KEYS: Final = (*_sent("number_keys"), b"9" * 30, b"-" + b"9" * 30)
NUMBERS: Final = _sent("numbers")
ODD_FRAMES: Final = tuple(_POOLS["frames"]["odd"])
ODD_OPCODES: Final = tuple(_POOLS["frames"]["opcodes"])
ODD_VBUCKETS: Final = (*_POOLS["frames"]["vbuckets"], "9" * 31, "9" * 32)
ODD_STATES: Final = (*_POOLS["frames"]["states"], "x" * 31, "x" * 32)
# 127 bytes and more are not a number to the plugin (chapter `arithmetic`).
VALUES: Final = (*_sent("values"), b"9" * 39, b"z" * 41, b"x" * 126, b"7" + b"x" * 125, b"z" * 127, b"z" * 300)
ODD_LINES: Final = (
    *_sent("blanks"),
    *_sent("miscounted"),
    *_sent("others"),
    b"x" * 300 + b"\r\n",
    b"get " + b"k1 " * 40 + b"\r\n",
    b"bind " + b"z" * 251 + b"\r\n",
)
STORED_KEYS: Final[tuple[str, ...]] = (*_POOLS["stored"]["keys"], "x" * 40)
STORED_VALUES: Final[tuple[str, ...]] = (*_POOLS["stored"]["values"], "9" * 30, "x" * 130)
STORED_BYTES: Final = (b"", b"1", b"10", b"abc", b"\xff\xfe", b"a\0b", b"12ab", b"\r\n", b"\xc3\xa9", b"x" * 130)
SIMILAR: Final[tuple[str, ...]] = tuple(_POOLS["stored"]["neighbours"])
COLLATIONS: Final[dict[str, list[str]]] = _POOLS["stored"]["collations"]
NAMES: Final[tuple[str, ...]] = tuple(_POOLS["configuration"]["names"])
FAULTS: Final[tuple[tuple[str, int, str], ...]] = tuple(map(tuple, _POOLS["configuration"]["faults"]))
# Only 32 bytes of an option count.
DELIMITERS: Final[dict[str, float]] = {**_POOLS["configuration"]["delimiters"], "x" * 40: 0.1}
SEPARATORS: Final[dict[str, float]] = {**_POOLS["configuration"]["separators"], "-" * 40: 0.1}
