"""Mutants of the row cache and of planned commands.

They run with these on; all other mutants run both ways, see `trials_of`.
"""

from __future__ import annotations

from kvref.engine.mapping import Mapping
from kvref.engine.plans.plan import CachedRow
from kvref.engine.session import Session
from kvref.storage.sqlite.row_cache import RowCache
from kvref_testbed.mutants.mutant import breaks, put


@breaks("KV-SQL-005")
def keeps_what_sql_has_changed() -> None:
    """A row is shown as at its first request, even if SQL changes it."""
    put(RowCache, "clear", lambda _: None)


@breaks("KV-CORE-060")
def keeps_what_is_deleted() -> None:
    """A cached row is shown after it is deleted."""
    put(RowCache, "wrote", lambda _self, _operation, *, elsewhere: None)
    change = RowCache.change

    def kept(self: RowCache, mapping: Mapping, word: bytes, item: CachedRow | None) -> None:
        if item is not None:
            change(self, mapping, word, item)

    put(RowCache, "change", kept)


@breaks("KV-MAP-036")
def answers_plain_commands_from_one_table() -> None:
    """A plain get or set is one of the default mapping, whatever is bound."""
    plain = Session.plannable_mapping.__get__

    def default(self: Session) -> Mapping | None:
        return None if plain(self) is None else self.shared.directory.default

    put(Session, "plannable_mapping", property(default))
