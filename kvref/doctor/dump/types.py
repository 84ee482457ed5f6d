"""Types of columns, character sets and collations, as information_schema shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref import collations
from kvref.collations.charsets import CHARSETS, OTHER_CHARSETS
from kvref.collations.names import default_charset, default_collation
from kvref.doctor.dump.statements import NotUnderstood

if TYPE_CHECKING:
    from sqlglot import exp

    from kvref.doctor.dump.script import Server

BYTES: Final = "binary"  # the character set of types without characters
_OF_BYTES: Final = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
_TEXTS: Final = frozenset({*_OF_BYTES, "enum", "set"})
# sqlglot's names of types that are not MySQL's.
_NAMES: Final = {"timestamptz": "timestamp", "boolean": "tinyint"}
_WORDS: Final = frozenset(
    "tinyint smallint mediumint int bigint decimal float double bit year date time datetime timestamp char varchar"
    " binary varbinary tinyblob blob mediumblob longblob tinytext text mediumtext longtext enum set json geometry uuid"
    " vector".split()
)
# Default collations of OTHER_CHARSETS that are not `<charset>_general_ci` (SHOW CHARACTER SET).
_DEFAULTS: Final = {
    "big5": "big5_chinese_ci", "dec8": "dec8_swedish_ci", "hp8": "hp8_english_ci",
    "swe7": "swe7_swedish_ci", "ujis": "ujis_japanese_ci", "sjis": "sjis_japanese_ci", "tis620": "tis620_thai_ci",
    "euckr": "euckr_korean_ci", "gb2312": "gb2312_chinese_ci", "gbk": "gbk_chinese_ci", "latin5": "latin5_turkish_ci",
    "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci", "gb18030": "gb18030_chinese_ci",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Text:
    """Character set and collation of a text."""

    charset: str
    collation: str


def text_of(server: Server, charset: str, collation: str, otherwise: Text | None = None) -> Text:
    """Return the character set and collation of a text; raises NotUnderstood for unknown ones.

    Args:
        server: whose defaults apply.
        charset, collation: "" if not given.
        otherwise: if neither is given; None for the server's default.
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
    if server.mariadb and charset.startswith(("utf", "ucs")) and server.version >= (11, 5, 0):
        return f"{charset}_uca1400_ai_ci"
    if charset in CHARSETS:
        return default_collation(charset, "5.6" if server.mariadb else server.name)
    return _DEFAULTS.get(charset, f"{charset}_general_ci")


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type: its name and what is in its parentheses, as information_schema shows them."""

    word: str
    arguments: str = ""
    unsigned: bool = False

    @property
    def is_text(self) -> bool:
        """Return whether it has a character set."""
        return self.word in _TEXTS

    @property
    def declared(self) -> str:
        """Return the type as information_schema shows it, without ZEROFILL."""
        arguments = f"({self.arguments})" if self.arguments else ""
        return f"{self.word}{arguments}{' unsigned' if self.unsigned else ''}"

    def with_text(self, text: Text) -> Type:
        """Return the type of a column with this character set: for `binary`, the type of bytes."""
        if text.charset == BYTES and self.word in _OF_BYTES:
            return Type(_OF_BYTES[self.word], self.arguments)
        return self


def type_of(written: exp.DataType) -> Type:
    """Return a type as information_schema shows it; raises NotUnderstood for one that is not known here."""
    name = written.this.name.lower()
    word = _NAMES.get(name, name)
    unsigned = word not in _WORDS and word.startswith("u")
    word = word[1:] if unsigned else word
    if word not in _WORDS:
        raise NotUnderstood(f"the type {word[:40]} is not known")
    arguments = written.expressions
    if word in ("enum", "set"):
        if not arguments or not all(each.is_string for each in arguments):
            raise NotUnderstood("a list of members that are not texts")
        return Type(word, ",".join("'" + each.name.replace("'", "''") + "'" for each in arguments))
    if word in ("text", "blob") and arguments:
        raise NotUnderstood(f"{word} with a length")
    width = "1" if name == "boolean" else ",".join(each.name for each in arguments)
    return Type(word, width, unsigned)
