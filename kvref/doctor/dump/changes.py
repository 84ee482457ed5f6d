"""Follow a script: which tables there are when it has run, what they are, and what cannot be known of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from kvref.doctor.dump.alter import alter_table, is_without_effect, read_options
from kvref.doctor.dump.declared import Text, text_of
from kvref.doctor.dump.define import Place, add_index, define, tree_of
from kvref.doctor.dump.rows import Row, Rows
from kvref.doctor.dump.session import SessionVariables
from kvref.doctor.dump.tables import PRIMARY, Column, Table
from kvref.doctor.dump.words import Key, NotUnderstood, Words, full, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref.doctor.dump.script import Server, Statement

CONFIGURATION: Final = "innodb_memcache"
CONFIG_TABLES: Final = frozenset({"containers", "config_options", "cache_policies"})
# Statements that change no definition of a table and no row of the configuration.
_WITHOUT_EFFECT: Final = frozenset(
    "LOCK UNLOCK FLUSH ANALYZE CHECK CHECKSUM OPTIMIZE REPAIR SHOW SELECT DESC DESCRIBE EXPLAIN DO HELP GRANT REVOKE"
    " CHANGE START STOP RESET PURGE KILL CACHE BINLOG DEALLOCATE SAVEPOINT RELEASE SIGNAL RESIGNAL GET INSTALL"
    " UNINSTALL SHUTDOWN CLONE TABLE VALUES HANDLER".split()
)
_ROWS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "LOAD"})
# What CREATE, ALTER and DROP may be of besides tables, indexes, views, triggers and databases.
_OTHERS: Final = frozenset(
    "PROCEDURE FUNCTION EVENT USER ROLE SERVER TABLESPACE LOGFILE PACKAGE INSTANCE RESOURCE LIBRARY REFERENCE".split()
)
_KINDS: Final = frozenset({"TABLE", "TABLES", "INDEX", "VIEW", "TRIGGER", "DATABASE", "SCHEMA", "SEQUENCE", *_OTHERS})
_QUERIES: Final = frozenset({"AS", "SELECT", "WITH", "VALUES", "IGNORE", "REPLACE"})
_SHOWN: Final = 60  # characters of a statement in a note


class Changes:
    """What a script makes.

    Args:
        server: that runs it.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tables: dict[Key, Table] = {}
        self.views: set[Key] = set()
        self.rows: dict[Key, list[Row]] = {}
        """Of the tables of the schema innodb_memcache."""
        self.whole: set[str] = set()
        """Schemas whose tables are all known."""
        self.gone: set[Key] = set()
        """Tables that were removed."""
        self.doubts: dict[Key, str] = {}
        """Why nothing is known of a table."""
        self.doubt = ""
        """Why nothing is known of any table."""
        self.configured = False
        """There are rows of the configuration."""
        self.skipped: list[str] = []
        """Statements that were passed over."""
        self._temporary: dict[Key, Table] = {}
        self._texts: dict[str, Text] = {}
        self._database = CONFIGURATION
        self._session = SessionVariables(server)
        self._concerned: list[Key] = []
        self._uncommitted = False
        self._shown = ""

    def wants(self, written: str) -> bool:
        """Return whether the rows of a table are needed, by its name in a statement."""
        try:
            key = words(written, ansi=True).table(self._database)
        except NotUnderstood:
            return True
        return key[0] == CONFIGURATION

    def take(self, statement: Statement) -> None:
        """Follow a statement."""
        self._database = statement.database or self._database
        if self.doubt:
            return
        self._concerned = []
        self._shown = " ".join(statement.text.split())[:_SHOWN]
        try:
            self._follow(self._words(statement))
        except NotUnderstood as reason:
            shown = f"{self._shown}: " if self._shown else ""
            self._doubt(f"line {statement.line}: {shown}{reason}")

    def _words(self, statement: Statement) -> Words:
        if not statement.ended:
            raise NotUnderstood("the dump ends within a text")
        return words(statement.text, ansi=self._session.ansi or _names_in_double_quotes(statement.text))

    def _doubt(self, reason: str) -> None:
        """Note that a statement was not understood: of the tables that it names, else of all."""
        if not self._concerned:
            self.doubt = reason
        for key in self._concerned:
            table = self._temporary.get(key) or self.tables.get(key)
            if table is None:
                self.doubts.setdefault(key, reason)
            else:
                table.doubt = table.doubt or reason

    def finish(self) -> None:
        """Note what the end of the script leaves open."""
        self._roll_back()

    def _follow(self, statement: Words) -> None:
        head = statement.next()
        follow: Callable[[Words], None] | None = getattr(self, f"_{head.lower()}", None) if head in _HEADS else None
        if follow is not None:
            statement.take()
            follow(statement)
        elif head in _ROWS:
            self._change_rows(statement)
        elif head in _WITHOUT_EFFECT or not statement or head == "(":
            self._commits(head)
        else:
            raise NotUnderstood("what it does is not known")

    def _commits(self, head: str) -> None:
        if head in ("LOCK", "UNLOCK", "START", "FLUSH", "ANALYZE", "OPTIMIZE", "REPAIR"):
            self._uncommitted = False

    def _table_key(self, statement: Words) -> Key:
        key = statement.table(self._database)
        self._concerned.append(key)
        return key

    def _place(self, key: Key) -> Place:
        return Place(self.server, key, self._session.implicit_timestamp)

    def _needed(self, key: Key) -> Table:
        table = self._temporary.get(key) or self.tables.get(key)
        if table is None:
            raise NotUnderstood(f"the dump has no table {full(key)} for it")
        if table.doubt:
            raise NotUnderstood(table.doubt)
        return table

    # Databases and the session.

    def _use(self, statement: Words) -> None:
        self._database = statement.name()
        if statement:
            raise NotUnderstood("USE without its end")

    def _set(self, statement: Words) -> None:
        if self._session.set(statement):
            self._uncommitted = False

    def _prepare(self, statement: Words) -> None:
        self._session.prepare(statement, _WITHOUT_EFFECT | {"SET"})

    def _execute(self, statement: Words) -> None:
        self._session.execute(statement)

    def _begin(self, statement: Words) -> None:
        if statement.has("NOT", "ATOMIC"):
            raise NotUnderstood("what it does is not known")
        self._commit(statement)
        self._session.in_transaction = True

    def _start(self, statement: Words) -> None:
        if statement.has("TRANSACTION"):
            self._begin(statement)

    def _commit(self, _: Words) -> None:
        self._session.in_transaction = False
        self._uncommitted = False

    def _rollback(self, statement: Words) -> None:
        self._roll_back()
        if not (statement.has("TO") or statement.has("WORK", "TO")):
            self._commit(statement)

    def _roll_back(self) -> None:
        """Note that rows of the configuration are not committed."""
        if self._uncommitted:
            for key in self.rows:
                self.tables[key].doubt = "its rows are not committed"

    def _make_database(self, statement: Words) -> None:
        statement.accept("IF", "NOT", "EXISTS")
        name = statement.name()
        self._database_text(name, statement)
        self.whole.add(name)

    def _database_text(self, name: str, statement: Words) -> None:
        options = read_options(statement, self.server, None)
        text = options.text or self._texts.get(name)
        self._texts[name] = text or text_of(self.server, "", "")

    def _drop_database(self, statement: Words) -> None:
        statement.accept("IF", "EXISTS")
        name = statement.name()
        for key in [key for key in self.tables if key[0] == name]:
            self._remove(key)
        self.views = {key for key in self.views if key[0] != name}
        self._texts.pop(name, None)
        self.whole.add(name)

    # Tables.

    def _create(self, statement: Words) -> None:
        replacing = statement.accept("OR", "REPLACE")
        modifiers, kind = self._kind(statement)
        self._implicit_commit(kind, modifiers)
        if kind == "TABLE":
            self._create_table(statement, temporary="TEMPORARY" in modifiers, replacing=replacing)
        elif kind == "INDEX":
            self._create_index(statement, modifiers, replacing=replacing)
        elif kind == "VIEW":
            statement.accept("IF", "NOT", "EXISTS")
            self._create_view(self._table_key(statement))
        elif kind == "TRIGGER":
            self._create_trigger(statement)
        elif kind in ("DATABASE", "SCHEMA"):
            if replacing:
                self._drop_database(Words("", [*statement][:1]))
            self._make_database(statement)
        elif kind == "SEQUENCE":
            statement.accept("IF", "NOT", "EXISTS")
            self._table_key(statement)
            raise NotUnderstood("a sequence")
        else:
            self.skipped.append(self._shown)

    def _kind(self, statement: Words) -> tuple[set[str], str]:
        """Read up to the kind of object; return the words before it, and the kind."""
        modifiers = set[str]()
        while statement:
            word = statement.next()
            statement.take()
            if word in _KINDS:
                return modifiers, word
            modifiers.add(word)
        raise NotUnderstood("what it does is not known")

    def _implicit_commit(self, kind: str, modifiers: set[str]) -> None:
        if "TEMPORARY" not in modifiers or kind != "TABLE":
            self._uncommitted = False
            self._session.in_transaction = False

    def _create_table(self, statement: Words, *, temporary: bool, replacing: bool) -> None:
        unless = statement.accept("IF", "NOT", "EXISTS")
        key = self._table_key(statement)
        there = self._temporary if temporary else self.tables
        if key in there or (key in self.views and not temporary):
            if unless:
                return
            if not replacing:
                raise NotUnderstood("it is there already, and the client stops here")
            self._remove(key)
        table, rows = self._defined(statement, key)
        table.temporary = temporary
        there[key] = table
        self.doubts.pop(key, None)
        self.gone.discard(key)
        if key[0] == CONFIGURATION and not temporary:
            self.rows[key] = rows
            self.configured |= bool(rows)

    def _defined(self, statement: Words, key: Key) -> tuple[Table, list[Row]]:
        """Return a table that CREATE TABLE makes, with the rows that it begins with."""
        if statement.accept("LIKE"):
            return self._like(statement.table(self._database), key), []
        elements = list[Words]()
        if statement.next() == "(":
            group = statement.group()
            if group.accept("LIKE"):
                return self._like(group.table(self._database), key), []
            if group.next() in ("SELECT", "WITH"):
                return self._selected(group, key, Table(self._text(key)))
            elements = list(group.parts())
        options = read_options(statement, self.server, self._text(key))
        table = Table(options.text or self._text(key), options.engine or self._session.engine, options.partitioned)
        for element in sorted(elements, key=_after_columns):
            define(table, element, self._place(key))
        if statement:
            return self._selected(statement, key, table)
        if self._session.adds_primary_key and PRIMARY not in table.indexes:
            raise NotUnderstood("the server adds a primary key that is not shown")
        return table, []

    def _text(self, key: Key) -> Text:
        return self._texts.get(key[0]) or text_of(self.server, "", "")

    def _like(self, other: Key, key: Key) -> Table:
        table = self._needed(other).copy()
        if not self.server.mariadb:
            stem, new = f"{other[1]}_chk_", f"{key[1]}_chk_"
            table.checks = {name.replace(stem, new, 1): names for name, names in table.checks.items()}
        return table

    def _selected(self, statement: Words, key: Key, table: Table) -> tuple[Table, list[Row]]:
        """Return a table made of a query's columns; raises NotUnderstood for more than columns of one table."""
        statement.accept("AS")
        query = tree_of(statement.group().rest() if statement.next() == "(" else statement.rest())
        if table.columns:
            return self._with_literals(query, table)
        if not isinstance(query, exp.Select):
            raise NotUnderstood("columns of a query")
        other, original = self._queried(query)
        for each in query.expressions:
            if isinstance(each, exp.Star):
                for column in original.columns:
                    table.insert(_as_selected(column), None)
            elif isinstance(each, exp.Column):
                table.insert(_as_selected(original.columns[original.place(each.name)]), None)
            else:
                raise NotUnderstood("columns of a query")
        if key[0] != CONFIGURATION:
            return table, []
        cells = Rows(original, self.rows[other]).query(query) if other in self.rows else None
        if cells is None:
            raise NotUnderstood("rows of another schema")
        names = [column.name.lower() for column in table.columns]
        return table, [dict(zip(names, row, strict=True)) for row in cells]

    @staticmethod
    def _with_literals(query: exp.Expr, table: Table) -> tuple[Table, list[Row]]:
        """Return a table with the rows of a query of literals, each named as a column; raises NotUnderstood."""
        selects = [query] if isinstance(query, exp.Select) else list(query.find_all(exp.Select))
        if not selects or query.find(exp.From) or query.find(exp.Where) or query.find(exp.Limit):
            raise NotUnderstood("columns of a query")
        names = [each.alias for each in selects[0].expressions]
        if not all(names) or any(not table.has(name) for name in names):
            raise NotUnderstood("columns of a query")
        selected = [table.columns[table.place(name)] for name in names]
        table.columns = [column for column in table.columns if column not in selected] + selected
        rows = Rows(table, [])
        for select in selects:
            literals = exp.Tuple(expressions=[each.unalias() for each in select.expressions])
            columns = [exp.to_identifier(name, quoted=True) for name in names]
            target = exp.Schema(this=exp.to_table("t"), expressions=columns)
            insert = exp.Insert(this=target, expression=exp.Values(expressions=[literals]))
            rows.insert(insert, lambda _: [], replacing=False)
        return table, rows.rows

    def _queried(self, query: exp.Select) -> tuple[Key, Table]:
        named = query.args.get("from_")
        tables = list(query.find_all(exp.Table))
        if named is None or len(tables) != 1:
            raise NotUnderstood("a query of several tables")
        key = (tables[0].db or self._database, tables[0].name)
        return key, self._needed(key)

    def _create_index(self, statement: Words, modifiers: set[str], *, replacing: bool) -> None:
        unless = statement.accept("IF", "NOT", "EXISTS")
        name = statement.name()
        if statement.any_of("USING", "TYPE"):
            statement.take()
        if not statement.accept("ON"):
            raise NotUnderstood("CREATE INDEX without a table")
        table = self._needed(self._table_key(statement))
        if statement.accept("NOWAIT") or statement.accept("WAIT"):
            raise NotUnderstood("it does not wait for a lock")
        kind = next(iter(modifiers & {"UNIQUE", "FULLTEXT", "SPATIAL"}), "KEY")
        if name.lower() in (each.lower() for each in table.indexes):
            if unless:
                return
            if replacing:
                del table.indexes[table.find_index(name)]
        add_index(table, statement.after(f"{kind} KEY `{name.replace('`', '``')}`"), kind)

    def _create_view(self, key: Key) -> None:
        self.doubts.pop(key, None)
        self.gone.discard(key)
        self.views.add(key)

    def _create_trigger(self, statement: Words) -> None:
        statement.accept("IF", "NOT", "EXISTS")
        _, name = statement.table(self._database)
        while statement and not statement.accept("ON"):
            statement.take()
        key = self._table_key(statement)
        self._needed(key).triggers.append(name)

    def _alter(self, statement: Words) -> None:
        modifiers, kind = self._kind(statement)
        self._implicit_commit(kind, modifiers)
        if kind in ("DATABASE", "SCHEMA"):
            database = self._database if statement.next() in _DATABASE_OPTIONS else statement.name()
            self._database_text(database, statement)
        elif kind == "VIEW":
            self._create_view(self._table_key(statement))
        elif kind == "TABLE":
            self._alter_table(statement)
        elif kind not in _OTHERS:
            raise NotUnderstood("what it does is not known")

    def _alter_table(self, statement: Words) -> None:
        exists = statement.accept("IF", "EXISTS")
        key = self._table_key(statement)
        if exists and key not in self.tables and key not in self._temporary and key[0] in self.whole:
            return
        if statement and all(is_without_effect(action) for action in statement.copy().parts()):
            return
        table = self._needed(key)
        before = [column.name for column in table.columns]
        done = alter_table(table, statement, self._place(key), self._database)
        if key in self.rows and table is self.tables.get(key):
            self.rows[key] = _moved(self.rows[key], before, table, done.renamed)
        if done.name is not None and key in self._temporary:
            self._temporary[done.name] = self._temporary.pop(key)
        elif done.name is not None:
            self._rename_table(key, done.name)

    def _rename(self, statement: Words) -> None:
        self._uncommitted = False
        if statement.any_of("USER"):
            return
        if not statement.any_of("TABLE", "TABLES"):
            raise NotUnderstood("what it does is not known")
        statement.accept("IF", "EXISTS")
        for pair in statement.parts():
            old = self._table_key(pair)
            if not pair.accept("TO"):
                raise NotUnderstood("RENAME TABLE without TO")
            self._rename_table(old, self._table_key(pair))

    def _rename_table(self, old: Key, new: Key) -> None:
        self._concerned.append(new)
        if new in self.tables or new in self.views:
            raise NotUnderstood(f"{full(new)} is there already, and the client stops here")
        if old in self.views:
            self.views.remove(old)
            self.views.add(new)
            return
        if old in self._temporary and self.server.mariadb:  # MySQL's RENAME TABLE is of other tables only
            self._temporary[new] = self._temporary.pop(old)
            return
        table = self.tables.get(old)
        if table is None:
            raise NotUnderstood(f"the dump has no table {full(old)} for it")
        rows = self.rows.pop(old, None)
        if new[0] == CONFIGURATION and rows is None:
            table.doubt = table.doubt or f"it comes from {full(old)}, whose rows are not read"
        del self.tables[old]
        self.gone.add(old)
        self.gone.discard(new)
        self.doubts.pop(new, None)
        self.tables[new] = table
        if new[0] == CONFIGURATION:
            self.rows[new] = rows or []
        stem = f"{old[1]}_ibfk_"
        table.foreign = {name.replace(stem, f"{new[1]}_ibfk_", 1): each for name, each in table.foreign.items()}
        for other in self.tables.values():
            other.foreign = {
                name: replace(each, parent=new) if each.parent == old else each for name, each in other.foreign.items()
            }

    def _drop(self, statement: Words) -> None:
        modifiers, kind = self._kind(statement)
        self._implicit_commit(kind, modifiers)
        if kind in ("DATABASE", "SCHEMA"):
            self._drop_database(statement)
        elif kind in ("TABLE", "TABLES", "VIEW", "SEQUENCE"):
            statement.accept("IF", "EXISTS")
            for each in statement.parts():
                self._drop_table(self._table_key(each), view=kind == "VIEW", temporary="TEMPORARY" in modifiers)
        elif kind == "INDEX":
            self._drop_index(statement)
        elif kind == "TRIGGER":
            statement.accept("IF", "EXISTS")
            schema, name = statement.table(self._database)
            for key, table in self.tables.items():
                if key[0] == schema and name in table.triggers:
                    table.triggers.remove(name)

    def _drop_table(self, key: Key, *, view: bool, temporary: bool) -> None:
        if view:
            self.views.discard(key)
        elif key in self._temporary:
            del self._temporary[key]
        elif not temporary:
            self._remove(key)

    def _drop_index(self, statement: Words) -> None:
        exists = statement.accept("IF", "EXISTS")
        name = statement.name()
        if not statement.accept("ON"):
            raise NotUnderstood("DROP INDEX without a table")
        table = self._needed(self._table_key(statement))
        if not exists or name.lower() in (each.lower() for each in table.indexes):
            del table.indexes[table.find_index(name)]

    def _remove(self, key: Key) -> None:
        self.tables.pop(key, None)
        self.rows.pop(key, None)
        self.doubts.pop(key, None)
        self.views.discard(key)
        self.gone.add(key)

    # Rows.

    def _truncate(self, statement: Words) -> None:
        self._uncommitted = False
        statement.any_of("TABLE")
        key = self._table_key(statement)
        if key in self.rows and key not in self._temporary:
            self.rows[key] = []

    def _change_rows(self, statement: Words) -> None:
        head = statement.next()
        if not any(
            token.text.lower() in {CONFIGURATION, *CONFIG_TABLES, *self._configuration()} for token in statement
        ):
            return
        self._concerned = [(CONFIGURATION, name) for name in {*CONFIG_TABLES, *self._configuration()}]
        if head not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
            raise NotUnderstood("what it does to the rows is not known")
        if head == "REPLACE":
            statement.take()
        tree = tree_of(f"INSERT {statement.rest()}" if head == "REPLACE" else statement.rest())
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        if not isinstance(target, exp.Table) or target.args.get("joins") or tree.args.get("tables"):
            raise NotUnderstood("rows of several tables")
        key = (target.db or self._database, target.name)
        if key[0] != CONFIGURATION or key in self._temporary:
            return
        self._concerned = [key]
        self.configured |= head in ("INSERT", "REPLACE")
        self._run(tree, key, replacing=head == "REPLACE")

    def _configuration(self) -> set[str]:
        return {name for _, name in self.rows}

    def _run(self, tree: exp.Expr, key: Key, *, replacing: bool) -> None:
        table = self._needed(key)
        if table.triggers or key not in self.rows:
            raise NotUnderstood("a trigger may change the rows" if table.triggers else "its rows are not known")
        rows = Rows(table, self.rows[key])
        match tree:
            case exp.Insert():
                rows.insert(tree, self._rows_of, replacing=replacing)
            case exp.Update():
                rows.update(tree)
            case exp.Delete():
                rows.delete(tree)
        self.rows[key] = rows.rows
        self._uncommitted |= self._session.in_transaction or not self._session.autocommit

    def _rows_of(self, query: exp.Expr) -> list[list[str | None]]:
        if not isinstance(query, exp.Select):
            raise NotUnderstood("rows of a query")
        key, table = self._queried(query)
        if key not in self.rows:
            raise NotUnderstood("rows of another schema")
        return Rows(table, self.rows[key]).query(query)


