"""Judge the conversation of a case: each reply and result against what the step allows, every byte kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.endpoints.endpoint_target import EndpointTarget
from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.judging.player import Player
from kvref_conformance.reports.difference import differing_part
from kvref_conformance.steps import (
    AwaitReply,
    AwaitSql,
    By,
    Logged,
    Mark,
    Reload,
    Send,
    Sql,
    StartRequest,
    StartSql,
    innermost,
)
from kvref_conformance.triage.repeat import slowed
from kvref_conformance.wire.frames import decode
from kvref_conformance.wire.sentinels import Sentinels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.judging.budget import Budget
    from kvref_conformance.judging.player import Shown
    from kvref_conformance.sql.world import World
    from kvref_conformance.steps import Step
    from kvref_conformance.wire.connection import Connection, Reply
    from kvref_conformance.wire.template import Names

REFUSED: Final = "refused: "
DONE: Final = "done"
# Kept of an answer that is not allowed; an endpoint that is wrong in each case must not fill the judge's memory.
MAX_WRONG_CHARACTERS: Final = 1 << 16
ESCAPES: Final = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\\": r"\\"}

# How the note of an exchange begins whose connection is still open, though the case closes it.
STAYS_OPEN: Final = "hang: no close"
# The note of an exchange whose request, or statement, is answered though it should not be yet.
IT_SHOULD_WAIT: Final = "it should wait"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One step as it happened; bytes are latin-1 characters.

    Args:
        on: connection, or `sql`.
        sent: what was sent.
        allowed: what was allowed.
        got: what came.
        note: how it ended, where not by an answer: `hang after 5 s`, `closed`.
        passed: what came was allowed.
        written: what was sent and what came, as the case has them, with names and holes, so that runs can be compared;
            of an answer that is not allowed the names alone; empty where it is the same as `sent` or `got`.
        opening: no step of the case, but what binds its mapping on a new connection where the endpoint has mappings.
        step: what was done, where a case can repeat it.
    """

    on: str
    sent: str
    allowed: tuple[str, ...]
    got: str
    note: str = ""
    passed: bool = True
    written: tuple[str, str] = ("", "")
    opening: bool = False
    step: Step | None = field(default=None, compare=False)


