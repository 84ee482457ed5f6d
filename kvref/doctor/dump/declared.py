"""Types of columns as statements write them, and as information_schema shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot.tokenizer_core import TokenType

from kvref import collations
from kvref.collations.charsets import CHARSETS, OTHER_CHARSETS
from kvref.collations.names import default_charset, default_collation
from kvref.doctor.dump.words import NotUnderstood, Words

if TYPE_CHECKING:
    from kvref.doctor.dump.script import Server

# What each spelling of a type's name is to the server (sql_yacc.yy, `type`); longer ones first.
_SPELLINGS: Final = {
    "DOUBLE PRECISION": "double", "LONG CHARACTER VARYING": "mediumtext", "LONG CHAR VARYING": "mediumtext",
    "LONG VARCHAR": "mediumtext", "LONG VARBINARY": "mediumblob", "LONG": "mediumtext",
    "NATIONAL CHARACTER VARYING": "varchar", "NATIONAL CHAR VARYING": "varchar", "NATIONAL VARCHAR": "varchar",
    "NATIONAL CHARACTER": "char", "NATIONAL CHAR": "char", "NCHAR VARYING": "varchar", "NCHAR VARCHAR": "varchar",
    "CHARACTER VARYING": "varchar", "CHAR VARYING": "varchar", "NVARCHAR": "varchar", "NCHAR": "char",
    "CHARACTER": "char", "BOOLEAN": "tinyint(1)", "BOOL": "tinyint(1)", "INTEGER": "int", "MIDDLEINT": "mediumint",
    "INT1": "tinyint", "INT2": "smallint", "INT3": "mediumint", "INT4": "int", "INT8": "bigint", "DEC": "decimal",
    "NUMERIC": "decimal", "FIXED": "decimal", "REAL": "double", "FLOAT4": "float", "FLOAT8": "double",
    "GEOMCOLLECTION": "geometrycollection",
    **{
        word.upper(): word
        for word in (
            "tinyint smallint mediumint int bigint decimal float double bit year date time datetime timestamp char"
            " varchar binary varbinary tinyblob blob mediumblob longblob tinytext text mediumtext longtext enum set"
            " json geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection uuid"
            " inet4 inet6 vector serial"
        ).split()
    },
}  # fmt: skip
_NATIONAL: Final = ("NATIONAL", "NCHAR", "NVARCHAR")
_OF_BYTES: Final = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
_TEXTS: Final = frozenset({*_OF_BYTES, "enum", "set"})
# Largest length of TEXT and BLOB in bytes, by the first part of the type's name.
_SIZES: Final = {"tiny": 255, "": 65535, "medium": (1 << 24) - 1, "long": (1 << 32) - 1}
# Bytes of the longest character where that is not 1.
_LONGEST: Final = {
    "utf8mb4": 4, "utf8mb3": 3, "utf8": 3, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4, "ujis": 3,
    "eucjpms": 3, **dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis"), 2),
}  # fmt: skip
# Default collations that are not `<charset>_general_ci` (SHOW CHARACTER SET).
_DEFAULTS: Final = {
    "big5": "big5_chinese_ci", "dec8": "dec8_swedish_ci", "cp850": "cp850_general_ci", "hp8": "hp8_english_ci",
    "swe7": "swe7_swedish_ci", "ujis": "ujis_japanese_ci", "sjis": "sjis_japanese_ci", "tis620": "tis620_thai_ci",
    "euckr": "euckr_korean_ci", "gb2312": "gb2312_chinese_ci", "gbk": "gbk_chinese_ci", "latin5": "latin5_turkish_ci",
    "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci", "gb18030": "gb18030_chinese_ci",
}  # fmt: skip
BYTES: Final = "binary"  # the character set of types without characters


@dataclass(frozen=True, slots=True)
class Text:
    """Character set and collation of a text."""

    charset: str
    collation: str


def text_of(server: Server, charset: str, collation: str, otherwise: Text | None = None) -> Text:
    """Return character set and collation as given.

    Args:
        server: whose defaults count.
        charset: "" where none is given.
        collation: "" where none is given.
        otherwise: where neither is given; None for the server's.

    Raises:
        NotUnderstood: a collation or a character set that is not known here.
    """
    charset, collation = charset.lower(), collation.lower()
    if not charset and not collation and otherwise is not None:
        return otherwise
    if collation and collation != "default":
        named = collations.charset_of(collation) or _charset_in(collation)
        # The short names of MariaDB are of any character set of Unicode.
        return Text(charset or named or "utf8mb4", f"{charset or 'utf8mb4'}_{collation}" if not named else collation)
    charset = charset if charset not in ("", "default") else _default_charset(server)
    return Text(charset, _default_collation(server, charset))


def _charset_in(collation: str) -> str:
    name = collation.partition("_")[0]
    if name in CHARSETS or name in OTHER_CHARSETS or name == BYTES:
        return name
    if name == "uca1400":
        return ""
    raise NotUnderstood(f"the collation {collation} is not known")


def _default_charset(server: Server) -> str:
    if server.mariadb:
        return "utf8mb4" if server.version >= (11, 6, 0) else "latin1"
    return default_charset(server.name)


def _default_collation(server: Server, charset: str) -> str:
    if charset == BYTES:
        return BYTES
    if charset not in CHARSETS and charset not in OTHER_CHARSETS:
        raise NotUnderstood(f"the character set {charset} is not known")
    if server.mariadb and charset.startswith(("utf", "ucs")):
        return f"{charset}_uca1400_ai_ci" if server.version >= (11, 5, 0) else f"{charset}_general_ci"
    if charset in CHARSETS:
        return default_collation(charset, "5.6" if server.mariadb else server.name)
    return _DEFAULTS.get(charset, f"{charset}_general_ci")


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type.

    Args:
        word: its name as information_schema shows it.
        arguments: what is in its parentheses, "" without.
        attributes: `unsigned`, `zerofill`.
        charset: that the type itself implies; "" for none.
        serial: it is SERIAL.
        is_json: it is JSON of MariaDB, a text with a CHECK.
    """

    word: str
    arguments: str = ""
    attributes: str = ""
    charset: str = ""
    serial: bool = False
    is_json: bool = False

    @property
    def is_text(self) -> bool:
        """Return whether it has a character set."""
        return self.word in _TEXTS

    @property
    def declared(self) -> str:
        """Return it as information_schema shows it."""
        arguments = f"({self.arguments})" if self.arguments else ""
        return f"{self.word}{arguments}{' ' if self.attributes else ''}{self.attributes}"

    def with_text(self, text: Text) -> Type:
        """Return the type of a column with this character set: without characters, its counterpart of bytes."""
        if text.charset == BYTES and self.word in _OF_BYTES:
            return Type(_OF_BYTES[self.word], self.arguments)
        return self

    def converted(self, before: Text, after: Text) -> Type:
        """Return the type that CONVERT TO CHARACTER SET gives: a TEXT grows so that as many characters fit."""
        stem, found, _ = self.word.partition("text")
        if not found or after.charset == BYTES:
            return self.with_text(after)
        characters = _SIZES[stem] // _LONGEST.get(before.charset, 1)
        needed = min(characters * _LONGEST.get(after.charset, 1), _SIZES["long"])
        # It does not shrink.
        return Type(f"{next(each for each, size in _SIZES.items() if size >= max(needed, _SIZES[stem]))}text")


