"""The steps of a conversation: requests with their allowed replies, statements, waits, restarts.

Literal cases, replay files, exported cases and recordings have these steps. `forms.py` writes and reads them as JSON,
which `schema.json` describes; `judging/player.py` plays them. Texts are templates (`wire/template.py`), one character a
byte, or frames of the binary protocol in words (`wire/frames.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref.profiles import Profile

# Seconds without a reply from an endpoint that has to wait: long for one that does not wait, short for a run.
SILENT_SECONDS: Final = 0.3
PATIENCE: Final = 15.0
# Between two tries of a step that is repeated.
EVERY_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class By:
    """Answers by the value of a fact; a value without an entry is a fault of the suite."""

    fact: str
    answers: Mapping[object, tuple[str, ...]]

    def of(self, profile: Profile) -> tuple[str, ...]:
        """Return what the profile's value of the fact allows."""
        return self.answers[profile[self.fact]]


@dataclass(frozen=True, slots=True)
class Send:
    """Send bytes on a connection and judge the reply.

    Args:
        packets: bytes to send, one packet each.
        allow: allowed replies.
        on: name of the connection.
        quiet: no reply is allowed, and no sentinel is sent (an unfinished data block).
        closes: the endpoint closes the connection after the answer.
        patience: seconds to wait for the answer.
        binary: texts are frames in words (`wire/frames.py`), and a connection that it opens is a binary one.
        cuts: of binary frames: before which bytes a new packet begins.
    """

    packets: tuple[str, ...]
    allow: tuple[str, ...] | By
    on: str = "a"
    quiet: bool = False
    closes: bool = False
    patience: float = 5.0
    binary: bool = False
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close a connection from this side; a later step on that name opens a new one.

    Args:
        on: name of the connection.
        how: half: stop sending, and wait until the endpoint has closed; close: at once; reset: at once, with a reset.
    """

    on: str = "a"
    how: str = "half"


@dataclass(frozen=True, slots=True)
class Sql:
    """Run a statement behind the protocol.

    Args:
        statement: template; tables by their names in braces.
        rows: the rows a SELECT must give; None for a statement without rows.
        refused: the database must refuse the statement.
        on: name of a SQL connection of the case; empty for the suite's own, where each statement commits itself.
    """

    statement: str
    rows: tuple[tuple[object, ...], ...] | None = None
    refused: bool = False
    on: str = ""


@dataclass(frozen=True, slots=True)
class Reload:
    """Close every connection and make the endpoint read its configuration tables again."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Act on the server; connections stay as it leaves them.

    Args:
        how: reload: read the configuration tables again; restart: stop and start; kill9: kill and start.
    """

    how: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait, where time itself is what the case is about."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Wait until a second of the clock begins, so that the steps behind it fall into one second."""


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Send a request that is answered later.

    Args:
        packets: templates, one packet each.
        on: name of the connection.
        silent: seconds in which no reply is allowed; 0 if one is.
        binary: they are in the words of `wire/frames.py`.
    """

    packets: tuple[str, ...]
    on: str
    silent: float = SILENT_SECONDS
    binary: bool = False


@dataclass(frozen=True, slots=True)
class AwaitReply:
    """Read and judge the answer to what `StartRequest` sent on that connection.

    Args:
        allow: answers that are allowed.
        on: name of the connection.
        patience: seconds to wait for it.
    """

    allow: tuple[str, ...] | By
    on: str
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class StartSql:
    """Start a statement on a named SQL connection and let it run.

    Args:
        statement: template.
        on: name of the connection.
        silent: seconds in which it may not end; 0 if it may.
    """

    statement: str
    on: str
    silent: float = 0.0


@dataclass(frozen=True, slots=True)
class AwaitSql:
    """Wait for the statement that runs on a named SQL connection.

    Args:
        on: name of the connection.
        refused: the database must refuse it.
        patience: seconds to wait.
    """

    on: str
    refused: bool = False
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class Eventually:
    """Repeat a step until what it gets is allowed.

    Args:
        step: a request or a SELECT that leaves everything as it is.
        within: seconds; what it gets then is judged.
        every: seconds between two tries.
    """

    step: Send | Sql
    within: float
    every: float = EVERY_SECONDS


@dataclass(frozen=True, slots=True)
class Watch:
    """Repeat a SELECT; of a recording, whose answer has one entry for each change of the rows.

    Args:
        statement: template.
        on: name of the SQL connection.
        seconds: how long.
        every: seconds between two tries.
    """

    statement: str
    on: str
    seconds: float
    every: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """Send the same on many connections, then read all; of a recording, whose answer counts the replies.

    Args:
        many: number of connections.
        name: beginning of their names; a number from 0 follows.
        send: text, no template; `{i}` is replaced by the number.
        patience: seconds to wait for the first byte; 0: the player's own.
        close: close them at once instead.
    """

    many: int
    name: str
    send: str = ""
    patience: float = 0.0
    close: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Remember where the binary log ends; the case is not-run without one."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Judge what has come into the binary log since the mark, in the words of `sql/binlog.py`.

    Args:
        allow: what is allowed.
    """

    allow: tuple[str, ...]


Step = (
    Send
    | Disconnect
    | Sql
    | Reload
    | Restart
    | Pause
    | Tick
    | StartRequest
    | AwaitReply
    | StartSql
    | AwaitSql
    | Eventually
    | Watch
    | Crowd
    | Mark
    | Logged
)


def innermost(step: Step) -> Step:
    """Return the step that `Eventually` repeats, or the step itself."""
    return step.step if isinstance(step, Eventually) else step
