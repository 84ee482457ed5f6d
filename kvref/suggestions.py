"""The known name that an unknown one is close to, for error texts."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean NAME` for the known name that is closest to an unknown one; empty if none is close."""
    close = get_close_matches(name, list(known), 1)
    return f", did you mean {close[0]!r}" if close else ""
