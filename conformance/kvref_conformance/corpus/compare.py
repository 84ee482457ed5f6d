"""Compare observations with a recording, step by step, except for the holes of the recording."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.holes import CasNumbers, Clock, matches
from kvref_conformance.steps import AwaitSql, Eventually, Sql, StartSql, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.observe import Played


DIED: Final = "server died"
ENDS: Final = "the server ends"
# MySQL's numbers for a connection that was lost, and for one that was refused.
LOST: Final = frozenset({2003, 2013})
GARBAGE: Final = {"number": "garbage"}
# In place of uncommitted rows, if SQL cannot show them: such a step is not compared.
NOT_TO_SEE: Final = {"rows": "not visible"}


class ServerKind(Enum):
    """The kind of server that was replayed, which decides what can be compared."""

    PLUGIN = "a plugin"
    KVREF = "kvref over a database of the recorded version: its SQL answers in the same words"
    KVREF_OVER_OTHER_SQL = "kvref over another database: its counts of affected rows and error texts are its own"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where a replay went another way.

    Args:
        step: number from 1; 0 is the port after the set-up, one more than the last step the server's end.
        recorded: the answer of the recording, with its holes.
        observed: the answer now.
    """

    step: int
    recorded: Json
    observed: Json

    @property
    def is_end(self) -> bool:
        """Return whether the recording has lost the server here."""
        match self.recorded:
            case str(answer):
                return answer.endswith((">", DIED)) or answer.startswith(ENDS)
            case {"error": [int(number), *_]}:
                return number in LOST
            case _:
                return False


def differences(conversation: Conversation, played: Played, version: str, kind: ServerKind) -> list[Difference]:
    """Compare a replay with the recording of a version.

    Args:
        conversation: with `got` of that version; a step without one is not compared.
        played: the replay.
        version: key of `got`.
        kind: the kind of server. If the plugin returns uninitialized numbers, kvref may return any number. Another
            database may return a decimal number that MySQL returns as text.

    Returns:
        The differences in order; empty if the replay equals the recording.
    """
    return list(_differences(conversation, played, version, kind))


def _differences(conversation: Conversation, played: Played, version: str, kind: ServerKind) -> Iterator[Difference]:
    port = conversation.port.get(version, "")
    if port != played.port:
        yield Difference(0, port or "open", played.port or "open")
    cas = CasNumbers()
    for number, (step, observed) in enumerate(zip(conversation.steps, played.steps, strict=True), 1):
        if version not in step.got:
            continue
        recorded, got = step.got[version], observed.got
        other_sql = kind is ServerKind.KVREF_OVER_OTHER_SQL
        if got == NOT_TO_SEE:
            continue
        if (kind is not ServerKind.PLUGIN and _is_garbage(recorded)) or (other_sql and _agree(recorded, got)):
            continue
        if other_sql and isinstance(step.step, Sql | StartSql | AwaitSql | Eventually | Watch):
            got = _as_mysql(recorded, got)
        if not matches(recorded, got, cas, Clock(observed.began, observed.ended), hexadecimal=step.binary):
            yield Difference(number, recorded, observed.got)
    if conversation.crash.get(version) != played.crash:
        yield Difference(len(conversation.steps) + 1, _end(conversation.crash.get(version)), _end(played.crash))


def _end(status: int | None) -> Json:
    return "the server lives" if status is None else f"{ENDS} with status {status}"


def _is_garbage(recorded: Json) -> bool:
    """Return whether an answer is nothing but a number of uninitialised memory (5.6.14: incr of a missing key)."""
    return recorded == [GARBAGE, "\r\n"]


def _agree(recorded: Json, got: Json) -> bool:
    """Return whether two SQL results say the same of what another SQL has its own words for: counts and errors."""
    match recorded, got:
        case {"affected": _}, {"affected": _}:
            return True
        case {"error": [number, *_]}, {"error": [mine, *_]}:
            return number == mine
        case _:
            return False


def _as_mysql(recorded: Json, got: Json) -> Json:
    """Put MySQL's types in place of the other SQL's in rows."""
    if not isinstance(recorded, dict) or not isinstance(got, dict):
        return got
    return {key: _cells(recorded.get(key), value) for key, value in got.items()}


def _cells(recorded: Json, got: Json) -> Json:
    if isinstance(recorded, list) and isinstance(got, list) and len(recorded) == len(got):
        return [_cells(theirs, mine) for theirs, mine in zip(recorded, got, strict=True)]
    return recorded if isinstance(recorded, str) and isinstance(got, int | float) and str(got) == recorded else got
