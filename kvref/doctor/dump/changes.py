"""Follow a script: which tables there are when it has run, what they are, and what cannot be known of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from kvref.doctor.dump.define import TableContext, alter, define, set_options
from kvref.doctor.dump.rows import Row, Rows
from kvref.doctor.dump.script import NAME, TEXT
from kvref.doctor.dump.statements import FULL_NAME, Key, NotUnderstood, full, key_of, tree_of, unquoted
from kvref.doctor.dump.tables import Table, Text, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref.doctor.dump.script import Server, Statement

CONFIGURATION: Final = "innodb_memcache"
CONFIG_TABLES: Final = frozenset({"containers", "config_options", "cache_policies"})
# Statements that change no definition of a table and no row of the configuration.
_WITHOUT_EFFECT: Final = frozenset(
    "ANALYZE CHECK CHECKSUM OPTIMIZE REPAIR SHOW SELECT DESC DESCRIBE EXPLAIN DO HELP GRANT REVOKE CHANGE STOP RESET"
    " PURGE KILL CACHE BINLOG PREPARE DEALLOCATE SAVEPOINT RELEASE SIGNAL RESIGNAL GET INSTALL UNINSTALL SHUTDOWN CLONE"
    " TABLE VALUES HANDLER".split()
)
_COMMITS: Final = frozenset({"COMMIT", "LOCK", "UNLOCK", "FLUSH"})
_ROWS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "LOAD"})
_DEFINITIONS: Final = frozenset({"CREATE", "ALTER", "DROP"})
# Up to the kind of object of CREATE, ALTER or DROP, and its name.
_HEAD: Final = re.compile(
    rf"(?P<verb>\w+)\b(?P<modifiers>(?:{TEXT}|[^'\"`])*?)\b(?P<kind>TABLE|TABLES|INDEX|VIEW|TRIGGER|DATABASE|SCHEMA"
    r"|SEQUENCE|PROCEDURE|FUNCTION|EVENT|USER|ROLE|SERVER|TABLESPACE|LOGFILE|PACKAGE|INSTANCE|RESOURCE|LIBRARY"
    rf"|REFERENCE)\b\s*(?P<condition>IF\s+(?:NOT\s+)?EXISTS\s+)?(?P<name>{FULL_NAME})?\s*",
    re.IGNORECASE | re.DOTALL,
)
_ON: Final = re.compile(rf"(?:{TEXT}|[^'\"`])*?\bON\s+(?P<table>{FULL_NAME})\s*", re.IGNORECASE | re.DOTALL)
_RENAME: Final = re.compile(rf"\s*({FULL_NAME})\s+TO\s+({FULL_NAME})\s*(?:,|\Z)", re.IGNORECASE)
_NEW_NAME: Final = re.compile(
    rf"{TEXT}|\bRENAME\s+(?!\s|(?:COLUMN|INDEX|KEY)\b)(?:(?:TO|AS)\b|=)?\s*(?P<name>{FULL_NAME})", re.IGNORECASE
)
_TRUNCATE: Final = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?({FULL_NAME})\s*", re.IGNORECASE)
_PARTITIONS: Final = re.compile(rf"((?:{TEXT}|[^'\"`])*?)\bPARTITION\s+BY\b", re.IGNORECASE | re.DOTALL)
_VARIABLE: Final = re.compile(r"\b(\w+)\s*:?=\s*((?:'[^']*'|\"[^\"]*\"|[^,'\"])*)", re.DOTALL)
_OFF: Final = frozenset({"0", "OFF", "FALSE"})
# Variables that decide what CREATE TABLE makes.
_DECISIVE: Final = frozenset({"explicit_defaults_for_timestamp", "sql_generate_invisible_primary_key"})
_ENGINES: Final = frozenset({"storage_engine", "default_storage_engine"})
_MAX_EXCERPT: Final = 60  # characters of a statement in a note
# Where the server expects a name, double quotes mean sql_mode ANSI_QUOTES.
_ANSI: Final = re.compile(
    r'\s*(?:USE\s+"|(?:INSERT|REPLACE)\s+(?:\w+\s+)*?(?:INTO\s+)?"|(?:UPDATE|FROM)\s+"'
    r'|(?:CREATE|ALTER|DROP|RENAME|TRUNCATE|DELETE)\s(?:[^"\'`(]|`[^`]*`)*"'
    r'|(?:CREATE|ALTER)\s(?:[^"\'`(]|`[^`]*`)*\(\s*")',
    re.IGNORECASE,
)


class Changes:
    """What a script makes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tables: dict[Key, Table] = {}
        self.views: set[Key] = set()
        self.rows: dict[Key, list[Row]] = {}
        """Of the tables of the schema innodb_memcache."""
        self.complete_schemas: set[str] = set()
        """Schemas whose tables are all known."""
        self.dropped: set[Key] = set()
        """Tables that were removed."""
        self.doubts: dict[Key, str] = {}
        """Why nothing is known of a table."""
        self.doubt = ""
        """Why nothing is known of any table."""
        self.configured = False
        """There are rows of the configuration."""
        self.skipped: list[str] = []
        """Statements that were passed over."""
        self._defaults: dict[str, Text] = {}
        self._temporary: set[Key] = set()
        self._database = CONFIGURATION
        self._ansi = False
        self._engine = "InnoDB"
        self._checks_foreign_keys = True
        self._in_transaction = False
        self._autocommit = True
        self._uncommitted = False
        self._affected: list[Key] = []
        self._excerpt = ""

    def needs_rows(self, written: str) -> bool:
        """Return whether the rows of a table are needed, by its name in a statement."""
        return key_of(written, self._database)[0] == CONFIGURATION

    def apply(self, statement: Statement) -> None:
        """Follow a statement."""
        self._database = statement.database or self._database
        if self.doubt:
            return
        self._affected = []
        self._excerpt = " ".join(statement.text.split())[:_MAX_EXCERPT]
        try:
            self._apply(statement)
        except NotUnderstood as reason:
            excerpt = f"{self._excerpt}: " if self._excerpt else ""
            self._doubt(f"line {statement.line}: {excerpt}{reason}")

    def _doubt(self, reason: str) -> None:
        """Note that a statement was not understood: of the tables that it names, else of all."""
        if not self._affected:
            self.doubt = reason
        for key in self._affected:
            table = self.tables.get(key)
            if table is None:
                self.doubts.setdefault(key, reason)
            else:
                table.doubt = table.doubt or reason

    def finish(self) -> None:
        """Note rows that the script did not commit."""
        if self._uncommitted:
            for key in self.rows:
                self.tables[key].doubt = "its rows are not committed"

    def _apply(self, statement: Statement) -> None:
        if not statement.ended:
            raise NotUnderstood("the dump ends within a text")
        text = statement.text
        first = re.match(r"\w+", text)
        head = first[0].upper() if first else text[:1]
        apply: Callable[[str], None] | None = {
            "USE": self._use, "SET": self._set, "BEGIN": self._begin, "START": self._begin, "ROLLBACK": self._roll_back,
            "RENAME": self._rename, "TRUNCATE": self._truncate,
        }.get(head)  # fmt: skip
        if apply is not None:
            apply(text)
        elif head in _DEFINITIONS:
            self._commit()
            self._define(text)
        elif head in _ROWS:
            self._change_rows(text, head)
        elif head in _COMMITS:
            self._commit()
        elif head not in _WITHOUT_EFFECT and head not in ("", "("):
            raise NotUnderstood("what it does is not known")

    def _tree(self, text: str) -> exp.Expr:
        return tree_of(text, ansi=self._ansi or _ANSI.match(text) is not None)

    def _key(self, written: str | exp.Expr) -> Key:
        """Return the schema and name of a table that a statement is about."""
        if isinstance(written, str):
            key = key_of(written, self._database)
        else:
            key = (written.args["db"].name if written.args.get("db") else self._database, written.name)
        self._affected.append(key)
        if key in self._temporary:
            raise NotUnderstood("there is a temporary table with its name")
        return key

    def _context(self, key: Key) -> TableContext:
        return TableContext(self.server, key, self.tables if self._checks_foreign_keys else None)

    def _known_table(self, key: Key) -> Table:
        table = self.tables.get(key)
        if table is None:
            raise NotUnderstood(f"the dump has no table {full(key)} for it")
        if table.doubt:
            raise NotUnderstood(table.doubt)
        return table

    # Databases, the session and transactions.

    def _use(self, text: str) -> None:
        name = re.fullmatch(rf"USE\s+({NAME})\s*", text, re.IGNORECASE)
        if name is None:
            raise NotUnderstood("USE without its end")
        self._database = unquoted(name[1])

    def _set(self, text: str) -> None:
        if re.match(r"SET\s+STATEMENT\b", text, re.IGNORECASE):
            raise NotUnderstood("a SET STATEMENT")
        for name, value in _VARIABLE.findall(text):
            written = value.strip().strip("'\"").strip()
            match name.lower():
                case "sql_mode":
                    self._ansi = "ANSI" in written.upper()
                case "autocommit":
                    self._autocommit = written.upper() not in _OFF
                    if self._autocommit:
                        self._commit()
                case "foreign_key_checks":
                    self._checks_foreign_keys = written.upper() not in _OFF
                case engine if engine in _ENGINES and re.fullmatch(r"\w+", written):
                    self._engine = written
                case decisive if decisive in _DECISIVE | _ENGINES:
                    raise NotUnderstood("the tables that follow depend on it")

    def _begin(self, text: str) -> None:
        if re.match(r"BEGIN\s+NOT\b", text, re.IGNORECASE):
            raise NotUnderstood("what it does is not known")
        self._commit()
        self._in_transaction = True

    def _commit(self) -> None:
        self._in_transaction = self._uncommitted = False

    def _roll_back(self, _: str) -> None:
        self.finish()
        self._uncommitted = False

    # Tables.

    def _define(self, text: str) -> None:
        head = _HEAD.match(text)
        if head is None:
            raise NotUnderstood("what it does is not known")
        verb, kind, rest = head["verb"].upper(), head["kind"].upper(), text[head.end() :]
        modifiers = frozenset(head["modifiers"].upper().split())
        match kind:
            case "DATABASE" | "SCHEMA":
                self._define_database(verb, head["name"], rest)
            case "TABLE" | "TABLES" | "VIEW" if verb == "DROP":
                self._drop_tables(text[head.start("name") :], view=kind == "VIEW", temporary="TEMPORARY" in modifiers)
            case "TABLE":
                self._define_table(verb, modifiers, head, text)
            case "INDEX":
                self._define_index(verb, modifiers, head["name"] or "", rest)
            case "VIEW":
                self.views.add(self._key(head["name"] or ""))
            case "TRIGGER":
                self._define_trigger(verb, head["name"] or "", rest)
            case "SEQUENCE":
                self._key(head["name"] or "")
                raise NotUnderstood("a sequence")
            case _ if verb == "CREATE":
                self.skipped.append(self._excerpt)

    def _define_database(self, verb: str, written: str | None, rest: str) -> None:
        name = unquoted(written or self._database)
        if verb != "ALTER":
            self.complete_schemas.add(name)
        if verb == "DROP":
            for key in [key for key in self.tables if key[0] == name]:
                self._remove(key)
            self.views = {key for key in self.views if key[0] != name}
            self._defaults.pop(name, None)
            return
        made = self._tree(f"CREATE DATABASE x {rest}").args.get("properties")
        table = Table(self._defaults.get(name) or text_of(self.server, "", ""))
        set_options(table, made.expressions if made else [], self.server)
        self._defaults[name] = table.text

    def _define_table(self, verb: str, modifiers: frozenset[str], head: re.Match[str], text: str) -> None:
        key = self._key(head["name"] or "")
        if "TEMPORARY" in modifiers:
            self._temporary.add(key)
            raise NotUnderstood("a temporary table")
        if verb == "ALTER":
            self._alter_table(key, f"ALTER TABLE {head['name']} ", text[head.end() :])
        else:
            self._create_table(key, text, exists=head["condition"] is not None, replacing="REPLACE" in modifiers)

    def _create_table(self, key: Key, text: str, *, exists: bool, replacing: bool) -> None:
        if key in self.tables or key in self.views:
            if exists:
                return
            if not replacing:
                raise NotUnderstood("it is there already, and the client stops here")
            self._remove(key)
        self.tables[key] = self._defined(key, text)
        self.doubts.pop(key, None)
        self.dropped.discard(key)
        if key[0] == CONFIGURATION:
            self.rows[key] = []

    def _defined(self, key: Key, text: str) -> Table:
        partitions = _PARTITIONS.match(text)
        tree = self._tree(text if partitions is None else partitions[1])
        if tree.args.get("expression"):
            raise NotUnderstood("columns or rows of a query")
        if like := tree.find(exp.LikeProperty):
            return self._like(self._key(like.this), key)
        if not isinstance(tree.this, exp.Schema):
            raise NotUnderstood("its form is not known")
        default = self._defaults.get(key[0]) or text_of(self.server, "", "")
        table = Table(default, self._engine, partitions is not None)
        properties = tree.args.get("properties")
        set_options(table, properties.expressions if properties else [], self.server)
        define(table, tree.this.expressions, self._context(key))
        return table

    def _like(self, other: Key, key: Key) -> Table:
        self._affected.remove(other)
        table = self._known_table(other).copy()
        if not self.server.mariadb:
            stem, new = f"{other[1]}_chk_", f"{key[1]}_chk_"
            table.checks = {name.replace(stem, new, 1): names for name, names in table.checks.items()}
        return table

    def _alter_table(self, key: Key, head: str, text: str) -> None:
        if re.fullmatch(r"(?:DIS|EN)ABLE\s+KEYS\s*", text, re.IGNORECASE):
            return
        for found in _NEW_NAME.finditer(text):
            if found["name"]:
                self._key(found["name"])  # what is not understood of the statement concerns the new name too
        table = self._known_table(key)
        before = [column.name for column in table.columns]
        partitions = _PARTITIONS.match(text)
        if re.fullmatch(r"REMOVE\s+PARTITIONING\s*", text, re.IGNORECASE):
            table.partitioned = False
        elif partitions is None or partitions[1].strip():
            self._actions(key, table, self._tree(head + (text if partitions is None else partitions[1])))
        table.partitioned |= partitions is not None
        if self.rows.get(key) and before != [column.name for column in table.columns]:
            raise NotUnderstood("it changes columns of rows that are there")

    def _actions(self, key: Key, table: Table, tree: exp.Expr) -> None:
        new = None
        for action in tree.args.get("actions") or ():
            if isinstance(action, exp.AlterRename):
                new = self._key(action.this)
            else:
                alter(table, action, self._context(key))
        set_options(table, tree.args.get("options") or (), self.server)
        if new is not None:
            self._rename_table(key, new)

    def _define_index(self, verb: str, modifiers: frozenset[str], name: str, rest: str) -> None:
        """Follow CREATE INDEX and DROP INDEX as ALTER TABLE."""
        found = _ON.match(rest)
        if found is None:
            raise NotUnderstood("an index without a table")
        head = f"ALTER TABLE {found['table']} "
        columns = rest[found.end() :]
        kind = next(iter(modifiers & {"UNIQUE", "FULLTEXT", "SPATIAL"}), "")
        action = f"DROP INDEX {name}" if verb == "DROP" else f"ADD {kind} KEY {name} {columns}"
        self._alter_table(self._key(found["table"]), head, action)

    def _define_trigger(self, verb: str, name: str, rest: str) -> None:
        schema, trigger = key_of(name, self._database)
        if verb == "DROP":
            for key, table in self.tables.items():
                if key[0] == schema and trigger in table.triggers:
                    table.triggers.remove(trigger)
            return
        found = _ON.match(rest)
        if found is None:
            raise NotUnderstood("a trigger without a table")
        self._known_table(self._key(found["table"])).triggers.append(trigger)

    def _rename(self, text: str) -> None:
        self._commit()
        head = re.match(r"RENAME\s+(TABLES?|USER)\s+(?:IF\s+EXISTS\s+)?", text, re.IGNORECASE)
        if head is None:
            raise NotUnderstood("what it does is not known")
        position = head.end()
        while head[1].upper() != "USER" and position < len(text):
            pair = _RENAME.match(text, position)
            if pair is None:
                raise NotUnderstood("RENAME TABLE of another form")
            self._rename_table(self._key(pair[1]), self._key(pair[2]))
            position = pair.end()

    def _rename_table(self, old: Key, new: Key) -> None:
        if new in self.tables or new in self.views:
            raise NotUnderstood(f"{full(new)} is there already, and the client stops here")
        if old in self.views:
            self.views.remove(old)
            self.views.add(new)
            return
        if CONFIGURATION in (old[0], new[0]):
            raise NotUnderstood("a table of the configuration gets another name")
        table = self.tables.pop(old, None)
        if table is None:
            raise NotUnderstood(f"the dump has no table {full(old)} for it")
        self.dropped.add(old)
        self.dropped.discard(new)
        self.doubts.pop(new, None)
        self.tables[new] = table
        for other in self.tables.values():
            other.foreign = {
                name: each._replace(parent=new) if each.parent == old else each for name, each in other.foreign.items()
            }

    def _drop_tables(self, names: str, *, view: bool, temporary: bool) -> None:
        for name in re.findall(FULL_NAME, re.sub(r"\s+(?:RESTRICT|CASCADE)\s*$", "", names, flags=re.IGNORECASE)):
            if view:
                self.views.discard(key_of(name, self._database))
            elif not temporary:
                self._remove(self._key(name))

    def _remove(self, key: Key) -> None:
        self.tables.pop(key, None)
        self.rows.pop(key, None)
        self.doubts.pop(key, None)
        self.views.discard(key)
        self.dropped.add(key)

    # Rows.

    def _truncate(self, text: str) -> None:
        self._commit()
        found = _TRUNCATE.fullmatch(text)
        if found is None:
            raise NotUnderstood("its form is not known")
        key = self._key(found[1])
        if key in self.rows:
            self.rows[key] = []

    def _change_rows(self, text: str, head: str) -> None:
        names = {CONFIGURATION, *CONFIG_TABLES, *(name for _, name in self.rows)}
        if names.isdisjoint(each.lower() for each in re.findall(r"\w+", text)):
            return
        self._affected = [(CONFIGURATION, name) for name in names - {CONFIGURATION}]
        if head not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
            raise NotUnderstood("what it does to the rows is not known")
        tree = self._tree(f"INSERT{text[len(head) :]}" if head == "REPLACE" else text)
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        if not isinstance(target, exp.Table) or target.args.get("joins") or tree.args.get("tables"):
            raise NotUnderstood("rows of several tables")
        self._affected = []
        key = self._key(target)
        if key[0] == CONFIGURATION:
            self.configured |= head in ("INSERT", "REPLACE")
            self._run(tree, key, replacing=head == "REPLACE")

    def _run(self, tree: exp.Expr, key: Key, *, replacing: bool) -> None:
        table = self._known_table(key)
        if table.triggers:
            raise NotUnderstood("a trigger may change the rows")
        rows = Rows(table, self.rows[key])
        match tree:
            case exp.Insert():
                rows.insert(tree, replacing=replacing)
            case exp.Update():
                rows.update(tree)
            case exp.Delete():
                rows.delete(tree)
        self.rows[key] = rows.rows
        self._uncommitted |= self._in_transaction or not self._autocommit