class Conversation:
    """The steps of a case, or those that are generated, on fresh connections.

    Args:
        endpoint: the endpoint.
        names: what the names in the templates stand for.
        world: the tables behind, where the run has them.
        slower: waits are so many times as long.
    """

    def __init__(self, endpoint: Endpoint, names: Names, world: World | None, slower: float = 1.0) -> None:
        self.exchanges: list[Exchange] = []
        self.failed: Exchange | None = None
        self.names = names
        self._endpoint = endpoint
        self._slower = slower
        self._target = EndpointTarget(endpoint, world)
        self._player = Player(self._target, names, Sentinels(self._allowed))
        self._started: dict[str, tuple[str, str]] = {}

    def run(self, case: Case, budget: Budget) -> None:
        """Take the steps in order.

        Args:
            case: whose steps they are.
            budget: limits the time that they take together.

        Raises:
            CaseFailed: at the first answer that is not allowed, or where the case takes too long; its text shows the
                conversation.
            NotRun: the time limit of the run is reached.
        """
        deadline = budget.deadline(case)
        try:
            for step in case.steps:
                if time.monotonic() > deadline:
                    self._stop(budget)
                self._take(case, slowed(step, self._slower))
        finally:
            self.close()

    def close(self) -> None:
        """Close all connections."""
        self._player.close()
        self._target.close()

    @property
    def connections(self) -> dict[str, Connection]:
        """Return the memcached connections that are open, by name."""
        return self._player.connections

    def _stop(self, budget: Budget) -> None:
        """End the conversation for the time that it takes."""
        if why := budget.spent():
            raise NotRun(why)
        note = f"hang: the case is not over within {budget.case_seconds:g} s"
        self.judge(Exchange("", "", (), "", note, passed=False))

    def _take(self, case: Case, step: Step) -> None:
        inner = innermost(step)
        if isinstance(inner, Send | StartRequest) and inner.on not in self.connections:
            self.open(inner.on, self._binding(case, inner), binary=inner.binary)
        self.take(step)

    def take(self, step: Step) -> None:
        """Take a step and judge what it shows; raises as `judge`."""
        if isinstance(step, Mark):
            self._target.mark()
            return
        if isinstance(step, Logged):
            got = self._target.logged(step.allow)
            self.judge(Exchange("log", "(binary log)", step.allow, got, "", got in step.allow))
            return
        inner = innermost(step)
        seen: list[Exchange] = []

        def is_allowed(shown: Shown) -> bool:
            seen[:] = [self._exchange(inner, shown)]
            return seen[0].passed

        shown = self._player.take(step, is_allowed)
        if isinstance(step, Reload):
            self.exchanges.append(Exchange("sql", "(configuration read again)", (), ""))
        elif shown is not None:
            self.judge(replace(seen[0] if seen else self._exchange(inner, shown), step=step))

    def open(self, on: str, bind: Send | None, *, binary: bool) -> None:
        """Open a connection and send what binds a mapping, if there is one; raises as `judge`."""
        self._player.open(on).expect_sentinel(binary=binary)
        if bind is not None:
            self.judge(replace(self._exchange(bind, self._player.take(bind)), opening=True, step=bind))

    def _binding(self, case: Case, step: Send | StartRequest) -> Send | None:
        if case.bind not in self.names.texts:
            return None
        if step.binary:
            return Send((f"get key=@@{{{case.bind}}}",), ("get ok flags=0 value=<value>",), step.on, binary=True)
        return Send((f"bind {{{case.bind}}}\r\n",), ("SUCCEED\r\n",), step.on)

    def judge(self, exchange: Exchange) -> None:
        """Add an exchange.

        Raises:
            CaseFailed: what came is not allowed.
        """
        self.exchanges.append(exchange)
        if not exchange.passed:
            self.failed = exchange
            raise CaseFailed(render(self.exchanges))

    def _exchange(self, step: Step, shown: Shown) -> Exchange:
        if isinstance(step, StartSql):
            return Exchange(step.on, shown.sent, ("",), str(shown.result), IT_SHOULD_WAIT, passed=False)
        if isinstance(step, Sql | AwaitSql):
            return self._of_sql(step, shown)
        assert isinstance(step, Send | StartRequest | AwaitReply), f"{step} shows nothing"
        if isinstance(step, AwaitReply):
            request = self._started.pop(step.on)
            late = f"hang: no answer within {step.patience:g} s"
            note = late if shown.reply.hang else shown.reply.note(step.patience)
            return self._compared(step.on, request, step.allow, shown.reply, note)
        request = "".join(step.packets), shown.sent
        if isinstance(step, Send):
            return self._compared(step.on, request, step.allow, shown.reply, _note(step, shown.reply))
        self._started[step.on] = request
        early = self._text(step.on, shown.reply.data)
        return Exchange(step.on, shown.sent, ("",), early, IT_SHOULD_WAIT if early else "", not early, (request[0], ""))

    def _compared(
        self, on: str, request: tuple[str, str], allow: tuple[str, ...] | By, reply: Reply, note: str
    ) -> Exchange:
        template, sent = request
        texts = self._texts(allow)
        allowed = self._allowed(allow)
        got = self._text(on, reply.data)
        fits = None if note else next((text for text in texts if self.names.match(text, got)), None)
        if fits is None and len(got) > MAX_WRONG_CHARACTERS:
            got, rest = got[:MAX_WRONG_CHARACTERS], len(got) - MAX_WRONG_CHARACTERS
            note = f"{note or 'wrong'}; {rest} more characters came"
        written = self.names.put_back(got) if fits is None else fits
        return Exchange(on, sent, allowed, got, note, fits is not None, (template, written))

    def _allowed(self, allow: tuple[str, ...] | By) -> tuple[str, ...]:
        return tuple(self.names.render(text) for text in self._texts(allow))

    def _texts(self, allow: tuple[str, ...] | By) -> tuple[str, ...]:
        return allow.of(self._endpoint.profile) if isinstance(allow, By) else allow

    def _text(self, on: str, data: bytes) -> str:
        return decode(data) if self._player.connections[on].binary else data.decode("latin-1")

    def _of_sql(self, step: Sql | AwaitSql, shown: Shown) -> Exchange:
        on = step.on or "sql"
        rows = step.rows if isinstance(step, Sql) else None
        got = f"still runs after {step.patience:g} s" if isinstance(step, AwaitSql) else ""
        if shown.result is not None:
            error = shown.result.get("error")
            got = f"{REFUSED}{error[1]}" if error else DONE if rows is None else str(shown.result["rows"])
        # What the suite's own connection is refused unasked is a fault of the case.
        if got.startswith(REFUSED) and not step.on and not step.refused:
            raise SuiteError(f"{got}: {shown.sent}")
        template = step.statement if isinstance(step, Sql) else "(its end)"
        if rows is not None:
            cells = [tuple(self.names.render(c) if isinstance(c, str) else c for c in row) for row in rows]
            wanted, passed, written = str(cells), got == str(cells), str(list(rows))
        else:
            wanted = written = "refused" if step.refused else DONE
            passed = got.startswith(REFUSED) if step.refused else got == DONE
        written = written if passed else self.names.put_back(got)
        return Exchange(on, shown.sent, (wanted,), got, "", passed, (template, written))


def _note(step: Send, reply: Reply) -> str:
    if step.closes and not reply.limit:
        return f"{STAYS_OPEN} within {step.patience:g} s" if reply.hang else ""
    return reply.note(step.patience)


def render(exchanges: Sequence[Exchange]) -> str:
    """Return the conversation as numbered lines; in the last step, what was expected is above what came.

    Where a reply of several parts is not allowed, a line names the first part that differs.
    """
    lines = []
    for number, exchange in enumerate(exchanges, 1):
        last = number == len(exchanges)
        lines.append(f"{number:3}  {exchange.on:>3} > {shown(exchange.sent)}")
        lines += [f"expected: {shown(allowed)}" for allowed in exchange.allowed] if last else []
        label = "     got:" if last else f"     {'':>3} <"
        lines.append(f"{label} {shown(exchange.got)}{f'  ({exchange.note})' if exchange.note else ''}")
        if last and not exchange.passed and (part := differing_part(exchange.got, exchange.allowed)):
            lines.append(f" differs: {shown(part)}")
    return "\n".join(lines)


def shown(text: str) -> str:
    r"""Return bytes as a reader types them: CR LF as \r\n, other bytes outside ASCII as \xNN, long runs cut."""
    line = "".join(c if " " <= c <= "~" and c != "\\" else ESCAPES.get(c, f"\\x{ord(c):02x}") for c in text)
    return line if len(line) <= 600 else f"{line[:400]} ... ({len(line) - 500} more) ... {line[-100:]}"
