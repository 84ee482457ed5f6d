"""The words of a statement: sqlglot's tokenizer without keywords, names in either kind of quotes, and a cursor.

sqlglot parses attributes of columns, foreign keys, changes and rows. What it does not read of MySQL's statements, such
as their heads and options, is found here by its tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Key = tuple[str, str]  # a table's schema and name


class NotUnderstood(Exception):  # noqa: N818 - what the statement is
    """A statement, or a part of one, whose effect is not known; the text says what."""


class _Plain(MySQL):
    """No word is a keyword, so that any can be a name."""

    class Tokenizer(MySQL.Tokenizer):
        """See `_Plain`."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {}


class _Ansi(_Plain):
    """Double quotes are around names, as with sql_mode ANSI_QUOTES."""

    class Tokenizer(_Plain.Tokenizer):
        """See `_Ansi`."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]


_OPENING, _CLOSING, _COMMA, _DOT = TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT
_NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


class Words:
    """A part of a statement, read from its beginning to its end.

    Args:
        text: of the statement.
        tokens: of the part.
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def __bool__(self) -> bool:
        """Return whether there is more to read."""
        return self._at < len(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        """Yield the tokens that are not read yet."""
        return iter(self._tokens[self._at :])

    def next(self) -> str:
        """Return the next token in upper case where it is a word or a sign, "" for a quoted one and at the end."""
        return self._upper(self._at)

    def _upper(self, position: int) -> str:
        if position >= len(self._tokens):
            return ""
        token = self._tokens[position]
        quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if quoted else token.text.upper()

    def has(self, *words: str) -> bool:
        """Return whether these words come next."""
        return all(self._upper(self._at + n) == word for n, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Read these words if they come next; return whether they do."""
        if not self.has(*words):
            return False
        self._at += len(words)
        return True

    def any_of(self, *choices: str) -> str:
        """Read the next word if it is one of these; return it, else ""."""
        return self.take().text.upper() if self.next() in choices and self else ""

    def take(self) -> Token:
        """Read a token.

        Raises:
            NotUnderstood: there is none.
        """
        if not self:
            raise NotUnderstood("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def name(self) -> str:
        """Read a name of one part."""
        token = self.take()
        if token.token_type not in _NAMES:
            raise NotUnderstood(f"{token.text[:40]!r} in place of a name")
        return token.text

    def table(self, database: str) -> Key:
        """Read a table's name, within a database."""
        first = self.name()
        if self and self._tokens[self._at].token_type is _DOT:
            self._at += 1
            return first, self.name()
        return database, first

    def group(self) -> Words:
        """Read what is in parentheses; return the tokens within.

        Raises:
            NotUnderstood: no parenthesis comes next, or it is not closed.
        """
        begin = self._at
        if self.next() != "(":
            raise NotUnderstood("parentheses are missing")
        depth = 0
        for position in range(begin, len(self._tokens)):
            kind = self._tokens[position].token_type
            depth += (kind is _OPENING) - (kind is _CLOSING)
            if not depth:
                self._at = position + 1
                return Words(self._text, self._tokens[begin + 1 : position])
        raise NotUnderstood("a parenthesis is not closed")

    def parts(self) -> Iterator[Words]:
        """Read to the end; yield what is between commas outside parentheses."""
        depth, part = 0, list[Token]()
        while self:
            token = self.take()
            depth += (token.token_type is _OPENING) - (token.token_type is _CLOSING)
            if token.token_type is _COMMA and not depth:
                yield Words(self._text, part)
                part = []
            else:
                part.append(token)
        yield Words(self._text, part)

    def copy(self) -> Words:
        """Return what is not read yet, to be read twice."""
        return Words(self._text, self._tokens[self._at :])

    def rest(self) -> str:
        """Read to the end; return it as MySQL's SQL with names in backticks."""
        written = self.written(self)
        self._at = len(self._tokens)
        return written

    def after(self, text: str) -> Words:
        """Read to the end; return it as words that follow others.

        Args:
            text: of the others, with names in backticks.
        """
        return words(f"{text} {self.rest()}", ansi=False)

    def written(self, tokens: Iterable[Token]) -> str:
        """Return tokens as MySQL's SQL with names in backticks."""
        return " ".join(self._written(token) for token in tokens)

    def _written(self, token: Token) -> str:
        if token.token_type is TokenType.IDENTIFIER:
            return quoted(token.text)
        if token.token_type is TokenType.STRING:
            return string(token.text)
        return self._text[token.start : token.end + 1]


def words(statement: str, *, ansi: bool) -> Words:
    """Return the words of a statement.

    Args:
        statement: without comments.
        ansi: double quotes are around names, not texts.

    Raises:
        NotUnderstood: it cannot be split, as a quote is not closed.
    """
    try:
        return Words(statement, (_Ansi() if ansi else _Plain()).tokenize(statement))
    except SqlglotError as error:
        raise NotUnderstood(str(error).partition("\n")[0][:200]) from error


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def string(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def full(key: Key) -> str:
    """Return a table's full name for a statement of MySQL's."""
    return ".".join(map(quoted, key))
