"""What is not sent: it has no meaning, no certain outcome, or freezes the plugin (transactions page, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.model import steps as s

if TYPE_CHECKING:
    from kvref_conformance.model.model import Model
    from kvref_conformance.model.rows import RowId

# Digits that a number may have, so that none grows beyond 64 bits.
DIGITS = 15


def refuses(model: Model, step: s.Step, *, transactions: bool) -> str:
    """Return why a step must not be done now; empty where it may.

    Args:
        model: before the step.
        step: the step.
        transactions: SQL transactions hold rows, statements wait for one, and READ UNCOMMITTED is possible: not over
            SQLite, which has one writer.
    """
    if isinstance(step, s.Open):
        return "it is open" if step.on in model.open else _refuses_connect(model)
    if isinstance(step, s.Read | s.Change | s.End):
        return _refuses_statement(model, step, transactions=transactions)
    if step.on not in model.open:
        return "it is not open"
    if model.open[step.on].waits:
        return "it waits"
    if isinstance(step, s.Flush):
        return _refuses_flush(model, step.on)
    if isinstance(step, s.Locking):
        return _grows(model, step) or _refuses_lock(model, step)
    return ""


def _refuses_connect(model: Model) -> str:
    blocked = {each.slot for each in model.open.values() if each.waits}
    return "every thread of the endpoint waits" if len(blocked) == model.threads else ""


def _refuses_statement(model: Model, step: s.Statement, *, transactions: bool) -> str:
    needs_more = step.dirty if isinstance(step, s.Read) else isinstance(step, s.End) or step.within
    if needs_more and not transactions:
        return "SQLite has one writer and shows what is committed"
    if isinstance(step, s.Read):
        return ""
    if isinstance(step, s.End):
        return "" if model.sql_open else "no SQL transaction is open"
    place = (step.table, step.key)
    owner = s.SQL if step.within else s.AUTOCOMMIT
    if model.rows.doubtful(place, owner) or _waited_for(model, place):
        return "whether it waits, or for how long, varies"
    holder = model.rows.holder(place, owner)
    if holder:
        may = transactions and not step.within and step.verb != "insert" and holder != s.SQL
        return "" if may and not model.sql_waits else "it would wait without end"
    there = model.rows.newest(place) is not None
    if there == (step.verb == "insert"):
        return "the row is there" if there else "the row is not there"
    return ""


def _refuses_flush(model: Model, on: str) -> str:
    # 8.0 hangs where another connection has read the table and is idle (lock-109), and takes the table with it.
    table = model.tables[model.open[on].mapping]
    if (
        model.sql_open
        or model.sql_waits
        or any(table in other.touched for name, other in model.open.items() if name != on)
    ):
        return "flush_all would wait for others, and hang"
    return ""


def _grows(model: Model, step: s.Locking) -> str:
    if isinstance(step, s.Count) or (isinstance(step, s.Store) and step.verb in {"append", "prepend"}):
        rows = map(model.rows.newest, model.places(step))
        if any(row is not None and len(row.item.value) >= DIGITS for row in rows):
            return "the number gets too long"
    return ""


def _refuses_lock(model: Model, step: s.Locking) -> str:
    places = model.locks(step)
    waited_for = any(_waited_for(model, place) for place in model.rows.locked_by(step.on))
    # The word binds another mapping, so that what it holds is given back before.
    bound = model.open[step.on].mapping
    if waited_for and any(to.kind == "key" and to.mapping != bound for to in model.resolved(step)):
        return "what waits is served in the midst of it"
    if any(model.rows.doubtful(place, step.on) for place in places):
        return "whether it waits depends on the storage"
    if not any(model.rows.holder(place, step.on) for place in places):
        return ""
    if not model.rules.waits:
        return "how long it waits varies"
    if len(places) > 1 or any(_waited_for(model, place) for place in places):
        return "who is served first varies"
    if waited_for:
        return "a deadlock is possible"
    if model.limits.gives_up:
        certain = isinstance(step, s.Store | s.Delete) and not step.silent and not model.timeouts
        return "" if certain else "one wait of a second suffices"
    slot = model.open[step.on].slot
    if any(other.slot == slot for name, other in model.open.items() if name != step.on):
        return "it would block another connection's thread"
    return ""


def _waited_for(model: Model, place: RowId) -> bool:
    if model.sql_waits and model.sql_waits[0] == place:
        return True
    return any(place in model.locks(c.waits) for c in model.open.values() if c.waits)
