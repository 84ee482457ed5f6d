"""Shorter forms of what a binary step sends: without a frame, with a shorter value, with an emptier header."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from kvref_conformance.frames import CAS, SIZE, frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.corpus.holes import Json

_KEY_LENGTH: Final = slice(2, 4)
_VBUCKET: Final = slice(6, 8)
_BODY_LENGTH: Final = slice(8, 12)
_OPAQUE: Final = slice(12, 16)


def shorter_frames(sent: Json) -> Iterator[Json]:
    """Yield shorter forms of the frames of a step, in which a hole of a cas number stays with its frame.

    Args:
        sent: hexadecimal digits, or a list of them and of holes, as in `Talk.hex`.
    """
    whole, holes = _filled(sent)
    found = [frame for frame in frames(whole) if frame.whole]
    start = 0
    for frame in found:
        end = start + frame.size
        if len(found) > 1 or end < len(whole):
            yield _with_holes(whole[:start] + whole[end:], _moved(holes, start, end))
        hole = start + CAS.start
        one = whole[start:end]
        for shorter in _shorter_frame(one, frame.lengths[1], frame.lengths[0], filled=hole in holes):
            kept = {place: number for place, number in holes.items() if place <= hole}
            kept |= {place - len(one) + len(shorter): n for place, n in holes.items() if place > hole}
            yield _with_holes(whole[:start] + shorter + whole[end:], kept)
        start = end


def _shorter_frame(frame: bytes, extras: int, key: int, *, filled: bool) -> Iterator[bytes]:
    for field in (_OPAQUE, _VBUCKET, *([] if filled else [CAS])):
        if any(frame[field]):
            yield frame[: field.start] + bytes(field.stop - field.start) + frame[field.stop :]
    head, name, value = frame[SIZE : SIZE + extras], frame[SIZE + extras :][:key], frame[SIZE + extras + key :]
    if len(head) + len(name) + len(value) != len(frame) - SIZE or len(head) < extras or len(name) < key:
        return  # its lengths are wrong on purpose
    for shorter in dict.fromkeys((value[: len(value) // 2], value[1:], value[:-1])):
        if shorter != value:
            yield _sized(frame, head, name, shorter)
    for shorter in dict.fromkeys((name[1:], name[:-1])):
        if shorter:
            yield _sized(frame, head, shorter, value)


def _sized(frame: bytes, extras: bytes, key: bytes, value: bytes) -> bytes:
    header = bytearray(frame[:SIZE])
    header[_KEY_LENGTH] = struct.pack(">H", len(key))
    header[_BODY_LENGTH] = struct.pack(">I", len(extras) + len(key) + len(value))
    return bytes(header) + extras + key + value


def _filled(sent: Json) -> tuple[bytes, dict[int, int]]:
    """Return the bytes with zeros for holes, and the number of the hole at each place."""
    parts = sent if isinstance(sent, list) else [sent]
    whole, holes = b"", {}
    for part in parts:
        if isinstance(part, dict):
            number = part["cas"]
            assert isinstance(number, int), "the number of a cas number is a number"
            holes[len(whole)] = number
            whole += bytes(CAS.stop - CAS.start)
        else:
            assert isinstance(part, str), f"{part!r} is neither digits nor a hole"
            whole += bytes.fromhex(part)
    return whole, holes


def _with_holes(whole: bytes, holes: dict[int, int]) -> Json:
    parts: list[Json] = []
    done = 0
    for place, number in sorted(holes.items()):
        parts += [whole[done:place].hex(), {"cas": number}]
        done = place + CAS.stop - CAS.start
    return [*parts, whole[done:].hex()] if parts else whole.hex()


def _moved(holes: dict[int, int], start: int, end: int) -> dict[int, int]:
    kept = {place: number for place, number in holes.items() if place < start}
    return kept | {place - (end - start): number for place, number in holes.items() if place >= end}
