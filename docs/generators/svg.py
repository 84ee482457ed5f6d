"""Parts of charts in SVG."""

from __future__ import annotations

from html import escape
from typing import Final

INK: Final = "#1f2328"
FAINT: Final = "#5f6770"


def text(
    x: float, y: float, words: str, *, fill: str = INK, size: int = 13, weight: str = "normal", anchor: str = "start"
) -> str:
    """Return a text.

    Args:
        x, y: its place, in pixels.
        words: what it says.
        fill: colour.
        size: in pixels.
        weight: `normal` or `bold`.
        anchor: which part of it is at `x`: `start`, `middle` or `end`.
    """
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )
