"""The text of a dump: a file or standard input, compressed or not, in the encoding of its byte order mark or UTF-8."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from kvref.documents import MAX_BYTES
from kvref.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

STANDARD_INPUT: Final = "-"
# A byte order mark and its encoding. UTF-32's little-endian mark begins with UTF-16's.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_BROKEN: Final = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, OSError)


def read_dump(path: Path) -> str:
    """Return the text of a dump; bytes that are not UTF-8 become surrogates.

    Args:
        path: of the file; `-` is standard input.

    Raises:
        StoreError: it cannot be read, its content does not match its first bytes, or it exceeds a limit.
    """
    name = "dump of standard input" if str(path) == STANDARD_INPUT else f"dump {path}"
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == STANDARD_INPUT else path.open("rb") as file:
            packed = file.read(MAX_BYTES + 1)
    except ValueError as error:  # a path with NUL
        raise StoreError(f"{name}: {error}") from error
    except OSError as error:
        raise StoreError(f"{name}: {error.strerror or error}") from error
    data = packed
    for mark, (form, unpack) in _FORMS.items():
        if packed.startswith(mark):
            try:
                data = unpack(packed)
            except _BROKEN as error:
                raise StoreError(f"{name}: not a whole {form} file: {error}") from error
    if len(data) > MAX_BYTES:
        fix = "dump the mapped tables without rows (mysqldump --no-data), and innodb_memcache with its rows"
        raise StoreError(f"{name}: larger than {MAX_BYTES} bytes: {fix}")
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", "utf-8"))
    try:
        return data.removeprefix(mark).decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    except UnicodeDecodeError as error:
        raise StoreError(f"{name}: not {encoding}, as its first bytes say: {error.reason}") from error


def _reader(opened: Callable[[IO[bytes]], io.BufferedIOBase]) -> Callable[[bytes], bytes]:
    def unpack(packed: bytes) -> bytes:
        with opened(io.BytesIO(packed)) as file:
            return file.read(MAX_BYTES + 1)

    return unpack


def _zstd(packed: bytes) -> bytes:
    """Run the program zstd: Python has no module for it before 3.14."""
    try:
        done = subprocess.run(["zstd", "-dcq"], input=packed, capture_output=True, check=False)
    except FileNotFoundError:
        raise StoreError("a dump compressed with zstd: install the program zstd, or unpack the file") from None
    if done.returncode:
        raise OSError(" ".join(done.stderr.decode("utf-8", "replace").split()))
    return done.stdout


# The first bytes of compressed files.
_FORMS: Final[dict[bytes, tuple[str, Callable[[bytes], bytes]]]] = {
    b"\x1f\x8b": ("gzip", _reader(lambda file: gzip.GzipFile(fileobj=file))),
    b"\xfd7zXZ\0": ("xz", _reader(lzma.LZMAFile)),
    b"BZh": ("bzip2", _reader(bz2.BZ2File)),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
