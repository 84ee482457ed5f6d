"""The statements of a dump: comments taken out, conditional ones opened, the rows of foreign tables passed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_TEXT: Final = r"""'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|`(?:[^`]|``)*+`"""
# `/*!40101 …*/` runs where the server is that old; `/*M!999999\- …*/` is for MariaDB's client.
_TOKEN: Final = re.compile(
    rf"""(?P<text>{_TEXT})
    |(?P<comment>/\*M!999999.*?\*/|/\*(?!M?!).*?\*/|--(?=[ \t\r\n])[^\n]*|\#[^\n]*)
    |(?P<condition>/\*M?!\d*|\*/)
    |(?P<plain>[^'"`/*\-\#;$|]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_DELIMITER: Final = re.compile(r"\s*DELIMITER[ \t]+(\S+)[ \t]*(?:\n|$)", re.IGNORECASE)
_ROWS: Final = re.compile(
    r"\s*INSERT\s+(?:IGNORE\s+)?INTO\s+(?:`(?:[^`]|``)+`\s*\.\s*)?`?(?P<table>[^`\s(]+)`?", re.IGNORECASE
)
_TO_END: Final = re.compile(rf"(?:{_TEXT}|[^'\"`;])*+;", re.DOTALL)
_NAME: Final = r"(?:`(?:[^`]|``)+`|[\w$]+)"
NAME: Final = rf"(?P<name>{_NAME}(?:\s*\.\s*{_NAME})?)"
_REFERENCES: Final = re.compile(rf"(?P<text>'(?:[^'\\]|\\.|'')*+')|\bREFERENCES\s+{NAME}", re.IGNORECASE | re.DOTALL)
_EXPRESSION: Final = re.compile(
    rf"{_TEXT}|\b(?P<head>(?:GENERATED\s+ALWAYS\s+)?AS|CHECK)\s*\(", re.IGNORECASE | re.DOTALL
)
_PARENTHESIS: Final = re.compile(r"[()]")
_HEADER: Final = re.compile(r"-- Host: .*?Database: (?P<database>\S+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Args:
        text: without comments and delimiter.
        database: what mysqldump says in front of it of the database, where it says so; else "".
    """

    text: str
    database: str = ""


def statements(dump: str, wanted: Callable[[str], bool]) -> Iterator[Statement]:
    """Yield the statements of a dump.

    Args:
        dump: SQL as mysqldump writes it.
        wanted: tells by a table's name whether its rows are; INSERTs of others are left out.
    """
    position, delimiter, database = 0, ";", ""
    parts: list[str] = []
    while position < len(dump):
        if not "".join(parts).strip():
            if found := _DELIMITER.match(dump, position):
                position, delimiter, parts = found.end(), found[1], []
                continue
            if (rows := _ROWS.match(dump, position)) and not wanted(rows["table"]):
                end = _TO_END.match(dump, rows.end())
                position, parts = (len(dump) if end is None else end.end()), []
                continue
        if dump.startswith(delimiter, position):
            position += len(delimiter)
            yield Statement("".join(parts).strip(), database)
            parts, database = [], ""
            continue
        token = _TOKEN.match(dump, position)
        assert token is not None, "any character is a token"
        position = token.end()
        if header := _HEADER.match(token["comment"] or ""):
            database = header["database"]
        parts.append(" " if token["comment"] or token["condition"] else token[0])
    if last := "".join(parts).strip():
        yield Statement(last, database)


def split_name(written: str, database: str) -> tuple[str, str]:
    """Return schema and name of a table as a statement names it, within a database."""
    parts = [
        part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_NAME, written.strip())
    ]
    return (parts[0], parts[1]) if len(parts) > 1 else (database, parts[0])


def quoted(schema: str, name: str) -> str:
    """Return a table's full name for a statement of MySQL's."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in (schema, name))


def without_expressions(statement: str) -> str:
    """Return CREATE TABLE with NULL in place of what columns are computed from, and 1 of what CHECKs ask.

    That there are such columns and constraints counts here, not what they say.
    """
    parts, position = [], 0
    while found := _EXPRESSION.search(statement, position):
        parts.append(statement[position : found.end()])
        position = found.end()
        if found["head"] is None:
            continue
        depth = 1
        while depth and position < len(statement):
            token = _TOKEN.match(statement, position)
            assert token is not None, "any character is a token"
            parenthesis = _PARENTHESIS.search(token[0]) if token["text"] is None else None
            if parenthesis is None:
                position = token.end()
                continue
            depth += 1 if parenthesis[0] == "(" else -1
            position += parenthesis.end()
        parts.append("1)" if found["head"].upper() == "CHECK" else "NULL)")
    return "".join((*parts, statement[position:]))


def with_full_references(statement: str, database: str) -> str:
    """Return CREATE TABLE with the database in front of each table that a foreign key refers to."""

    def full(found: re.Match[str]) -> str:
        return found["text"] or f"REFERENCES {quoted(*split_name(found['name'], database))}"

    return _REFERENCES.sub(full, statement)
