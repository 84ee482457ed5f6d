"""The scalability law and the capacity answer for each line of a scenario, as tables, charts and sentences."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from support import articles, style, usl
from support.answer import Answer, cannot_tell, command, figures, listed, percent
from support.gather import gather
from support.sides import at_defaults
from support.usl import NoFit, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from support.gather import Data

MOST_PANELS: Final = 6


@functools.cache
def studies(data: Data) -> dict[str, Study | NoFit]:
    """Fit the law to each line's valid points of the closed loop; of the first mix of verbs."""
    closed = at_defaults(data.closed)
    closed = closed[closed["mix"] == closed["mix"].iloc[0]]
    found = {}
    for line, part in closed.groupby("line", sort=True):
        valid = part[part["use"] == "valid"]
        rates = {int(n): group["qps"].tolist() for n, group in valid.groupby("sessions", sort=True)}
        result = usl.study(rates, name=f"{part['run_id'].iloc[0]} {line}", growing=data.growing)
        lost = part["sessions"].nunique() - len(rates)
        if isinstance(result, NoFit) and lost and not data.growing:
            result = NoFit(f"{result.reason} ({lost} more passed no gate)")
        found[str(line)] = result
    return found


def fits(data: Data) -> pd.DataFrame:
    """Return a row for each line: parameters with intervals, where the law peaks, how far it is off; or why not."""
    return _table(studies(data))


def published() -> pd.DataFrame:
    """Return the law of the articles' own figures, and why none of them is a fit."""
    rows = []
    for name, points in articles.curves().items():
        growing = "each thread writes its own new keys" if name.startswith("memslap-set") else ""
        study = usl.study({sessions: [rate] for sessions, rate in points.items()}, name=name, growing=growing)
        fit = usl.fit(list(points), list(points.values()))
        rows.append({
            "series": name, "points": len(points), "gamma, ops/s": figures(fit.gamma, 4), "alpha": figures(fit.alpha),
            "beta": figures(fit.beta), "peak, sessions": figures(fit.peak_sessions),
            "peak, ops/s": figures(fit.peak_rate), "error": percent(fit.error),
            "verdict": study.reason if isinstance(study, NoFit) else _verdict(study),
        })  # fmt: skip
    return pd.DataFrame(rows).set_index("series")


def _table(found: dict[str, Study | NoFit]) -> pd.DataFrame:
    columns = [*usl.PARAMETERS, "error", "leave last out", "verdict"]
    rows = []
    for line, study in found.items():
        if isinstance(study, NoFit):
            rows.append({"line": line} | dict.fromkeys(columns, "") | {"verdict": study.reason})
            continue
        fit = study.fit
        rows.append({
            "line": line,
            **{name: _with_interval(getattr(fit, name), study.intervals.get(name)) for name in usl.PARAMETERS},
            "error": percent(fit.error),
            "leave last out": f"{percent(study.prediction_error, sign=True)} at {study.last}",
            "verdict": _verdict(study),
        })  # fmt: skip
    names = {
        "gamma": "gamma, ops/s",
        "peak_sessions": "peak, sessions",
        "peak_rate": "peak, ops/s",
    }
    return pd.DataFrame(rows, columns=["line", *columns]).rename(columns=names).set_index("line")


def _with_interval(value: float, bounds: tuple[float, float] | None) -> str:
    if bounds is None:
        return figures(value)
    return f"{figures(value)} ({figures(bounds[0], 2)} to {figures(bounds[1], 2)})"


def _verdict(study: Study) -> str:
    if not study.within(study.fit.peak_sessions):
        return "no peak inside what was measured"
    return f"peak near {figures(study.fit.peak_sessions, 2)} sessions"


def chart_fits(data: Data) -> style.Slide:
    """Draw points and law, a panel for each line."""
    found = studies(data)
    highest = data.closed.groupby("line")["qps"].max()
    shown = {line: found[line] for line in sorted(found, key=lambda line: -highest[line])[:MOST_PANELS]}
    rest = f"; the {len(shown)} fastest of {len(found)} lines" if len(found) > len(shown) else ""
    columns = {1: 1, 2: 2, 4: 2}.get(len(shown), 3)
    made, all_axes = style.slide(
        _peaks(found), data.source, columns=columns, rows=math.ceil(len(shown) / columns), right=0.97,
        hspace=0.42, wspace=0.2,
        subtitle=f"{data.title}; points: medians of valid repetitions; curve: Universal Scalability Law{rest}",
    )  # fmt: skip
    sessions = at_defaults(data.closed)["sessions"]
    for axes, (line, study) in zip(all_axes, shown.items(), strict=False):
        axes.set_title(line)
        if isinstance(study, NoFit):
            _say(axes, study.reason)
        else:
            _law(axes, study, data.looks[line])
        style.sessions_axis(axes, sessions)
        style.rate_axis(axes, "")
    for axes in all_axes[len(shown) :]:
        axes.set_visible(False)
    for axes in all_axes[: len(shown) - columns]:
        axes.set_xlabel("")
    for axes in all_axes[::columns]:
        axes.set_ylabel("operations / s")
    return made


