"""Hold the conversation of a case with the endpoint, keep every byte, and say what failed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.connection import beyond
from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.frames import decode, encode
from kvref_conformance.observers import DONE, REFUSED, Observers
from kvref_conformance.steps import (
    Answers,
    Asks,
    By,
    Ends,
    Eventually,
    Hangup,
    Logged,
    Mark,
    Pause,
    Reload,
    Say,
    Sql,
    Starts,
)
from kvref_conformance.triage.repeat import slowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.budget import Budget
    from kvref_conformance.case import Case
    from kvref_conformance.connection import Connection, Reply
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.sql.world import World
    from kvref_conformance.steps import Step
    from kvref_conformance.template import Names

POLL_SECONDS: Final = 0.05
# Kept of an answer that is not allowed; an endpoint that is wrong in each case must not fill the judge's memory.
MAX_WRONG_CHARACTERS: Final = 1 << 16
ESCAPES: Final = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\\": r"\\"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One step as it happened; bytes are latin-1 characters.

    Args:
        on: connection, or `sql`.
        sent: what was sent.
        allowed: what was allowed.
        got: what came.
        note: how it ended, where not by an answer: `hang after 5 s`, `closed`.
        kept: what came was allowed.
        written: what was sent and what came, as the case has them, with names and holes, so that runs can be compared;
            of an answer that is not allowed the names alone; empty where it is the same as `sent` or `got`.
        opening: no step of the case, but what binds its mapping on a new connection where the endpoint has mappings.
    """

    on: str
    sent: str
    allowed: tuple[str, ...]
    got: str
    note: str = ""
    kept: bool = True
    written: tuple[str, str] = ("", "")
    opening: bool = False


