"""One style for all charts: a slide of 16:9 that is read from the back row.

slide, (axes,) = style.slide("One finding in a sentence", "Source: run 20260101T000000-1a2b, ...")
style.sessions_axis(axes, [1, 8, 64]); style.line(axes, xs, ys, low, high, line_style=line_styles["kvref"])
style.label_ends(axes, ends); slide          # the last expression of a cell shows it

No state of pyplot is used: a Slide draws itself, always whole, never cropped.
"""

from __future__ import annotations

import io
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    Values = Sequence[float] | pd.Series[Any]

SIZE: Final = (12.8, 7.2)  # inches; 1920 x 1080 at DPI
DPI: Final = 150
INK: Final = "#1f2328"
MUTED: Final = "#5f6770"
GRID: Final = "#e3e6ea"

# Hues of Okabe and Ito ("Color Universal Design", 2008), dark then light, for two servers of one kind.
PALETTE: Final[dict[str, tuple[str, ...]]] = {
    "plugin": ("#0072b2", "#56b4e9", "#003f63"),
    "memcached": ("#4a5159", "#8b949e"),
    "kvref": ("#d55e00", "#e69f00", "#8a3d00"),
    "mysql": ("#009e73", "#66c9ae", "#005e45", "#94a300"),
    "mariadb": ("#a8518a", "#cc79a7"),
    "other": ("#6e5b00", "#b59b1e"),
}
SECOND: Final = re.compile(r"\b5\.\d|kvref-m")
# No line ends between a number and its unit, nor between a server and its version.
TOGETHER: Final = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s)\b|%)|(?<=plugin) (?=\d)|(?<=memcached) (?=\d)")
MARKERS: Final = ("o", "s", "^", "D")
DASHES: Final = ("-", (0, (5, 1.6)), (0, (1.4, 1.4)), (0, (5, 1.4, 1.4, 1.4)))

RC: Final[dict[str, object]] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 15,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 16,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 15,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 1.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 14,
    "ytick.labelsize": 14,
    "lines.linewidth": 2.6,
    "lines.markersize": 8,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "legend.frameon": False,
    "legend.fontsize": 14,
}


class Slide(Figure):
    """A chart that shows itself in a notebook as the whole slide."""

    def __init__(self) -> None:
        """Make an empty page."""
        super().__init__(figsize=SIZE, dpi=DPI)
        self.pen = FigureCanvasAgg(self)

    def write(self, y: float, text: str, **line_style: Any) -> int:
        """Write a text across the page and give the number of its lines; y: share of the height."""
        put = self.text(0.03, y, "", **line_style)
        lines: list[str] = []
        for word in TOGETHER.sub("\N{NO-BREAK SPACE}", text).split(" "):
            longer = f"{lines[-1]} {word}" if lines else word
            put.set_text(longer)
            if lines and self.width(put) <= 0.94:
                lines[-1] = longer
            else:
                lines.append(word)
        put.set_text("\n".join(lines))
        return len(lines)

    def width(self, text: Text) -> float:
        """Return the width of a text as a share of the page."""
        renderer = self.pen.get_renderer()  # type: ignore[no-untyped-call]
        return float(text.get_window_extent(renderer).width / self.bbox.width)

    def png(self) -> bytes:
        """Return the picture, 1920 x 1080."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        """Return the finding, which is the title: the text in place of the picture."""
        return " ".join(self.texts[0].get_text().split()) if self.texts else "an empty chart"

    def _repr_png_(self) -> bytes:
        return self.png()


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How one line is drawn."""

    colour: str
    marker: str = "o"
    dash: str | tuple[float, tuple[float, ...]] = "-"


@dataclass(frozen=True, slots=True)
class End:
    """Where a line ends, and what it is called there."""

    x: float
    y: float
    text: str
    colour: str