_HEADS: Final = frozenset(
    "CREATE ALTER DROP RENAME TRUNCATE USE SET PREPARE EXECUTE BEGIN START COMMIT ROLLBACK".split()
)
_DATABASE_OPTIONS: Final = frozenset({"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT"})
# In these places the server takes a name and no text, so that double quotes mean sql_mode ANSI_QUOTES.
_ANSI: Final = re.compile(
    r'\s*(?:USE\s+"|(?:INSERT|REPLACE)\s+(?:\w+\s+)*?(?:INTO\s+)?"|(?:UPDATE|FROM)\s+"'
    r'|(?:CREATE|ALTER|DROP|RENAME|TRUNCATE|DELETE)\s(?:[^"\'`(]|`[^`]*`)*"'
    r'|(?:CREATE|ALTER)\s(?:[^"\'`(]|`[^`]*`)*\(\s*")',
    re.IGNORECASE,
)


def _names_in_double_quotes(statement: str) -> bool:
    return _ANSI.match(statement) is not None


def _after_columns(element: Words) -> bool:
    """Return whether an element of CREATE TABLE needs the columns to be there."""
    return element.next() in ("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN")


def _as_selected(column: Column) -> Column:
    return replace(column, generated="", auto_increment=False, default=column.default or column.auto_increment)


def _moved(rows: list[Row], before: list[str], table: Table, renamed: dict[str, str]) -> list[Row]:
    """Return rows with the columns that ALTER TABLE leaves.

    Args:
        rows: by the columns before.
        before: names of these columns.
        table: as it is now.
        renamed: old names of columns, in lower case, by new ones.

    Raises:
        NotUnderstood: what a new column contains is not known.
    """
    there = {name.lower() for name in before}
    moved = list[Row]()
    for row in rows:
        cells: Row = {}
        for column in table.columns:
            name = column.name.lower()
            old = renamed.get(name, name)
            if old in there:
                cells[name] = row[old]
            elif column.default or not column.nullable:
                raise NotUnderstood(f"what the column {column.name} contains in the rows that are there")
            else:
                cells[name] = None
        moved.append(cells)
    return moved
