"""Compare two binary replies frame by frame, except cas numbers and the differences in `known_differences.toml`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from kvref_conformance.frames import Frame, frames, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.differential.compare import Counted
    from kvref_conformance.differential.known_differences import Known


def same_frames(left: bytes, right: bytes, counted: Counted) -> bool:
    """Return whether two answers are the same up to cas numbers, which are paired."""
    (mine, end), (theirs, other_end) = split(left), split(right)
    return (
        end == other_end
        and len(mine) == len(theirs)
        and all(_agree(a, b, counted) for a, b in zip(mine, theirs, strict=True))
    )


def explained_frames(
    sent: bytes, left: bytes, right: bytes, known: Sequence[Known], counted: Counted
) -> list[str] | None:
    """Return the ids of the rows that explain the differing frames of two answers; None where a frame is left over."""
    (mine, end), (theirs, other_end) = split(left), split(right)
    if end != other_end or len(mine) != len(theirs):
        return None
    said = _lines(sent)
    ids = []
    for a, b in zip(mine, theirs, strict=True):
        if _agree(a, b, counted):
            continue
        row = _row(said, a, b, known, counted)
        if row is None:
            return None
        ids.append(row.id)
    return ids


def _lines(sent: bytes) -> str:
    return "\n".join(map(str, frames(sent)))


def _row(said: str, left: Frame, right: Frame, known: Sequence[Known], counted: Counted) -> Known | None:
    pair = (left, right)
    if counted.agree(left.cas, right.cas):
        pair = (replace(left, cas=0), replace(right, cas=0))
    return next((row for row in known if row.explains_frame(said, *pair)), None)


def _agree(left: Frame, right: Frame, counted: Counted) -> bool:
    return replace(left, cas=0) == replace(right, cas=0) and counted.agree(left.cas, right.cas)


def kind_of(sent: bytes, left: bytes, right: bytes, known: Sequence[Known], counted: Counted) -> str:
    """Return under which words two different answers are counted: the first command and what of it differs.

    Args:
        sent: the frames that were answered.
        left: one answer.
        right: the other.
        known: what these rows explain is passed over.
        counted: pairs of cas numbers.
    """
    (mine, end), (theirs, other_end) = split(left), split(right)
    said = _lines(sent)
    for a, b in zip(mine, theirs, strict=False):
        if a == b or _row(said, a, b, known, counted) is not None:
            continue
        if (a.opcode, a.opaque) != (b.opcode, b.opaque):
            return f"{a.name} / {b.name}: one has nothing to say"
        if a.status != b.status:
            return f"{a.name}: 0x{a.status:02x} / 0x{b.status:02x}"
        if differing := _differing(a, b):
            key = f" {a.key.decode('latin-1')}" if a.name == "stat" else ""
            return f"{a.name}{key} 0x{a.status:02x}: {' and '.join(differing)}"
        if not counted.would_agree(a.cas, b.cas):
            return f"{a.name} 0x{a.status:02x}: cas"
    if len(mine) != len(theirs):
        more = mine[len(theirs) :] or theirs[len(mine) :]
        return f"{more[0].name}: " + ("answered / not" if len(mine) > len(theirs) else "not / answered")
    return f"end: {_shown(end)} / {_shown(other_end)}"


def _differing(left: Frame, right: Frame) -> list[str]:
    return [
        each.name
        for each in fields(Frame)
        if each.name not in {"cas", "lengths"} and getattr(left, each.name) != getattr(right, each.name)
    ]


def _shown(end: bytes) -> str:
    return end.decode("latin-1") if end in {b"<EOF>", b"<silence>"} else "half a frame" if end else "open"