def read_type(words: Words, server: Server) -> Type:
    """Read a column's type.

    Args:
        words: that begin with it.
        server: MariaDB has JSON as text.

    Raises:
        NotUnderstood: a type that is not known here.
    """
    spelling = next((each for each in _SPELLINGS if words.accept(*each.split())), "")
    if not spelling:
        found = words.take().text if words else ""
        raise NotUnderstood(f"the type {found[:40]} is not known" if found else "a column without a type")
    word, _, width = _SPELLINGS[spelling].partition("(")
    arguments = width.rstrip(")")
    if words.next() == "(":
        group = words.group()
        tokens = list(group)
        lists = all(token.token_type in (TokenType.STRING, TokenType.COMMA) for token in tokens)
        if word in ("enum", "set"):
            if not lists or not tokens:
                raise NotUnderstood("a list of members that are not texts")
            arguments = ",".join(
                "'" + each.text.replace("'", "''") + "'"
                for each in tokens
                if each.text != "," or each.token_type is TokenType.STRING
            )
        else:
            arguments = group.rest().replace(" ", "")
    attributes = []
    while found := words.any_of("UNSIGNED", "SIGNED", "ZEROFILL", "BYTE"):
        attributes.append(found.lower())
    return _shown(word, arguments, attributes, spelling, server)


def _shown(word: str, arguments: str, attributes: list[str], spelling: str, server: Server) -> Type:
    if "byte" in attributes:
        return Type(_OF_BYTES.get(word, word), arguments)
    if word == "serial":
        return Type("bigint", "", "unsigned", serial=True)
    if word == "json" and server.mariadb:
        return Type("longtext", charset="utf8mb4", is_json=True)
    if word in ("text", "blob") and arguments.isdigit():
        stem = next((each for each, size in _SIZES.items() if size >= int(arguments[:11])), "long")
        return Type(f"{stem}{word}")
    signs = " ".join(each for each in ("unsigned", "zerofill") if each in attributes)
    if "zerofill" in attributes:
        signs = "unsigned zerofill"
    charset = (
        ("utf8" if server.version < (8, 0, 0) or server.mariadb else "utf8mb3")
        if spelling.startswith(_NATIONAL)
        else ""
    )
    return Type(word, arguments, signs, charset)
