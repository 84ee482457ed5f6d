"""Variables of the session that change what statements of a script mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref.doctor.dump.words import NotUnderstood, Words, words

if TYPE_CHECKING:
    from collections.abc import Collection

    from kvref.doctor.dump.script import Server

_ON: Final = frozenset({"1", "ON", "TRUE"})
_ENGINES: Final = frozenset({"default_storage_engine", "storage_engine"})


class SessionVariables:
    """The variables that count, as SET leaves them.

    Args:
        server: whose defaults count.
    """

    def __init__(self, server: Server) -> None:
        self.in_transaction = False
        # The texts that each variable may have; `@name` for those of the user.
        self._values: dict[str, tuple[str, ...]] = {}
        self._prepared: dict[str, str] = {}
        self._timestamps = server.version >= ((10, 10, 0) if server.mariadb else (8, 0, 0))

    @property
    def ansi(self) -> bool:
        """Return whether double quotes are around names."""
        return any("ANSI" in each.upper() for each in self._values.get("sql_mode", ()))

    @property
    def engine(self) -> str:
        """Return the engine of a table that names none."""
        names = {name for name in _ENGINES if name in self._values}
        chosen = {text for name in names for text in self._values[name]}
        if len(chosen) > 1:
            raise NotUnderstood("the engine of the session is not known")
        return next(iter(chosen), "InnoDB")

    @property
    def autocommit(self) -> bool:
        """Return whether each statement commits."""
        return self._is_on("autocommit", otherwise=True)

    @property
    def implicit_timestamp(self) -> bool:
        """Return whether a TIMESTAMP that does not say otherwise is NOT NULL and has a default."""
        return not self._is_on("explicit_defaults_for_timestamp", otherwise=self._timestamps)

    @property
    def adds_primary_key(self) -> bool:
        """Return whether a table without a primary key gets one."""
        return self._is_on("sql_generate_invisible_primary_key", otherwise=False)

    def _is_on(self, name: str, *, otherwise: bool) -> bool:
        values = self._values.get(name)
        return otherwise if not values else any(each.upper() in _ON for each in values)

    def set(self, statement: Words) -> bool:
        """Follow SET; return whether it commits, as the change of autocommit to 1 does."""
        if statement.next() in (
            "PASSWORD",
            "ROLE",
            "DEFAULT",
            "RESOURCE",
            "TRANSACTION",
            "NAMES",
            "CHARACTER",
            "CHARSET",
            "STATEMENT",
        ):
            if statement.next() == "STATEMENT":
                raise NotUnderstood("a statement with variables of its own")
            return False
        before = self.autocommit
        for assignment in statement.parts():
            self._assign(assignment)
        return self.autocommit and not before

    def _assign(self, assignment: Words) -> None:
        globally = bool(assignment.any_of("GLOBAL", "PERSIST", "PERSIST_ONLY"))
        assignment.any_of("SESSION", "LOCAL")
        of_user = False
        if assignment.accept("@", "@"):
            scope = assignment.any_of("GLOBAL", "SESSION", "LOCAL", "PERSIST")
            globally |= scope in ("GLOBAL", "PERSIST")
            assignment.accept(".")
        elif assignment.accept("@"):
            of_user = True
        name = assignment.take().text.lower()
        assignment.accept(":")
        if not assignment.accept("=") or globally:
            return
        self._values[f"@{name}" if of_user else name] = tuple(self._texts(assignment))

    def _texts(self, value: Words) -> list[str]:
        """Return the texts that an expression may be: all that are in it, and those of variables."""
        if value.has("DEFAULT"):
            return []
        found: list[str] = []
        while value:
            if value.accept("@", "@"):
                if value.any_of("SESSION", "GLOBAL", "LOCAL"):
                    value.accept(".")
                found += self._values.get(value.take().text.lower(), ()) if value else ()
            elif value.accept("@"):
                found += self._values.get(f"@{value.take().text.lower()}", ()) if value else ()
            else:
                found.append(value.take().text)
        return found

    def prepare(self, statement: Words, harmless: Collection[str]) -> None:
        """Follow PREPARE.

        Args:
            statement: what follows.
            harmless: first words of statements that change nothing.
        """
        name = statement.name().lower()
        statement.accept("FROM")
        texts = self._texts(statement)
        bad = [each for each in texts if " " in each.strip() and words(each, ansi=False).next() not in harmless]
        self._prepared[name] = (bad or [""])[0] if texts else "a text that is not known"

    def execute(self, statement: Words) -> None:
        """Follow EXECUTE; raises NotUnderstood where what is executed may change a table."""
        prepared = self._prepared.get(statement.name().lower(), "a text that is not known")
        if prepared:
            raise NotUnderstood(f"it runs {prepared[:60]}")
