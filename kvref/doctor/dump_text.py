"""The statements of a dump: comments taken out, conditional ones opened, the rows of foreign tables passed over.

The time grows with the length of the text: what has no end reaches to the end of the dump, and a statement that is read
has a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kvref.documents import DocumentError

# mysqldump ends an INSERT before it exceeds its net_buffer_length, 1,046,528 bytes unless said otherwise.
MAX_STATEMENT: Final = 1 << 20
# What names a statement's kind and object: three names of 64 characters, a user of 32 and a host of 255.
MAX_HEAD: Final = 2048
_STRING: Final = r"""(?:'(?:[^'\\]|\\.?|'')*+(?:'|\Z)|"(?:[^"\\]|\\.?|"")*+(?:"|\Z))"""
_TEXT: Final = rf"{_STRING}|`(?:[^`]|``)*+(?:`|\Z)"
# `/*!40101 …*/` runs where the server is that old; `/*M!999999\- …*/` is for MariaDB's client.
_TOKEN: Final = re.compile(
    rf"""(?P<text>{_TEXT})
    |(?P<comment>/\*(?:M!999999|(?!M?!)).*?(?:\*/|\Z)|--(?=[ \t\r\n])[^\n]*|\#[^\n]*)
    |(?P<condition>/\*M?!\d*|\*/)
    |(?P<plain>[^'"`/*\-\#;$|]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_DELIMITER: Final = re.compile(r"\s*DELIMITER[ \t]+(\S+)[ \t]*(?:\n|$)", re.IGNORECASE)
_ROWS: Final = re.compile(
    r"\s*(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+(?:`(?:[^`]|``)+`\s*\.\s*)?`?(?P<table>[^`\s(]+)`?", re.IGNORECASE
)
_TO_END: Final = re.compile(rf"(?:{_TEXT}|[^'\"`;])*+;", re.DOTALL)
_NAME: Final = r"(?:`(?:[^`]|``)+`|[\w$]+)"
NAME: Final = rf"(?P<name>{_NAME}(?:\s*\.\s*{_NAME})?)"
_REFERENCES: Final = re.compile(rf"(?P<text>{_STRING})|\bREFERENCES\s+{NAME}", re.IGNORECASE | re.DOTALL)
_EXPRESSION: Final = re.compile(
    rf"{_TEXT}|\b(?P<head>(?:GENERATED\s+ALWAYS\s+)?AS|CHECK|DEFAULT)\s*\(", re.IGNORECASE | re.DOTALL
)
_PARENTHESIS: Final = re.compile(rf"{_TEXT}|(?P<parenthesis>[()])", re.DOTALL)
_LITERAL: Final = rf"(?:NULL|[-+]?[\d.]++(?:E[-+]?\d++)?|0[XB][\dA-F]*+|(?:_\w++\s*+|[XBN])?{_STRING})"
_VALUES: Final = rf"\(\s*+{_LITERAL}(?:\s*+,\s*+{_LITERAL})*+\s*+\)"
_LITERAL_ROWS: Final = re.compile(
    rf"\s*+(?:\([^()]*+\)\s*+)?VALUES\s*+{_VALUES}(?:\s*+,\s*+{_VALUES})*+\s*+\Z", re.IGNORECASE | re.DOTALL
)
_HEADER: Final = re.compile(r"-- Host: .*?Database: (?P<database>\S+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Args:
        text: without comments and delimiter.
        line: where it begins, from 1.
        database: what mysqldump says in front of it of the database, where it says so; else "".
    """

    text: str
    line: int
    database: str = ""


def statements(dump: str, wanted: Callable[[str], bool]) -> Iterator[Statement]:
    """Yield the statements of a dump.

    Args:
        dump: SQL as mysqldump writes it.
        wanted: returns whether the rows of the table with this name are needed; INSERTs of others are skipped.

    Raises:
        DocumentError: a statement exceeds MAX_STATEMENT.
    """
    position, delimiter, database = 0, ";", ""
    lines, pending = _Lines(dump), _Pending()
    while position < len(dump):
        if pending.blank:
            if found := _DELIMITER.match(dump, position):
                position, delimiter, pending = found.end(), found[1], _Pending()
                continue
            if (rows := _ROWS.match(dump, position)) and not wanted(rows["table"]):
                end = _TO_END.match(dump, rows.end())
                position, pending = (len(dump) if end is None else end.end()), _Pending()
                continue
        if dump.startswith(delimiter, position):
            position += len(delimiter)
            yield Statement(pending.text(), lines.at(pending.begin), database)
            pending, database = _Pending(), ""
            continue
        token = _TOKEN.match(dump, position)
        assert token is not None, "any character is a token"
        if header := _HEADER.match(token["comment"] or ""):
            database = header["database"]
        position = token.end()
        if pending.add(token) > MAX_STATEMENT:
            fix = "only definitions of tables and the rows of innodb_memcache are read: leave the statement out"
            text = f"a statement of more than {MAX_STATEMENT} characters: {fix}"
            raise DocumentError(f"line {lines.at(pending.begin)}: {text}")
    if not pending.blank:
        yield Statement(pending.text(), lines.at(pending.begin), database)


class _Pending:
    """The statement whose end is not reached yet: whether all of it is blank, and where it begins."""

    def __init__(self) -> None:
        self.blank = True
        self.begin = 0
        self._parts: list[str] = []
        self._size = 0

    def add(self, token: re.Match[str]) -> int:
        """Add a token of a dump; return the statement's length. Runs of comments become one blank."""
        text = " " if token["comment"] or token["condition"] else token[0]
        space = text.isspace()
        if not (space and self._parts and self._parts[-1].isspace()):
            self._parts.append(text)
            self._size += len(text)
        if self.blank and not space:
            self.blank, self.begin = False, token.start() + len(text) - len(text.lstrip())
        return self._size

    def text(self) -> str:
        """Return the statement."""
        return "".join(self._parts).strip()


class _Lines:
    """The numbers of a text's lines, for positions in rising order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line, self._position = 1, 0

    def at(self, position: int) -> int:
        """Return the number of the line that a position is in, from 1."""
        self._line += self._text.count("\n", self._position, position)
        self._position = max(self._position, position)
        return self._line


def has_literal_rows(text: str) -> bool:
    """Return whether what follows the table's name in an INSERT is rows of literals, as mysqldump writes them."""
    return _LITERAL_ROWS.match(text) is not None


def split_name(written: str, database: str) -> tuple[str, str]:
    """Return schema and name of a table as a statement names it, within a database."""
    parts = [
        part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_NAME, written.strip())
    ]
    return (parts[0], parts[1]) if len(parts) > 1 else (database, *(parts or [written.strip()]))


def quoted(schema: str, name: str) -> str:
    """Return a table's full name for a statement of MySQL's."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in (schema, name))


def without_expressions(statement: str) -> str:
    """Return CREATE TABLE with NULL in place of what columns are computed from, and 1 of CHECKs and defaults.

    That there are such columns, constraints and defaults counts here, not what they say.
    """
    parts, position = [], 0
    while found := _EXPRESSION.search(statement, position):
        parts.append(statement[position : found.end()])
        position = found.end()
        if found["head"] is None:
            continue
        position = _after_closing(statement, position)
        parts.append("1)" if found["head"].upper() in ("CHECK", "DEFAULT") else "NULL)")
    return "".join((*parts, statement[position:]))


def _after_closing(statement: str, position: int) -> int:
    """Return the position after the parenthesis that closes one before `position`; the end where none does."""
    depth = 1
    for found in _PARENTHESIS.finditer(statement, position):
        if found["parenthesis"] is not None:
            depth += 1 if found["parenthesis"] == "(" else -1
            if not depth:
                return found.end()
    return len(statement)


def with_full_references(statement: str, database: str) -> str:
    """Return CREATE TABLE with the database in front of each table that a foreign key refers to."""

    def full(found: re.Match[str]) -> str:
        return found["text"] or f"REFERENCES {quoted(*split_name(found['name'], database))}"

    return _REFERENCES.sub(full, statement)