def _law(axes: Axes, study: Study, look: style.Look) -> None:
    grid = np.geomspace(study.sessions[0], study.sessions[-1], 200)
    axes.plot(grid, study.fit.rate(grid), color=look.colour)
    axes.plot(study.sessions, study.rates, look.marker, color=style.INK, markersize=7)
    top = max(*study.rates, float(np.max(study.fit.rate(grid)))) * 1.12
    axes.set_ylim(0, top)
    peak = study.fit.peak_sessions
    if study.within(peak):
        axes.axvline(peak, color=style.MUTED, linestyle=":", linewidth=1.6)
    said = f"peak near {figures(peak, 2)}" if study.within(peak) else f"no peak up to {study.last}"
    axes.text(
        0.97,
        0.06,
        f"{said}\nmean error {percent(study.fit.error)}",
        transform=axes.transAxes,
        va="bottom",
        ha="right",
        fontsize=13.5,
        color=style.MUTED,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
    )


def _say(axes: Axes, reason: str) -> None:
    axes.set_yticks([])
    axes.grid(visible=False)
    style.note(axes, reason)


def _peaks(found: dict[str, Study | NoFit]) -> str:
    fitted = {line: study for line, study in found.items() if isinstance(study, Study)}
    if not fitted:
        return "No line has enough valid points for the scalability law"
    inside = {line: study.fit.peak_sessions for line, study in fitted.items() if study.within(study.fit.peak_sessions)}
    if not inside:
        most = max(study.last for study in fitted.values())
        return f"No line has its peak within {most} sessions, by the scalability law"
    if len(inside) < 3:
        parts = [f"{line} near {figures(peak, 2)}" for line, peak in inside.items()]
        return f"By the scalability law throughput peaks with so many sessions: {listed(parts)}"
    low, high = figures(min(inside.values()), 2), figures(max(inside.values()), 2)
    return f"By the scalability law {len(inside)} of {len(found)} lines peak with {low} to {high} sessions"


def chart_residuals(data: Data) -> style.Slide:
    """Draw how far the law is from each point, and from the last point when it was left out."""
    found = studies(data)
    fitted = {line: study for line, study in found.items() if isinstance(study, Study)}
    if not fitted:
        return style.nothing("How far the law is off: cannot tell", _peaks(found) + ".", data.source)
    worst = max(fitted, key=lambda line: max(abs(each) for each in fitted[line].fit.residuals))
    off = max(abs(each) for each in fitted[worst].fit.residuals)
    ahead = max(fitted, key=lambda line: abs(fitted[line].prediction_error))
    error = fitted[ahead].prediction_error
    made, (axes,) = style.slide(
        f"The law is off by up to {percent(off)} where it was fitted, by {percent(abs(error))} a step ahead ({ahead})",
        data.source,
        left=0.1,
        subtitle="(law - measured) / measured; star: the last point predicted from the others",
    )  # fmt: skip
    axes.axhline(0, color=style.MUTED, linewidth=1.5)
    for line, study in fitted.items():
        look = data.looks[line]
        residuals = [100 * each for each in study.fit.residuals]
        style.line(axes, study.sessions, residuals, look=look)
        axes.plot([study.last], [100 * study.prediction_error], "*", color=look.colour, markersize=18,
                  markeredgecolor="white", zorder=5)  # fmt: skip
    style.sessions_axis(axes, [n for study in fitted.values() for n in study.sessions])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %" if value else "0")
    axes.set_ylabel("law against measurement")
    ends = {line: (study.last, 100 * study.fit.residuals[-1]) for line, study in fitted.items()}
    style.label_ends(axes, [style.End(*place, line, data.looks[line].colour) for line, place in ends.items()])
    return made


def answer(scenario: str) -> Answer:
    """State where each line peaks, and for which lines this is unknown."""
    data = gather(scenario)
    if data is None:
        return cannot_tell(f"no run of {scenario} here", command=command(scenario))
    found = studies(data)
    fitted = {line: study for line, study in found.items() if isinstance(study, Study)}
    if not fitted:
        reasons = "; ".join(dict.fromkeys(each.reason for each in found.values() if isinstance(each, NoFit)))
        return cannot_tell(f"where throughput peaks ({reasons})", command=command(scenario))
    parts = [f"{line}: {_told(study)}" for line, study in fitted.items()]
    missing = [f"Where {line} peaks: {each.reason}." for line, each in found.items() if isinstance(each, NoFit)]
    beyond = "What happens beyond the most sessions that were measured: the law is a curve through points, no proof."
    return Answer("; ".join(parts) + ".", (*missing, beyond))


def _told(study: Study) -> str:
    if not study.within(study.fit.peak_sessions):
        return f"no peak up to {study.last} sessions"
    bounds: Any = study.intervals.get("peak_sessions")
    between = f" ({figures(bounds[0], 2)} to {figures(bounds[1], 2)})" if bounds else " (no interval)"
    rate = f"{figures(study.fit.peak_rate)} operations a second"
    return f"highest near {figures(study.fit.peak_sessions, 2)} sessions{between}, {rate}"