def line_styles(servers: Iterable[tuple[str, str]]) -> dict[str, LineStyle]:
    """Give each server the colour of its kind; further ones of that kind get another shade, marker and dash.

    servers: (name, kind), of all servers of all runs that are shown, so that each keeps its look from chart to chart.
    kind: as in a run's record (`plugin`, `memcached`, `kvref`, `mysql`, `mariadb`, `other`).
    """
    given: dict[str, LineStyle] = {}
    taken: set[tuple[str, int]] = set()
    for name, kind in sorted(set(servers), reverse=True):
        # Old versions, and kvref over a server, are the second of their kind though they may be alone in a chart.
        place = 1 if SECOND.search(name) else 0
        while (kind, place) in taken:
            place += 1
        taken.add((kind, place))
        shades = PALETTE.get(kind, PALETTE["other"])
        given[name] = LineStyle(shades[place % len(shades)], MARKERS[place % len(MARKERS)], DASHES[place % len(DASHES)])
    return given


def ink(colour: str) -> str:
    """Return a colour dark enough for words on white: of relative luminance 0.25 at most."""
    shades = np.array(to_rgb(colour))
    while float(shades**2.2 @ (0.2126, 0.7152, 0.0722)) > 0.25:
        shades = shades * 0.95
    return to_hex(shades.tolist())


def slide(  # noqa: PLR0913 - each is a part of the page
    title: str,
    source: str,
    *,
    subtitle: str = "",
    columns: int = 1,
    rows: int = 1,
    left: float = 0.085,
    right: float = 0.83,
    share_y: bool = False,
    share_x: bool = False,
    wspace: float = 0.22,
    hspace: float = 0.32,
) -> tuple[Slide, list[Axes]]:
    """Return an empty chart and its axes, row by row.

    title: the finding, two lines at most (about 130 characters); source: where the figures are from, at the foot.
    subtitle: what is measured, in one line. left, right: edges of the axes, shares of the width; the room to the right
    is for labels at the ends of lines.
    """
    mpl.rcParams.update(RC)  # type: ignore[call-overload,arg-type,unused-ignore]
    made = Slide()
    top = 0.965 - 0.056 * made.write(0.965, title, fontsize=23, fontweight="bold", va="top", linespacing=1.15)
    if subtitle:
        top -= 0.012 + 0.034 * made.write(top - 0.012, subtitle, fontsize=14, color=MUTED, va="top")
    bottom = 0.022 + 0.024 * made.write(0.022, source, fontsize=11, color=MUTED, va="bottom") + 0.105
    grid = made.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=share_y)
    made.subplots_adjust(
        left=left, right=right, top=top - (0.075 if columns * rows > 1 else 0.04), bottom=bottom,
        wspace=wspace, hspace=hspace,
    )  # fmt: skip
    return made, [axes for row in grid for axes in row]


