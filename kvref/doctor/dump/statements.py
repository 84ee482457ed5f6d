"""Statements as sqlglot's trees, and the heads of those that it does not parse."""

from __future__ import annotations

import re
from typing import ClassVar, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.tokenizer_core import TokenType

from kvref.doctor.dump.script import NAME, TEXT

Key = tuple[str, str]  # a table's schema and name
FULL_NAME: Final = rf"{NAME}(?:\s*\.\s*{NAME})?"
_ONE_NAME: Final = re.compile(NAME)
MAX_DEPTH: Final = 64  # levels of a statement
_TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} levels deep"
# Parts of definitions that sqlglot does not parse, and that no mapping depends on.
_IGNORED: Final = re.compile(
    rf"(?P<text>{TEXT})|\b(?:USING\s+(?:BTREE|HASH)|COLUMN_FORMAT\s+\w+|STORAGE\s+(?:DISK|MEMORY|DEFAULT)|SRID\s+\d+"
    r"|REF_SYSTEM_ID\s*=\s*\d+|(?:NOT\s+)?ENFORCED|VISIBLE|CHECKSUM\s*=\s*\d)(?!\w)",
    re.IGNORECASE | re.DOTALL,
)


class NotUnderstood(Exception):  # noqa: N818 - what the statement is
    """A statement, or a part of one, whose effect is not known; the text says what."""


_WORDS: Final[dict[str, TokenType]] = {
    **{word: token for word, token in MySQL.Tokenizer.KEYWORDS.items() if word != "LONG"},
    "INT3": TokenType.MEDIUMINT,
    "MIDDLEINT": TokenType.MEDIUMINT,
    "INT8": TokenType.BIGINT,
    "REAL": TokenType.DOUBLE,
    **dict.fromkeys(
        ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"),
        TokenType.GEOMETRY,
    ),
}


class _Dialect(MySQL):
    """MySQL's, with names of types that sqlglot does not support or confuses with others."""

    class Tokenizer(MySQL.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = _WORDS

    class Parser(MySQLParser):
        SIGNED_TO_UNSIGNED_TYPE_TOKEN: ClassVar[dict[TokenType, TokenType]] = {
            **MySQLParser.SIGNED_TO_UNSIGNED_TYPE_TOKEN,
            TokenType.FLOAT: TokenType.UDOUBLE,
        }


class _Ansi(_Dialect):
    """Double quotes are around names, as with sql_mode ANSI_QUOTES."""

    class Tokenizer(_Dialect.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]


def tree_of(statement: str, *, ansi: bool) -> exp.Expr:
    """Return a statement, which has no comments, as a tree; raises NotUnderstood if sqlglot does not parse it.

    Args:
        ansi: double quotes are around names, not texts.
    """
    known = _IGNORED.sub(lambda found: found["text"] or "", statement)
    try:
        tree = sqlglot.parse_one(known, read=_Ansi if ansi else _Dialect)
    except RecursionError:
        raise NotUnderstood(_TOO_DEEP) from None
    except (SqlglotError, ValueError) as error:  # ValueError for an empty quoted name in place of a width
        raise NotUnderstood(str(error).partition("\n")[0][:200]) from error
    if isinstance(tree, exp.Command | exp.Block):
        raise NotUnderstood("its form is not known")
    level: list[exp.Expr] = [tree]
    for _ in range(MAX_DEPTH):
        level = [part for each in level for part in each.iter_expressions()]
        if not level:
            return tree
    raise NotUnderstood(_TOO_DEEP)


def key_of(text: str, database: str) -> Key:
    """Return schema and name of a table as a text that matches FULL_NAME has them; raises NotUnderstood for no name."""
    names = [unquoted(name) for name in _ONE_NAME.findall(text)]
    if not names:
        raise NotUnderstood("a name is missing")
    return (database, names[0]) if len(names) == 1 else (names[0], names[1])


def unquoted(name: str) -> str:
    mark = name[0]
    return name[1:-1].replace(mark * 2, mark) if mark in '`"' else name


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def full(key: Key) -> str:
    return ".".join(map(quoted, key))
