"""Steps that the chapters of the binary protocol share; requests and answers are frames in words (`wire/frames.py`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from kvref_conformance.case import by_fact, frames, send

if TYPE_CHECKING:
    from kvref_conformance.steps import By, Send

NOT_FOUND: Final = '0x01 "Not found"'
EXISTS: Final = '0x02 "Data exists for key"'
TOO_LARGE: Final = '0x03 "Too large"'
NOT_STORED: Final = '0x05 "Not stored"'
NO_NUMBER: Final = '0x06 "Non-numeric server-side value for incr or decr"'


def store(key: str, value: str, verb: str = "set", *, flags: int = 0, on: str = "a") -> Send:
    """Store a value under a key."""
    given = "" if verb.startswith(("append", "prepend")) else f" flags={flags}"
    return frames(f"{verb} key={key}{given} value={value}", f"{verb} ok cas=<cas>", on=on)


def hit(key: str, value: str, *, flags: int = 0, on: str = "a") -> Send:
    """Get a key and want that value; the row has a cas number."""
    return frames(f"get key={key}", f"get ok cas=<cas> flags={flags} value={value}", on=on)


def miss(key: str, on: str = "a") -> Send:
    """Get a key and want nothing."""
    return frames(f"get key={key}", f"get {NOT_FOUND}", on=on)


def try_frames(request: str, answer: str, **how: Any) -> Send:
    """Send frames and want an answer, of which two texts end in a full stop where the profile says so."""
    return frames(request, profile_texts(answer), **how)


def profile_texts(answer: str) -> By:
    """Allow an answer with the profile's texts."""
    stopped = re.sub(r'"(Data exists for key|Too large|Not stored)"', r'"\1."', answer)
    return by_fact("binary.texts", bare=answer, full_stop=stopped)


def unknown_opcode(opcode: str) -> By:
    """Allow the answer to an unknown opcode."""
    return by_fact("binary.unknown_opcode", empty=f"{opcode} 0x81", text=f'{opcode} 0x81 "Unknown command"')


def malformed(frame: str, on: str = "a") -> Send:
    """Send frames of which the first has wrong lengths, and want the connection closed."""
    opcode = frame.partition(";")[0].split()[0]
    return frames(frame, f'{opcode} 0x04 "Invalid arguments"', on=on, closes=True)


def each_malformed(*frames: str) -> tuple[Send, ...]:
    """Send frames with wrong lengths, each on a connection of its own."""
    return tuple(malformed(frame, on=f"c{number}") for number, frame in enumerate(frames))


def send_text(request: str, answer: str) -> Send:
    """Send a request on a text connection that is open in addition to the binary one."""
    return send(request, answer, on="text")
