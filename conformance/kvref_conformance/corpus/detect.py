"""Find the typed holes of a conversation from two runs, on two servers whose cas numbers, ports and pids differ.

Equal parts are kept as text, except parts that two servers may show alike by chance: times, cas numbers that the plugin
chose, and counters of `stats`. A difference becomes a hole by the type of its place; replies that differ elsewhere
become one hole, since no rule determines them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.holes import Clock, cas_number, cas_spans
from kvref_conformance.corpus.templates import sent
from kvref_conformance.corpus.tokens import binary_tokens, body_tokens, text_tokens
from kvref_conformance.steps import AwaitReply, Disconnect, Send

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kvref_conformance.corpus.conversation import Conversation, Recorded
    from kvref_conformance.corpus.holes import Hole, Json
    from kvref_conformance.corpus.observe import Observed, Played
    from kvref_conformance.corpus.tokens import Token

RACE: Final[Hole] = {"bytes": "differs from run to run"}
GARBAGE: Final[Hole] = {"bytes": "garbage"}
LENGTH: Final[Hole] = {"bytes": "length"}
# Results that are looked into; the others are equal or not.
JOINED: Final = {"rows", "error"}
# Expiry times up to 30 days count from now; further away only a number that the conversation says is a time.
NEAR_SECONDS: Final = 31 * 86400
# A time that lies so near to a number the conversation says was made from it.
SNAP_SECONDS: Final = 1.5
# Numbers up to this one stand everywhere, in names too.
SMALL: Final = 9
# The recorder keeps the cas numbers of its two servers further apart than this.
APART: Final = 100
# No counter comes so far: what a negative number in the table is read as.
UNSIGNED: Final = 1 << 62
# Rows of `stats` that no two servers need to have alike; the word says why.
_STAT_WORDS: Final = {
    "pid": "pid",
    "uptime": "counter",
    "rusage_user": "counter",
    "rusage_system": "counter",
    "tcpport": "port",
}
_STAT_NAME: Final = re.compile(r"([a-z_]+) ?\Z")
_LITERAL: Final = re.compile(r"\d+", re.ASCII)


def answers(conversation: Conversation, one: Played, other: Played) -> list[Json]:
    """Join two runs of a conversation.

    Args:
        conversation: the conversation.
        one: a run; its text is recorded.
        other: a run on a server with other cas numbers.

    Returns:
        The answer of each step, with holes; None where a step has none.
    """
    joint = _Joint(conversation, one, other)
    rows = zip(conversation.steps, one.steps, other.steps, strict=True)
    return [joint.answer(step, mine, theirs) for step, mine, theirs in rows]


def unexplained(answer: Json) -> Iterator[Hole]:
    """Find the holes that represent no number of a known kind: uninitialised memory, or a race."""
    if isinstance(answer, list):
        for each in answer:
            yield from unexplained(each)
    elif isinstance(answer, dict):
        if answer in (RACE, GARBAGE, {"number": "garbage"}):
            yield answer
        else:
            for value in answer.values():
                yield from unexplained(value)


class _Joint:
    def __init__(self, conversation: Conversation, one: Played, other: Played) -> None:
        self._one = _cas_in_order(conversation, one)
        self._other = _cas_in_order(conversation, other)
        self._sent_numbers = frozenset(_numbers([*_sql(conversation), *_sent(conversation)]))
        self._numbers_in_sql = frozenset(_numbers(_sql(conversation)))
        self._clocks = Clock(0, 0), Clock(0, 0)

    def answer(self, step: Recorded, one: Observed, other: Observed) -> Json:
        self._clocks = Clock(one.began, one.ended), Clock(other.began, other.ended)
        if step.binary and isinstance(one.got, str) and isinstance(other.got, str):
            return self._frames(one.got, other.got)
        return self._join(one.got, other.got)

    def _join(self, one: Json, other: Json) -> Json:
        if isinstance(one, str) and isinstance(other, str):
            return self._text(one, other)
        if type(one) is int and type(other) is int:
            return self._integer(one, other)
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            return [self._join(mine, theirs) for mine, theirs in zip(one, other, strict=True)]
        if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys() and one.keys() <= JOINED:
            return {key: self._join(value, other[key]) for key, value in one.items()}
        return one if one == other else RACE

    def _integer(self, one: int, other: int) -> Json:
        ahead = self._time(one, other)
        if ahead is not None:
            return {"time": ahead}
        if self._time(-one, -other) is not None:
            return {"number": "less the time"}
        if one == other:
            return one
        known = one in self._one and other in self._other
        # Numbers that no memcached connection returned are cas numbers only if the servers' counters are far enough
        # apart; two numbers close to each other are a count that depends on the run.
        return self._cas(one, other) if known or abs(other - one) >= APART else RACE

    def _time(self, one: int, other: int) -> int | None:
        """Return how far a number lies ahead of its step, in seconds; None for a number that is not a time.

        A time lies near now, or as far ahead as a number the conversation says, less 2**32 where 32 bits overflowed.
        """
        ahead = one - self._clocks[0].began
        if one in self._sent_numbers or not self._clocks[1].shows(other, ahead):
            return None
        candidates = (number - turn for number in self._sent_numbers if number > SMALL for turn in (0, 1 << 32))
        meant = [number for number in candidates if abs(number - ahead) < SNAP_SECONDS]
        if meant:
            return min(meant, key=lambda number: abs(number - ahead))
        return round(ahead) if abs(ahead) < NEAR_SECONDS else None

    def _cas(self, one: int, other: int) -> Hole:
        # The plugin counts: whatever number two servers are apart by, they are apart by it all through a conversation.
        apart = {theirs - mine for mine, theirs in zip(self._one, self._other, strict=False) if mine != theirs}
        if one not in self._one and other not in self._other and (not apart or other - one in apart):
            self._one.append(one)
            self._other.append(other)
        if one in self._one and other in self._other and self._one.index(one) == self._other.index(other):
            return {"cas": self._one.index(one) + 1}
        return {"number": "garbage"}

    def _cas_word(self, one: Token, other: Token) -> Json:
        mine, theirs = int(one.shown), int(other.shown)
        if mine == theirs and (mine in self._numbers_in_sql or mine == 0 or mine >= UNSIGNED):
            return one.text
        hole = self._cas(mine, theirs)
        # Equal, but no pair: one server counted from 1 again and met another number.
        return one.text if mine == theirs and "cas" not in hole else hole

    def _text(self, one: str, other: str) -> Json:
        mine, theirs = list(text_tokens(one)), list(text_tokens(other))
        if _kinds(mine) != _kinds(theirs):
            return _merged(_around(one, other))
        parts: list[Json] = []
        before = ""
        for a, b in zip(mine, theirs, strict=True):
            if a.kind == "cas":
                parts.append(self._cas_word(a, b))
            elif a.kind == "number":
                parts.append(self._number(a, b, before, stats=one.startswith("STAT ")))
            else:
                parts += [a.text] if a == b else _around(a.text, b.text)
            before = a.shown
        return _merged(parts)

    def _frames(self, one: str, other: str) -> Json:
        mine, theirs = list(binary_tokens(one)), list(binary_tokens(other))
        if _kinds(mine) != _kinds(theirs):
            return RACE
        parts: list[Json] = []
        before, length = "", 0
        for a, b in zip(mine, theirs, strict=True):
            if a.kind == "cas":
                parts.append(self._cas_word(a, b))
            elif a.kind == "number":
                parts.append(self._number(a, b, before, stats=True))
                # Another number of digits makes another length in the header.
                if isinstance(parts[-1], dict) and "number" in parts[-1]:
                    parts[length] = LENGTH
            elif a.kind == "length":
                length = len(parts)
                parts.append(a.text if a == b else LENGTH)
            elif a.kind == "body":
                parts += _body(a.text, b.text)
            else:
                parts.append(a.text if a == b else RACE)
            before = a.shown
        return _merged(parts)

    def _number(self, one: Token, other: Token, before: str, *, stats: bool) -> Json:
        whole = (one.shown + other.shown).isdigit()
        ahead = self._time(int(one.shown), int(other.shown)) if whole else None
        if ahead is not None:
            return {"time": ahead}
        name = _STAT_NAME.search(before) if stats else None
        if name is not None and name[1] in _STAT_WORDS:
            return {"number": _STAT_WORDS[name[1]]}
        if one == other:
            return one.text
        return {"number": "port" if before.endswith("-p") else "counter" if stats else "garbage"}


def _cas_in_order(conversation: Conversation, played: Played) -> list[int]:
    """List the cas numbers answered on memcached connections as `player` counts them for `{"cas": n}` in a `send`."""
    numbers: list[int] = []
    for step, observed in zip(conversation.steps, played.steps, strict=True):
        if isinstance(step.step, Send | AwaitReply | Disconnect) and isinstance(observed.got, str):
            for begin, end in cas_spans(observed.got, hexadecimal=step.binary):
                number = cas_number(observed.got[begin:end], hexadecimal=step.binary)
                if number and number not in numbers:
                    numbers.append(number)
    return numbers


def _sql(conversation: Conversation) -> list[str]:
    return [*conversation.sql, *(step.statement or "" for step in conversation.steps)]


def _sent(conversation: Conversation) -> list[str]:
    steps = (each.step for each in conversation.steps)
    sends = [sent(step) for step in steps if isinstance(step, Send) and not step.binary]
    return [part for each in sends for part in (each if isinstance(each, list) else [each]) if isinstance(part, str)]


def _numbers(texts: Iterable[str]) -> Iterator[int]:
    for text in texts:
        yield from (int(digits) for digits in _LITERAL.findall(text))


def _kinds(tokens: Iterable[Token]) -> list[str]:
    return [token.kind for token in tokens]


def _around(one: str, other: str) -> list[Json]:
    """Keep the common beginning and end of two texts; a race unless the middle looks like uninitialised memory."""
    shorter = min(len(one), len(other))
    head = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    tail = next((i for i in range(shorter - head) if one[-1 - i] != other[-1 - i]), shorter - head)
    middles = one[head : len(one) - tail], other[head : len(other) - tail]
    if not one or not other or all(re.fullmatch(r"[\r\n -~]*", middle) for middle in middles):
        return [RACE]
    return [one[:head], GARBAGE, one[len(one) - tail :]]


def _body(one: str, other: str) -> list[Json]:
    """Join the bodies of two frames: equal but for some numbers, or uninitialised memory from end to end."""
    if one == other:
        return [one]
    if not one or not other:
        return [RACE]
    mine, theirs = list(body_tokens(one)), list(body_tokens(other))
    pairs = list(zip(mine, theirs, strict=False))
    if _kinds(mine) != _kinds(theirs) or any(a != b and a.kind == "text" for a, b in pairs):
        return [GARBAGE]
    return [a.text if a == b else {"number": "garbage"} for a, b in pairs]


def _merged(parts: Sequence[Json]) -> Json:
    """Join neighbouring strings; a text without holes is a string, and one with a race in it is a race."""
    if RACE in parts:
        return RACE
    merged: list[Json] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, str) and isinstance(last, str):
            merged[-1] = last + part
        elif part != "":
            merged.append(part)
    if not merged:
        return ""
    return merged[0] if len(merged) == 1 and isinstance(merged[0], str) else merged
