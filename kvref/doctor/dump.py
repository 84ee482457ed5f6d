"""A mysqldump as a source: its statements, and a SQLite file of a temporary folder with its tables, without rows.

The time grows with the length of the text: what has no end reaches to the end of the dump, and the length of a
statement that is read is limited. The rows of the configuration tables are the only ones that are read, where they are
literals. What SQLite cannot store of a table (its engine, FULLTEXT, triggers of several statements) is read from the
text of its CREATE TABLE.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref.doctor.source import Source, SQLiteSource, read_file
from kvref.documents import MAX_BYTES, DocumentError, read_bytes
from kvref.errors import ConfigError, RowError, StoreError
from kvref.storage.config.column_types import as_bigint
from kvref.translation.session import connect
from kvref.translation.translate import Translator, Untranslatable

if TYPE_CHECKING:
    from kvref.engine.mapping import Naming
    from kvref.profiles import Profile
    from kvref.storage.config.containers import Container, PolicyCell, Table, TableDetails
    from kvref.storage.sqlite.schema import SQLiteCatalog

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


def quoted(*parts: str) -> str:
    """Return a name for a statement of MySQL's: of a column, or of a table after that of its schema."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


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


CONFIGURATION: Final = "innodb_memcache"
CONFIG_TABLES: Final = frozenset({"containers", "config_options", "cache_policies"})
DEFAULT_VERSION: Final = "8.0.33"
_VERSION: Final = re.compile(r"^-- Server version\s+(5\.\d+\.\d+)(?!\S*MariaDB)", re.MULTILINE)
_KINDS: Final = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "use": r"USE\s+(?P<name>`(?:[^`]|``)+`|\S+)",
        "database": r"CREATE\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>`(?:[^`]|``)+`|\S+)",
        "table": rf"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{NAME}",
        "view": rf"CREATE\s[^`(]*?(?:`[^`]*`@`[^`]*`[^`(]*?)?VIEW\s+{NAME}",
        "trigger": rf"CREATE\s.*?TRIGGER\s+(?P<trigger>`(?:[^`]|``)+`|\S+)\s+\w+\s+\w+\s+ON\s+{NAME}",
        "rows": rf"(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+{NAME}",
        "nothing": r"$|SET\b|LOCK\b|UNLOCK\b|DROP\b|COMMIT\b|START\s+TRANSACTION|ALTER\s+(?:TABLE|DATABASE)\b|CHANGE\b",
    }.items()
}
_ENGINE: Final = re.compile(r" \((?P<engine>\w+)\)$")
_FULLTEXT: Final = re.compile(r"\bFULLTEXT\s+(?:KEY|INDEX)\s+`(?P<name>(?:[^`]|``)+)`", re.IGNORECASE)
_CHECK: Final = re.compile(r"\bCONSTRAINT\s+`(?P<name>(?:[^`]|``)+)`\s+CHECK\b", re.IGNORECASE)
_INVISIBLE: Final = re.compile(r"(?<!\s)\s++INVISIBLE\b(?=\s*[,)])", re.IGNORECASE)


