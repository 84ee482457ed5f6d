"""Read JSON and TOML that others wrote: size, depth and digits are limited, and every fault is one kind of error.

`json` and `tomllib` end in RecursionError for deep nesting, in ValueError for an integer of more than 4,300 digits, and
accept what later fails elsewhere: text that cannot be encoded, integers that no column and no float can store.
"""

from __future__ import annotations

import gzip
import json
import tomllib
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Text = TypeVar("Text", str, str | bytes)
Parsed = TypeVar("Parsed")

# Limit of a file, after decompression; the largest report of the suite has 12 MB.
MAX_BYTES: Final = 256 << 20
# Limit of a configuration file.
MAX_TOML_BYTES: Final = 1 << 20
# No document of kvref has more than twelve levels.
MAX_DEPTH: Final = 64
# An unsigned integer of 64 bits, and its sums, with room to spare.
MAX_BITS: Final = 128
_CHUNK: Final = 1 << 20


class DocumentError(ValueError):
    """A document is malformed, or exceeds a limit; the text does not name the file."""


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file, decompressed if its name ends in `.gz`.

    Args:
        limit: of the content, in bytes.

    Raises:
        OSError: it cannot be opened or read.
        DocumentError: its path has a NUL, its content exceeds the limit, or is not gzip.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DocumentError(f"incomplete or invalid gzip: {error}") from error
    except ValueError as error:
        raise DocumentError(f"invalid path: {error}") from error
    if len(content) > limit:
        raise DocumentError(f"larger than {limit} bytes")
    return content


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Return the content of a file in UTF-8; raises as `read_bytes`, and DocumentError for other encodings."""
    return _decoded(read_bytes(path, limit))


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8: {error}") from error


def json_of(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        DocumentError: it is not JSON, or exceeds MAX_DEPTH or MAX_BITS, or has text that is not Unicode.
    """
    return _parsed(json.loads, text)


def toml_of(text: str) -> dict[str, Any]:
    """Return the table of a TOML text; raises as `json_of`."""
    return _parsed(tomllib.loads, text)


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; raises as `read_text` and `json_of`."""
    return json_of(read_text(path))


def json_lines_of(content: bytes) -> list[Any]:
    """Return the value of each line of UTF-8; raises as `json_of`, with the number of the line."""
    found = []
    # Not splitlines: a text may hold characters that Unicode counts as ends of lines.
    for number, line in enumerate(_decoded(content).removesuffix("\n").split("\n"), 1):
        try:
            found.append(json_of(line))
        except DocumentError as error:
            raise DocumentError(f"line {number}: {error}") from error
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file; raises as `read_text`, with MAX_TOML_BYTES, and `toml_of`."""
    return toml_of(read_text(path, MAX_TOML_BYTES))


_DEEP: Final = f"nested more than {MAX_DEPTH} levels deep"


def _parsed(parse: Callable[[Text], Parsed], text: Text) -> Parsed:
    try:
        found = parse(text)
    except RecursionError:
        raise DocumentError(_DEEP) from None
    except ValueError as error:
        raise DocumentError(str(error)) from error
    _check(found)
    return found


def _check(found: object) -> None:
    level, next_level = [found], list[object]()
    for _ in range(MAX_DEPTH):
        for value in level:
            if isinstance(value, dict):
                next_level += value.keys()
                next_level += value.values()
            elif isinstance(value, list):
                next_level += value
            elif isinstance(value, int) and value.bit_length() > MAX_BITS:
                raise DocumentError(f"an integer of more than {MAX_BITS} bits")
            elif isinstance(value, str) and not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    raise DocumentError(f"text that is not Unicode: {value[:40]!a}") from None
        if not next_level:
            return
        level, next_level = next_level, []
    raise DocumentError(_DEEP)
