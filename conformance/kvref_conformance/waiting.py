"""Steps of cases in which time passes: requests and statements that wait, and what is seen no later than a deadline.

asks("set {k} 0 0 1\\r\\nb\\r\\n", on="b"),      # waits for the row that another connection holds
sql("COMMIT", on="s"),
answers("STORED\\r\\n", on="b"),

eventually(sql(ROW, ("x",))),                  # is seen within so many seconds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref_conformance.case import By, Say, Sql

# What no answer may come in, where the endpoint has to wait: long for one that does not wait, short for a run.
SILENT_SECONDS: Final = 0.3
# Holds on a busy machine; what comes is seen at once.
PATIENCE: Final = 15.0


@dataclass(frozen=True, slots=True)
class Asks:
    """Send a request that is not answered yet.

    Args:
        request: template.
        on: name of the connection.
        silent: seconds in which no answer may come; 0 where one may.
        binary: the request is in the words of `frames.py`.
    """

    request: str
    on: str
    silent: float = SILENT_SECONDS
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """Read and judge the answer to what `Asks` sent on that connection.

    Args:
        allow: answers that are allowed.
        on: name of the connection.
        patience: seconds to wait for it.
    """

    allow: tuple[str, ...] | By
    on: str
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class Starts:
    """Start a statement on a named SQL connection and let it run.

    Args:
        statement: template.
        on: name of the connection.
    """

    statement: str
    on: str


@dataclass(frozen=True, slots=True)
class Ends:
    """Wait for the statement that runs on a named SQL connection.

    Args:
        on: name of the connection.
        fails: the database must refuse it.
        patience: seconds to wait.
    """

    on: str
    fails: bool = False
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class Eventually:
    """Repeat a step until what it gets is allowed.

    Args:
        step: a request or a SELECT that leaves everything as it is.
        within: seconds; what it gets then is judged.
    """

    step: Say | Sql
    within: float


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


def logged(*allow: str) -> Logged:
    """Want the binary log to have got one of these since the mark."""
    return Logged(allow)


def asks(request: str, on: str, *, silent: float = SILENT_SECONDS, binary: bool = False) -> Asks:
    """Send a request that has to wait."""
    return Asks(request, on, silent, binary)


def answers(allow: str | tuple[str, ...] | By, on: str, *, patience: float = PATIENCE) -> Answers:
    """Allow one answer (several: any of them, or by a fact) to what waits on that connection."""
    return Answers((allow,) if isinstance(allow, str) else allow, on, patience)


def starts(statement: str, on: str) -> Starts:
    """Start a statement that may have to wait."""
    return Starts(statement, on)


def ends(on: str, *, fails: bool = False, patience: float = PATIENCE) -> Ends:
    """Wait for a statement that was started."""
    return Ends(on, fails, patience)


def eventually(step: Say | Sql, within: float = PATIENCE) -> Eventually:
    """Want a step to be answered so no later than in `within` seconds."""
    return Eventually(step, within)