@contextmanager
def open_dump(path: Path) -> Iterator[DumpSource]:
    """Read a dump.

    Args:
        path: of SQL as mysqldump writes it, in UTF-8.

    Raises:
        StoreError: the file cannot be read, or it or a statement exceeds a limit.
    """
    text = _text(path)
    with tempfile.TemporaryDirectory(prefix="kvref-") as folder:
        file = Path(folder) / "dump.sqlite"
        try:
            loaded = Loaded(text, file)
        except DocumentError as error:
            raise StoreError(f"dump {path}, {error}") from error
        with read_file(file) as source:
            yield DumpSource(path, source, loaded)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            fix = "dump the mapped tables without rows (mysqldump --no-data), and innodb_memcache with its rows"
            raise StoreError(f"dump {path}: larger than {MAX_BYTES} bytes: {fix}")
        return read_bytes(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise StoreError(f"dump {path}: {error.strerror or error}") from error
    except DocumentError as error:
        raise StoreError(f"dump {path}: {error}") from error


class Loaded:
    """What a dump makes, and what it does not.

    Args:
        text: of the dump.
        file: the SQLite file to make it in.

    Raises:
        DocumentError: a statement exceeds a limit.
    """

    def __init__(self, text: str, file: Path) -> None:
        found = _VERSION.search(text)
        self.version = "" if found is None else found[1]
        self.translator = Translator(self.version or DEFAULT_VERSION)
        self.configured = False
        self.texts: dict[tuple[str, str], str] = {}
        self.views: set[tuple[str, str]] = set()
        self.triggers: dict[tuple[str, str], list[str]] = {}
        self.unread: dict[tuple[str, str], str] = {}
        self.whole: set[str] = set()
        self.skipped: list[str] = []
        self._database = CONFIGURATION
        with closing(connect(file, self.translator)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            for statement in statements(text, CONFIG_TABLES.__contains__):
                self._take(statement, connection)

    def _take(self, statement: Statement, connection: sqlite3.Connection) -> None:
        self._database = statement.database or self._database
        text = statement.text
        head = text[:MAX_HEAD]
        kind, found = next(
            ((kind, match) for kind, pattern in _KINDS.items() if (match := pattern.match(head))), ("", None)
        )
        if found is None:
            self.skipped.append(" ".join(text.split())[:60])
            return
        if kind in ("use", "database"):
            self._database = split_name(found["name"], "")[1]
            self.whole |= {self._database} if kind == "database" else set()
            return
        if kind == "nothing":
            return
        key = split_name(found["name"], self._database)
        if kind == "view":
            self.views.add(key)
        elif kind == "trigger":
            self.triggers.setdefault(key, []).append(split_name(found["trigger"], "")[1])
        elif kind == "table" or key[0] == CONFIGURATION:
            self.configured |= kind == "rows"
            if kind == "rows" and not has_literal_rows(text[found.end("name") :]):
                self.unread[key] = f"line {statement.line}: its rows are no literals as mysqldump writes them"
                return
            text = f"{text[: found.start('name')]}{quoted(*key)}{text[found.end('name') :]}"
            if reason := self._run(kind, key, text, connection):
                self.unread[key] = f"line {statement.line}: {reason}"

    def _run(self, kind: str, key: tuple[str, str], text: str, connection: sqlite3.Connection) -> str:
        """Make a table or its rows; return the reason why that cannot be done, or ""."""
        if kind == "table":
            self.texts[key] = text
            text = _INVISIBLE.sub("", with_full_references(without_expressions(text), key[0]))
        try:
            for translated in self.translator.translate(text):
                connection.execute(translated)
        except (Untranslatable, sqlite3.Error) as error:
            return str(error).partition("\n")[0][-200:]
        except UnicodeEncodeError:
            return "it has bytes that are no UTF-8"
        return ""


class DumpSource(Source):
    """The tables of a dump, which does not show how the server writes its log.

    Args:
        path: of the dump.
        source: the SQLite file made of it.
        loaded: what was made.
    """

    def __init__(self, path: Path, source: SQLiteSource, loaded: Loaded) -> None:
        self.name = str(path)
        self.version = loaded.version
        self._source = source
        self._loaded = loaded
        self.notes = [f"skipped, as no mapping depends on it: {each}" for each in dict.fromkeys(loaded.skipped)]
        for (schema, name), reason in loaded.unread.items():
            self.notes.append(f"table {schema}.{name} cannot be read from the dump: {reason}")

    def catalog(self, profile: Profile) -> DumpCatalog:
        """See `Source`."""
        return DumpCatalog(self._source.catalog(profile), self._loaded)

    def details(self, schema: str, name: str) -> TableDetails:
        """See `Source`."""
        details, made = self._source.details(schema, name), self._loaded.translator.table(schema, name)
        counting = {column.name for column in made.columns if column.auto_increment} if made is not None else set()
        text = self._loaded.texts.get((schema, name), "")
        columns = {
            column.name: replace(column, auto_increment=column.name in counting) for column in details.columns.values()
        }
        return replace(
            details,
            columns=columns,
            triggers=tuple(self._loaded.triggers.get((schema, name), ())),
            checks=tuple(_CHECK.findall(text)),
            fulltext=tuple(_FULLTEXT.findall(text)),
        )

    def unseen(self, schema: str, name: str) -> str:
        """See `Source`."""
        if reason := self._loaded.unread.get((schema, name)):
            return f"table {schema}.{name} cannot be read from the dump: {reason}: look at the server itself (--store)"
        if schema in self._loaded.whole:
            return ""
        return f"the dump has no table {schema}.{name}: dump its database too (mysqldump --databases … {schema})"


class DumpCatalog:
    """The catalog of a dump: SQLite's, and what SQLite cannot hold.

    Args:
        catalog: of the SQLite file.
        loaded: what was made of the dump.
    """

    def __init__(self, catalog: SQLiteCatalog, loaded: Loaded) -> None:
        self._catalog = catalog
        self._loaded = loaded

    def containers(self) -> list[Container]:
        """Return all rows; raises ConfigError where the table is missing, or the dump has no rows at all."""
        key = (CONFIGURATION, "containers")
        if reason := self._loaded.unread.get(key):
            raise ConfigError(f"containers cannot be read from the dump: {reason}")
        if key not in self._loaded.texts:
            raise ConfigError(
                f"the dump has no table {CONFIGURATION}.containers: mysqldump --databases {CONFIGURATION} … has it"
            )
        if not self._loaded.configured:
            raise ConfigError(f"the dump has no row of {CONFIGURATION}: make it without --no-data")
        return self._catalog.containers()

    def options(self) -> dict[str, bytes | None]:
        """See `Catalog`."""
        return self._catalog.options()

    def policies(self) -> list[PolicyCell] | None:
        """See `Catalog`."""
        return self._catalog.policies()

    def naming(self) -> Naming:
        """See `Catalog`."""
        return self._catalog.naming()

    def table(self, schema: str, name: str) -> Table | None:
        """See `Catalog`."""
        key = (schema, name)
        if key in self._loaded.views:
            raise RowError(f"{schema}.{name} is a view: only InnoDB tables can be mapped", "view")
        made = self._loaded.translator.table(schema, name)
        if made is None or key in self._loaded.unread:
            return None
        if odd := _ENGINE.search(made.source):
            engine = odd["engine"]
            if engine == "partitioned":
                text = "is partitioned: the plugin cannot open such a table: REMOVE PARTITIONING"
                raise RowError(f"{schema}.{name} {text}", "partitioned")
            text = f"is a table of engine {engine}: only InnoDB tables can be mapped: ALTER TABLE … ENGINE = InnoDB"
            raise RowError(f"{schema}.{name} {text}", "other-engine")
        return self._catalog.table(schema, name)

    def to_64_bits(self, schema: str, name: str, column: str) -> str:
        """See `Catalog`: the statement for the server that the dump is of."""
        declared, default, nullable = self._catalog.definition(self._catalog.source_of(schema, name) or name, column)
        definition = as_bigint(declared, default, nullable=nullable)
        return f"ALTER TABLE {quoted(schema, name)} MODIFY {quoted(column)} {definition}"
