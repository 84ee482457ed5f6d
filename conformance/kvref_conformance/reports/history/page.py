"""The history as one page that needs nothing else: regressions first, then the trends of every endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from kvref_conformance.reports import pages
from kvref_conformance.reports.history import forms
from kvref_conformance.reports.history.archive import ALL, PARTS
from kvref_conformance.reports.history.changes import FIXED, KINDS, REGRESSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.reports.history.changes import Change
    from kvref_conformance.reports.history.run import Run

# Of a trend line, in pixels.
WIDTH: Final = 72
HEIGHT: Final = 22
MARGIN: Final = 3
# A trend line has at most so many runs, the last ones.
MAX_POINTS: Final = 60


def html(runs: Mapping[str, Sequence[Run]], changes: Mapping[str, Sequence[Change]]) -> str:
    """Return the page.

    Args:
        runs: as `archive.read` returns them.
        changes: since the last run, by endpoint.
    """
    every = [change for each in changes.values() for change in each]
    return pages.render(
        "history/page.html.j2",
        "matrix",
        endpoints=runs,
        changes=sorted(every, key=lambda each: KINDS.index(each.kind)),
        kinds=[kind for kind in KINDS if forms.counted(every, kind)],
        by_endpoint=changes,
        counted=forms.counted,
        regression=REGRESSION,
        fixed=FIXED,
        levels={name: forms.levels(each) for name, each in runs.items()},
        parts={name: _parts(each) for name, each in runs.items()},
        all=ALL,
        trend=trend,
        change_of=_change_of,
    )


def _parts(runs: Sequence[Run]) -> list[str]:
    return [part for part in PARTS if any(part in run.shares for run in runs)]


def trend(runs: Sequence[Run], part: str) -> Markup:
    """Return the share of requirements that are kept as a line, from 0 at the bottom to all at the top, in SVG.

    Args:
        runs: of one endpoint, the oldest first; the points are equally far apart.
        part: one of PARTS; runs that did not judge it have no point.
    """
    shares = [run.shares.get(part) for run in runs[-MAX_POINTS:]]
    step = (WIDTH - 2 * MARGIN) / max(1, len(shares) - 1)
    points = [
        (MARGIN + number * step, MARGIN + (HEIGHT - 2 * MARGIN) * (1 - share.part))
        for number, share in enumerate(shares)
        if share is not None
    ]
    if not points:
        return Markup()
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    words = ", ".join(share.percent for share in shares if share is not None)
    # Numbers and percentages only: nothing to escape.
    return Markup(  # noqa: S704
        f'<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}"><title>{words}</title>'
        f'<polyline points="{line}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"/></svg>'
    )


def _change_of(runs: Sequence[Run], at: int, part: str) -> str:
    """Return `up` or `down` where the share of a run differs from that of the run before it that judged the part."""
    share = runs[at].shares.get(part)
    earlier = next((run.shares[part] for run in reversed(runs[:at]) if part in run.shares), None)
    if share is None or earlier is None or share.part == earlier.part:
        return ""
    return "up" if share.part > earlier.part else "down"