class Conversation:
    """One case on fresh connections.

    Args:
        endpoint: whom to talk to.
        names: what the names in the templates stand for.
        world: the tables behind, where the run has them.
        slower: waits are so many times as long.
    """

    def __init__(self, endpoint: Endpoint, names: Names, world: World | None, slower: float = 1.0) -> None:
        self.exchanges: list[Exchange] = []
        self.failed: Exchange | None = None
        self._endpoint = endpoint
        self.names = names
        self._world = world
        self._slower = slower
        self._observers = Observers(world.database) if world is not None else None
        self._connections: dict[str, Connection] = {}
        self._asked: dict[str, tuple[str, str]] = {}

    def hold(self, case: Case, budget: Budget) -> None:
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
            self._hang_up()
            if self._observers is not None:
                self._observers.close()

    def _stop(self, budget: Budget) -> None:
        """End the conversation for the time that it takes."""
        if said := budget.spent():
            raise NotRun(said)
        note = f"hang: the case is not over within {budget.case_seconds:g} s"
        self._judge(Exchange("", "", (), "", note, kept=False))

    def _take(self, case: Case, step: Step) -> None:
        if isinstance(step, Say | Asks):
            self._open(case, step)
        exchange = self._exchange(step)
        if exchange is not None:
            self._judge(exchange)
        elif isinstance(step, Eventually):
            self._repeat(case, step)
        elif isinstance(step, Starts):
            self._sql.start(self.names.render(step.statement), step.on)
        elif isinstance(step, Mark):
            self._sql.mark()
        elif isinstance(step, Hangup):
            connection = self._connections.pop(step.on)
            connection.hang_up() if step.how == "half" else connection.close(reset=step.how == "reset")
        elif isinstance(step, Reload):
            self._reload()
        elif isinstance(step, Pause):
            time.sleep(step.seconds)
        else:
            time.sleep(1 - time.time() % 1)

    def _exchange(self, step: Step) -> Exchange | None:
        """Take a step that gets an answer; return None for another."""
        if isinstance(step, Say):
            return self._say(step)
        if isinstance(step, Sql):
            return self._look_behind(step)
        if isinstance(step, Asks):
            return self._ask(step)
        if isinstance(step, Answers):
            return self._answer(step)
        if isinstance(step, Ends):
            return self._end(step)
        if isinstance(step, Logged):
            got = self._sql.logged(step.allow)
            return Exchange("log", "(binary log)", step.allow, got, "", got in step.allow)
        return None

    @property
    def _sql(self) -> Observers:
        assert self._observers is not None, "a case with SQL is not-run without --sql"
        return self._observers

    def _open(self, case: Case, step: Say | Asks) -> None:
        if step.on in self._connections:
            return
        self._connections[step.on] = self._endpoint.connect(binary=step.binary)
        if case.bind not in self.names.texts:
            return
        bind = Say((f"bind {{{case.bind}}}\r\n",), ("SUCCEED\r\n",), step.on)
        if step.binary:
            bind = Say((f"get key=@@{{{case.bind}}}",), ("get ok flags=0 value=<value>",), step.on, binary=True)
        self._judge(replace(self._say(bind), opening=True))

    def _hang_up(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _reload(self) -> None:
        assert self._world is not None, "a case with a reload is not-run without --sql"
        self._hang_up()
        self._world.reload()
        self.exchanges.append(Exchange("sql", "(configuration read again)", (), ""))

    def _repeat(self, case: Case, step: Eventually) -> None:
        deadline = time.monotonic() + step.within
        inner = step.step
        if isinstance(inner, Say):
            self._open(case, inner)
        while True:
            exchange = self._say(inner) if isinstance(inner, Say) else self._look_behind(inner)
            if exchange.kept or time.monotonic() > deadline:
                self._judge(exchange)
                return
            time.sleep(POLL_SECONDS)

    def _judge(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if not exchange.kept:
            self.failed = exchange
            raise CaseFailed(render(self.exchanges))

    def _say(self, step: Say) -> Exchange:
        sent = [self.names.render(piece) for piece in step.packets]
        pieces = _cut(encode("".join(sent)), step.cuts) if step.binary else tuple(p.encode("latin-1") for p in sent)
        reply = self._send(self._connections[step.on], pieces, step)
        return self._compared(step.on, ("".join(step.packets), "".join(sent)), step.allow, reply, _note(step, reply))

    def _send(self, connection: Connection, pieces: tuple[bytes, ...], step: Say) -> Reply:
        connection.allow(self._longest(step.allow))
        if step.quiet:
            return connection.overhear(pieces)
        if step.closes:
            return connection.tell(pieces, step.patience)
        return connection.ask(pieces, _versions(self._texts(step.allow)), step.patience)

    def _compared(
        self, on: str, asked: tuple[str, str], allow: tuple[str, ...] | By, reply: Reply, note: str
    ) -> Exchange:
        template, sent = asked
        texts = self._texts(allow)
        allowed = tuple(self.names.render(text) for text in texts)
        got = self._text(on, reply.data)
        fits = None if note else next((text for text in texts if self.names.match(text, got)), None)
        if fits is None and len(got) > MAX_WRONG_CHARACTERS:
            got, rest = got[:MAX_WRONG_CHARACTERS], len(got) - MAX_WRONG_CHARACTERS
            note = f"{note or 'wrong'}; {rest} more characters came"
        written = self.names.put_back(got) if fits is None else fits
        return Exchange(on, sent, allowed, got, note, fits is not None, (template, written))

    def _longest(self, allow: tuple[str, ...] | By) -> int:
        """Return the length of the longest answer that is allowed."""
        return max((len(self.names.render(text)) for text in self._texts(allow)), default=0)

    def _texts(self, allow: tuple[str, ...] | By) -> tuple[str, ...]:
        return allow.of(self._endpoint.profile) if isinstance(allow, By) else allow

    def _ask(self, step: Asks) -> Exchange:
        request = self.names.render("".join(step.packets))
        self._asked[step.on] = ("".join(step.packets), request)
        packet = encode(request) if step.binary else request.encode("latin-1")
        early = self._text(step.on, self._connections[step.on].begin(packet, step.silent))
        note = "it should wait" if early else ""
        return Exchange(step.on, request, ("",), early, note, not early, ("".join(step.packets), ""))

    def _text(self, on: str, data: bytes) -> str:
        return decode(data) if self._connections[on].binary else data.decode("latin-1")

    def _answer(self, step: Answers) -> Exchange:
        reply = self._connections[step.on].end(step.patience)
        note = f"hang: no answer within {step.patience:g} s" if reply.hang else ""
        if reply.limit:
            note = beyond(reply.limit)
        return self._compared(step.on, self._asked.pop(step.on), step.allow, reply, note)

    def _look_behind(self, step: Sql) -> Exchange:
        on, statement = step.on or "sql", self.names.render(step.statement)
        if step.rows is not None:
            cells = [tuple(self.names.render(c) if isinstance(c, str) else c for c in row) for row in step.rows]
            got = self._believed(step, self._sql.query(statement, step.on))
            kept = got == str(cells)
            written = str(list(step.rows)) if kept else self.names.put_back(got)
            return Exchange(on, statement, (str(cells),), got, "", kept, (step.statement, written))
        got = self._believed(step, self._sql.execute(statement, step.on))
        return self._done(on, (step.statement, statement), got, fails=step.refused)

    def _believed(self, step: Sql, got: str) -> str:
        # What the suite's own connection is refused unasked is a fault of the case.
        if got.startswith(REFUSED) and not step.on and not step.refused:
            raise SuiteError(f"{got}: {self.names.render(step.statement)}")
        return got

    def _end(self, step: Ends) -> Exchange:
        statement, got = self._sql.end(step.on, step.patience)
        return self._done(step.on, ("(its end)", statement), got, fails=step.refused)

    def _done(self, on: str, asked: tuple[str, str], got: str, *, fails: bool) -> Exchange:
        template, statement = asked
        wanted = "refused" if fails else DONE
        kept = got.startswith(REFUSED) if fails else got == DONE
        written = wanted if kept else self.names.put_back(got)
        return Exchange(on, statement, (wanted,), got, "", kept, (template, written))


def _cut(data: bytes, cuts: tuple[int, ...]) -> tuple[bytes, ...]:
    return tuple(data[start:end] for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True))


def _versions(texts: tuple[str, ...]) -> int:
    return max((text.count("VERSION ") for text in texts), default=0)


def _note(step: Say, reply: Reply) -> str:
    if step.closes and not reply.limit:
        return f"hang: no close within {step.patience:g} s" if reply.hang else ""
    return reply.note(step.patience)


def render(exchanges: Sequence[Exchange]) -> str:
    """Return the conversation as numbered lines; in the last step, what was expected is above what came."""
    lines = []
    for number, exchange in enumerate(exchanges, 1):
        last = number == len(exchanges)
        lines.append(f"{number:3}  {exchange.on:>3} > {shown(exchange.sent)}")
        lines += [f"expected: {shown(allowed)}" for allowed in exchange.allowed] if last else []
        label = "     got:" if last else f"     {'':>3} <"
        lines.append(f"{label} {shown(exchange.got)}{f'  ({exchange.note})' if exchange.note else ''}")
    return "\n".join(lines)


def shown(text: str) -> str:
    r"""Return bytes as a reader types them: CR LF as \r\n, other bytes outside ASCII as \xNN, long runs cut."""
    line = "".join(c if " " <= c <= "~" and c != "\\" else ESCAPES.get(c, f"\\x{ord(c):02x}") for c in text)
    return line if len(line) <= 600 else f"{line[:400]} ... ({len(line) - 500} more) ... {line[-100:]}"
