"""A recorded conversation as lines for a reader: what was sent, what each version answered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus import holes
from kvref_conformance.corpus.templates import sent
from kvref_conformance.judging.conversation import shown
from kvref_conformance.steps import AwaitReply, Crowd, Disconnect, Pause, Restart, Send, innermost
from kvref_conformance.wire.frames import decode, decode_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kvref_conformance.corpus.conversation import Conversation, Recorded
    from kvref_conformance.corpus.holes import Json

# The n-th cas number while a frame is read: 20 digits, which none of a server has.
_MARK: Final = 0xFFFF_FFFF_0000_0000
_DIGITS: Final = re.compile("(?:[0-9a-f]{2})+")
ENDINGS: Final = {"close": "closes", "half": "shuts down its sending side", "reset": "resets the connection"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What some versions answered.

    Args:
        versions: that answered the same; empty when all did.
        text: the answer, bytes shown as a reader types them.
    """

    versions: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One step.

    Args:
        on: name of the memcached connection, `sql` with the name of a SQL connection, or `server`.
        sent: what was sent or done.
        answers: grouped by version; none where nothing was recorded.
        wire: it was a command on a memcached connection.
    """

    on: str
    sent: str
    answers: tuple[Answer, ...]
    wire: bool


@dataclass(frozen=True, slots=True)
class Example:
    """One conversation.

    Args:
        citation: `core:map-001`.
        title: what it shows.
        versions: versions it was recorded with, sorted.
        given: options and statements of its set-up, and the state of the server afterwards.
        exchanges: the steps.
    """

    citation: str
    title: str
    versions: tuple[str, ...]
    given: tuple[str, ...]
    exchanges: tuple[Exchange, ...]

    def last_answer(self, version: str) -> tuple[str, str] | None:
        """Return the last command that a version answered, with the reply; None if it answered none."""
        found = (
            (exchange.sent, answer.text)
            for exchange in reversed(self.exchanges)
            for answer in exchange.answers
            if exchange.wire and answer.text and version in (answer.versions or self.versions)
        )
        return next(found, None)


def example(citation: str, conversation: Conversation) -> Example:
    """Put a conversation into lines."""
    versions = tuple(sorted(conversation.versions()))
    exchanges = tuple(_exchange(step, versions) for step in conversation.steps)
    return Example(citation, conversation.title, versions, tuple(_given(conversation)), exchanges)


def _given(conversation: Conversation) -> Iterable[str]:
    if conversation.options:
        yield "mysqld " + " ".join(conversation.options)
    yield from conversation.sql
    for version, state in conversation.port.items():
        yield f"{version}: {'the port stays closed' if state == 'closed' else state}"
    for version, status in conversation.crash.items():
        yield f"{version}: the server ends, exit status {status}"


def _exchange(recorded: Recorded, versions: Sequence[str]) -> Exchange:
    answers = tuple(_grouped(_in_words(recorded), versions))
    match recorded.step:
        case Pause(seconds=seconds):
            return Exchange("", f"waits {seconds:g} s", (), wire=False)
        case Send() as step:
            parts = sent(step)
            return Exchange(step.on, text(framed(parts, request=True) if step.binary else parts), answers, wire=True)
        case AwaitReply(on=on):
            return Exchange(on, "listens", answers, wire=True)
        case Disconnect(on=on, how=how):
            return Exchange(on, ENDINGS[how], answers, wire=True)
        case Crowd() as crowd:
            return Exchange(f"{crowd.many} of {crowd.name}", shown(crowd.send or "closes"), answers, wire=False)
        case Restart(how=how):
            return Exchange("server", how, answers, wire=False)
        case step:
            on = getattr(innermost(step), "on", "")
            return Exchange(f"sql {on}", recorded.statement or "waits for its result", answers, wire=False)


def _in_words(recorded: Recorded) -> Mapping[str, Json]:
    """Return the answers to a step by version, those to frames in words."""
    if not recorded.binary:
        return recorded.got
    return {version: framed(answer, request=False) for version, answer in recorded.got.items()}


def framed(recorded: Json, *, request: bool) -> Json:
    """Return recorded frames in words, with holes for their cas numbers; anything else is returned unchanged.

    Args:
        recorded: hexadecimal digits with holes.
        request: they are requests.
    """
    digits = ""
    for part in recorded if isinstance(recorded, list) else [recorded]:
        if isinstance(part, dict) and isinstance(number := part.get("cas"), int):
            digits += f"{_MARK + number:016x}"
        elif isinstance(part, str):
            digits += part
        else:
            return recorded
    whole, *ending = digits.partition("<")
    if not _DIGITS.fullmatch(whole):
        return recorded
    decoded = (decode_requests if request else decode)(bytes.fromhex(whole)) + "".join(ending)
    words = re.split(r"(?<=cas=)(\d{20})", decoded)
    return [{"cas": int(word) - _MARK} if number % 2 else word for number, word in enumerate(words)]


def _grouped(got: Mapping[str, Json], versions: Sequence[str]) -> Iterable[Answer]:
    texts: dict[str, list[str]] = {}
    for version in versions:
        if version in got:
            texts.setdefault(text(got[version]), []).append(version)
    for shared, same in texts.items():
        yield Answer(() if len(same) == len(versions) else tuple(same), shared)


def text(recorded: Json) -> str:
    """Return a recorded answer, or what was sent, as a reader types it; holes stand in « »."""
    if isinstance(recorded, str):
        return shown(recorded)
    if isinstance(recorded, list):
        return "".join(map(text, recorded))
    if isinstance(recorded, dict):
        return _hole(recorded) if holes.is_hole(recorded) else _result(recorded)
    return "" if recorded is None else str(recorded)


def _hole(hole: Mapping[str, Json]) -> str:
    (kind, value), *_ = hole.items()
    return f"«{kind} {value:+g} s»" if kind == "time" and isinstance(value, int | float) else f"«{kind} {value}»"


def _result(result: Mapping[str, Json]) -> str:
    match result:
        case {"rows": list(rows)}:
            return "\n".join(map(_row, rows)) or "no rows"
        case {"affected": affected}:
            return f"{affected} rows"
        case {"error": [number, words]}:
            return f"ERROR {number}: {words}"
        case {"seen": list(results)}:
            return "\nthen ".join(_row(rows) for rows in results)
        case _:  # answers of a crowd: how often each came
            return "\n".join(f"{count} times {shown(answer)}" for answer, count in result.items())


def _row(row: Json) -> str:
    return f"({', '.join(map(_cell, row))})" if isinstance(row, list) else _cell(row)


def _cell(cell: Json) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, dict):
        return text(cell)
    if isinstance(cell, list):
        return _row(cell) if not any(holes.is_hole(part) for part in cell) else text(cell)
    return f"'{shown(cell)}'" if isinstance(cell, str) else str(cell)
