"""Answers cut into pieces whose types are known, so that two runs can be compared piece by piece."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.holes import cas_spans, replies
from kvref_conformance.wire.frames import CAS, OPCODES

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)", re.ASCII)
_DIGITS: Final = re.compile(rb"(\d+)")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an answer.

    Args:
        kind: `cas`, `number`, `text`; in binary frames also `length` of a row of `stats`, and `body` of other frames.
        text: the text in the reply.
        shown: the same without hexadecimal digits.
    """

    kind: str
    text: str
    shown: str


def text_tokens(answer: str) -> Iterator[Token]:
    """Cut an answer of the text protocol, or a cell of SQL."""
    start = 0
    for begin, end in cas_spans(answer):
        yield from _literals(answer[start:begin])
        yield Token("cas", answer[begin:end], answer[begin:end])
        start = end
    yield from _literals(answer[start:])


def _literals(piece: str) -> Iterator[Token]:
    for number, text in enumerate(_NUMBER.split(piece)):
        yield Token("number" if number % 2 else "text", text, text)


def binary_tokens(answer: str) -> Iterator[Token]:
    """Cut an answer of the binary protocol, in hexadecimal digits."""
    digits, bracket, ending = answer.partition("<")
    place = 0
    for frame in replies(digits):
        whole = digits[place : (place := place + 2 * frame.size)]
        head, cas, body = whole[: 2 * CAS.start], whole[2 * CAS.start : 2 * CAS.stop], whole[2 * CAS.stop :]
        stat = frame.opcode == OPCODES["stat"]
        yield from (_text(head[:16]), _text(head[16:24], "length"), _text(head[24:])) if stat else (_text(head),)
        yield Token("cas", cas, str(frame.cas)) if frame.cas else _text(cas)
        yield from body_tokens(body) if stat else (_text(body, "body"),)
    yield _text(digits[place:])
    yield Token("text", bracket + ending, bracket + ending)


def body_tokens(body: str) -> Iterator[Token]:
    """Cut the body of a frame into its numbers and the parts between them."""
    for number, text in enumerate(_DIGITS.split(bytes.fromhex(body))):
        yield _text(text.hex(), "number" if number % 2 else "text")


def _text(digits: str, kind: str = "text") -> Token:
    return Token(kind, digits, bytes.fromhex(digits).decode("latin-1"))