def short(value: float) -> str:
    """Write a number as on an axis: 950, 12k, 1.2M."""
    for limit, divisor, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= limit:
            return f"{value / divisor:.3g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def sessions_axis(axes: Axes, sessions: Iterable[int], label: str = "sessions") -> None:
    """Make x the number of sessions: doubling is one step, and what was measured has a tick."""
    ticks = sorted(set(sessions))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(_apart(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    if ticks:
        axes.set_xlim(ticks[0] / 1.15, ticks[-1] * 1.15)
    axes.set_xlabel(label)


def _apart(ticks: Sequence[int]) -> list[float]:
    """Leave out ticks that are nearer than a quarter of a doubling to the one before."""
    ticks_apart: list[float] = []
    for tick in ticks:
        if not ticks_apart or tick >= ticks_apart[-1] * 1.4:
            ticks_apart.append(tick)
    return ticks_apart


def rate_axis(axes: Axes, label: str = "operations per second", *, from_zero: bool = True) -> None:
    """Make y a rate, from 0 on unless it is logarithmic."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if from_zero and axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    axes.set_ylabel(label)


def time_axis(axes: Axes, label: str = "latency") -> None:
    """Make y a duration given in nanoseconds, shown as us, ms or s."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.set_ylabel(label)


def duration(nanoseconds: float) -> str:
    """Write a duration with three figures and its unit."""
    for divisor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(nanoseconds) >= divisor:
            return f"{nanoseconds / divisor:.3g} {unit}"
    return f"{nanoseconds:.0f} ns" if nanoseconds else "0"


def line(
    axes: Axes,
    xs: Values,
    ys: Values,
    low: Values | None = None,
    high: Values | None = None,
    *,
    line_style: LineStyle,
) -> None:
    """Draw measured points joined by a line, and the band of their intervals; NaN in a bound leaves its band out."""
    axes.plot(
        xs, ys, color=line_style.colour, marker=line_style.marker, linestyle=line_style.dash, markeredgecolor="white"
    )
    if low is not None and high is not None:
        axes.fill_between(xs, low, high, color=line_style.colour, alpha=0.18, linewidth=0)
        axes.vlines(xs, low, high, color=line_style.colour, alpha=0.5, linewidth=1.6)


def label_ends(axes: Axes, ends: Sequence[End], *, gap: float = 0.062, size: float = 15) -> None:
    """Label each line next to its end, in its color, without overlaps; call it when the limits are final.

    axes: of the last column; they become narrower if the labels need more room.
    gap: between two labels of one line each, share of the height of the axes.
    """
    page = axes.get_figure(root=True)
    if not ends or not isinstance(page, Slide):
        return
    texts = [
        axes.text(1.04, 0, end.text, transform=axes.transAxes, color=ink(end.colour), fontsize=size,
                  fontweight="bold", va="center", linespacing=1.1)
        for end in ends
    ]  # fmt: skip
    widest = max(page.width(text) for text in texts)
    page.subplots_adjust(right=min(page.subplotpars.right, 0.985 - widest - 0.04 * axes.get_position().width))
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [to_axes.transform((end.x, end.y)) for end in ends]
    order = sorted(range(len(ends)), key=lambda each: float(places[each][1]))
    rows = [gap * (ends[each].text.count("\n") + 1) for each in order]
    heights = spread([float(places[each][1]) for each in order], rows)
    for each, height in zip(order, heights, strict=True):
        texts[each].set_y(height)
        axes.plot([places[each][0] + 0.012, 1.03], [places[each][1], height], transform=axes.transAxes,
                  color=ends[each].colour, linewidth=1, linestyle=":", clip_on=False)  # fmt: skip


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float = 0.0, high: float = 1.0) -> list[float]:
    """Move ascending heights as little as needed so that labels at these heights do not overlap.

    sizes: height of each label. Adjacent labels that touch are centered on the mean of their original heights.
    """
    blocks: list[tuple[list[int], float]] = []  # members, middle of the block

    def inside(members: Sequence[int]) -> float:
        half = _half(members, sizes)
        return min(max(sum(wanted[each] for each in members) / len(members), low + half), high - half)

    for place in range(len(wanted)):
        members = [place]
        while blocks and blocks[-1][1] + _half(blocks[-1][0], sizes) > inside(members) - _half(members, sizes):
            members = blocks.pop()[0] + members
        blocks.append((members, inside(members)))
    heights = []
    for members, middle in blocks:
        edge = middle - _half(members, sizes)
        for each in members:
            heights.append(edge + sizes[each] / 2)
            edge += sizes[each]
    return heights


def _half(members: Sequence[int], sizes: Sequence[float]) -> float:
    return sum(sizes[each] for each in members) / 2


def nothing(title: str, reason: str, source: str) -> Slide:
    """Return a chart that says why there is none."""
    made, (axes,) = slide(title, source, right=0.97)
    axes.set_axis_off()
    axes.text(0.5, 0.55, "\n".join(textwrap.wrap(reason, 70)), transform=axes.transAxes, ha="center", va="center",
              fontsize=19, color=MUTED, linespacing=1.4)  # fmt: skip
    return made
