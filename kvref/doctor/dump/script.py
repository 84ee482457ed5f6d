"""Read a dump and split it into statements as the programs `mysql` and `mariadb` do: delimiters, comments, commands.

A dump is a file or standard input, compressed or not, in the encoding of its byte order mark or UTF-8.
The time grows with the length of the text: what has no end reaches to the end of the script, and the length of a
statement that is read is limited. Text in a comment of a version counts where the server is that new.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

from kvref.documents import MAX_BYTES, DocumentError
from kvref.errors import StoreError

STANDARD_INPUT: Final = "-"
# A byte order mark and its encoding. UTF-32's little-endian mark begins with UTF-16's.
_ENCODINGS: Final = (
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
    mark, encoding = next((each for each in _ENCODINGS if data.startswith(each[0])), (b"", "utf-8"))
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


# mysqldump ends an INSERT before it exceeds its net_buffer_length, 1,046,528 bytes unless said otherwise.
MAX_STATEMENT: Final = 1 << 20
_STRING: Final = r"""(?:'(?:[^'\\]|\\.?|'')*+(?:'|\Z)|"(?:[^"\\]|\\.?|"")*+(?:"|\Z))"""
TEXT: Final = rf"{_STRING}|`(?:[^`]|``)*+(?:`|\Z)"
_CLOSED: Final = re.compile(r"""'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|`(?:[^`]|``)*+`""", re.DOTALL)
_QUOTED: Final = re.compile(TEXT, re.DOTALL)
_SPACE: Final = re.compile(r"\s*")
_MARK: Final = re.compile(r"/\*|\*/")
NAME: Final = r"""(?:`(?:[^`]|``)+`|"(?:[^"]|"")+"|[\w$]+)"""
_ROWS: Final = re.compile(
    r"(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE)\s+)*(?:INTO\s+)?"
    rf"(?P<table>{NAME}(?:\s*\.\s*{NAME})?)",
    re.IGNORECASE,
)
_TO_END: Final = re.compile(rf"(?:{TEXT}|[^'\"`;])*+;", re.DOTALL)
# The clients' commands at the beginning of a line: a word, or a backslash and a character.
_COMMAND: Final = re.compile(r"(?P<word>\\\S|[A-Za-z?]\w*)[ \t]*(?P<rest>[^\n]*)(?:\n|\Z)")
_STATEMENTS: Final = {
    "use": "USE", "\\u": "USE", "source": "SOURCE", "\\.": "SOURCE", "connect": "CONNECT", "\\r": "CONNECT",
}  # fmt: skip
_DELIMITER: Final = "delimiter"  # also behind another statement on its line
_QUIT: Final = frozenset({"quit", "exit", "\\q"})
_IGNORED: Final = frozenset(
    "? help clear ego edit go nopager notee nowarning pager print prompt rehash status tee warnings charset"
    " resetconnection".split()
)
# What the programs write to standard error, which `2>&1` mixes with the dump.
_MESSAGE: Final = re.compile(
    r"(?:(?:\S*/)?(?:mysql|mariadb)[\w-]*(?:\.exe)?: |\[?(?:Warning|Note|Error)\]?[: ]|Enter password:)[^\n]*(?:\n|\Z)",
    re.IGNORECASE,
)
# Comments that name the database which follows: of mysqldump and of phpMyAdmin.
_HEADER: Final = re.compile(r"-- (?:Host: .*?Database: (?P<database>\S+)|Database: `(?P<quoted>(?:[^`]|``)+)`)")
_VERSION: Final = re.compile(r"^-- Server[ -][Vv]ersion:?\s+(\d+)\.(\d+)\.(\d+)(\S*)", re.MULTILINE)
_REPLICATION: Final = re.compile(r"5\.5\.5-(\d+)\.(\d+)\.(\d+)\S*MariaDB")
_MARIADB: Final = re.compile(r"^-- MariaDB dump .*?Distrib (\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_FINISHED: Final = re.compile(r"^-- Dump completed", re.MULTILINE)
_BEGUN: Final = re.compile(r"^-- (?:MySQL|MariaDB) dump ", re.MULTILINE)


@cache
def _token(delimiter: str) -> re.Pattern[str]:
    """Return a pattern of tokens, none of which goes over the beginning of a delimiter outside quotes and comments."""
    return re.compile(
        rf"""(?P<text>{TEXT})
        |(?P<version>/\*M?!\d*)
        |(?P<comment>/\*|--(?=[ \t\r\n]|\Z)[^\n]*|\#[^\n]*)
        |(?P<end>\*/)
        |(?P<go>\\[gG])
        |(?P<plain>[^'"`/*\-\#\\{re.escape(delimiter[0])}]+|.)""",
        re.DOTALL | re.VERBOSE,
    )


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a dump is of."""

    version: tuple[int, int, int] = (8, 0, 33)
    mariadb: bool = False
    known: bool = False

    @property
    def name(self) -> str:
        """Return the version as in `8.0.33`."""
        return ".".join(map(str, self.version))

    def runs(self, condition: str) -> bool:
        """Return whether it runs what is in a comment of a version, such as `/*!80016` or `/*M!100100`.

        MariaDB passes over the numbers from 50700 to 99999, which are MySQL's.
        """
        only_mariadb, _, digits = condition.removeprefix("/*").partition("!")
        if only_mariadb and not self.mariadb:
            return False
        major, minor, patch = self.version
        number = int(digits or 0)
        if self.mariadb and not only_mariadb and 50700 <= number <= 99999:
            return False
        return number <= major * 10000 + minor * 100 + patch


def server_of(script: str) -> Server:
    """Return the server that a dump names, MySQL 8.0.33 where it names none."""
    if found := _REPLICATION.search(script) or _MARIADB.search(script):
        return Server((int(found[1]), int(found[2]), int(found[3])), mariadb=True, known=True)
    if found := _VERSION.search(script):
        return Server((int(found[1]), int(found[2]), int(found[3])), mariadb="MariaDB" in found[4], known=True)
    return Server()


def is_cut(script: str) -> bool:
    """Return whether mysqldump began the script and did not write its last line."""
    return _BEGUN.search(script) is not None and _FINISHED.search(script) is None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Args:
        text: without comments and delimiter.
        line: where it begins, from 1.
        database: name in a comment in front of it, else "".
        ended: a delimiter, or the end of the script outside a quoted text, ends it.
    """

    text: str
    line: int
    database: str = ""
    ended: bool = True


class Script:
    """A script of SQL as mysqldump and others write it.

    Args:
        needs_rows: returns whether the rows of a table, as written, are needed; INSERTs of others are skipped. It is
            called after all statements before were yielded.
    """

    def __init__(self, text: str, server: Server, needs_rows: Callable[[str], bool]) -> None:
        self.messages: list[str] = []
        """Lines that the program which made the dump wrote into it."""
        self._text = text
        self._server = server
        self._needs_rows = needs_rows
        self._position = 0
        self._delimiter = ";"
        self._database = ""
        self._open = True
        self._line, self._counted = 1, 0  # of the text up to a position

    def __iter__(self) -> Iterator[Statement]:
        """Yield the statements; raises DocumentError where one exceeds MAX_STATEMENT."""
        pending = _Pending()
        while self._position < len(self._text):
            if pending.blank:
                statement, skipped = self._skip_to_statement()
                if statement is not None:
                    yield statement
                if skipped:
                    pending = _Pending()
                    continue
            token = _token(self._delimiter).match(self._text, self._position)
            assert token is not None, "any character is a token"
            at_delimiter = self._text.startswith(self._delimiter, self._position)
            self._position = self._position + len(self._delimiter) if at_delimiter else token.end()
            if at_delimiter or token["go"]:
                yield self._finished_statement(pending)
                pending = _Pending()
                continue
            if pending.add(token, self._server_text(token)) > MAX_STATEMENT:
                fix = "only definitions of tables and the rows of innodb_memcache are read: leave the statement out"
                text = f"a statement of more than {MAX_STATEMENT} characters: {fix}"
                raise DocumentError(f"line {self._line_at(pending.begin)}: {text}")
        if not pending.blank:
            yield self._finished_statement(pending)

    def _line_at(self, position: int) -> int:
        """Return the number of a position's line, from 1; positions never decrease."""
        self._line += self._text.count("\n", self._counted, position)
        self._counted = max(self._counted, position)
        return self._line

    def _finished_statement(self, pending: _Pending) -> Statement:
        if pending.text().lower() in _QUIT:
            self._position = len(self._text)
            return Statement("", self._line_at(pending.begin))
        database, self._database = self._database, ""
        return Statement(pending.text(), self._line_at(pending.begin), database, pending.ended)

    def _skip_to_statement(self) -> tuple[Statement | None, bool]:
        """Read what is not part of a statement; return what a client's command means, and whether anything was read."""
        text, begin = self._text, self._position
        space = _SPACE.match(text, begin)
        assert space is not None, "no blank is a match"
        self._position = space.end()
        if self._position == len(text):
            return None, True
        at_line_start = begin == 0 or "\n" in text[begin - 1 : self._position]
        if at_line_start or text[self._position : self._position + len(_DELIMITER)].lower() == _DELIMITER:
            if message := _MESSAGE.match(text, self._position):
                self.messages.append(message[0].strip())
                self._position = message.end()
                return None, True
            if command := self._command():
                return command, True
        rows = _ROWS.match(text, self._position) if self._delimiter == ";" else None
        if rows is None or self._needs_rows(rows["table"]):
            return None, False
        end = _TO_END.match(text, rows.end())
        if end is not None:
            self._position = end.end()
            return None, True
        line = self._line_at(self._position)
        self._position = len(text)
        return (None if _closed(text, rows.end()) else Statement("", line, ended=False)), True

    def _command(self) -> Statement | None:
        """Read a client's command at the beginning of a line; return what it is to the server, None for no command."""
        found = _COMMAND.match(self._text, self._position)
        if found is None:
            return None
        word, rest = found["word"].lower(), found["rest"].strip()
        if word in (_DELIMITER, "\\d"):
            self._delimiter = rest.split()[0] if rest else self._delimiter
        elif word.startswith("\\"):
            if word in ("\\g", "\\c"):
                return None
        elif word not in {*_STATEMENTS, *_QUIT, *_IGNORED} or self._delimiter in rest or "\\g" in rest.lower():
            return None
        line = self._line_at(self._position)
        self._position = len(self._text) if word in _QUIT else found.end()
        return Statement(f"{_STATEMENTS[word]} {rest}" if word in _STATEMENTS else "", line)

    def _server_text(self, token: re.Match[str]) -> str:
        """Return what the server reads of a token."""
        if token["version"]:
            if not self._server.runs(token["version"]):
                self._skip_version()
            return " "
        if token["comment"]:
            if found := _HEADER.match(token["comment"]):
                self._database = found["database"] or found["quoted"].replace("``", "`")
            if token["comment"] == "/*":
                end = self._text.find("*/", self._position)
                self._position = len(self._text) if end < 0 else end + 2
            return " "
        return " " if token["end"] else token[0]

    def _skip_version(self) -> None:
        """Go to the end of a comment of a version, which may contain comments."""
        depth = 1
        for mark in _MARK.finditer(self._text, self._position):
            depth += 1 if mark[0] == "/*" else -1
            if not depth:
                self._position = mark.end()
                return
        self._position = len(self._text)


def _closed(text: str, position: int) -> bool:
    """Return whether no quoted text is open at the end."""
    return all(_CLOSED.fullmatch(quoted[0]) for quoted in _QUOTED.finditer(text, position))


class _Pending:
    """The statement whose end is not reached yet: whether all of it is blank, and where it begins."""

    def __init__(self) -> None:
        self.blank = True
        self.begin = 0
        self.ended = True
        self._parts: list[str] = []
        self._size = 0

    def add(self, token: re.Match[str], text: str) -> int:
        """Add the text of a token; return the statement's length. Runs of comments become one blank."""
        space = text.isspace()
        if token["text"]:
            self.ended = _CLOSED.fullmatch(text) is not None
        if not (space and self._parts and self._parts[-1].isspace()):
            self._parts.append(text)
            self._size += len(text)
        if self.blank and not space:
            self.blank, self.begin = False, token.start() + len(text) - len(text.lstrip())
        return self._size

    def text(self) -> str:
        """Return the statement."""
        return "".join(self._parts).strip()
