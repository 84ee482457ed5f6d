"""A command as text, as a meta command and as a binary frame, and what a reply to it looks like in each protocol.

What is sent and received is text: bytes of the text protocol, one character each; frames in words (`wire/frames.py`).
Sources: memcached `protocol.txt`, `protocol_binary.txt`; the requirements of the chapters on both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.model import steps as s
from kvref_conformance.model.effects import Outcome
from kvref_conformance.wire.frames import BETWEEN, decode, encode, in_key, in_value
from kvref_conformance.wire.template import CAS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_conformance.model.effects import Item
    from kvref_conformance.model.rules import Rules

UNKNOWN_VERB: Final = "no-such-verb"
UNKNOWN_OPCODE: Final = "0x60"
# In the place of the expiry time: a missing item is not created.
NO_CREATION: Final = (1 << 32) - 1
# Of an item in a reply: of text, of a frame, of a meta command.
NUMBER: Final = re.compile(r"VALUE \S+ \d+ \d+ (\d+)\r\n|\w+ ok cas=(\d+)|(?:HD|VA \d+)(?: f\d+)? c(\d+)")
_TEXT: Final = 0
_META: Final = 1
_BINARY: Final = 2
_NOT_A_NUMBER: Final = "CLIENT_ERROR cannot increment or decrement non-numeric value"
_TOO_LARGE: Final = "SERVER_ERROR object too large for cache<text>"
_TIMED_OUT: Final = "SERVER_ERROR lock wait timeout"
# Replies in text, to a meta command and to a frame.
_REPLIES: Final = {
    Outcome.STORED: ("STORED", "HD", "ok"),
    Outcome.NOT_STORED: ("NOT_STORED", "NS", '0x05 "Not stored"'),
    Outcome.EXISTS: ("EXISTS", "EX", '0x02 "Data exists for key"'),
    Outcome.NOT_FOUND: ("NOT_FOUND", "NF", '0x01 "Not found"'),
    Outcome.DELETED: ("DELETED", "HD", "ok"),
    Outcome.TOUCHED: ("TOUCHED", "HD", "ok"),
    Outcome.COUNTED: ("", "HD", "ok"),
    Outcome.BOUND: ("SUCCEED", "", ""),
    Outcome.FLUSHED: ("OK", "OK", "ok"),
    Outcome.UNKNOWN: ("ERROR", "ERROR", "0x81"),
    Outcome.NOT_A_NUMBER: (_NOT_A_NUMBER, _NOT_A_NUMBER, '0x06 "Non-numeric server-side value for incr or decr"'),
    Outcome.NO_AMOUNT: ("CLIENT_ERROR invalid numeric delta argument", "CLIENT_ERROR invalid or duplicate flag", ""),
    Outcome.TIMED_OUT: (_TIMED_OUT, _TIMED_OUT, '0x86 "<text>"'),
    Outcome.TOO_LARGE: (_TOO_LARGE, _TOO_LARGE, '0x03 "Too large"'),
    Outcome.REFUSED: ("CLIENT_ERROR <text>", "CLIENT_ERROR <text>", '0x04 "<text>"'),
    Outcome.MALFORMED: ("SERVER_ERROR <text>", "SERVER_ERROR <text>", '0x84 "<text>"'),
}
_MODES: Final = {"add": " ME", "replace": " MR", "append": " MA", "prepend": " MP"}
# Frames have other words for a condition that does not hold.
_CONDITIONS: Final = {"add": Outcome.EXISTS, "replace": Outcome.NOT_FOUND}
# Texts of frames that end in a full stop in some profiles.
_STOPPED: Final = frozenset((Outcome.EXISTS, Outcome.TOO_LARGE, Outcome.NOT_STORED))
_DONE: Final = frozenset((Outcome.STORED, Outcome.DELETED, Outcome.TOUCHED, Outcome.COUNTED))


def joined(protocol: str, parts: Iterable[str]) -> str:
    """Return requests, or replies, that are in one packet; replies may be empty."""
    return BETWEEN.join(filter(None, parts)) if protocol == s.BINARY else "".join(parts)


def sent(protocol: str, text: str) -> bytes:
    """Return the bytes of requests."""
    return encode(text) if protocol == s.BINARY else text.encode("latin-1")


def received(protocol: str, data: bytes) -> str:
    """Return replies as text."""
    return decode(data) if protocol == s.BINARY else data.decode("latin-1")


def request(step: s.Request, number: int | str = 0) -> str:
    """Return what is sent for a command.

    Args:
        step: the command.
        number: the cas number that a `cas` sends.
    """
    return {s.TEXT: _text_request, s.META: _meta_request, s.BINARY: _binary_request}[step.protocol](step, number)


def replies(rules: Rules, step: s.Request, outcome: Outcome, total: int | None = None) -> tuple[str, ...]:
    """Return the allowed replies to a command but a get; CAS is a placeholder for a cas number.

    Args:
        rules: facts of the profile.
        step: the command.
        outcome: what the command does.
        total: the number that is counted to.
    """
    silent = isinstance(step, s.Store | s.Count | s.Delete | s.Touch) and step.silent
    done = outcome in _DONE
    if silent and (step.protocol == s.TEXT or done):
        return ("",)
    if step.protocol == s.BINARY:
        return _binary_replies(rules, step, outcome, total)
    if step.protocol == s.TEXT:
        return (f"{_REPLIES[outcome][_TEXT] if total is None else total}\r\n",)
    word = "EN" if isinstance(step, s.Touch) and not done else _REPLIES[outcome][_META]
    # A flag is repeated behind the words of two letters; what the number is behind a refusal is not said.
    numbered = isinstance(step, s.Store) or (isinstance(step, s.Count) and done)
    number = f" c{CAS if done else '<number>'}" if numbered and len(word) == len("HD") else ""
    return (f"{word}{number}\r\n" if total is None else f"VA {len(str(total))}{number}\r\n{total}\r\n",)


def made_up(step: s.Count) -> str:
    """Return the reply with any number to a missing key, as of mysql-5.6."""
    if step.silent:
        return ""
    return f"{_verb(step)} ok number=<number>" if step.protocol == s.BINARY else "<number>\r\n"


def hit(step: s.Get, word: str, item: Item, number: str) -> str:
    """Return what a get shows of an item.

    Args:
        step: the command.
        word: as sent.
        item: the item.
        number: its cas number or the placeholder for it; empty where it has none.
    """
    flags = item.flags or 0
    if step.protocol == s.BINARY:
        named = f" key={in_key(word)}" if step.named else ""
        return f"{_verb(step)} ok{f' cas={number}' if number else ''} flags={flags}{named} value={in_value(item.value)}"
    if step.protocol == s.META:
        named = f" k{word}" if step.named else ""
        return f"VA {len(item.value)} f{flags}{f' c{number or 0}' if step.cas else ''}{named}\r\n{item.value}\r\n"
    return f"VALUE {word} {flags} {len(item.value)}{f' {number or 0}' if step.cas else ''}\r\n{item.value}\r\n"


def miss(step: s.Get, word: str) -> str:
    """Return what a get shows of a missing item."""
    if step.protocol == s.TEXT or step.silent:
        return ""
    if step.protocol == s.META:
        return f"EN{f' k{word}' if step.named else ''}\r\n"
    return f"{_verb(step)} 0x01 " + (f"key={in_key(word)}" if step.named else '"Not found"')


def got(step: s.Get, item: Item | None) -> str:
    """Return the reply to a get of one key whose item, if there is one, has a cas number."""
    block = miss(step, step.words[0]) if item is None else hit(step, step.words[0], item, CAS)
    return f"{block}END\r\n" if step.protocol == s.TEXT else block


def number_in(reply: str) -> int:
    """Return the cas number that a reply to a command on one key shows; 0 if it shows none."""
    found = NUMBER.match(reply)
    return int(found[found.lastindex or 0]) if found is not None else 0


def shows_numbers(step: s.Get) -> bool:
    """Return whether a reply to a get has cas numbers."""
    return step.cas or step.protocol == s.BINARY


def shown(step: s.Step) -> str:
    """Return a step as a line for a reader."""
    if not isinstance(step, s.Command):
        return str(step)
    number = "<wrong number>" if isinstance(step, s.Store) and step.stale else "<number seen>"
    return f"{step.on}: {request(step, number).strip()}".replace("\r\n", " · ")


def _text_request(step: s.Request, number: int | str) -> str:
    tail = " noreply" if isinstance(step, s.Store | s.Count | s.Delete | s.Touch) and step.silent else ""
    match step:
        case s.Bind():
            line = f"bind {step.name}"
        case s.Get():
            verb = "gets" if step.cas else "get" if step.expiry is None else f"gat {step.expiry}"
            line = f"{verb} {' '.join(step.words)}"
        case s.Store():
            cas = f" {number}" if step.verb == "cas" else ""
            line = f"{step.verb} {step.word} {step.flags} {step.expiry} {len(step.value)}{cas}{tail}\r\n{step.value}"
        case s.Count():
            line = f"{step.verb} {step.word} {step.amount}{tail}"
        case s.Delete():
            line = f"delete {step.word}{tail}"
        case s.Touch():
            line = f"touch {step.word} {step.expiry}{tail}"
        case _:
            line = "flush_all" if isinstance(step, s.Flush) else UNKNOWN_VERB
    return f"{line}\r\n"


def _meta_request(step: s.Request, number: int | str) -> str:
    match step:
        case s.Get(words=(word,)):
            flags = f"{' c' if step.cas else ''}{' k' if step.named else ''}{' q' if step.silent else ''}"
            return f"mg {word} v f{flags}{'' if step.expiry is None else f' T{step.expiry}'}\r\n"
        case s.Touch():
            return f"mg {step.word} T{step.expiry}\r\n"
        case s.Store():
            mode = f" C{number}" if step.verb == "cas" else _MODES.get(step.verb, "")
            flags = f"F{step.flags} T{step.expiry}{mode} c{' q' if step.silent else ''}"
            return f"ms {step.word} {len(step.value)} {flags}\r\n{step.value}\r\n"
        case s.Count():
            mode = " MD" if step.verb == "decr" else ""
            initial = "" if step.initial is None else f" N0 J{step.initial}"
            return f"ma {step.word} v c D{step.amount}{mode}{initial}{' q' if step.silent else ''}\r\n"
        case s.Delete():
            return f"md {step.word}{' q' if step.silent else ''}\r\n"
    return _text_request(step, number)


def _binary_request(step: s.Request, number: int | str) -> str:
    verb = _verb(step)
    match step:
        case s.Get(words=(word,)):
            return f"{verb} key={in_key(word)}{'' if step.expiry is None else f' exp={step.expiry}'}"
        case s.Touch():
            return f"{verb} key={in_key(step.word)} exp={step.expiry}"
        case s.Store():
            extras = "" if step.verb in {"append", "prepend"} else f" flags={step.flags} exp={step.expiry}"
            cas = f" cas={number}" if step.verb == "cas" else ""
            return f"{verb} key={in_key(step.word)}{extras}{cas} value={in_value(step.value)}"
        case s.Count():
            initial = f"exp={NO_CREATION}" if step.initial is None else f"initial={step.initial}"
            return f"{verb} key={in_key(step.word)} delta={step.amount} {initial}"
        case s.Delete():
            return f"{verb} key={in_key(step.word)}"
        case s.Bind():
            return f"{verb} key=@@{in_key(step.name)}"
    return verb


def _verb(step: s.Request) -> str:
    match step:
        case s.Get():
            verb = "get" if step.expiry is None else "gat"
            return f"{verb}{'k' if step.named else ''}{'q' if step.silent else ''}"
        case s.Store():
            verb = "set" if step.verb == "cas" else step.verb
        case s.Count():
            verb = step.verb
        case s.Delete():
            verb = "delete"
        case s.Touch():
            return "touch"
        case _:
            return {s.Bind: "get", s.Flush: "flush"}.get(type(step), UNKNOWN_OPCODE)
    return f"{verb}q" if step.silent else verb


def _binary_replies(rules: Rules, step: s.Request, outcome: Outcome, total: int | None) -> tuple[str, ...]:
    if isinstance(step, s.Store) and outcome == Outcome.NOT_STORED:
        outcome = _CONDITIONS.get(step.verb, outcome)
    answer = f"{_verb(step)} {_REPLIES[outcome][_BINARY]}"
    if outcome == Outcome.UNKNOWN:
        return (f"{_verb(step)} {rules.unknown_opcode}",)
    if outcome in _STOPPED and rules.full_stops:
        return (f'{answer[:-1]}."',)
    if outcome in {Outcome.STORED, Outcome.COUNTED}:
        return (f"{answer} cas={CAS}{'' if total is None else f' number={total}'}",)
    if outcome == Outcome.TOUCHED:  # memcached returns flags with an empty value
        return answer, f"{answer} cas=<number> flags=<number> value="
    return (answer,)
