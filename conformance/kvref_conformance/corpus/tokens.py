"""Answers cut into pieces whose types are known, so that two runs can be compared piece by piece."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.holes import cas_number, cas_spans, frames

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)", re.ASCII)
_DIGITS: Final = re.compile(rb"(\d+)")
_STAT_FRAME: Final = "8110"


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
        yield from _plain(answer[start:begin])
        yield Token("cas", answer[begin:end], answer[begin:end])
        start = end
    yield from _plain(answer[start:])


def _plain(piece: str) -> Iterator[Token]:
    for number, text in enumerate(_NUMBER.split(piece)):
        yield Token("number" if number % 2 else "text", text, text)


def binary_tokens(answer: str) -> Iterator[Token]:
    """Cut an answer of the binary protocol, in hexadecimal digits."""
    digits, bracket, ending = answer.partition("<")
    end = 0
    for frame in frames(digits):
        yield from _header(frame.head)
        if int(frame.cas, 16):
            yield Token("cas", frame.cas, str(cas_number(frame.cas, hexadecimal=True)))
        else:
            yield _text(frame.cas)
        yield from body_tokens(frame.body) if frame.head.startswith(_STAT_FRAME) else (_text(frame.body, "body"),)
        end = frame.end
    yield _text(digits[end:])
    yield Token("text", bracket + ending, bracket + ending)


def _header(head: str) -> Iterator[Token]:
    if not head.startswith(_STAT_FRAME):
        yield _text(head)
        return
    yield _text(head[:16])
    yield _text(head[16:24], "length")
    yield _text(head[24:])


def body_tokens(body: str) -> Iterator[Token]:
    """Cut the body of a frame into its numbers and the parts between them."""
    for number, text in enumerate(_DIGITS.split(bytes.fromhex(body))):
        yield _text(text.hex(), "number" if number % 2 else "text")


def _text(digits: str, kind: str = "text") -> Token:
    return Token(kind, digits, bytes.fromhex(digits).decode("latin-1"))
