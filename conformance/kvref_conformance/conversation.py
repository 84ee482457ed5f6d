"""Judge the conversation of a case: each reply and result against what the step allows, every byte kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.connection import Reply, beyond
from kvref_conformance.endpoint_target import EndpointTarget
from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.frames import decode
from kvref_conformance.player import Player
from kvref_conformance.steps import AwaitReply, AwaitSql, By, Logged, Mark, Reload, Send, Sql, StartRequest, innermost
from kvref_conformance.triage.repeat import slowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.budget import Budget
    from kvref_conformance.case import Case
    from kvref_conformance.connection import Connection
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.player import Shown
    from kvref_conformance.sql.world import World
    from kvref_conformance.steps import Step
    from kvref_conformance.template import Names

REFUSED: Final = "refused: "
DONE: Final = "done"
# Kept of an answer that is not allowed; an endpoint that is wrong in each case must not fill the judge's memory.
MAX_WRONG_CHARACTERS: Final = 1 << 16
ESCAPES: Final = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\\": r"\\"}

# How the note of an exchange begins whose connection is still open, though the case closes it.
STAYS_OPEN: Final = "hang: no close"


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
        binary: both are frames in words; set for generated conversations, whose steps are made of exchanges.
    """

    on: str
    sent: str
    allowed: tuple[str, ...]
    got: str
    note: str = ""
    kept: bool = True
    written: tuple[str, str] = ("", "")
    opening: bool = False
    binary: bool = False


class Conversation:
    """One case on fresh connections.

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
        self._player = Player(self._target, names, self)
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
            self._player.close()
            self._target.close()

    def _stop(self, budget: Budget) -> None:
        """End the conversation for the time that it takes."""
        if said := budget.spent():
            raise NotRun(said)
        note = f"hang: the case is not over within {budget.case_seconds:g} s"
        self._judge(Exchange("", "", (), "", note, kept=False))

    def _take(self, case: Case, step: Step) -> None:
        if isinstance(step, Mark):
            self._target.mark()
            return
        if isinstance(step, Logged):
            got = self._target.logged(step.allow)
            self._judge(Exchange("log", "(binary log)", step.allow, got, "", got in step.allow))
            return
        inner = innermost(step)
        if isinstance(inner, Send | StartRequest):
            self._open(case, inner)
        seen: list[Exchange] = []

        def is_allowed(shown: Shown) -> bool:
            seen[:] = [self._exchange(inner, shown)]
            return seen[0].kept

        shown = self._player.take(step, is_allowed)
        if isinstance(step, Reload):
            self.exchanges.append(Exchange("sql", "(configuration read again)", (), ""))
        elif shown is not None:
            self._judge(seen[0] if seen else self._exchange(inner, shown))

    def _open(self, case: Case, step: Send | StartRequest) -> None:
        if step.on in self._player.connections:
            return
        self._player.connections[step.on] = self._endpoint.connect(binary=step.binary)
        if case.bind not in self.names.texts:
            return
        bind = Send((f"bind {{{case.bind}}}\r\n",), ("SUCCEED\r\n",), step.on)
        if step.binary:
            bind = Send((f"get key=@@{{{case.bind}}}",), ("get ok flags=0 value=<value>",), step.on, binary=True)
        shown = self._player.take(bind)
        assert shown is not None, "a request shows something"
        self._judge(replace(self._exchange(bind, shown), opening=True))

    def _judge(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if not exchange.kept:
            self.failed = exchange
            raise CaseFailed(render(self.exchanges))

    def send(self, connection: Connection, step: Send, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and return the reply, see `player.Replies`."""
        connection.allow(self._longest(step.allow))
        if step.quiet:
            return connection.send_quietly(packets)
        if step.closes:
            return connection.send_until_close(packets, step.patience)
        return connection.ask(packets, _versions(self._texts(step.allow)), step.patience)

    def start(self, connection: Connection, step: StartRequest, packets: tuple[bytes, ...]) -> Reply:
        """Send a packet and return what comes although the endpoint should wait."""
        return Reply(connection.begin(b"".join(packets), step.silent))

    def receive(self, connection: Connection, step: AwaitReply) -> Reply:
        """Return the reply to what `start` sent."""
        return connection.end(step.patience)

    def disconnect(self, connection: Connection, how: str) -> None:
        """Close a connection, half: and wait until the endpoint has."""
        if how == "half":
            connection.hang_up()
        else:
            connection.close(reset=how == "reset")

    def _exchange(self, step: Step, shown: Shown) -> Exchange:
        if isinstance(step, Sql | AwaitSql):
            return self._of_sql(step, shown)
        assert isinstance(step, Send | StartRequest | AwaitReply), f"{step} shows nothing"
        assert shown.reply is not None, "a request has a reply"
        if isinstance(step, AwaitReply):
            request = self._started.pop(step.on)
            note = f"hang: no answer within {step.patience:g} s" if shown.reply.hang else ""
            note = beyond(shown.reply.limit) if shown.reply.limit else note
            return self._compared(step.on, request, step.allow, shown.reply, note)
        request = "".join(step.packets), shown.sent
        if isinstance(step, Send):
            return self._compared(step.on, request, step.allow, shown.reply, _note(step, shown.reply))
        self._started[step.on] = request
        early = self._text(step.on, shown.reply.data)
        return Exchange(
            step.on, shown.sent, ("",), early, "it should wait" if early else "", not early, (request[0], "")
        )

    def _compared(
        self, on: str, request: tuple[str, str], allow: tuple[str, ...] | By, reply: Reply, note: str
    ) -> Exchange:
        template, sent = request
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
            wanted, kept, written = str(cells), got == str(cells), str(list(rows))
        else:
            wanted = written = "refused" if step.refused else DONE
            kept = got.startswith(REFUSED) if step.refused else got == DONE
        written = written if kept else self.names.put_back(got)
        return Exchange(on, shown.sent, (wanted,), got, "", kept, (template, written))


def _versions(texts: tuple[str, ...]) -> int:
    return max((text.count("VERSION ") for text in texts), default=0)


def _note(step: Send, reply: Reply) -> str:
    if step.closes and not reply.limit:
        return f"{STAYS_OPEN} within {step.patience:g} s" if reply.hang else ""
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
