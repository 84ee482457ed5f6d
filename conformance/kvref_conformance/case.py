r"""A case: a conversation of steps. `cases/` has those of the suite as data, `judging/conversation.py` runs them.

A case that is written in Python, such as one of a project's own, is made of these functions:

    case("set-new", "KV-STORE-001", send("set {k} 3 0 3\r\none\r\n", "STORED\r\n"))

    case("bin-set-new", "KV-BINSTORE-001", frames("set key={k} value=one", "set ok cas=<cas>"))

Texts are templates (`wire/template.py`), one character a byte, or frames of the binary protocol in words
(`wire/frames.py`). If endpoints may differ, `by_fact` reads a fact of the profile. Time is expressed by requests and
statements that wait, and by deadlines for what must be observed:

    start_request("set {k} 0 0 1\r\nb\r\n", on="b"),  # waits for the row that another connection has locked
    sql("COMMIT", on="s"),
    await_reply("STORED\r\n", on="b"),

    eventually(sql(ROW, ("x",))),                # is visible within the deadline
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kvref_conformance.steps import (
    PATIENCE,
    SILENT_SECONDS,
    AwaitReply,
    By,
    Eventually,
    Mark,
    Reload,
    Send,
    Sql,
    StartRequest,
    StartSql,
    innermost,
)
from kvref_conformance.wire.template import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref_conformance.steps import Step

MAPPING_NAMES: Final = frozenset(
    "m t m1 m1b m2 m2up m2cut q t1 t2 t3 w0 w1 w2 w3 w249 containers options policies".split()
)


def start_request(request: str, on: str, *, silent: float = SILENT_SECONDS, binary: bool = False) -> StartRequest:
    """Send a request that has to wait."""
    return StartRequest((request,), on, silent, binary)


def await_reply(allow: str | tuple[str, ...] | By, on: str, *, patience: float = PATIENCE) -> AwaitReply:
    """Allow one answer (several: any of them, or by a fact) to what waits on that connection."""
    return AwaitReply((allow,) if isinstance(allow, str) else allow, on, patience)


def eventually(step: Send | Sql, within: float = PATIENCE) -> Eventually:
    """Want a step to be answered so no later than in `within` seconds."""
    return Eventually(step, within)


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration that needs the endpoint's tables changed and read again.

    Args:
        delimiter: value of table_map_delimiter; None: no such row.
        containers: rows (name, table) in the order of insertion, instead of the usual ones; a table of None is missing.
        separator: value of separator; None: no such row.
        others: further rows of `config_options`; a value of None is NULL.
        policies: rows of `cache_policies`: name, get, set, delete, flush.
    """

    delimiter: str | None = "."
    containers: tuple[tuple[str, str | None], ...] | None = None
    separator: str | None = "|"
    others: tuple[tuple[str, str | None], ...] = ()
    policies: tuple[tuple[str, ...], ...] = (("cache_policy", *["innodb_only"] * 4),)

    def hides_tables(self) -> bool:
        """Return whether no get shows what is in a table."""
        return min(self.policies)[1] in ("cache_only", "disabled")


@dataclass(frozen=True, slots=True)
class Shape:
    """A table of the case's own, `{t}`, empty at its beginning, and the row of `containers` that maps it as `{m}`.

    Args:
        columns: inside the parentheses of CREATE TABLE, in MySQL's words.
        values: cell `value_columns` of the row; key, flags, cas, expiry and index are the other cells. None is NULL.
    """

    columns: str
    values: str | None = "v"
    key: str = "k"
    flags: str | None = "f"
    cas: str | None = "c"
    expiry: str | None = "e"
    index: str = "PRIMARY"


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation that tests one requirement or more.

    Args:
        id: unique in the suite.
        requirements: ids.
        steps: the conversation; it ends at the first step that fails.
        setup: the configuration it needs.
        shape: a table of its own.
        bind: the mapping that a new connection binds first (where the endpoint has mappings); empty for none.
        flushes: uses flush_all.
        engine: mysql or sqlite, the database that must be behind the endpoint, or plugin: MySQL with it; empty for any.
        settings: with which the endpoint must run, by the plugin's names; those without a name have their default, but
            innodb_api_bk_commit_interval is as good as never. None: those it had before the run.
    """

    id: str
    requirements: tuple[str, ...]
    steps: tuple[Step, ...]
    setup: Setup | None = None
    shape: Shape | None = None
    bind: str = "m1"
    flushes: bool = field(default=False)
    engine: str = ""
    settings: Mapping[str, int] | None = None

    def needs_mappings(self) -> bool:
        """Return whether a step names one of the suite's mappings or tables, or the case a configuration."""
        configured = self.setup is not None or self.shape is not None
        return configured or any(MAPPING_NAMES & names_in(text) for text in self._texts())

    def needs_sql(self) -> bool:
        """Return whether a step looks behind the protocol or changes the configuration."""
        needing_sql = (Sql, Reload, StartSql, Mark)
        return self.needs_mappings() or self.settings is not None or any(isinstance(s, needing_sql) for s in self.steps)

    def _texts(self) -> Iterator[str]:
        for step in map(innermost, self.steps):
            if isinstance(step, Send | StartRequest):
                yield from step.packets
            elif isinstance(step, Sql | StartSql):
                yield step.statement
            if isinstance(step, Send | AwaitReply):
                answers = step.allow.answers.values() if isinstance(step.allow, By) else [step.allow]
                yield from (text for allowed in answers for text in allowed)


def case(
    id_: str,
    requirements: str,
    *steps: Step,
    setup: Setup | None = None,
    shape: Shape | None = None,
    bind: str | None = None,
    engine: str = "",
    settings: Mapping[str, int] | None = None,
) -> Case:
    """Write a case; `requirements` are ids with blanks between, `bind` is `m` with a shape and `m1` without."""
    flushes = any(_flushes(step) for step in map(innermost, steps) if isinstance(step, Send))
    first = bind if bind is not None else "m" if shape is not None else "m1"
    return Case(id_, tuple(requirements.split()), steps, setup, shape, first, flushes, engine, settings)


def _flushes(step: Send) -> bool:
    return re.search(r"(^|; )flush" if step.binary else "flush_all", "".join(step.packets)) is not None


def send(send: str | tuple[str, ...], allow: str | tuple[str, ...] | By, **how: Any) -> Send:
    """Send a text (several: one packet each) and allow one answer (several: any of them, or by a fact)."""
    pieces = (send,) if isinstance(send, str) else send
    return Send(pieces, (allow,) if isinstance(allow, str) else allow, **how)


def frames(send: str, allow: str | tuple[str, ...] | By, **how: Any) -> Send:
    """Send binary frames and allow one answer (several: any, or by a fact), both in the words of `wire/frames.py`."""
    return Send((send,), (allow,) if isinstance(allow, str) else allow, binary=True, **how)


def send_unanswered(send: str) -> Send:
    """Send a text to which nothing may be answered yet."""
    return Send((send,), ("",), quiet=True)


def by_fact(fact: str, **answers: str | tuple[str, ...]) -> By:
    """Allow answers by a fact; a value's dashes are written as underscores, `yes` and `no` are the values of a bool."""
    values: dict[object, tuple[str, ...]] = {}
    for word, answer in answers.items():
        value = {"yes": True, "no": False}.get(word, word.replace("_", "-"))
        values[value] = (answer,) if isinstance(answer, str) else answer
    return By(fact, values)


def sql(statement: str, *rows: tuple[object, ...], on: str = "") -> Sql:
    """Run a statement; for a SELECT the rows it must give (none: it must give none)."""
    return Sql(statement, rows if statement.startswith("SELECT") else None, on=on)
