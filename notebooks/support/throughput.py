"""How operations a second, and the CPU they cost, go with the number of sessions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import pandas as pd

from support import style
from support.answer import Answer, cannot_tell, command, figures, listed
from support.gather import gather
from support.intervals import median
from support.sides import at_defaults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from support.gather import Data

USES: Final = ("valid", "limited", "invalid")
HOLLOW: Final = "hollow: the client was at its limit, the server may do more"
CROSSED: Final = "cross: no repetition passed the gates"
COLUMNS: Final = [
    "mix", "line", "sessions", "rate", "low", "high", "repetitions", "use", "server_us", "client_us", "cores",
]  # fmt: skip


def table(data: Data) -> pd.DataFrame:
    """Give one row for each line and number of sessions, of the closed loop with the plugin's default settings.

    rate, low, high: median of the repetitions and its 95 % interval. use: `valid`; `limited` or `invalid` where no
    repetition was better, see `gather.Data`. server_us, client_us: CPU of one operation. cores: used by the server.
    """
    rows = []
    for place, part in at_defaults(data.closed).groupby(["mix", "line", "sessions"], sort=True):
        use = next(each for each in USES if (part["use"] == each).any())
        selected = part[part["use"] == use]
        found = median(selected["qps"].tolist(), name=f"{selected['run_id'].iloc[0]} {place}")
        rows.append((
            *place, found.value, found.low, found.high, found.count, use, selected["server_cpu_us_per_op"].median(),
            selected["client_cpu_us_per_op"].median(), selected["cpu_share"].median() * data.cores,
        ))  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def words(data: Data) -> pd.DataFrame:
    """Return the table for readers."""
    rows = []
    for row in table(data).to_dict("records"):
        known = math.isfinite(row["low"])
        rows.append({
            "request": row["mix"], "server": row["line"], "sessions": row["sessions"],
            "operations / s": figures(row["rate"]),
            "95 % interval": f"{figures(row['low'])} to {figures(row['high'])}" if known else "-",
            "repetitions": row["repetitions"], "use": row["use"],
            "server CPU, µs / op": _or_dash(row["server_us"]), "client CPU, µs / op": _or_dash(row["client_us"]),
            "server's cores": _or_dash(row["cores"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _or_dash(value: float) -> str:
    return figures(value, 2) if math.isfinite(value) else "-"


def best(rates: pd.DataFrame) -> pd.DataFrame:
    """Return of each line the row with its highest rate, valid or limited, the fastest line first."""
    usable = rates[rates["use"] != "invalid"]
    highest = usable.loc[usable.groupby(["mix", "line"])["rate"].idxmax()]
    return highest.sort_values(["mix", "rate"], ascending=[True, False]).reset_index(drop=True)


def chart_rates(data: Data) -> style.Slide:
    """Draw operations a second by sessions, a panel for each mix of verbs."""
    rates, line_styles = table(data), data.line_styles
    panels = list(dict.fromkeys(rates["mix"]))
    columns = min(len(panels), 3)
    made, all_axes = style.slide(
        _fastest(rates[rates["mix"] == panels[0]]), data.source, subtitle=_measured(data, rates),
        columns=columns, rows=math.ceil(len(panels) / columns), share_y=True, wspace=0.1,
    )  # fmt: skip
    for number, axes in enumerate(all_axes):
        if number >= len(panels):
            axes.set_visible(False)
            continue
        part = rates[rates["mix"] == panels[number]]
        for line, points in part.groupby("line", sort=True):
            _line(axes, points, line_styles[str(line)])
        style.sessions_axis(axes, part["sessions"])
        style.rate_axis(axes, "" if number % columns else "operations per second")
        axes.set_title(panels[number] if len(panels) > 1 else "")
    style.label_ends(all_axes[columns - 1], _ends(rates[rates["mix"] == panels[columns - 1]], "rate", line_styles))
    return made


def _line(axes: Axes, points: pd.DataFrame, line_style: style.LineStyle) -> None:
    style.line(axes, points["sessions"], points["rate"], points["low"], points["high"], line_style=line_style)
    limited, invalid = points[points["use"] == "limited"], points[points["use"] == "invalid"]
    axes.plot(limited["sessions"], limited["rate"], line_style.marker, color=line_style.colour, markerfacecolor="white",
              markeredgewidth=2, markersize=9)  # fmt: skip
    axes.plot(
        invalid["sessions"], invalid["rate"], "X", color="white", markeredgecolor=line_style.colour, markersize=11
    )


def _ends(rates: pd.DataFrame, column: str, line_styles: dict[str, style.LineStyle]) -> list[style.End]:
    known = rates.dropna(subset=[column])
    last = known.loc[known.groupby("line")["sessions"].idxmax()]
    return [
        style.End(float(sessions), float(value), str(line), line_styles[str(line)].colour)
        for line, sessions, value in zip(last["line"], last["sessions"], last[column], strict=True)
    ]


def _measured(data: Data, rates: pd.DataFrame) -> str:
    few = rates["low"].isna().any()
    notes = f"{data.title}; closed loop, median of {_range(rates['repetitions'])} repetitions"
    notes += ", band: 95 % interval" + (" where there are 5" if few else "")
    notes += f"; {HOLLOW}" if (rates["use"] == "limited").any() else ""
    return notes + (f"; {CROSSED}" if (rates["use"] == "invalid").any() else "")


def _range(counts: pd.Series[int]) -> str:
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"


def _fastest(rates: pd.DataFrame) -> str:
    """Say which line is fastest, or that none is shown to be."""
    top = best(rates)
    if top.empty:
        return "No point passed the gates: nothing is claimed about throughput"
    first = top.iloc[0]
    least = "at least " if first["use"] == "limited" else ""
    rate = f"{least}{style.short(first['rate'])} operations per second with {_sessions(first['sessions'])}"
    if len(top) == 1:
        return f"{first['line']} does {rate}"
    second = top.iloc[1]
    if second["use"] == "valid" and first["low"] > second["high"]:
        return f"{first['line']} is fastest: {rate}, {least}{first['rate'] / second['rate']:.2g} times {second['line']}"
    both = f"{style.short(first['rate'])} and {style.short(second['rate'])} operations per second"
    return f"At the top no difference is shown between {first['line']} and {second['line']}: {both}"


def _sessions(count: float) -> str:
    return f"{int(count)} session" + ("s" if count != 1 else "")


def answer(scenario: str) -> Answer:
    """Say how far each line grows with sessions."""
    data = gather(scenario)
    if data is None:
        return cannot_tell(f"no run of {scenario} here", command=command(scenario))
    rates = table(data)
    rates = rates[rates["mix"] == rates["mix"].iloc[0]]
    top = best(rates)
    if top.empty:
        return cannot_tell("no point passed the gates", command=command(scenario), limits=data.left_out)
    least, most = int(rates["sessions"].min()), int(rates["sessions"].max())
    parts = []
    for row in top.to_dict("records"):
        alone = rates[
            (rates["line"] == row["line"]) & (rates["sessions"] == rates["sessions"].min()) & (rates["use"] == "valid")
        ]
        times = (
            f" ({figures(row['rate'] / alone['rate'].iloc[0], 2)} times one session)"
            if len(alone) and row["sessions"] > 1
            else ""
        )
        more = "at least " if row["use"] == "limited" else ""
        parts.append(f"{row['line']} {more}{figures(row['rate'])} with {_sessions(row['sessions'])}{times}")
    sentence = f"Between {least} and {most} sessions the highest rates, operations a second, are: {listed(parts)}."
    return Answer(sentence, (*data.left_out, *_limits(data, rates)))


def _limits(data: Data, rates: pd.DataFrame) -> list[str]:
    notes = [
        f"How it goes on with more than {data.cores} cores: clients and servers shared those of this machine.",
    ]
    if (rates["use"] == "limited").any():
        notes.append("What the servers do beyond the client's limit: where points are hollow they may be faster.")
    if invalid := int((rates["use"] == "invalid").sum()):
        notes.append(f"Anything from {invalid} of {len(rates)} points, of which no repetition passed the gates.")
    return notes
